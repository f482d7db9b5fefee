package grammar

import (
	"fmt"
	"strings"
)

// formats are regular expressions for texts with a format, those of longer texts first: the first that a maxLength
// cannot cut counts, since limiting the total then costs nothing. They leave out some valid texts. Other formats
// impose nothing. An email has at most 254 characters, as in RFC 5321.
var formats = map[string][]string{
	"date":      {"^" + date + "$"},
	"time":      {"^" + clock + "$"},
	"date-time": {"^" + date + "T" + clock + "$"},
	"duration":  {`^P(\d{1,9}W|` + days + `(T` + hours + `)?|T` + hours + `)$`},
	"uuid":      {`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`},
	"ipv4":      {`^` + octet + `(\.` + octet + `){3}$`},
	"ipv6":      {`^` + ipv6() + `$`},
	"email": {`^` + local + `{1,29}(\.` + local + `{1,29}){0,3}@(` + label + `\.){1,3}` + top + `$`,
		`^` + local + `{1,30}@` + label + `\.` + top + `$`},
	"hostname": {`^` + label + `(\.` + label + `){0,6}$`, `^` + label + `(\.` + label + `)?$`},
	"uri": {uri("*"), uri("{0,250}"), uri("{0,20}"),
		`^https?://` + label + `(\.` + label + `){0,2}(:` + port + `)?(/` + inPath + `{0,20})?(\?` + inPath + `{0,20})?$`,
		`^https?://` + label + `\.` + top + `(/` + inPath + `{0,15})?$`},
}

const (
	date = `((\d\d(0[48]|[2468][048]|[13579][26])|([02468][048]|[13579][26])00)-02-29|\d{4}-` +
		`((0[13578]|1[02])-(0[1-9]|[12]\d|3[01])|(0[469]|11)-(0[1-9]|[12]\d|30)|02-(0[1-9]|1\d|2[0-8])))`
	clock   = `([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d{1,9})?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)`
	days    = `(\d{1,9}D|\d{1,9}M(\d{1,9}D)?|\d{1,9}Y(\d{1,9}M(\d{1,9}D)?)?)`
	hours   = `(\d{1,9}S|\d{1,9}M(\d{1,9}S)?|\d{1,9}H(\d{1,9}M(\d{1,9}S)?)?)`
	octet   = `(25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)`
	local   = `[A-Za-z0-9_+%'-]`
	label   = `[A-Za-z0-9]([A-Za-z0-9-]{0,30}[A-Za-z0-9])?`
	top     = `[A-Za-z]([A-Za-z0-9-]{0,30}[A-Za-z0-9])?`
	port    = `(6553[0-5]|655[0-2]\d|65[0-4]\d\d|6[0-4]\d{3}|[1-5]\d{4}|[1-9]\d{0,3})`
	user    = `([A-Za-z0-9._~!$&'()*+,;=:-]|%[0-9A-Fa-f]{2}){1,20}@`
	inPath  = `([A-Za-z0-9._~!$&'()*+,;=:@/-]|%[0-9A-Fa-f]{2})`
	inQuery = `([A-Za-z0-9._~!$&'()*+,;=:@/?-]|%[0-9A-Fa-f]{2})`
)

// uri returns the expression of RFC 3986's URIs, whose parts have as many characters as a repetition says. A host
// alone, such as www.example.org, does not begin as one.
func uri(times string) string {
	authority := `(` + user + `)?(` + label + `(\.` + label + `){0,5}|\[` + ipv6() + `\])(:` + port + `)?`
	path := `/` + inPath + times
	opaque := `(mailto|tel|sms|urn|data|news|geo|magnet):` + inPath + times
	return `^(([a-vx-z]|w[a-vx-z])[a-z0-9+-]{0,15}://(` + authority + `(` + path + `)?|` + path + `)|` + opaque + `)` +
		`(\?` + inQuery + times + `)?(#` + inQuery + `{0,20})?$`
}

// ipv6 returns the expression of addresses without a gap, and with one before, within or behind their groups.
func ipv6() string {
	const group = `[0-9a-fA-F]{1,4}`
	all := []string{`(` + group + `:){7}` + group, `(` + group + `:){1,7}:`, `:(:` + group + `){1,7}`, `::`}
	for n := 1; n <= 6; n++ {
		all = append(all, fmt.Sprintf(`(%s:){1,%d}(:%s){1,%d}`, group, n, group, 7-n))
	}
	return `(` + strings.Join(all, "|") + `)`
}
