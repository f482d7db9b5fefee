package jinja

import (
	"math"
	"math/big"
	"strings"
	"unicode/utf8"
)

// percent is Python's s % v. x is the text, including its type.
func (r *run) percent(x Value, s string, v Value) Value {
	p := &percents{run: r, all: v}
	_, p.safe = x.(Markup)
	if t, ok := v.(*Tuple); ok {
		p.args = t.Items
	} else {
		p.args = []Value{v}
	}
	r.spend(4*len(s), 0)
	var parts []string
	for {
		at := strings.IndexByte(s, '%')
		if at < 0 {
			parts = append(parts, s)
			break
		}
		r.spend(16, 32)
		text, n := p.directive(s[at+1:])
		parts = append(parts, s[:at], text)
		s = s[at+1+n:]
	}
	if len(p.args) > 0 && !p.mapped && !hasElements(v) {
		r.fail("%%: not all arguments are used by the format")
	}
	return likeText(x, r.joined(parts, ""))
}

// hasElements reports whether Python allows a value to be left over, since the format may name its elements.
func hasElements(v Value) bool {
	switch v.(type) {
	case *Dict, *List, *span, *Undefined:
		return true
	}
	return false
}

// percents is one use of %.
type percents struct {
	*run
	all    Value
	args   []Value // the remaining ones
	mapped bool
	safe   bool
}

func (p *percents) next() Value {
	if len(p.args) == 0 {
		p.fail("%%: not enough arguments for the format")
	}
	v := p.args[0]
	p.args = p.args[1:]
	return v
}

// directive lays out the text of a directive after a %. It also returns its length.
func (p *percents) directive(s string) (text string, n int) {
	rest := s
	var v Value = absent{}
	if strings.HasPrefix(rest, "(") {
		end := closingParen(rest)
		d, ok := p.all.(*Dict)
		if end < 0 || !ok {
			p.fail("%%: a format with names wants a dictionary")
		}
		v, ok = d.get("s" + rest[1:end])
		if !ok {
			p.fail("%%: there is no key %q", rest[1:end])
		}
		p.mapped = true
		rest = rest[end+1:]
	}
	sp := spec{fill: " ", precision: -1, align: '>'}
	zero := false
	for ; rest != "" && strings.IndexByte("+- #0", rest[0]) >= 0; rest = rest[1:] {
		switch rest[0] {
		case '+':
			sp.sign = '+'
		case ' ':
			if sp.sign == 0 {
				sp.sign = ' '
			}
		case '-':
			sp.align = '<'
		case '#':
			sp.alternate = true
		case '0':
			zero = true
		}
	}
	sp.width, rest = p.amount(rest, 0)
	if sp.width < 0 {
		sp.width, sp.align = -sp.width, '<'
	}
	if strings.HasPrefix(rest, ".") {
		sp.precision, rest = p.amount(rest[1:], 0)
		sp.precision = max(sp.precision, 0)
	}
	if rest != "" && strings.IndexByte("hlL", rest[0]) >= 0 {
		rest = rest[1:]
	}
	if rest == "" {
		p.fail("%%: the format is incomplete")
	}
	sp.kind = rest[0]
	n = len(s) - len(rest) + 1
	if sp.kind == '%' {
		return "%", n
	}
	if v == (absent{}) {
		v = p.next()
	}
	if zero && sp.align == '>' && strings.IndexByte("diuoxXeEfFgG", sp.kind) >= 0 {
		sp.fill, sp.align = "0", '='
	}
	return p.convert(sp, v), n
}

// closingParen returns where the bracket at the start of s closes, or −1.
func closingParen(s string) int {
	open := 0
	for i := range len(s) {
		switch s[i] {
		case '(':
			open++
		case ')':
			open--
			if open == 0 {
				return i
			}
		}
	}
	return -1
}

// amount reads a width or a precision; * takes it from the arguments.
func (p *percents) amount(s string, none int) (n int, rest string) {
	if !strings.HasPrefix(s, "*") {
		return p.count(s, none)
	}
	v, ok := p.next().(*big.Int)
	if !ok {
		p.fail("%%: * wants an integer")
	}
	n = p.index(v, "%")
	if n > p.maxMade || n < -p.maxMade {
		p.fail("%%: %s is too much", p.digits(v))
	}
	return n, s[1:]
}

func (p *percents) convert(sp spec, v Value) string {
	text := func(s string) string {
		if p.safe {
			if _, ok := v.(Markup); !ok {
				s = p.escaped(s)
			}
		}
		return p.padded(sp, "", p.shortened(s, sp.precision))
	}
	switch sp.kind {
	case 's':
		return text(p.str(v))
	case 'r':
		return text(p.repr(v))
	case 'a':
		return text(ascii(p.repr(v)))
	case 'c':
		if s, ok := v.(string); ok && utf8.RuneCountInString(s) == 1 {
			return text(s)
		}
		if whole(v) == nil {
			p.fail("%%c wants an integer or a character")
		}
		sp.precision = -1
		return p.formatInteger(sp, whole(v), "c")
	case 'e', 'E', 'f', 'F', 'g', 'G':
		f, ok := p.float(v)
		if !ok {
			p.undefined(v)
			p.fail("%%%c wants a number, not a %s", sp.kind, typeName(v))
		}
		return p.formatFloat(sp, f, string(sp.kind))
	case 'd', 'i', 'u', 'x', 'X', 'o':
		return p.decimal(sp, v)
	}
	p.fail("%%%c is no format", sp.kind)
	return ""
}

// decimal lays out an integer. Its precision is a number of digits, padded with zeros.
func (p *percents) decimal(sp spec, v Value) string {
	i := whole(v)
	if f, ok := v.(float64); ok && strings.IndexByte("diu", sp.kind) >= 0 {
		if math.IsNaN(f) || math.IsInf(f, 0) {
			p.fail("%%%c: a float has no integer", sp.kind)
		}
		i, _ = big.NewFloat(f).Int(nil)
	}
	if i == nil {
		p.undefined(v)
		p.fail("%%%c wants an integer, not a %s", sp.kind, typeName(v))
	}
	if sp.kind == 'i' || sp.kind == 'u' {
		sp.kind = 'd'
	}
	if sp.precision < 0 {
		return p.formatInteger(sp, i, "d")
	}
	digits := p.formatInteger(spec{precision: -1, kind: sp.kind}, new(big.Int).Abs(i), "d")
	digits = p.repeated("0", sp.precision-len(digits)) + digits
	prefix := ""
	if sp.alternate && sp.kind != 'd' {
		prefix = "0" + string(sp.kind)
	}
	return p.number(sp, i.Sign() < 0, prefix, digits, 3)
}
