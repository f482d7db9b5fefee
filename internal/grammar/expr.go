package grammar

import (
	"slices"
	"unicode/utf8"
)

type op uint8

const (
	opSeq      op = iota // kids in order; without kids, the empty text
	opAlt                // one of the kids; without kids, nothing matches
	opChars              // a character of set
	opRepeat             // the only kid, min to max times
	opRule               // a rule by its number, with min to max of its opEach
	opEach               // the empty text; begins one of the repetitions of a rule
	opControl            // a control token by name
	opAhead              // the empty text, if the only kid matches the rest up to the end; only in products
	opNotAhead           // the empty text, if it does not
)

// expr is a regular expression over characters with references to rules.
type expr struct {
	op       op
	set      charSet
	kids     []*expr
	min, max int // max is unlimited if there is no limit
	rule     int
	name     string
}

const unlimited = -1

// grammar is a set of rules before compilation.
type grammar struct {
	rules   []*expr
	names   []string
	thought [2]int // the rules of reasoning, from the first to one past the last
	nodes   int    // of the automaton, as far as it has been made
	lack    error  // why there is no text, as far as is known
}

func (g *grammar) add(name string, e *expr) int {
	g.rules, g.names = append(g.rules, e), append(g.names, name)
	return len(g.rules) - 1
}

// rule adds a rule and returns a reference to it.
func (g *grammar) rule(name string, e *expr) *expr { return refer(g.add(name, e)) }

func refer(rule int) *expr      { return &expr{op: opRule, rule: rule, max: unlimited} }
func seq(kids ...*expr) *expr   { return &expr{op: opSeq, kids: kids} }
func alt(kids ...*expr) *expr   { return &expr{op: opAlt, kids: kids} }
func chars(set ...span) *expr   { return &expr{op: opChars, set: set} }
func anyText() *expr            { return star(chars(allChars...)) }
func maybe(e *expr) *expr       { return repeat(e, 0, 1) }
func star(e *expr) *expr        { return repeat(e, 0, unlimited) }
func (e *expr) isNothing() bool { return e.op == opAlt && len(e.kids) == 0 }
func nothing() *expr            { return alt() }
func between(lo, hi rune) *expr { return chars(span{lo, hi}) }
func empty() *expr              { return seq() }
func digits(lo, hi byte) *expr  { return between(rune(lo), rune(hi)) }
func oneOf(characters string) *expr {
	var s charSet
	for _, r := range characters {
		s = append(s, span{r, r})
	}
	return chars(s...)
}

func repeat(e *expr, low, high int) *expr {
	return &expr{op: opRepeat, kids: []*expr{e}, min: low, max: high}
}

// times returns a reference to a rule whose repetitions are counted.
func (e *expr) times(low, high int) *expr {
	return &expr{op: opRule, rule: e.rule, min: low, max: high}
}

// literal matches a text.
func literal(text string) *expr {
	e := seq()
	for _, r := range text {
		e.kids = append(e.kids, between(r, r))
	}
	return e
}

// words matches one of some texts. Texts with the same beginning share it.
func words(texts []string) *expr {
	if len(texts) == 0 {
		return nothing()
	}
	shared := texts[0]
	for _, text := range texts[1:] {
		n := 0
		for n < min(len(shared), len(text)) && shared[n] == text[n] {
			n++
		}
		for n > 0 && n < len(shared) && !utf8.RuneStart(shared[n]) {
			n--
		}
		shared = shared[:n]
	}
	var firsts []rune
	rest := map[rune][]string{}
	ends := false
	for _, text := range texts {
		text = text[len(shared):]
		if text == "" {
			ends = true
			continue
		}
		r, _ := utf8.DecodeRuneInString(text)
		if rest[r] == nil {
			firsts = append(firsts, r)
		}
		rest[r] = append(rest[r], text)
	}
	more := alt()
	if ends {
		more.kids = append(more.kids, empty())
	}
	for _, r := range firsts {
		more.kids = append(more.kids, words(rest[r]))
	}
	return seq(literal(shared), more)
}

// span is a range of characters, both ends included.
type span struct{ lo, hi rune }

// charSet is a union of spans.
type charSet []span

var allChars = charSet{{0, utf8.MaxRune}}

// normal returns the set with its spans sorted and separate, and without surrogates, which UTF-8 does not encode.
func (s charSet) normal() charSet {
	s = slices.Clone(s)
	slices.SortFunc(s, func(a, b span) int { return int(a.lo - b.lo) })
	var out charSet
	for _, r := range s {
		switch last := len(out) - 1; {
		case r.lo > r.hi:
		case last >= 0 && r.lo <= out[last].hi+1:
			out[last].hi = max(out[last].hi, r.hi)
		default:
			out = append(out, r)
		}
	}
	return out
}

// not returns the complement.
func (s charSet) not() charSet {
	var out charSet
	next := rune(0)
	for _, r := range s.normal() {
		if r.lo > next {
			out = append(out, span{next, r.lo - 1})
		}
		next = r.hi + 1
	}
	if next <= utf8.MaxRune {
		out = append(out, span{next, utf8.MaxRune})
	}
	return out
}

// and returns the intersection.
func (s charSet) and(other charSet) charSet {
	return append(s.not(), other.not()...).not()
}

func (s charSet) has(c rune) bool {
	return slices.ContainsFunc(s, func(r span) bool { return r.lo <= c && c <= r.hi })
}
