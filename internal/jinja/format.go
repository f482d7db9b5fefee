package jinja

import (
	"math"
	"math/big"
	"strconv"
	"strings"
	"unicode/utf8"
)

// spec is the layout of a number or a text: the mini-language of str.format, and the part of it that % has.
type spec struct {
	fill      string
	align     byte // < > ^ =, or 0
	sign      byte // + - space, or 0
	alternate bool // #
	width     int
	group     string // , or _
	precision int    // −1: none
	kind      byte   // or 0
}

// parseSpec reads [[fill]align][sign][#][0][width][group][.precision][type].
func (r *run) parseSpec(s string) spec {
	sp := spec{fill: " ", precision: -1}
	list := []rune(s)
	isAlign := func(c rune) bool { return strings.ContainsRune("<>=^", c) }
	switch {
	case len(list) > 1 && isAlign(list[1]):
		sp.fill = string(list[0])
		sp.align = byte(list[1])
		list = list[2:]
	case len(list) > 0 && isAlign(list[0]):
		sp.align, list = byte(list[0]), list[1:]
	}
	rest := string(list)
	if rest != "" && strings.IndexByte("+- ", rest[0]) >= 0 {
		sp.sign, rest = rest[0], rest[1:]
	}
	if strings.HasPrefix(rest, "#") {
		sp.alternate, rest = true, rest[1:]
	}
	if strings.HasPrefix(rest, "0") {
		rest = rest[1:]
		if sp.align == 0 {
			sp.fill, sp.align = "0", '='
		}
	}
	sp.width, rest = r.count(rest, 0)
	if rest != "" && (rest[0] == ',' || rest[0] == '_') {
		sp.group, rest = rest[:1], rest[1:]
	}
	if strings.HasPrefix(rest, ".") {
		sp.precision, rest = r.count(rest[1:], -1)
		if sp.precision < 0 {
			r.fail("format: a precision is missing in %q", s)
		}
	}
	if len(rest) > 1 {
		r.fail("format: %q is no format", s)
	}
	if rest != "" {
		sp.kind = rest[0]
	}
	return sp
}

// count reads the number of a width or precision.
func (r *run) count(s string, none int) (n int, rest string) {
	k := 0
	for k < len(s) && s[k] >= '0' && s[k] <= '9' {
		k++
	}
	if k == 0 {
		return none, s
	}
	n, err := strconv.Atoi(s[:k])
	if err != nil || n > r.maxMade {
		r.fail("format: %s is too much", s[:k])
	}
	return n, s[k:]
}

// format is Python's format(v, spec).
func (r *run) format(v Value, text string) string {
	if text == "" {
		return r.str(v)
	}
	if _, ok := v.(Markup); ok {
		r.fail("format: text that is safe takes no format")
	}
	sp := r.parseSpec(text)
	switch v := v.(type) {
	case string:
		if sp.kind != 0 && sp.kind != 's' || sp.sign != 0 || sp.alternate || sp.group != "" ||
			sp.align == '=' && sp.fill != "0" {
			r.fail("format: %q is no format of a text", text)
		}
		if sp.align == 0 || sp.align == '=' {
			sp.align = '<'
		}
		return r.padded(sp, "", r.shortened(v, sp.precision))
	case bool, *big.Int:
		return r.formatInteger(sp, whole(v), text)
	case float64:
		return r.formatFloat(sp, v, text)
	}
	r.undefined(v)
	r.fail("format: a %s takes no format", typeName(v))
	return ""
}

func (r *run) shortened(s string, n int) string {
	if n < 0 {
		return s
	}
	return s[:runeOffset(s, n)]
}

func (r *run) formatInteger(sp spec, i *big.Int, text string) string {
	if sp.kind != 0 && strings.IndexByte("eEfFgG%", sp.kind) >= 0 {
		f, _ := r.float(i)
		return r.formatFloat(sp, f, text)
	}
	if sp.precision >= 0 {
		r.fail("format: an integer takes no precision")
	}
	prefix := ""
	digits := ""
	every := 4
	mag := new(big.Int).Abs(i)
	r.spend(mag.BitLen(), 0)
	switch sp.kind {
	case 0, 'd', 'n':
		digits, every = r.digits(mag), 3
	case 'x':
		prefix, digits = "0x", mag.Text(16)
	case 'X':
		prefix, digits = "0X", strings.ToUpper(mag.Text(16))
	case 'o':
		prefix, digits = "0o", mag.Text(8)
	case 'b':
		prefix, digits = "0b", mag.Text(2)
	case 'c':
		if !i.IsInt64() || i.Int64() < 0 || i.Int64() > utf8.MaxRune || sp.sign != 0 {
			r.fail("format: there is no such character")
		}
		if sp.align == 0 {
			sp.align = '<'
		}
		return r.padded(sp, "", string(rune(i.Int64())))
	default:
		r.fail("format: %q is no format of an integer", text)
	}
	if sp.group == "," && every == 4 {
		r.fail("format: a comma goes with decimal digits")
	}
	if !sp.alternate {
		prefix = ""
	}
	return r.number(sp, i.Sign() < 0, prefix, digits, every)
}

