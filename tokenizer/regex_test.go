package tokenizer

// A slow, plain backtracking interpreter of the regular expressions that tokenizer files use: the
// reference that the hand-written scanners are compared with. It does not use their tables.

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A node matches s at i, and calls k with every possible end, best first, until k returns true.
type node func(s string, i int, k func(int) bool) bool

type regex struct {
	src  []rune
	pos  int
	fold bool
}

func compile(pattern string) node {
	p := &regex{src: []rune(pattern)}
	n := p.alternation()
	if p.pos != len(p.src) {
		panic(fmt.Sprintf("%q: stopped at %d", pattern, p.pos))
	}
	return n
}

// cut splits s like Hugging Face's Split with behavior Isolated: into matches, and the text between them.
func cut(n node, s string) (words []string) {
	gap := 0
	for i := 0; i < len(s); {
		end := i
		if n(s, i, func(e int) bool { end = e; return e > i }) {
			if gap < i {
				words = append(words, s[gap:i])
			}
			words = append(words, s[i:end])
			i, gap = end, end
			continue
		}
		i += size(s, i)
	}
	if gap < len(s) {
		words = append(words, s[gap:])
	}
	return words
}

func size(s string, i int) int {
	_, n := utf8.DecodeRuneInString(s[i:])
	return n
}

func (p *regex) more() bool { return p.pos < len(p.src) }
func (p *regex) peek() rune { return p.src[p.pos] }
func (p *regex) take() rune { p.pos++; return p.src[p.pos-1] }
func (p *regex) eat(text string) bool {
	if strings.HasPrefix(string(p.src[p.pos:]), text) {
		p.pos += len([]rune(text))
		return true
	}
	return false
}

func (p *regex) alternation() node {
	list := []node{p.sequence()}
	for p.eat("|") {
		list = append(list, p.sequence())
	}
	return func(s string, i int, k func(int) bool) bool {
		for _, n := range list {
			if n(s, i, k) {
				return true
			}
		}
		return false
	}
}

func (p *regex) sequence() node {
	var list []node
	for p.more() && p.peek() != '|' && p.peek() != ')' {
		list = append(list, p.quantified())
	}
	var at func(j int, s string, i int, k func(int) bool) bool
	at = func(j int, s string, i int, k func(int) bool) bool {
		if j == len(list) {
			return k(i)
		}
		return list[j](s, i, func(e int) bool { return at(j+1, s, e, k) })
	}
	return func(s string, i int, k func(int) bool) bool { return at(0, s, i, k) }
}

func (p *regex) quantified() node {
	n := p.atom()
	least, most := 1, 1
	switch {
	case p.eat("?"):
		least = 0
	case p.eat("*"):
		least, most = 0, 1<<30
	case p.eat("+"):
		most = 1 << 30
	case p.eat("{"):
		text := ""
		for p.peek() != '}' {
			text += string(p.take())
		}
		p.take()
		lo, hi, ok := strings.Cut(text, ",")
		least, _ = strconv.Atoi(lo)
		most = least
		if ok {
			most, _ = strconv.Atoi(hi)
		}
	default:
		return n
	}
	possessive := p.eat("+")
	var rep func(count int, s string, i int, k func(int) bool) bool
	rep = func(count int, s string, i int, k func(int) bool) bool {
		if count < most && n(s, i, func(e int) bool { return e > i && rep(count+1, s, e, k) }) {
			return true
		}
		return count >= least && k(i)
	}
	return func(s string, i int, k func(int) bool) bool {
		if !possessive {
			return rep(0, s, i, k)
		}
		end := -1
		return rep(0, s, i, func(e int) bool { end = e; return true }) && k(end)
	}
}

func (p *regex) atom() node {
	switch {
	case p.eat("(?!"), p.eat("(?="):
		want := p.src[p.pos-1] == '='
		n := p.alternation()
		p.take()
		return func(s string, i int, k func(int) bool) bool {
			return n(s, i, func(int) bool { return true }) == want && k(i)
		}
	case p.eat("(?i:"):
		old := p.fold
		p.fold = true
		n := p.alternation()
		p.fold = old
		p.take()
		return n
	case p.eat("(?:"), p.eat("("):
		n := p.alternation()
		p.take()
		return n
	case p.eat(`\b`):
		return func(s string, i int, k func(int) bool) bool {
			before, _ := utf8.DecodeLastRuneInString(s[:i])
			after, _ := utf8.DecodeRuneInString(s[i:])
			return (i > 0 && ofWord(before)) != (i < len(s) && ofWord(after)) && k(i)
		}
	case p.eat("$"):
		return func(s string, i int, k func(int) bool) bool { return (i == len(s) || s[i] == '\n') && k(i) }
	}
	in := p.set(p.fold)
	return func(s string, i int, k func(int) bool) bool {
		if i == len(s) {
			return false
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		return in(r) && k(i+n)
	}
}

// set parses one character, escape or class.
func (p *regex) set(fold bool) func(rune) bool {
	c := p.take()
	switch {
	case c == '\\':
		return p.escape()
	case c != '[':
		return func(r rune) bool { return same(r, c, fold) }
	}
	negate := p.eat("^")
	var list []func(rune) bool
	for p.peek() != ']' {
		if p.eat("&&") {
			first, second := list, p.set(fold)
			list = []func(rune) bool{func(r rune) bool {
				return second(r) && slices.ContainsFunc(first, func(in func(rune) bool) bool { return in(r) })
			}}
			continue
		}
		if p.more() && p.peek() != '\\' && p.peek() != '[' && p.src[p.pos+1] == '-' && p.src[p.pos+2] != ']' {
			lo := p.take()
			p.take()
			hi := p.take()
			list = append(list, func(r rune) bool { return lo <= r && r <= hi })
			continue
		}
		list = append(list, p.set(fold))
	}
	p.take()
	return func(r rune) bool {
		for _, in := range list {
			if in(r) {
				return !negate
			}
		}
		return negate
	}
}

func (p *regex) escape() func(rune) bool {
	switch c := p.take(); c {
	case 's':
		return func(r rune) bool { return unicode.Is(unicode.White_Space, r) }
	case 'S':
		return func(r rune) bool { return !unicode.Is(unicode.White_Space, r) }
	case 'd':
		return func(r rune) bool { return unicode.Is(unicode.Nd, r) }
	case 'r':
		return func(r rune) bool { return r == '\r' }
	case 'n':
		return func(r rune) bool { return r == '\n' }
	case 'p':
		name := ""
		for p.take(); p.peek() != '}'; {
			name += string(p.take())
		}
		p.take()
		table := unicode.Categories[name]
		if table == nil {
			table = unicode.Scripts[name]
		}
		return func(r rune) bool { return unicode.Is(table, r) }
	default:
		if unicode.IsLetter(c) {
			panic("unknown escape " + string(c))
		}
		return func(r rune) bool { return r == c }
	}
}

// ofWord is Oniguruma's \w.
func ofWord(r rune) bool { return unicode.In(r, unicode.L, unicode.M, unicode.N, unicode.Pc) }

func same(a, b rune, fold bool) bool {
	if a == b {
		return true
	}
	if fold {
		for f := unicode.SimpleFold(a); f != a; f = unicode.SimpleFold(f) {
			if f == b {
				return true
			}
		}
	}
	return false
}
