package grammar

// formats are regular expressions for texts with a format. They leave out some valid texts. Other formats
// impose nothing. An email has at most 254 characters, as in RFC 5321: limiting the total costs nothing.
var formats = map[string]string{
	"date":      "^" + date + "$",
	"time":      "^" + clock + "$",
	"date-time": "^" + date + "T" + clock + "$",
	"duration":  `^P([1-9]\d{0,3}[YMWD]|T[1-9]\d{0,3}[HMS])$`,
	"uuid":      `^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`,
	"ipv4":      `^` + octet + `(\.` + octet + `){3}$`,
	"ipv6":      `^([0-9a-f]{1,4}:){7}[0-9a-f]{1,4}$`,
	"email":     `^[A-Za-z0-9_+-]{1,29}(\.[A-Za-z0-9_+-]{1,29}){0,3}@` + host + `$`,
	"hostname":  `^` + host + `$`,
	"uri":       `^https?://` + host + `(/[A-Za-z0-9._~-]{1,60}){0,8}/?$`,
}

const (
	date  = `[0-9]{4}-((0[13578]|1[02])-(0[1-9]|[12]\d|3[01])|(0[469]|11)-(0[1-9]|[12]\d|30)|02-(0[1-9]|1\d|2[0-8]))`
	clock = `([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d{1,6})?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)`
	octet = `(25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)`
	host  = `[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?(\.[a-z]([a-z0-9-]{0,30}[a-z0-9])?){1,3}`
)
