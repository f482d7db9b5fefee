package jinja

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A token's kind is data, begin-print ({{), begin-block ({%), end-print, end-block, name, string,
// integer, float, end, or the operator itself.
type token struct {
	kind, text string
	line       int
}

// lexer splits a template into tokens as jinja2's regular expressions do.
type lexer struct {
	source string
	pos    int
	line   int
	fresh  bool // the last text read ended a line
	tokens []token
}

const (
	endPrint = "end of print statement"
	endBlock = "end of statement block"
	endAll   = "end of template"
)

var newlines = strings.NewReplacer("\r\n", "\n", "\r", "\n")

func lex(source string) (tokens []token, err error) {
	defer catch(&err)
	source = strings.TrimSuffix(newlines.Replace(source), "\n")
	l := &lexer{source: source, line: 1, fresh: true}
	for l.pos < len(l.source) {
		l.data()
	}
	l.add(endAll, "")
	return l.tokens, nil
}

func (l *lexer) fail(format string, args ...any) { fail(l.line, format, args...) }

func (l *lexer) add(kind, text string) { l.tokens = append(l.tokens, token{kind, text, l.line}) }

func (l *lexer) rest() string { return l.source[l.pos:] }

// skip advances by n bytes.
func (l *lexer) skip(n int) {
	s := l.source[l.pos : l.pos+n]
	l.pos += n
	l.line += strings.Count(s, "\n")
	l.fresh = strings.HasSuffix(s, "\n")
}

// space returns the length of the white space at the start of s.
func space(s string) int { return len(s) - len(strings.TrimLeftFunc(s, isSpace)) }

// isSpace is Python's str.isspace for one character.
func isSpace(c rune) bool { return unicode.IsSpace(c) || 0x1c <= c && c <= 0x1f }

// data reads text and the tag after it.
func (l *lexer) data() {
	rest := l.rest()
	at := 0
	for ; at < len(rest); at++ {
		if rest[at] == '{' && at+1 < len(rest) && strings.IndexByte("{%#", rest[at+1]) >= 0 {
			break
		}
	}
	if at == len(rest) {
		l.text(rest, at)
		return
	}
	kind := rest[at+1]
	sign := byte(0)
	if at+2 < len(rest) && (rest[at+2] == '-' || rest[at+2] == '+') {
		sign = rest[at+2]
	}
	l.text(l.stripped(rest[:at], sign, kind), at)
	if n := rawLength(l.rest()); n > 0 {
		l.raw(n)
		return
	}
	n := 2
	if sign != 0 {
		n = 3
	}
	switch kind {
	case '#':
		l.skip(n)
		l.comment()
	case '{':
		l.add("{{", "")
		l.skip(n)
		l.inside("}}", endPrint)
	default:
		l.add("{%", "")
		l.skip(n)
		l.inside("%}", endBlock)
	}
}

// text adds data and advances by the n bytes from which it was made.
func (l *lexer) text(s string, n int) {
	if s != "" {
		l.add("data", s)
	}
	l.skip(n)
}

// stripped returns the text before a tag without the white space that the tag removes.
func (l *lexer) stripped(s string, sign, kind byte) string {
	switch {
	case sign == '-':
		return strings.TrimRightFunc(s, isSpace)
	case sign == '+' || kind == '{':
		return s
	}
	start := strings.LastIndexByte(s, '\n') + 1
	if start == 0 && !l.fresh || space(s[start:]) < len(s)-start {
		return s
	}
	return s[:start]
}

// rawLength returns the length of a raw tag at the start of s, or 0.
func rawLength(s string) int {
	rest, ok := strings.CutPrefix(s, "{%")
	if !ok {
		return 0
	}
	rest = rest[signLength(rest):]
	rest = rest[space(rest):]
	rest, ok = strings.CutPrefix(rest, "raw")
	if !ok {
		return 0
	}
	rest = rest[space(rest):]
	switch {
	case strings.HasPrefix(rest, "-%}"):
		rest = rest[3:]
		return len(s) - len(rest) + space(rest)
	case strings.HasPrefix(rest, "%}"):
		return len(s) - len(rest) + 2
	}
	return 0
}

