package jinja

import (
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
	"unicode"
)

// str is Python's str(v).
func (r *run) str(v Value) string {
	switch v := v.(type) {
	case string:
		return v
	case Markup:
		return string(v)
	case *Undefined:
		return ""
	}
	return r.repr(v)
}

// repr is Python's repr(v).
func (r *run) repr(v Value) string {
	var b strings.Builder
	r.writeRepr(&b, v, 0)
	return r.text(b.String())
}

func (r *run) writeRepr(b *strings.Builder, v Value, depth int) {
	if depth > maxDepth {
		r.fail("a value nested more than %d deep", maxDepth)
	}
	r.spend(16, 0)
	if r.made+b.Len() > r.maxMade {
		r.spend(0, b.Len())
	}
	group := func(ends string, n int, item func(int)) {
		b.WriteByte(ends[0])
		for i := range n {
			if i > 0 {
				b.WriteString(", ")
			}
			item(i)
		}
		b.WriteByte(ends[1])
	}
	sub := func(v Value) { r.writeRepr(b, v, depth+1) }
	switch v := v.(type) {
	case nil:
		b.WriteString("None")
	case bool:
		b.WriteString(map[bool]string{true: "True", false: "False"}[v])
	case *big.Int:
		b.WriteString(r.digits(v))
	case float64:
		b.WriteString(floatText(v, "inf", "nan"))
	case string:
		r.spend(len(v), 0)
		quote(b, v)
	case Markup:
		r.spend(len(v), 0)
		b.WriteString("Markup(")
		quote(b, string(v))
		b.WriteByte(')')
	case *List:
		group("[]", len(v.Items), func(i int) { sub(v.Items[i]) })
	case *Tuple:
		group("()", len(v.Items), func(i int) {
			sub(v.Items[i])
			if len(v.Items) == 1 {
				b.WriteByte(',')
			}
		})
	case *Dict:
		group("{}", len(v.keys), func(i int) {
			sub(v.keys[i])
			b.WriteString(": ")
			sub(v.values[i])
		})
	case *view:
		b.WriteString("dict_" + v.kind + "(")
		group("[]", len(v.dict.keys), func(i int) { sub(v.at(i)) })
		b.WriteByte(')')
	case *span:
		r.writeSpan(b, v)
	case *namespace:
		b.WriteString("<Namespace ")
		sub(&v.Dict)
		b.WriteByte('>')
	case *macro:
		b.WriteString("<Macro ")
		quote(b, v.name)
		b.WriteByte('>')
	case *loop:
		fmt.Fprintf(b, "<LoopContext %d/%d>", v.at+1, v.length(r))
	case *Undefined:
		b.WriteString("Undefined")
	default: // Python prints an address
		r.fail("a %s cannot be printed", typeName(v))
	}
}

func (r *run) writeSpan(b *strings.Builder, s *span) {
	if s.step == 1 {
		fmt.Fprintf(b, "range(%d, %d)", s.start, s.stop)
		return
	}
	fmt.Fprintf(b, "range(%d, %d, %d)", s.start, s.stop, s.step)
}

// digits returns the digits of an integer, up to the number that Python prints.
func (r *run) digits(i *big.Int) string {
	if i.BitLen() > maxDigits*4 {
		r.fail("an integer of more than %d digits cannot be printed", maxDigits)
	}
	r.spend(i.BitLen(), 0)
	s := i.String()
	if len(s) > maxDigits+1 || len(s) > maxDigits && s[0] != '-' {
		r.fail("an integer of more than %d digits cannot be printed", maxDigits)
	}
	return s
}

// floatText returns the shortest text that reads back as the same number, always with a point or an exponent.
func floatText(f float64, inf, nan string) string {
	switch {
	case math.IsNaN(f):
		return nan
	case math.IsInf(f, 1):
		return inf
	case math.IsInf(f, -1):
		return "-" + inf
	}
	format := byte('f')
	if a := math.Abs(f); a != 0 && (a < 1e-4 || a >= 1e16) {
		format = 'e'
	}
	s := strconv.FormatFloat(f, format, -1, 64)
	if format == 'f' && !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}

// quote writes a text in the form of Python's repr.
func quote(b *strings.Builder, s string) {
	mark := '\''
	if strings.ContainsRune(s, '\'') && !strings.ContainsRune(s, '"') {
		mark = '"'
	}
	b.WriteRune(mark)
	for _, c := range s {
		switch {
		case c == mark || c == '\\':
			b.WriteByte('\\')
			b.WriteRune(c)
		case c == '\n':
			b.WriteString(`\n`)
		case c == '\r':
			b.WriteString(`\r`)
		case c == '\t':
			b.WriteString(`\t`)
		case unicode.IsPrint(c):
			b.WriteRune(c)
		case c < 0x100:
			fmt.Fprintf(b, `\x%02x`, c)
		case c < 0x10000:
			fmt.Fprintf(b, `\u%04x`, c)
		default:
			fmt.Fprintf(b, `\U%08x`, c)
		}
	}
	b.WriteRune(mark)
}

// ascii is Python's function of that name, applied to the result of repr.
func ascii(s string) string {
	var b strings.Builder
	for _, c := range s {
		switch {
		case c < 0x80:
			b.WriteRune(c)
		case c < 0x100:
			fmt.Fprintf(&b, `\x%02x`, c)
		case c < 0x10000:
			fmt.Fprintf(&b, `\u%04x`, c)
		default:
			fmt.Fprintf(&b, `\U%08x`, c)
		}
	}
	return b.String()
}

var escaper = strings.NewReplacer("&", "&amp;", ">", "&gt;", "<", "&lt;", "'", "&#39;", `"`, "&#34;")

// escape is markupsafe's.
func escape(s string) string { return escaper.Replace(s) }
