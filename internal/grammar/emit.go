package grammar

import (
	"fmt"
	"math/big"
	"slices"

	"github.com/grovellm/grove/internal/callform"
)

// emit returns the text of a shape's values. It returns nothing if they cannot be expressed, which
// is recorded as an error if only the shape is to blame.
func (c *schemas) emit(s *shape) *expr {
	if s.value != nil { // the name of a property
		return literal(*s.value)
	}
	switch s.kind {
	case isNumber:
		return c.once("number "+s.key(false), func() *expr { return c.emitNumber(s) })
	case isString:
		if c.notation.Quote != callform.JSON.Quote {
			return c.once("plain "+s.key(false), func() *expr { return c.emitPlainString(s) })
		}
		text := c.once("string "+s.key(false), func() *expr { return c.emitString(s) })
		return seq(literal(`"`), text, literal(`"`))
	case isArray:
		return c.emitArray(s)
	}
	return c.emitObject(s)
}

func (c *schemas) emitNumber(s *shape) *expr {
	free := s.number.low == nil && s.number.high == nil && len(s.multiple) == 0
	switch {
	case free && s.whole && !s.broken:
		return anyInteger()
	case free && !s.broken: // it may have an exponent
		return anyNumber()
	}
	step := new(big.Rat).SetFrac(big.NewInt(1), power(fracDigits))
	if s.whole {
		step = one
	}
	for _, m := range s.multiple {
		step = commonMultiple(step, m)
	}
	e, ok := c.multiples(s.number, step, s.broken)
	switch {
	case ok:
		return e
	case s.broken:
		return c.cannot("multipleOf", "a multiple that is not whole")
	}
	return s.number.listed(step)
}

// commonMultiple returns the least common multiple of two fractions.
func commonMultiple(a, b *big.Rat) *big.Rat {
	x := new(big.Int).Mul(a.Num(), b.Denom())
	y := new(big.Int).Mul(b.Num(), a.Denom())
	gcd := new(big.Int).GCD(nil, nil, x, y)
	return new(big.Rat).SetFrac(new(big.Int).Div(new(big.Int).Mul(x, y), gcd), new(big.Int).Mul(a.Denom(), b.Denom()))
}

// cannot records an unsupported combination of keywords.
func (c *schemas) cannot(keyword, what string) *expr {
	if c.err == nil {
		c.err = fmt.Errorf("%s: keyword %s: %s cannot be honoured", c.at, keyword, what)
	}
	return nothing()
}

var (
	plain  = charSet{{'"', '"'}, {'\\', '\\'}, {0, 0x1f}}.not() // characters that strings contain unescaped
	hex    = charSet{{'0', '9'}, {'a', 'f'}, {'A', 'F'}}
	escape = map[rune]string{'"': `\"`, '\\': `\\`, '\b': `\b`, '\f': `\f`, '\n': `\n`, '\r': `\r`, '\t': `\t`}
)

