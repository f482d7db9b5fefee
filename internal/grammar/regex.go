package grammar

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
)

// readRegex reads a regular expression in Go's syntax, which must match the whole text. Anchors are
// allowed only at its ends.
func readRegex(pattern string) (*grammar, int, error) {
	if err := checkSource(pattern); err != nil {
		return nil, 0, err
	}
	e, err := regex(pattern)
	if err != nil {
		return nil, 0, err
	}
	g := new(grammar)
	return g, g.add("root", e), nil
}

// regex returns the expression of a pattern in Go's syntax, which must match the whole text.
func regex(pattern string) (*expr, error) {
	return new(regexReader).read(pattern, true)
}

// schemaRegex returns the expression of a JSON schema's pattern, which must match a part of the
// text, in ECMAScript's syntax, including lookaheads.
func schemaRegex(pattern string) (*expr, error) {
	e, _, err := readAhead(pattern, 0)
	return e, err
}

const (
	aheadName = "lookahead" // begins the names of groups that stand for lookaheads
	maxAhead  = 8           // how deep they may be nested
)

// readAhead reads a pattern of a schema, at a depth above 0 to the end of the lookahead that it is in: n bytes.
func readAhead(pattern string, depth int) (e *expr, n int, err error) {
	if depth > maxAhead {
		return nil, 0, fmt.Errorf("lookaheads are nested more than %d deep", maxAhead)
	}
	r := &regexReader{search: true}
	var rest strings.Builder // with groups in place of lookaheads
	class, open := false, 0
	atStart := strings.HasPrefix(pattern, "^")
	for ; n < len(pattern); n++ {
		c := pattern[n]
		if !class && c == '(' && (strings.HasPrefix(pattern[n:], "(?=") || strings.HasPrefix(pattern[n:], "(?!")) {
			ahead := &expr{op: opAhead}
			if pattern[n+2] == '!' {
				ahead.op = opNotAhead
			}
			n += 3
			if atStart && strings.HasPrefix(pattern[n:], "^") {
				n++
			}
			kid, length, err := readAhead(pattern[n:], depth+1)
			if err != nil {
				return nil, 0, err
			}
			if ahead.op == opNotAhead && kid.looksAhead() {
				return nil, 0, fmt.Errorf("%s: a lookahead stands within a negative one", pattern[n:n+length])
			}
			n += length
			ahead.kids = []*expr{kid}
			fmt.Fprintf(&rest, "(?P<%s%d>)", aheadName, len(r.aheads))
			r.aheads = append(r.aheads, ahead)
			continue
		}
		atStart = atStart && n == 0
		switch {
		case c == '\\' && n+1 < len(pattern):
			rest.WriteByte(c)
			n++
		case c == '[':
			class = true
		case c == ']':
			class = false
		case c == '(' && !class:
			open++
		case c == ')' && !class:
			open--
		}
		if open < 0 && depth > 0 {
			break
		}
		rest.WriteByte(pattern[n])
	}
	if depth > 0 && n == len(pattern) {
		return nil, 0, fmt.Errorf("%s: the group has no end", pattern)
	}
	e, err = r.read(ecma(rest.String()), depth == 0)
	return e, n, err
}

// regexReader turns patterns into expressions.
type regexReader struct {
	search bool    // the pattern may match a part of the text
	aheads []*expr // the lookaheads that groups with names of aheadName stand for
}

// read reads a pattern. first reports that it is at the beginning of the text.
func (r *regexReader) read(pattern string, first bool) (*expr, error) {
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if wrong := new(syntax.Error); errors.As(err, &wrong) && wrong.Code == syntax.ErrInvalidRepeatSize {
		return nil, fmt.Errorf("%s: want repeats of 1000 at most, or minLength and maxLength in place of the pattern", wrong.Expr)
	}
	if err != nil {
		return nil, err
	}
	return r.convert(parsed, first, true)
}

// ahead returns the lookahead that a group stands for, or nil if it is a group of the pattern.
func (r *regexReader) ahead(re *syntax.Regexp) *expr {
	number, ok := strings.CutPrefix(re.Name, aheadName)
	if n, err := strconv.Atoi(number); ok && err == nil && n >= 0 && n < len(r.aheads) {
		return r.aheads[n]
	}
	return nil
}

