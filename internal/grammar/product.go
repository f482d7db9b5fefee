package grammar

import (
	"encoding/binary"
	"slices"
)

// rest is what remains to match: an expression, a repetition min to max times, and then next, until that is nil.
type rest struct {
	e        *expr
	min, max int
	next     *rest
}

// goal is what must match at once: all of some rests, and none of others.
type goal struct{ all, none []*rest }

// class is a set of characters, and the rule that writes one of them.
type class struct {
	set  charSet
	rule *expr
}

// step is a character that may come first, and what remains after it.
type step struct {
	class *class
	left  goal
}

// product makes rules for texts that several expressions match at once, one per goal: for a+ and
// .{0,2}, the goals (a+, .{0,2}), (a*, .{0,1}) and (a*, .{0,0}). A lookahead adds to the goal.
// Expressions that must not match are followed in all ways at once, so that none is left at the end.
type product struct {
	c       *schemas
	write   func(charSet) *expr // returns the text of characters
	each    *expr               // what precedes each character
	rests   map[rest]*rest
	numbers map[*rest]uint64
	rules   map[string]*expr // by goals
	classes map[*expr]*class
	sets    map[string]*class
	parts   map[[2]*class][2]*class // the characters of the first within the second and outside it; nil: none
	some    bool                    // at least one text matches
}

func (c *schemas) product(write func(charSet) *expr) *product {
	return &product{c: c, write: write, each: empty(), rests: map[rest]*rest{}, numbers: map[*rest]uint64{},
		rules: map[string]*expr{}, classes: map[*expr]*class{}, sets: map[string]*class{},
		parts: map[[2]*class][2]*class{}}
}

// intersection returns the expression for texts that all of some expressions match, and none of
// others, which have no lookaheads. some reports whether there is such a text.
func (c *schemas) intersection(all, none []*expr, write func(charSet) *expr) (e *expr, some bool) {
	if len(all) == 1 && len(none) == 0 && !all[0].looksAhead() {
		return all[0].written(write), true
	}
	x := c.product(write)
	e = x.rule(goal{x.begin(all), x.begin(none)})
	return e, x.some
}

// unchanged writes characters as they are.
func unchanged(of charSet) *expr { return chars(of...) }

func (x *product) begin(all []*expr) (out []*rest) {
	for _, e := range all {
		out = append(out, x.then(e, nil))
	}
	return out
}

func (x *product) then(e *expr, next *rest) *rest { return x.known(rest{e, e.min, e.max, next}) }

// known returns the one rest equal to r, so that pointers can be compared.
func (x *product) known(r rest) *rest {
	if x.rests[r] == nil {
		x.rests[r] = &r
		x.numbers[&r] = uint64(len(x.rests))
	}
	return x.rests[r]
}

// key returns the same key for goals of the same rests, which it sorts.
func (x *product) key(g goal) string {
	var b []byte
	for i, list := range [][]*rest{g.all, g.none} {
		numbers := make([]uint64, len(list))
		for k, r := range list {
			numbers[k] = x.numbers[r] // 0 for nil
		}
		slices.Sort(numbers)
		b = binary.AppendUvarint(b, uint64(i))
		for _, n := range slices.Compact(numbers) {
			b = binary.AppendUvarint(b, n+2)
		}
	}
	return string(b)
}

// rule returns the rule of a goal.
func (x *product) rule(g goal) *expr {
	key := x.key(g)
	if rule := x.rules[key]; rule != nil {
		return rule
	}
	e := alt()
	if x.c.err != nil {
		return e
	}
	x.rules[key] = x.c.g.rule("of patterns", e)
	x.c.paired++
	if x.c.paired > maxPaired {
		return x.c.cannot("pattern", "a long one together with another one, a format, a length or a lookahead")
	}
	steps, ends := x.steps(g)
	if ends {
		x.some = true
		e.kids = append(e.kids, empty())
	}
	for _, s := range steps {
		if s.class.rule == nil {
			s.class.rule = x.c.g.rule("of characters", x.write(s.class.set))
		}
		e.kids = append(e.kids, seq(x.each, s.class.rule, x.rule(s.left)))
	}
	return x.rules[key]
}

