package grammar

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/grovellm/grove/internal/callform"
)

// property returns what all parts say of a property, and whether one of them mentions it. patterns
// are those that match its name; nil: to be determined.
func (c *schemas) property(s *shape, name string, patterns []string) (all conj) {
	matching := func(p *part) (found []conj) {
		for i, pattern := range p.patterns {
			if slices.Contains(patterns, pattern) || patterns == nil && c.matches(pattern, name) {
				found = append(found, p.matching[i])
			}
		}
		return found
	}
	mentions := func(p *part) bool {
		return !p.denied && (patterns == nil && slices.Contains(p.names, name) || len(matching(p)) > 0 || p.others != nil)
	}
	for i := range s.parts {
		p := &s.parts[i]
		if p.seen {
			seen := false
			for j := p.unseen; j < i; j++ {
				seen = seen || mentions(&s.parts[j])
			}
			if !seen {
				all = append(all, *p.others)
			}
			continue
		}
		at := -1
		if patterns == nil {
			at = slices.Index(p.names, name)
		}
		found := matching(p)
		if at >= 0 {
			all = append(all, p.kids[at]...)
		}
		for _, k := range found {
			all = append(all, k...)
		}
		if at < 0 && len(found) == 0 && p.others != nil {
			all = append(all, *p.others)
		}
	}
	return all
}

// pair is a property with its value.
type pair struct {
	text     *expr
	required bool
}

// writing is how an object is written: the text before the first property or in its place, between
// properties, and after all of them, and a property whose name is given directly, or by an
// expression of its characters.
type writing struct {
	open, none, between, end *expr

	plain bool // names are written unquoted

	pair func(name string, value conj) *expr
	free func(name *expr, value conj) *expr
}

func (c *schemas) emitObject(s *shape) *expr {
	if c.notation.Tag != "" {
		return c.writeObject(s, c.elements())
	}
	key := c.notation.Key
	return c.writeObject(s, &writing{plain: key != callform.JSON.Key, open: literal("{"), none: literal("{"),
		between: c.comma(), end: literal("}"),
		pair: func(name string, value conj) *expr {
			return seq(literal(c.name(name)+c.notation.Colon), c.ref(value))
		},
		free: func(name *expr, value conj) *expr {
			return seq(literal(key), name, literal(key+c.notation.Colon), c.ref(value))
		}})
}

// properties returns the names that the parts of an object have, and those that are required.
func (s *shape) properties() (names []string) {
	seen := map[string]bool{}
	for _, p := range append(slices.Clip(s.parts), part{names: s.required}) {
		for _, name := range p.names {
			if !seen[name] {
				seen[name] = true
				names = append(names, name)
			}
		}
	}
	return names
}

func (c *schemas) writeObject(s *shape, w *writing) *expr {
	names := s.properties()
	needed := map[string]bool{}
	for _, name := range s.required {
		needed[name] = true
	}
	if len(names) > maxRules && c.err == nil {
		c.err = fmt.Errorf("an object has more than %d properties: make the schema simpler", maxRules)
	}
	var pairs []pair
	for _, name := range names {
		if c.err != nil {
			return nothing()
		}
		required := needed[name]
		value := c.property(s, name, nil)
		named := c.constant(universe(), place{at: "propertyNames"}, name)
		for _, t := range s.names {
			named = c.apply(named, t)
		}
		if slices.Contains(s.absent, name) || len(named) == 0 || len(c.shapes(value)) == 0 {
			if required {
				return nothing()
			}
			continue
		}
		pairs = append(pairs, pair{w.pair(name, value), required})
	}
	free := c.freeProperty(s, append(names, s.absent...), w)
	return seq(c.properties(s, pairs, free, w), w.end)
}

