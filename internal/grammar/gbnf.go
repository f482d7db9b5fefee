package grammar

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxSource limits the text of a grammar, expression or schema, in bytes.
const maxSource = 1 << 20

// maxRepeat limits the numbers in braces.
const maxRepeat = 1 << 14

// GBNF compiles a grammar in llama.cpp's notation: rules "name ::= ..." of literals, character
// classes, ".", groups, "|", "*", "+", "?" and "{n,m}". The text must match the rule root. Unlike
// llama.cpp, it accepts names with "_", which vLLM's grammars use, and removes alternatives that no
// text can complete. Tokens by name or number, "<[1]>", are refused.
func GBNF(source string) (*Grammar, error) {
	g, root, err := readGBNF(source)
	if err != nil {
		return nil, err
	}
	return g.compile(root)
}

func readGBNF(source string) (*grammar, int, error) {
	if err := checkSource(source); err != nil {
		return nil, 0, err
	}
	p := &gbnf{text: source, rules: map[string]int{}}
	p.space(true)
	for p.pos < len(p.text) && p.err == nil {
		p.definition()
	}
	for name, at := range p.rules {
		if p.err == nil && p.g.rules[at] == nil {
			p.err = fmt.Errorf("rule %s is used and not defined", name)
		}
	}
	if p.err != nil {
		return nil, 0, p.err
	}
	root, ok := p.rules["root"]
	if !ok {
		return nil, 0, fmt.Errorf("there is no rule root")
	}
	return &p.g, root, nil
}

func checkSource(source string) error {
	switch {
	case len(source) > maxSource:
		return fmt.Errorf("it has %d bytes: want at most %d", len(source), maxSource)
	case !utf8.ValidString(source):
		return fmt.Errorf("it is not valid UTF-8")
	}
	return nil
}

type gbnf struct {
	g     grammar
	rules map[string]int
	text  string
	pos   int
	depth int
	err   error
}

// fail records the first error, with its place.
func (p *gbnf) fail(format string, args ...any) {
	if p.err == nil {
		before := p.text[:min(p.pos, len(p.text))]
		line := 1 + strings.Count(before, "\n")
		column := len(before) - strings.LastIndexByte(before, '\n')
		p.err = fmt.Errorf("line %d, column %d: %s", line, column, fmt.Sprintf(format, args...))
		p.pos = len(p.text)
	}
}

// space skips blanks and comments, and also line ends if newlines is set.
func (p *gbnf) space(newlines bool) {
	for p.pos < len(p.text) {
		switch c := p.text[p.pos]; {
		case c == '#':
			for p.pos < len(p.text) && p.text[p.pos] != '\n' && p.text[p.pos] != '\r' {
				p.pos++
			}
		case c == ' ' || c == '\t' || newlines && (c == '\n' || c == '\r'):
			p.pos++
		default:
			return
		}
	}
}

// take skips a text if it comes next.
func (p *gbnf) take(text string) bool {
	if !strings.HasPrefix(p.text[p.pos:], text) {
		return false
	}
	p.pos += len(text)
	return true
}

func (p *gbnf) name() string {
	from := p.pos
	for p.pos < len(p.text) {
		c := p.text[p.pos]
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_') {
			break
		}
		p.pos++
	}
	return p.text[from:p.pos]
}

// rule returns the number of a rule, given its name.
func (p *gbnf) rule(name string) int {
	at, ok := p.rules[name]
	if !ok {
		at = p.g.add(name, nil)
		p.rules[name] = at
	}
	return at
}

func (p *gbnf) definition() {
	name := p.name()
	p.space(false)
	if name == "" || !p.take("::=") {
		p.fail("want a rule: its name and ::=")
		return
	}
	p.space(true)
	at := p.rule(name)
	p.g.rules[at] = p.alternatives(false) // of two definitions, the later one counts
	if p.err == nil && p.pos < len(p.text) && p.text[p.pos] != '\n' && p.text[p.pos] != '\r' {
		p.fail("want the end of the line after rule %s", name)
	}
	p.space(true)
}

func (p *gbnf) alternatives(nested bool) *expr {
	p.depth++
	if p.depth > maxDepth {
		p.fail("groups are nested more than %d deep", maxDepth)
	}
	e := alt(p.sequence(nested))
	for p.err == nil && p.take("|") {
		p.space(true)
		e.kids = append(e.kids, p.sequence(nested))
	}
	p.depth--
	return e
}