// convert turns a parsed pattern into an expression. first and last report that it is at the
// beginning or end of the text, where anchors are allowed.
func (r *regexReader) convert(re *syntax.Regexp, first, last bool) (*expr, error) {
	search := r.search
	open := func(e *expr) *expr { // other text may stand at an end without an anchor
		if !search || !first && !last {
			return e
		}
		any := anyText()
		if first {
			e = seq(any, e)
		}
		if last {
			e = seq(e, any)
		}
		return e
	}
	all := func(kind op) (*expr, error) {
		e := &expr{op: kind}
		begins, ends := 0, len(re.Sub) // without anchors
		if kind == opSeq {
			for first && begins < ends && beginsText(re.Sub[begins]) {
				begins++
			}
			for last && ends > begins && endsText(re.Sub[ends-1]) {
				ends--
			}
		}
		for i := begins; i < ends; i++ {
			atStart, atEnd := first, last
			if kind == opSeq {
				atStart, atEnd = first && i == 0, last && i == len(re.Sub)-1
			}
			kid, err := r.convert(re.Sub[i], atStart, atEnd)
			if err != nil {
				return nil, err
			}
			e.kids = append(e.kids, kid)
		}
		if kind == opSeq && search && begins == ends {
			any := anyText()
			if first && begins == 0 || last && ends == len(re.Sub) {
				e.kids = append(e.kids, any)
			}
		}
		return e, nil
	}
	count := func(low, high int) (*expr, error) {
		kid, err := r.convert(re.Sub[0], false, false)
		if err != nil {
			return nil, err
		}
		return open(repeat(kid, low, high)), nil
	}
	switch re.Op {
	case syntax.OpNoMatch:
		return nothing(), nil
	case syntax.OpEmptyMatch:
		return open(empty()), nil
	case syntax.OpLiteral:
		e := seq()
		for _, c := range re.Rune {
			set := charSet{{c, c}}
			if re.Flags&syntax.FoldCase != 0 {
				for f := unicode.SimpleFold(c); f != c; f = unicode.SimpleFold(f) {
					set = append(set, span{f, f})
				}
			}
			e.kids = append(e.kids, chars(set...))
		}
		return open(e), nil
	case syntax.OpCharClass:
		var set charSet
		for i := 0; i < len(re.Rune); i += 2 {
			set = append(set, span{re.Rune[i], re.Rune[i+1]})
		}
		return open(chars(set...)), nil
	case syntax.OpAnyCharNotNL:
		return open(chars(charSet{{'\n', '\n'}}.not()...)), nil
	case syntax.OpAnyChar:
		return open(chars(allChars...)), nil
	case syntax.OpBeginText, syntax.OpBeginLine, syntax.OpEndText, syntax.OpEndLine:
		if first && beginsText(re) || last && endsText(re) {
			// The other end is free.
			if search && (!beginsText(re) && first || !endsText(re) && last) {
				return anyText(), nil
			}
			return empty(), nil
		}
		return nil, fmt.Errorf("%s: anchors can stand at the ends of the expression alone", re)
	case syntax.OpCapture:
		if e := r.ahead(re); e != nil {
			return open(e), nil
		}
		return r.convert(re.Sub[0], first, last)
	case syntax.OpStar:
		return count(0, unlimited)
	case syntax.OpPlus:
		return count(1, unlimited)
	case syntax.OpQuest:
		return count(0, 1)
	case syntax.OpRepeat:
		return count(re.Min, re.Max)
	case syntax.OpConcat:
		return all(opSeq)
	case syntax.OpAlternate:
		return all(opAlt)
	}
	return nil, fmt.Errorf("%s: word boundaries are not supported", re)
}

func beginsText(re *syntax.Regexp) bool { return re.Op == syntax.OpBeginText }
func endsText(re *syntax.Regexp) bool   { return re.Op == syntax.OpEndText }

// The ranges of ECMAScript's white space and line ends, and the characters between them.
const (
	ecmaSpace = `\t-\r \x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}\x{feff}`
	ecmaOther = `\x{0}-\x{8}\x{e}-\x{1f}!-\x{9f}\x{a1}-\x{167f}\x{1681}-\x{1fff}\x{200b}-\x{2027}` +
		`\x{202a}-\x{202e}\x{2030}-\x{205e}\x{2060}-\x{2fff}\x{3001}-\x{fefe}\x{ff00}-\x{10ffff}`
	ecmaLines = `\n\r\x{2028}\x{2029}`
)

// ecma rewrites a JSON schema's pattern, in ECMAScript's syntax, for Go.
func ecma(pattern string) string {
	var b strings.Builder
	class := false // within brackets
	set := func(text string) string {
		if class {
			return text
		}
		return "[" + text + "]"
	}
	for i := 0; i < len(pattern); i++ {
		if pattern[i] != '\\' || i+1 == len(pattern) {
			switch c := pattern[i]; {
			case c == '.' && !class:
				b.WriteString("[^" + ecmaLines + "]")
				continue
			case c == '[':
				class = true
			case c == ']':
				class = false
			}
			b.WriteByte(pattern[i])
			continue
		}
		i++
		switch c := pattern[i]; {
		case c == 's' || c == 'S':
			b.WriteString(set(map[byte]string{'s': ecmaSpace, 'S': ecmaOther}[c]))
			if rest := pattern[i+1:]; class && len(rest) > 1 && rest[0] == '-' && rest[1] != ']' {
				b.WriteString(`\-`) // a class cannot begin a range
				i++
			}
		case c == 'u' && isPair(pattern[i-1:]):
			high, _ := strconv.ParseUint(pattern[i+1:i+5], 16, 32)
			low, _ := strconv.ParseUint(pattern[i+7:i+11], 16, 32)
			fmt.Fprintf(&b, `\x{%x}`, utf16.DecodeRune(rune(high), rune(low)))
			i += 10
		case c == 'u' && i+4 < len(pattern) && isHex(pattern[i+1:i+5]):
			b.WriteString(`\x{` + pattern[i+1:i+5] + `}`)
			i += 4
		case c == 'c' && i+1 < len(pattern):
			i++
			fmt.Fprintf(&b, `\x{%x}`, pattern[i]&31)
		default:
			b.WriteString(pattern[i-1 : i+1])
		}
	}
	return b.String()
}

// isPair reports whether a pattern begins with the two escapes of a character beyond 16 bits.
func isPair(pattern string) bool { return surrogates.MatchString(pattern) }

var surrogates = regexp.MustCompile(`^\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}`)

func isHex(s string) bool {
	return strings.Trim(s, "0123456789abcdefABCDEF") == ""
}