// steps returns the characters that may come first. ends reports whether the text may end here.
func (x *product) steps(g goal) (steps []step, ends bool) {
	for _, g := range x.heads(g) {
		deny, over := x.firsts(g.none)
		if !slices.ContainsFunc(g.all, func(r *rest) bool { return r != nil }) {
			ends = ends || !over
			continue
		}
		if slices.Contains(g.all, nil) {
			continue
		}
		var left goal
		var first *class
		for i, r := range g.all {
			if i == 0 {
				first = x.class(r.e)
			} else if first != nil {
				first = x.part(first, x.class(r.e))[0]
			}
			if !slices.Contains(left.all, r.next) {
				left.all = append(left.all, r.next)
			}
		}
		if first != nil && len(first.set) > 0 {
			steps = append(steps, x.without(step{first, left}, deny)...)
		}
	}
	return steps, ends
}

// without splits a step by what then remains of rests that must not match.
func (x *product) without(s step, deny []*rest) []step {
	all := []step{s}
	for _, r := range deny {
		var next []step
		for _, s := range all {
			part := x.part(s.class, x.class(r.e))
			if part[0] != nil && !r.next.isAny() {
				left := goal{s.left.all, append(slices.Clip(s.left.none), r.next)}
				next = append(next, step{part[0], left})
			}
			if part[1] != nil {
				next = append(next, step{part[1], s.left})
			}
		}
		all = next
		x.c.spend("pattern", len(all)/16)
	}
	return all
}

// isAny reports whether every text matches a rest.
func (r *rest) isAny() bool {
	return r != nil && r.next == nil && r.e.op == opRepeat && r.min == 0 && r.max == unlimited &&
		r.e.kids[0].op == opChars && slices.Equal(r.e.kids[0].set, allChars)
}

// heads returns the ways to continue a goal: in each, either all its rests begin with a character, or nothing is left.
func (x *product) heads(g goal) (out []goal) {
	seen := map[string]bool{}
	for work := []goal{g}; len(work) > 0 && x.c.err == nil; {
		g, work = work[len(work)-1], work[:len(work)-1]
		key := x.key(g)
		if seen[key] {
			continue
		}
		seen[key] = true
		x.c.spend("pattern", len(key)/16+len(seen)&1)
		i := slices.IndexFunc(g.all, func(r *rest) bool { return r != nil && r.e.op != opChars })
		if i < 0 {
			out = append(out, g)
			continue
		}
		r := g.all[i]
		others := slices.Delete(slices.Clone(g.all), i, i+1)
		switch {
		case r.isAny() && len(others) > 0:
			work = append(work, goal{others, g.none})
		case r.e.op == opAhead:
			work = append(work, goal{append(others, r.next, x.then(r.e.kids[0], nil)), g.none})
		case r.e.op == opNotAhead:
			none := append(slices.Clip(g.none), x.then(r.e.kids[0], nil))
			work = append(work, goal{append(others, r.next), none})
		default:
			for _, way := range x.ways(r) {
				work = append(work, goal{append(slices.Clip(others), way), g.none})
			}
		}
	}
	return out
}

// firsts returns the rests that begin with a character of rests without lookaheads. ends: one of them may be empty.
func (x *product) firsts(work []*rest) (out []*rest, ends bool) {
	seen := map[*rest]bool{}
	work = slices.Clone(work)
	for len(work) > 0 {
		r := work[len(work)-1]
		work = work[:len(work)-1]
		if r == nil || seen[r] {
			ends = ends || r == nil
			continue
		}
		seen[r] = true
		if r.e.op == opChars {
			out = append(out, r)
			continue
		}
		work = append(work, x.ways(r)...)
	}
	x.c.spend("pattern", len(seen)/16)
	return out, ends
}