func signLength(s string) int {
	if s != "" && (s[0] == '-' || s[0] == '+') {
		return 1
	}
	return 0
}

func (l *lexer) raw(n int) {
	start := l.line
	l.skip(n)
	rest := l.rest()
	for at := 0; ; at++ {
		next := strings.Index(rest[at:], "{%")
		if next < 0 {
			l.line = start
			l.fail("raw without endraw")
		}
		at += next
		tag := rest[at+2:]
		n := signLength(tag)
		tag = tag[n:]
		if tail, ok := strings.CutPrefix(tag[space(tag):], "endraw"); ok {
			tail = tail[space(tail):]
			if end := closing(tail, "%}", true); end > 0 {
				sign := byte(0)
				if n > 0 {
					sign = rest[at+2]
				}
				l.text(l.stripped(rest[:at], sign, '%'), at)
				l.skip(len(rest) - at - len(tail) + end)
				return
			}
		}
	}
}

// closing returns the length of a tag's end at the start of s, including the white space that it removes, or 0.
func closing(s, end string, block bool) int {
	switch {
	case strings.HasPrefix(s, "-"+end):
		return 1 + len(end) + space(s[1+len(end):])
	case block && strings.HasPrefix(s, "+"+end):
		return 1 + len(end)
	case strings.HasPrefix(s, end):
		if block && strings.HasPrefix(s[len(end):], "\n") {
			return len(end) + 1
		}
		return len(end)
	}
	return 0
}

func (l *lexer) comment() {
	rest := l.rest()
	for at := range rest {
		if n := closing(rest[at:], "#}", true); n > 0 {
			l.skip(at + n)
			return
		}
	}
	l.fail("a comment is not closed")
}

var closers = map[string]string{"{": "}", "(": ")", "[": "]"}

// inside reads the tokens of a tag, up to its end.
func (l *lexer) inside(end, kind string) {
	open, start := []string{}, l.line
	for {
		rest := l.rest()
		if rest == "" {
			fail(start, "a tag is not closed by %q", end)
		}
		if n := closing(rest, end, end == "%}"); n > 0 && len(open) == 0 {
			l.add(kind, "")
			l.skip(n)
			return
		}
		kind, n := l.token(rest)
		text := rest[:n]
		switch kind {
		case "":
			l.skip(n)
			continue
		case "string":
			text = l.unescape(text[1 : n-1])
		case "operator":
			kind = text
		}
		switch {
		case closers[kind] != "":
			open = append(open, closers[kind])
		case kind == "}" || kind == ")" || kind == "]":
			if len(open) == 0 || open[len(open)-1] != kind {
				l.fail("unexpected %q", kind)
			}
			open = open[:len(open)-1]
		}
		l.add(kind, text)
		l.skip(n)
	}
}