// anyChar matches a character of a string. Half a surrogate pair is not a character.
func anyChar() *expr {
	digit := chars(hex...)
	high := oneOf("dD")
	pair := seq(literal("u"), high, oneOf("89abAB"), digit, digit, literal(`\u`), high, oneOf("cdefCDEF"), digit, digit)
	unicode := alt(seq(high, digits('0', '7'), digit, digit), seq(chars(hex.and(charSet{{'d', 'd'}, {'D', 'D'}}.not())...),
		digit, digit, digit))
	return alt(chars(plain...), seq(literal(`\`), alt(oneOf(`"\/bfnrt`), seq(literal("u"), unicode), pair)))
}

// written returns an expression without rules in which write replaces characters.
func (e *expr) written(write func(charSet) *expr) *expr {
	if e.op == opChars {
		return write(e.set)
	}
	out := *e
	out.kids = make([]*expr, len(e.kids))
	for i, kid := range e.kids {
		out.kids[i] = kid.written(write)
	}
	return &out
}

// quoted returns the JSON text of a string's characters.
func quoted(set charSet) *expr {
	out := alt(chars(set.normal().and(plain)...))
	for r := rune(0); r <= '\\'; r++ {
		if set.has(r) && !plain.has(r) {
			text, ok := escape[r]
			if !ok {
				text = fmt.Sprintf(`\u%04x`, r)
			}
			out.kids = append(out.kids, literal(text))
		}
	}
	return out
}

func (c *schemas) emitString(s *shape) *expr {
	if e := c.limited(s, allChars, quoted); e != nil {
		return e
	}
	return repeat(c.char(), s.least, s.most)
}

// limited returns the expression of strings of some characters limited by a pattern, a format or
// excluded strings; nil if there are none of these. write returns the text of characters. Strings match none of more.
func (c *schemas) limited(s *shape, of charSet, write func(charSet) *expr, more ...*expr) *expr {
	all, none := c.regexes(s.pattern...), c.regexes(s.unlike...)
	if f := c.regexes(formats[s.format]...); len(f) > 0 && !slices.ContainsFunc(all, (*expr).looksAhead) { // as in zod
		for len(f) > 1 && !f[0].within(0, s.most) {
			f = f[1:]
		}
		all = append(all, f[0])
	}
	if c.err != nil {
		return nothing()
	}
	fits := s.least == 0 && s.most == unlimited ||
		slices.ContainsFunc(all, func(e *expr) bool { return e.within(s.least, s.most) })
	if len(s.excluded) > 0 {
		none = append(none, words(s.excluded))
	}
	if len(all) > 0 && !fits || len(all) == 0 && len(none) > 0 {
		all = append(all, repeat(chars(of...), s.least, min(s.most, max(s.least, maxItems))))
	}
	if len(all) == 0 {
		return nil
	}
	e, some := c.intersection(all, append(none, more...), write)
	if !some && s.format != "" && len(s.pattern) > 0 { // as for zod's times, which have no zone: the pattern counts
		free := s.clone()
		free.format = ""
		return c.limited(free, of, write, more...)
	}
	return e
}

// regexes returns the expressions of patterns.
func (c *schemas) regexes(patterns ...string) (out []*expr) {
	for _, p := range patterns {
		e, err := schemaRegex(p)
		if err != nil {
			c.cannot("pattern", err.Error())
			return nil
		}
		out = append(out, e)
	}
	return out
}

// char returns anyChar as a rule.
func (c *schemas) char() *expr { return c.once("a character", anyChar) }

// once refers to a rule that is made at the first call with its name.
func (c *schemas) once(name string, make func() *expr) *expr {
	rule, ok := c.shared[name]
	if !ok {
		rule = c.g.add(name, make())
		c.shared[name] = rule
	}
	return refer(rule)
}

// notAny matches strings of some characters, except some strings, without escapes.
func (c *schemas) notAny(list []string, of charSet) *expr {
	e, _ := c.intersection([]*expr{star(chars(of...))}, []*expr{words(list)}, unchanged)
	return e
}

// item returns the schemas that all parts have for the item at a place.
func (s *shape) item(at int) (all conj) {
	for i, p := range s.parts {
		switch {
		case p.seen:
			seen := slices.ContainsFunc(s.parts[p.unseen:i], func(q part) bool {
				return !q.denied && (at < len(q.kids) || q.others != nil)
			})
			if !seen {
				all = append(all, *p.others)
			}
		case at < len(p.kids):
			all = append(all, p.kids[at]...)
		case p.others != nil:
			all = append(all, *p.others)
		}
	}
	return all
}

func (c *schemas) emitArray(s *shape) *expr {
	prefix := 0 // items that differ from the later ones
	for _, p := range s.parts {
		prefix = max(prefix, len(p.kids))
	}
	for _, k := range s.contains {
		if k.most != unlimited { // as few counting items as are needed
			s.parts = append(s.parts, part{others: new(k.negated()), denied: true})
		}
	}
	starts := []int{0}
	if len(s.contains) > 0 && prefix > 0 {
		starts = append(starts, prefix)
	}
	out := alt()
	for _, start := range starts {
		items, most, ok := c.items(s, start, prefix)
		if !ok || most != unlimited && most < s.least {
			continue
		}
		if s.unique && (most == unlimited || most > 1) {
			if e := c.distinct(s, prefix, most); e != nil {
				return e
			}
			if c.several || s.least > 1 || contains(s, start) > 1 {
				if c.several || s.least > 1 || start == starts[len(starts)-1] && len(out.kids) == 0 {
					c.cannot("uniqueItems", "more than one item that is no member of an enum")
				}
				continue
			}
			most = 1
		}
		// From the last place to the first: the text that may follow i items.
		rest := empty()
		if most == unlimited {
			rest = star(seq(c.comma(), items(max(len(starts)*prefix, s.least, contains(s, start)))))
		}
		end := most
		if most == unlimited {
			end = max(prefix, s.least, contains(s, start))
		}
		for i := end - 1; i >= 0; i-- {
			next := seq(items(i), rest)
			if i > 0 {
				next = seq(c.comma(), next)
			}
			if i >= s.least && i >= contains(s, start) {
				next = maybe(next)
			}
			rest = c.g.rule("items", next)
		}
		if end == 0 && most == unlimited {
			item := items(0)
			rest = maybe(seq(item, star(seq(c.comma(), item))))
		}
		out.kids = append(out.kids, c.list(rest))
	}
	return out
}

// contains returns how many items there must be for those that an array must contain, if these begin at a place.
func contains(s *shape, start int) int {
	n := 0
	for _, k := range s.contains {
		if k.least > 0 {
			n = max(n, start+k.least)
		}
	}
	return n
}

// items returns the expression of each place, and how many items there may be.
func (c *schemas) items(s *shape, start, prefix int) (item func(i int) *expr, most int, ok bool) {
	if c.err != nil {
		return nil, 0, false
	}
	at := func(i int) conj {
		var all conj
		for _, k := range s.contains {
			if i >= start && i < start+k.least {
				all = append(all, k.term)
			}
		}
		for _, t := range s.item(i) {
			if !t.not || !slices.ContainsFunc(all, func(k term) bool { return k.at == t.at }) { // it may count here
				all = append(all, t)
			}
		}
		return all
	}
	fixed := max(prefix, contains(s, start)) // all places after these are alike
	most = s.most
	for i := range fixed + 1 {
		if most != unlimited && i >= most {
			break
		}
		if len(c.shapes(at(i))) == 0 { // nothing fits here
			most = i
			break
		}
	}
	for _, k := range s.contains {
		if k.most != unlimited && k.most < k.least {
			return nil, 0, false
		}
	}
	ok = most == unlimited || most >= contains(s, start)
	return func(i int) *expr { return c.listed(c.ref(at(min(i, fixed)))) }, most, ok
}

// distinct matches arrays of members of an enum in their order, each at most once; nil if the items
// are not members of an enum.
func (c *schemas) distinct(s *shape, prefix, most int) *expr {
	if prefix > 0 || len(s.contains) > 0 {
		return nil
	}
	var values []string
	for _, kid := range c.shapes(s.item(0)) {
		if kid.value == nil {
			return nil
		}
		values = append(values, *kid.value)
	}
	slices.Sort(values)
	values = slices.Compact(values)
	if most == unlimited {
		most = len(values)
	}
	known := map[[2]int]*expr{}
	var rest func(i, n int) *expr // what may follow n items, with the values from i on
	rest = func(i, n int) *expr {
		key := [2]int{i, n}
		if e := known[key]; e != nil {
			return e
		}
		e := alt()
		if c.full() {
			return e
		}
		if n >= s.least {
			e.kids = append(e.kids, empty())
		}
		if i < len(values) && n < most {
			value := c.listed(literal(c.written(values[i])))
			if n > 0 {
				value = seq(c.comma(), value)
			}
			e.kids = append(e.kids, seq(value, rest(i+1, n+1)), rest(i+1, n))
		}
		known[key] = c.g.rule("items", e)
		return known[key]
	}
	return c.list(rest(0, 0))
}