// number lays out the digits of a number.
func (r *run) number(sp spec, negative bool, prefix, digits string, every int) string {
	sign := ""
	switch {
	case negative:
		sign = "-"
	case sp.sign == '+' || sp.sign == ' ':
		sign = string(sp.sign)
	}
	if sp.align == 0 {
		sp.align = '>'
	}
	if sp.group != "" {
		end := strings.IndexFunc(digits, func(c rune) bool { return c == '.' || c == 'e' || c == 'E' || c == '%' })
		if end < 0 {
			end = len(digits)
		}
		room := 0
		if sp.align == '=' && sp.fill == "0" {
			room = sp.width - len(sign) - len(prefix) - (len(digits) - end)
		}
		digits = r.grouped(digits[:end], sp.group, every, room) + digits[end:]
	}
	return r.padded(sp, sign+prefix, digits)
}

// grouped puts a mark between groups of digits, after padding them with zeros.
func (r *run) grouped(digits, mark string, every, room int) string {
	for len(digits)+(len(digits)-1)/every < room {
		if n := len(digits) + 1; n+(n-1)/every > room && n%every == 1 {
			digits = "0" + digits // a mark cannot come first
			break
		}
		digits = "0" + digits
		r.spend(len(digits), 0)
	}
	var b strings.Builder
	for i := range len(digits) {
		if i > 0 && (len(digits)-i)%every == 0 {
			b.WriteString(mark)
		}
		b.WriteByte(digits[i])
	}
	return r.text(b.String())
}

// padded pads a text to the width; the padding of = goes after the head.
func (r *run) padded(sp spec, head, s string) string {
	n := sp.width - utf8.RuneCountInString(head) - utf8.RuneCountInString(s)
	if n <= 0 {
		return r.joined([]string{head, s}, "")
	}
	fill := func(n int) string { return r.repeated(sp.fill, n) }
	switch sp.align {
	case '<':
		return r.joined([]string{head, s, fill(n)}, "")
	case '^':
		return r.joined([]string{fill(n / 2), head, s, fill(n - n/2)}, "")
	case '=':
		return r.joined([]string{head, fill(n), s}, "")
	}
	return r.joined([]string{fill(n), head, s}, "")
}

func (r *run) formatFloat(sp spec, f float64, text string) string {
	digits := r.floatDigits(sp, math.Abs(f), text)
	return r.number(sp, math.Signbit(f) && !math.IsNaN(f), "", digits, 3)
}

// floatDigits returns the digits of a number that is not negative.
func (r *run) floatDigits(sp spec, f float64, text string) string {
	kind := sp.kind
	upper := kind >= 'A' && kind <= 'Z'
	precision := sp.precision
	if precision < 0 {
		precision = 6
	}
	if precision > 5000 {
		r.fail("format: a precision of %d digits is not supported", precision)
	}
	r.spend(floatWork+precision, precision)
	var s string
	switch {
	case math.IsInf(f, 0):
		s = "inf"
	case math.IsNaN(f):
		s = "nan"
	case kind == 'f' || kind == 'F':
		s = strconv.FormatFloat(f, 'f', precision, 64)
	case kind == '%':
		s = strconv.FormatFloat(f*100, 'f', precision, 64)
	case kind == 'e' || kind == 'E':
		s = strconv.FormatFloat(f, 'e', precision, 64)
	case kind == 'g' || kind == 'G' || kind == 'n':
		s = general(f, precision, sp.alternate, false)
	case kind == 0 && sp.precision < 0:
		s = floatText(f, "", "")
	case kind == 0:
		s = general(f, precision, sp.alternate, true)
	default:
		r.fail("format: %q is no format of a float", text)
	}
	if kind == '%' {
		s += "%"
	}
	if sp.alternate && !strings.Contains(s, ".") && kind != 0 {
		r.fail("format: # of a float without a point is not supported")
	}
	if upper {
		s = strings.ToUpper(s)
	}
	return s
}