// token returns the kind of the token at the start of s, "" for white space, and its length.
func (l *lexer) token(s string) (kind string, n int) {
	n = space(s)
	if n > 0 {
		return "", n
	}
	kind, n = number(s, l.source[l.pos-1] != '.')
	if n > 0 {
		return kind, n
	}
	n = len(s) - len(strings.TrimLeftFunc(s, isWord))
	if n > 0 {
		return "name", n
	}
	if s[0] == '\'' || s[0] == '"' {
		for i := 1; i < len(s); i++ {
			switch s[i] {
			case '\\':
				i++
			case s[0]:
				return "string", i + 1
			}
		}
		l.fail("a text is not closed by %c", s[0])
	}
	for _, op := range []string{"//", "**", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~", "[", "]", "(", ")", "{",
		"}", ">", "<", "=", ".", ":", "|", ",", ";"} {
		if strings.HasPrefix(s, op) {
			return "operator", len(op)
		}
	}
	c, _ := utf8.DecodeRuneInString(s)
	l.fail("unexpected character %q", c)
	return "", 0
}

func isWord(c rune) bool {
	return c == '_' || unicode.IsLetter(c) || unicode.IsDigit(c) || unicode.Is(unicode.Mn, c)
}

// digits returns the length of the digits at the start of s, which may have single underscores between them.
func digits(s, set string) int {
	n := 0
	is := func(i int) bool { return i < len(s) && s[i] >= '0' && strings.IndexByte(set, s[i]|0x20) >= 0 }
	for is(n) {
		n++
		if n < len(s) && s[n] == '_' && is(n+1) {
			n++
		}
	}
	return n
}

const decimal = "0123456789"

// number reads an integer, or a float if no point precedes it.
func number(s string, float bool) (kind string, n int) {
	n = digits(s, decimal)
	if n == 0 {
		return "", 0
	}
	end := n
	if !float {
		s = s[:n]
	}
	if end < len(s) && s[end] == '.' {
		if k := digits(s[end+1:], decimal); k > 0 {
			end += 1 + k
		}
	}
	if end < len(s) && s[end]|0x20 == 'e' {
		sign := signLength(s[end+1:])
		if k := digits(s[end+1+sign:], decimal); k > 0 {
			return "float", end + 1 + sign + k
		}
	}
	if end > n {
		return "float", end
	}
	if s[0] != '0' {
		return "integer", n
	}
	for letter, set := range map[byte]string{'b': "01", 'o': "01234567", 'x': decimal + "abcdef"} {
		if len(s) > 2 && s[1]|0x20 == letter {
			rest := strings.TrimPrefix(s[2:], "_")
			if k := digits(rest, set); k > 0 {
				return "integer", len(s) - len(rest) + k
			}
		}
	}
	return "integer", digits(s, "0")
}

// unescape reads the escapes of a text as Python does: unknown ones are unchanged.
func (l *lexer) unescape(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' {
			b.WriteByte(s[i])
			continue
		}
		i++
		if i == len(s) {
			l.fail(`a text ends with \`)
		}
		if at := strings.IndexByte("\nabfnrtv\\'\"", s[i]); at >= 0 {
			if at > 0 {
				b.WriteByte("\n\a\b\f\n\r\t\v\\'\""[at])
			}
			continue
		}
		i += l.code(&b, s[i:]) - 1
	}
	return b.String()
}

// code writes the character that an escape names by number, and returns the escape's length.
func (l *lexer) code(b *strings.Builder, s string) int {
	if s[0] >= '0' && s[0] <= '7' {
		n := 1
		for n < 3 && n < len(s) && s[n] >= '0' && s[n] <= '7' {
			n++
		}
		c, _ := strconv.ParseUint(s[:n], 8, 32)
		b.WriteRune(rune(c))
		return n
	}
	if n := map[byte]int{'x': 2, 'u': 4, 'U': 8}[s[0]]; n > 0 {
		c, err := strconv.ParseUint(s[1:min(1+n, len(s))], 16, 32)
		if err != nil || len(s) < 1+n || c > unicode.MaxRune {
			l.fail(`\%c wants %d hexadecimal digits of a character`, s[0], n)
		}
		b.WriteRune(rune(c))
		return 1 + n
	}
	c, n := utf8.DecodeRuneInString(s)
	switch {
	case c == 'N':
		l.fail(`\N in a text is not supported`)
	case c < 0x80:
		b.WriteString(`\` + s[:n])
	case c < 0x100: // Python escapes the character first, and then reads the two backslashes as one
		fmt.Fprintf(b, `\x%02x`, c)
	case c < 0x10000:
		fmt.Fprintf(b, `\u%04x`, c)
	default:
		fmt.Fprintf(b, `\U%08x`, c)
	}
	return n
}
