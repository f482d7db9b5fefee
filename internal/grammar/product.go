package grammar

import "slices"

// rest is what is left to match: an expression, of a repetition min to max times, and then next, until that is nil.
type rest struct {
	e        *expr
	min, max int
	next     *rest
}

// step is a character that may come first, and what is left behind it.
type step struct {
	set  charSet
	left *rest
}

// product makes rules of what two expressions match, one for each pair of what is left of them: of a+ and .{0,2} the
// pairs (a+, .{0,2}), (a*, .{0,1}) and (a*, .{0,0}).
type product struct {
	c     *schemas
	write func(charSet) *expr // how characters stand in the text
	rests map[rest]*rest
	rules map[[2]*rest]*expr
	some  bool               // a text matches both
	sets  map[[2]*span]*expr // rules of the characters that two sets share, by their first spans; nil: none
}

// intersection is the expression of what all of some expressions match. some says that there is such a text.
func (c *schemas) intersection(all []*expr, write func(charSet) *expr) (e *expr, some bool) {
	e = all[0]
	if len(all) == 1 {
		return e.written(write), true
	}
	for i, other := range all[1:] {
		x := &product{c: c, write: write, rests: map[rest]*rest{}, rules: map[[2]*rest]*expr{}, sets: map[[2]*span]*expr{}}
		if i < len(all)-2 {
			x.write = func(set charSet) *expr { return chars(set...) }
		}
		e = x.pair(x.then(e, nil), x.then(other, nil))
		some = x.some
	}
	return e, some
}

func (x *product) then(e *expr, next *rest) *rest { return x.known(rest{e, e.min, e.max, next}) }

// known is the one rest that is like r, so that pointers can be compared.
func (x *product) known(r rest) *rest {
	if x.rests[r] == nil {
		x.rests[r] = &r
	}
	return x.rests[r]
}

func (x *product) pair(a, b *rest) *expr {
	key := [2]*rest{a, b}
	if rule := x.rules[key]; rule != nil {
		return rule
	}
	e := alt()
	if x.c.err != nil {
		return e
	}
	x.rules[key] = x.c.g.rule("of two patterns", e)
	x.c.paired++
	if x.c.paired > maxPaired {
		return x.c.cannot("pattern", "a long one together with another one, a format or a length")
	}
	first, ends := x.first(a)
	second, end := x.first(b)
	if !x.c.spend("pattern", 1+len(first)*len(second)/64) {
		return e
	}
	if ends && end {
		x.some = true
		e.kids = append(e.kids, empty())
	}
	for _, p := range first {
		for _, q := range second {
			if shared := x.shared(p.set, q.set); shared != nil {
				e.kids = append(e.kids, seq(shared, x.pair(p.left, q.left)))
			}
		}
	}
	return x.rules[key]
}

// shared is the expression of the characters that two sets share; nil for none.
func (x *product) shared(a, b charSet) *expr {
	if len(a) == 0 || len(b) == 0 {
		return nil
	}
	key := [2]*span{&a[0], &b[0]}
	e, known := x.sets[key]
	if known || !x.c.spend("pattern", 1+(len(a)+len(b))/16) {
		return e
	}
	if set := a.and(b); len(set) > 0 {
		e = x.c.g.rule("of characters", x.write(set))
	}
	x.sets[key] = e
	return e
}

// first are the characters that a rest may begin with. ends says that it may be empty.
func (x *product) first(r *rest) (steps []step, ends bool) {
	seen := map[*rest]bool{}
	for work := []*rest{r}; len(work) > 0; {
		r, work = work[len(work)-1], work[:len(work)-1]
		if r == nil || seen[r] {
			ends = ends || r == nil
			continue
		}
		seen[r] = true
		switch r.e.op {
		case opChars:
			steps = append(steps, step{r.e.set, r.next})
		case opSeq:
			next := r.next
			for _, kid := range slices.Backward(r.e.kids) {
				next = x.then(kid, next)
			}
			work = append(work, next)
		case opAlt:
			for _, kid := range r.e.kids {
				work = append(work, x.then(kid, r.next))
			}
		case opRule:
			work = append(work, x.then(x.c.g.rules[r.e.rule], r.next))
		case opRepeat:
			if r.min == 0 {
				work = append(work, r.next)
			}
			if r.max != 0 {
				again := rest{r.e, max(r.min-1, 0), max(r.max-1, unlimited), r.next}
				work = append(work, x.then(r.e.kids[0], x.known(again)))
			}
		}
	}
	x.c.spend("pattern", len(seen)/16)
	return steps, ends
}

// far stands for lengths without end.
const far = 2 * maxItems

// lengths are the least and the most characters that an expression without rules matches.
func (e *expr) lengths() (least, most int) {
	if e.op == opChars {
		return 1, 1
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