// freeProperty returns a property that no part names, or nothing if there may be none. Its name is
// written without escapes, so that it cannot be a name in disguise.
func (c *schemas) freeProperty(s *shape, names []string, w *writing) *expr {
	var patterns []string
	seen := map[string]bool{}
	asked := len(names) == 0 // a schema that names properties and is silent about others has no others
	others := false
	for _, p := range s.parts {
		others = others || p.others != nil
		asked = asked || others || len(p.patterns) > 0
		for _, pattern := range p.patterns {
			if !seen[pattern] {
				seen[pattern] = true
				patterns = append(patterns, pattern)
			}
		}
	}
	if !asked || s.most == 0 {
		return nothing()
	}
	value := c.property(s, "", []string{}) // of a name that matches no pattern
	fits := len(c.shapes(value)) > 0
	switch {
	case len(patterns) == 0 && !fits:
		return nothing()
	case w.plain: // of characters that have no function in any form
		if len(patterns)+len(s.names) == 0 {
			return w.free(c.notAny(names, nameChars), value)
		}
		return nothing()
	case len(patterns)+len(s.names) == 0:
		return w.free(c.notAny(names, plain), value)
	case len(patterns) == 0:
		out := alt()
		for _, n := range c.shapes(s.names) {
			n = n.clone()
			n.excluded = append(n.excluded, names...)
			if n.kind != isString || c.impossible(n) {
				continue
			}
			out.kids = append(out.kids, seq(c.emit(n), literal(c.notation.Colon), c.ref(value)))
		}
		return out
	}
	out := alt()
	if len(s.names) > 0 {
		return out
	}
	if !c.spend("patternProperties", len(patterns)*len(patterns)/256) {
		return out
	}
	expressions := c.regexes(patterns...)
	if c.err != nil {
		return out
	}
	named := []*expr{words(names)}
	// add adds names that match some patterns and none of others.
	add := func(match, not []*expr, value conj) {
		if len(c.shapes(value)) > 0 {
			name, _ := c.intersection(match, not, quoted)
			out.kids = append(out.kids, w.free(name, value))
		}
	}
	all := c.property(s, "", patterns)
	for i, pattern := range patterns {
		only := c.property(s, "", []string{pattern})
		rest := slices.Delete(slices.Clone(expressions), i, i+1)
		add(expressions[i:i+1], slices.Concat(named, rest), only)
		if len(patterns) > 1 { // a name that matches one may match the others: then the value must satisfy all
			every := slices.Clone(all)
			for _, p := range s.parts { // a part of which another's pattern may be part
				if p.others != nil && !p.seen && !slices.Contains(p.patterns, pattern) {
					every = append(every, *p.others)
				}
			}
			add(expressions[i:i+1], named, every)
		}
	}
	if others {
		add([]*expr{anyText()}, slices.Concat(named, expressions), value)
	}
	return out
}

// properties matches the pairs in their order, followed by free ones.
func (c *schemas) properties(s *shape, pairs []pair, free *expr, w *writing) *expr {
	counted := s.least > 0 || s.most != unlimited
	known := map[[2]int]*expr{}
	separated := func(e *expr, n int) *expr {
		if n > 0 {
			return seq(w.between, e)
		}
		return seq(w.open, e)
	}
	stop := func(n int) *expr {
		if n > 0 {
			return empty()
		}
		return w.none
	}
	ending := func(n int) *expr {
		// Free names may repeat, so only one of them counts as a further property.
		least, most := 0, unlimited
		if counted {
			least = max(s.least-n, 0)
			if s.most != unlimited {
				most = s.most - n
			}
		}
		switch {
		case least > 1 && !free.isNothing():
			c.g.lack = cmp.Or(c.g.lack, fmt.Errorf("%s: keyword minProperties: names that no schema lists could repeat, "+
				"so that only one of them counts: list more names in properties, or use a smaller number", c.at))
			return nothing()
		case least > 1 || most != unlimited && most < least:
			return nothing()
		case most == 0 || free.isNothing():
			if least > 0 {
				return nothing()
			}
			return stop(n)
		}
		more := unlimited
		if most != unlimited {
			more = most - 1
		}
		e := seq(separated(free, n), repeat(seq(w.between, free), 0, more))
		if least == 0 {
			e = alt(e, stop(n))
		}
		return e
	}
	var rest func(i, n int) *expr // from pair i on, after n pairs
	rest = func(i, n int) *expr {
		if !counted {
			n = min(n, 1)
		}
		key := [2]int{i, n}
		if e := known[key]; e != nil {
			return e
		}
		e := alt()
		if c.full() {
			return e
		}
		if i == len(pairs) {
			e = ending(n)
		} else {
			if !counted || s.most == unlimited || n < s.most {
				e.kids = append(e.kids, seq(separated(pairs[i].text, n), rest(i+1, n+1)))
			}
			if !pairs[i].required {
				e.kids = append(e.kids, rest(i+1, n))
			}
		}
		known[key] = c.g.rule("properties", e)
		return known[key]
	}
	return rest(0, 0)
}