// general is C's %g. With point, there is always a point or an exponent, as for a float without a type.
func general(f float64, precision int, keep, point bool) string {
	precision = max(precision, 1)
	e := strconv.FormatFloat(f, 'e', precision-1, 64)
	exponent, _ := strconv.Atoi(e[strings.IndexByte(e, 'e')+1:])
	limit := precision
	if point {
		limit--
	}
	trim := func(s string) string {
		if keep || !strings.Contains(s, ".") {
			return s
		}
		return strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	if exponent < -4 || exponent >= limit {
		mantissa, tail, _ := strings.Cut(e, "e")
		return trim(mantissa) + "e" + tail
	}
	s := trim(strconv.FormatFloat(f, 'f', max(precision-1-exponent, 0), 64))
	if point && !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}

// formatText is str.format, formatMap str.format_map.
func formatText(r *run, x Value, s string, a *arguments) Value {
	named := NewDict()
	for i, n := range a.names {
		named.Set(n, a.named[i])
	}
	f := &formatter{run: r, like: x, positional: a.positional, named: named}
	return likeText(x, f.format(s, 2))
}

func formatMap(r *run, x Value, s string, a *arguments) Value {
	v := r.take("format_map", a, "/mapping")[0]
	d, ok := v.(*Dict)
	if !ok {
		r.fail("format_map wants a dictionary, not a %s", typeName(v))
	}
	f := &formatter{run: r, like: x, named: d}
	return likeText(x, f.format(s, 2))
}

type formatter struct {
	*run
	like       Value
	positional []Value
	named      *Dict
	next       int // of the fields without a name; −1 after one with a number
}

func (f *formatter) format(s string, depth int) string {
	if depth == 0 {
		f.fail("format: fields are too deep within each other")
	}
	f.spend(8*len(s), 0)
	var parts []string
	for s != "" {
		at := strings.IndexAny(s, "{}")
		if at < 0 {
			parts = append(parts, s)
			break
		}
		parts = append(parts, s[:at])
		f.spend(16, 32)
		switch rest := s[at+1:]; {
		case rest != "" && rest[0] == s[at]:
			parts = append(parts, s[at:at+1])
			s = rest[1:]
		case s[at] == '}':
			f.fail("format: a single } stands in the text")
		default:
			end := fieldEnd(rest)
			if end < 0 {
				f.fail("format: a { is not closed")
			}
			parts = append(parts, f.field(rest[:end], depth))
			s = rest[end+1:]
		}
	}
	return f.joined(parts, "")
}

// fieldEnd returns where the field's bracket closes, or −1.
func fieldEnd(s string) int {
	open := 0
	for i := range len(s) {
		switch s[i] {
		case '{':
			open++
		case '}':
			if open == 0 {
				return i
			}
			open--
		}
	}
	return -1
}

// field formats name!conversion:spec.
func (f *formatter) field(s string, depth int) string {
	head, layout := s, ""
	brackets := 0
	for i := range len(s) {
		if s[i] == '[' {
			brackets++
		} else if s[i] == ']' {
			brackets--
		} else if s[i] == ':' && brackets == 0 {
			head, layout = s[:i], s[i+1:]
			break
		}
	}
	head, conversion, converted := strings.Cut(head, "!")
	v := f.value(head)
	if converted {
		switch conversion {
		case "s":
			v = f.str(v)
		case "r":
			v = f.repr(v)
		case "a":
			v = ascii(f.repr(v))
		default:
			f.fail("format: !%s is no conversion", conversion)
		}
	}
	if strings.ContainsAny(layout, "{}") {
		layout = f.format(layout, depth-1)
	}
	if _, safe := f.like.(Markup); safe {
		if layout != "" {
			return escape(f.run.format(v, layout))
		}
		return f.escaped(v)
	}
	if m, ok := v.(Markup); ok {
		v = string(m)
	}
	return f.run.format(v, layout)
}

// value returns the value that a field names: an argument, or attributes and elements of it.
func (f *formatter) value(path string) Value {
	end := strings.IndexAny(path, ".[")
	if end < 0 {
		end = len(path)
	}
	v := f.argument(path[:end])
	for path = path[end:]; path != ""; {
		if path[0] == '.' {
			end = strings.IndexAny(path[1:], ".[")
			if end < 0 {
				end = len(path) - 1
			}
			if end == 0 {
				f.fail("format: a field has an empty attribute")
			}
			v, path = f.attribute(v, path[1:1+end]), path[1+end:]
			continue
		}
		end = strings.IndexByte(path, ']')
		if path[0] != '[' || end < 2 {
			f.fail("format: a field is not understood")
		}
		key := Value(path[1:end])
		if i, err := strconv.Atoi(path[1:end]); err == nil && i >= 0 {
			key = integer(i)
		}
		v, path = f.element(v, key), path[end+1:]
	}
	return v
}

func (f *formatter) argument(name string) Value {
	at, err := strconv.Atoi(name)
	switch {
	case name == "" && f.next < 0, err == nil && f.next > 0:
		f.fail("format: some fields have numbers and some have none")
	case name == "":
		at = f.next
		f.next++
	case err == nil && at >= 0:
		f.next = -1
	default:
		v, ok := f.named.get("s" + name)
		if !ok {
			f.fail("format: there is no argument %s", name)
		}
		return v
	}
	if at >= len(f.positional) {
		f.fail("format: there is no argument %d", at)
	}
	return f.positional[at]
}