// ways returns the possible continuations of a rest that does not begin with a character.
func (x *product) ways(r *rest) (out []*rest) {
	switch r.e.op {
	case opSeq:
		next := r.next
		for _, kid := range slices.Backward(r.e.kids) {
			next = x.then(kid, next)
		}
		return []*rest{next}
	case opAlt:
		for _, kid := range r.e.kids {
			out = append(out, x.then(kid, r.next))
		}
	case opRule:
		return []*rest{x.then(x.c.g.rules[r.e.rule], r.next)}
	case opRepeat:
		if r.min == 0 {
			out = append(out, r.next)
		}
		if r.max != 0 {
			again := rest{r.e, max(r.min-1, 0), max(r.max-1, unlimited), r.next}
			out = append(out, x.then(r.e.kids[0], x.known(again)))
		}
	}
	return out
}

// class returns the characters of an expression.
func (x *product) class(e *expr) *class {
	if x.classes[e] == nil {
		x.classes[e] = x.classOf(e.set.normal())
	}
	return x.classes[e]
}

// classOf returns the one class of a set.
func (x *product) classOf(set charSet) *class {
	var key []byte
	for _, s := range set {
		key = binary.AppendUvarint(binary.AppendUvarint(key, uint64(s.lo)), uint64(s.hi))
	}
	if x.sets[string(key)] == nil {
		x.sets[string(key)] = &class{set: set}
	}
	return x.sets[string(key)]
}

// part returns the part of a class inside another one, and the part outside it.
func (x *product) part(a, b *class) (out [2]*class) {
	key := [2]*class{a, b}
	if out, known := x.parts[key]; known || !x.c.spend("pattern", 1+(len(a.set)+len(b.set))/16) {
		return out
	}
	for i, set := range []charSet{b.set, b.set.not()} {
		if shared := a.set.and(set); len(shared) > 0 {
			out[i] = x.classOf(shared)
		}
	}
	x.parts[key] = out
	return out
}

// accepts reports whether an expression matches a text.
func (x *product) accepts(e *expr, text string) bool {
	at := []goal{{all: x.begin([]*expr{e})}}
	for _, r := range text {
		seen := map[string]bool{}
		var next []goal
		for _, g := range at {
			steps, _ := x.steps(g)
			for _, s := range steps {
				if key := x.key(s.left); s.class.set.has(r) && !seen[key] {
					seen[key] = true
					next = append(next, s.left)
				}
			}
		}
		at = next
	}
	return slices.ContainsFunc(at, func(g goal) bool {
		_, ends := x.steps(g)
		return ends
	})
}

// looksAhead reports whether an expression has lookaheads.
func (e *expr) looksAhead() bool {
	return e.op == opAhead || e.op == opNotAhead || slices.ContainsFunc(e.kids, (*expr).looksAhead)
}

// within reports whether an expression without rules matches only texts of a length.
func (e *expr) within(least, most int) bool {
	low, high := e.lengths()
	return low >= least && (most == unlimited || high <= most)
}

// far stands for unlimited lengths.
const far = 2 * maxLength

// lengths returns the least and the most characters that an expression without rules matches.
func (e *expr) lengths() (least, most int) {
	switch e.op {
	case opChars:
		return 1, 1
	case opAhead, opNotAhead:
		return 0, 0
	}
	for i, kid := range e.kids {
		low, high := kid.lengths()
		switch {
		case e.op == opSeq:
			least, most = least+low, most+high
		case i == 0:
			least, most = low, high
		default:
			least, most = min(least, low), max(most, high)
		}
	}
	if e.op == opRepeat {
		least *= e.min
		most *= e.max
		if e.max == unlimited {
			most = far
		}
	}
	return min(least, far), min(most, far)
}