func (p *gbnf) sequence(nested bool) *expr {
	e := seq()
	for p.err == nil && p.pos < len(p.text) {
		var next *expr
		switch c := p.text[p.pos]; {
		case c == '"':
			next = p.literal()
		case c == '[':
			next = p.class()
		case c == '.':
			p.pos++
			next = chars(allChars...)
		case c == '(':
			p.pos++
			p.space(true)
			next = p.alternatives(true)
			if p.err == nil && !p.take(")") {
				p.fail("want ) at the end of the group")
			}
		case c == '<' || c == '!':
			p.fail("tokens by name or number are not supported: write their text")
			return e
		default:
			name := p.name()
			if name == "" {
				return e
			}
			next = refer(p.rule(name))
		}
		p.space(nested)
		e.kids = append(e.kids, p.repetition(next, nested))
	}
	return e
}

// repetition reads the operators after an element.
func (p *gbnf) repetition(e *expr, nested bool) *expr {
	for n := 0; p.err == nil && p.pos < len(p.text); n++ {
		switch {
		case n >= maxDepth:
			p.fail("more than %d repetitions of one element", maxDepth)
		case p.take("*"):
			e = star(e)
		case p.take("+"):
			e = repeat(e, 1, unlimited)
		case p.take("?"):
			e = maybe(e)
		case p.take("{"):
			p.space(nested)
			low, high := p.number(), 0
			p.space(nested)
			high = low
			if p.take(",") {
				p.space(nested)
				high = unlimited
				if p.pos < len(p.text) && p.text[p.pos] != '}' {
					high = p.number()
				}
				p.space(nested)
			}
			switch {
			case p.err == nil && !p.take("}"):
				p.fail("want } after the repetition's numbers")
			case high != unlimited && high < low:
				p.fail("the repetition's most, %d, is less than its least, %d", high, low)
			}
			e = repeat(e, low, high)
		default:
			return e
		}
		p.space(nested)
	}
	return e
}

func (p *gbnf) number() int {
	from := p.pos
	for p.pos < len(p.text) && p.text[p.pos] >= '0' && p.text[p.pos] <= '9' {
		p.pos++
	}
	n, err := strconv.Atoi(p.text[from:p.pos])
	if err != nil || n > maxRepeat {
		p.fail("want a number of 0 to %d", maxRepeat)
		return 0
	}
	return n
}

func (p *gbnf) literal() *expr {
	p.pos++
	e := seq()
	for p.err == nil && !p.take(`"`) {
		c := p.char()
		e.kids = append(e.kids, between(c, c))
	}
	return e
}

func (p *gbnf) class() *expr {
	p.pos++
	not := p.take("^")
	var set charSet
	for p.err == nil && !p.take("]") {
		lo := p.char()
		hi := lo
		if rest := p.text[p.pos:]; len(rest) > 1 && rest[0] == '-' && rest[1] != ']' {
			p.pos++
			hi = p.char()
		}
		set = append(set, span{lo, hi})
	}
	if not {
		set = set.not()
	}
	return chars(set...)
}

// char reads a character of a literal or class.
func (p *gbnf) char() rune {
	if p.pos >= len(p.text) {
		p.fail("the text ends within a literal or class")
		return 0
	}
	c, n := utf8.DecodeRuneInString(p.text[p.pos:])
	p.pos += n
	if c != '\\' {
		return c
	}
	if p.pos >= len(p.text) {
		p.fail("the text ends within an escape")
		return 0
	}
	letter := p.text[p.pos]
	p.pos++
	if c, ok := map[byte]rune{'t': '\t', 'r': '\r', 'n': '\n', '\\': '\\', '"': '"', '[': '[', ']': ']'}[letter]; ok {
		return c
	}
	size := map[byte]int{'x': 2, 'u': 4, 'U': 8}[letter]
	if size > 0 && p.pos+size <= len(p.text) {
		if v, err := strconv.ParseUint(p.text[p.pos:p.pos+size], 16, 32); err == nil && v <= utf8.MaxRune {
			p.pos += size
			return rune(v)
		}
	}
	p.fail("want an escape: \\t \\r \\n \\\\ \\\" \\[ \\] \\xFF \\uFFFF \\U0010FFFF")
	return 0
}
