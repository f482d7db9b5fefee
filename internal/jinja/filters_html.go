package jinja

import (
	"html"
	"strings"
)

func stripTags(r *run, x Value, a *arguments) Value {
	r.take("striptags", a)
	s := r.str(x)
	r.spend(4*len(s), 2*len(s))
	var parts []string
	for {
		at := strings.IndexByte(s, '<')
		if at < 0 {
			break
		}
		end, skip := ">", 1
		if strings.HasPrefix(s[at:], "<!--") {
			end, skip = "-->", 4
		}
		n := strings.Index(s[at+skip:], end)
		if n < 0 {
			break
		}
		parts = append(parts, s[:at])
		s = s[at+skip+n+len(end):]
	}
	s = strings.Join(append(parts, s), "")
	return html.UnescapeString(strings.Join(strings.FieldsFunc(s, isSpace), " "))
}

func xmlAttr(r *run, x Value, a *arguments) Value {
	space := truth(or(r.take("xmlattr", a, "autospace?")[0], true))
	d, ok := x.(*Dict)
	if !ok {
		r.undefined(x)
		r.fail("xmlattr wants a dictionary, not a %s", typeName(x))
	}
	r.spend(8*len(d.keys), 0)
	var parts []string
	for i, key := range d.keys {
		v := d.values[i]
		if _, undefined := v.(*Undefined); undefined || v == nil {
			continue
		}
		if strings.ContainsAny(r.string(key, "xmlattr"), " \t\n\r\f\v/>=") {
			r.fail("xmlattr: a key has a character that no attribute may have")
		}
		parts = append(parts, r.escaped(key)+`="`+r.escaped(v)+`"`)
	}
	s := r.joined(parts, " ")
	if space && s != "" {
		s = " " + s
	}
	return s
}

func urlEncode(r *run, x Value, a *arguments) Value {
	r.take("urlencode", a)
	if _, isText := text(x); isText || !canIterate(x) {
		return r.text(quoteURL(r.str(x), "/"))
	}
	var pairs []Value
	if d, ok := x.(*Dict); ok {
		pairs = r.elements(&view{d, "items"})
	} else {
		pairs = r.elements(x)
	}
	var parts []string
	for _, pair := range pairs {
		items := r.elements(pair)
		if len(items) != 2 {
			r.fail("urlencode wants pairs")
		}
		for i := range items {
			s := strings.ReplaceAll(quoteURL(r.str(items[i]), ""), "%20", "+")
			parts = append(parts, r.text([]string{s + "=", s}[i]))
		}
		parts = append(parts, "&")
	}
	return strings.TrimSuffix(r.joined(parts, ""), "&")
}

// quoteURL is Python's urllib.parse.quote.
func quoteURL(s, keep string) string {
	var b strings.Builder
	for i := range len(s) {
		c := s[i]
		switch {
		case c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("_.-~"+keep, c) >= 0:
			b.WriteByte(c)
		default:
			b.WriteByte('%')
			b.WriteByte("0123456789ABCDEF"[c>>4])
			b.WriteByte("0123456789ABCDEF"[c&15])
		}
	}
	return b.String()
}
