package jinja

import (
	"slices"
	"strconv"
	"strings"
)

// path returns the keys in a filter's argument attribute, from the outermost in.
func (r *run) path(v Value) []Value {
	s, ok := text(v)
	switch {
	case v == nil:
		return nil
	case !ok:
		return []Value{v}
	}
	var keys []Value
	for part := range strings.SplitSeq(s, ".") {
		r.spend(16+len(part), 32)
		if i, err := strconv.Atoi(part); err == nil && all(isDigit)(r, part, part, &arguments{}) == true {
			keys = append(keys, integer(i))
		} else {
			keys = append(keys, part)
		}
	}
	return keys
}

// getter returns a reader of an attribute. If it is undefined at any step, otherwise is returned, unless that is nil.
func (r *run) getter(attribute, otherwise Value) func(Value) Value {
	keys := r.path(attribute)
	return func(x Value) Value {
		for _, key := range keys {
			r.spend(32, 0)
			x = r.element(x, key)
			if _, undefined := x.(*Undefined); undefined && otherwise != nil {
				x = otherwise
			}
		}
		return x
	}
}

// folded returns a getter that lowers the case of texts unless sensitive is set.
func (r *run) folded(get func(Value) Value, sensitive bool) func(Value) Value {
	if sensitive {
		return get
	}
	return func(x Value) Value {
		x = get(x)
		if s, ok := text(x); ok {
			r.spend(2*len(s), len(s))
			return lower(s)
		}
		return x
	}
}

// lazy charges each element, which may pass through any number of other lazy iterators.
func (r *run) lazy(next func() (Value, bool)) *iterator {
	r.spend(0, 64)
	return &iterator{func() (Value, bool) {
		r.down()
		defer r.up()
		return next()
	}}
}

// lateElements starts iterating at the first request.
func (r *run) lateElements(x Value) func() (Value, bool) {
	var it *iterator
	return func() (Value, bool) {
		if it == nil {
			it = r.iterate(x)
		}
		r.spend(16, 0)
		return it.next()
	}
}

func toList(r *run, x Value, a *arguments) Value {
	r.take("list", a)
	items := r.elements(x)
	return r.listed(append([]Value(nil), items...))
}

func first(r *run, x Value, a *arguments) Value {
	r.take("first", a)
	if v, ok := r.iterate(x).next(); ok {
		return v
	}
	return &Undefined{"first: there is no element"}
}

// reversed is Python's: ok is false for a value that has no known end.
func (r *run) reversed(x Value) (next func() (Value, bool), ok bool) {
	var n int
	var at func(int) Value
	switch v := x.(type) {
	case *Undefined:
	case *Dict:
		n, at = len(v.keys), func(i int) Value { return v.keys[i] }
	case *view:
		n, at = len(v.dict.keys), v.at
	default:
		n, at, ok = r.sequence(x)
		if !ok {
			return nil, false
		}
	}
	return func() (Value, bool) {
		if n == 0 {
			return nil, false
		}
		n--
		r.spend(8, 16)
		return at(n), true
	}, true
}

func last(r *run, x Value, a *arguments) Value {
	r.take("last", a)
	next, ok := r.reversed(x)
	if !ok {
		r.fail("last: a %s has no end", typeName(x))
	}
	if v, ok := next(); ok {
		return v
	}
	return &Undefined{"last: there is no element"}
}

func reverse(r *run, x Value, a *arguments) Value {
	r.take("reverse", a)
	next, ok := r.reversed(x)
	if s, isText := text(x); isText {
		parts := make([]byte, 0, len(s))
		for c, more := next(); more; c, more = next() {
			char, _ := text(c)
			parts = append(parts, char...)
		}
		return likeText(x, r.text(string(parts)))
	}
	if ok {
		return r.lazy(next)
	}
	items := append([]Value(nil), r.elements(x)...)
	slices.Reverse(items)
	return r.listed(items)
}

func itemsOf(r *run, x Value, a *arguments) Value {
	r.take("items", a)
	var it *iterator
	return r.lazy(func() (Value, bool) {
		if it == nil {
			switch d := x.(type) {
			case *Undefined:
				it = overList(nil)
			case *Dict:
				it = r.iterate(&view{d, "items"})
			default:
				r.fail("items wants a dictionary, not a %s", typeName(x))
			}
		}
		return it.next()
	})
}

func join(r *run, x Value, a *arguments) Value {
	got := r.take("join", a, "d?", "attribute?")
	get := r.getter(or(got[1], nil), nil)
	sep := r.str(or(got[0], ""))
	var parts []string
	it := r.iterate(x)
	for v, ok := it.next(); ok; v, ok = it.next() {
		r.spend(16, 16)
		parts = append(parts, r.str(get(v)))
	}
	return r.joined(parts, sep)
}

func batch(r *run, x Value, a *arguments) Value {
	got := r.take("batch", a, "linecount", "fill_with?")
	next := r.lateElements(x)
	ended := false
	var held []Value
	return r.lazy(func() (Value, bool) {
		row := held
		held = nil
		for !ended {
			v, ok := next()
			if !ok {
				ended = true
				break
			}
			r.spend(0, 32)
			if r.equal(integer(len(row)), got[0]) {
				held = []Value{v}
				return r.listed(row), true
			}
			row = append(row, v)
		}
		if len(row) == 0 {
			return nil, false
		}
		if fill := or(got[1], nil); fill != nil {
			r.filled(&row, fill, r.index(got[0], "batch")-len(row))
		}
		return r.listed(row), true
	})
}

// filled appends a value n times.
func (r *run) filled(row *[]Value, v Value, n int) {
	for range n {
		r.spend(1, 32)
		*row = append(*row, v)
	}
}

func columns(r *run, x Value, a *arguments) Value {
	got := r.take("slice", a, "slices", "fill_with?")
	var items []Value
	var count, number, at int
	started := false
	return r.lazy(func() (Value, bool) {
		if !started {
			items = r.elements(x)
			count = r.index(got[0], "slice")
			if count == 0 {
				r.fail("slice: division by zero")
			}
			started = true
		}
		if number >= count {
			return nil, false
		}
		size := len(items) / count
		extra := number < len(items)%count
		if extra {
			size++
		}
		row := append([]Value(nil), items[at:at+size]...)
		at += size
		number++
		if fill := or(got[1], nil); fill != nil && !extra {
			row = append(row, fill)
		}
		return r.listed(row), true
	})
}

// mapped is map, with an attribute or a filter.
func mapped(r *run, x Value, a *arguments) Value {
	next := r.lateElements(x)
	var make func(Value) Value
	return r.lazy(func() (Value, bool) {
		if !truth(x) {
			return nil, false
		}
		if make == nil {
			make = r.mapping(a)
		}
		v, ok := next()
		if !ok {
			return nil, false
		}
		return make(v), true
	})
}

func (r *run) mapping(a *arguments) func(Value) Value {
	if len(a.positional) == 0 && a.has("attribute") {
		got := r.take("map", a, "attribute", "default?")
		return r.getter(got[0], or(got[1], nil))
	}
	if len(a.positional) == 0 {
		r.fail("map wants a filter or an attribute")
	}
	name, ok := text(a.positional[0])
	if !ok {
		r.fail("map wants the name of a filter")
	}
	r.refuse(name)
	rest := &arguments{a.positional[1:], a.names, a.named}
	return func(v Value) Value { return r.filter(name, v, rest) }
}

func (r *run) refuse(filter string) {
	for _, name := range refused {
		if name == filter {
			r.fail("the filter %s is not supported", name)
		}
	}
}

// selecting returns select, reject, selectattr or rejectattr.
func selecting(want, attribute bool) filterFunc {
	return func(r *run, x Value, a *arguments) Value {
		next := r.lateElements(x)
		var pass func(Value) bool
		return r.lazy(func() (Value, bool) {
			if !truth(x) {
				return nil, false
			}
			if pass == nil {
				pass = r.passing(a, attribute)
			}
			for {
				v, ok := next()
				if !ok {
					return nil, false
				}
				if pass(v) == want {
					return v, true
				}
			}
		})
	}
}

func (r *run) passing(a *arguments, attribute bool) func(Value) bool {
	get := func(v Value) Value { return v }
	args := a.positional
	if attribute {
		if len(args) == 0 {
			r.fail("selectattr wants an attribute")
		}
		get = r.getter(args[0], nil)
		args = args[1:]
	}
	if len(args) == 0 {
		return func(v Value) bool { return truth(get(v)) }
	}
	name, ok := text(args[0])
	if !ok {
		r.fail("select wants the name of a test")
	}
	rest := &arguments{args[1:], a.names, a.named}
	return func(v Value) bool { return r.test(name, get(v), rest) }
}

func sortFilter(r *run, x Value, a *arguments) Value {
	got := r.take("sort", a, "reverse?", "case_sensitive?", "attribute?")
	sensitive := truth(or(got[1], false))
	var gets []func(Value) Value
	attributes := []Value{or(got[2], nil)}
	if s, ok := text(attributes[0]); ok {
		attributes = nil
		for part := range strings.SplitSeq(s, ",") {
			attributes = append(attributes, part)
		}
	}
	for _, part := range attributes {
		gets = append(gets, r.folded(r.getter(part, nil), sensitive))
	}
	key := func(v Value) Value {
		keys := make([]Value, len(gets))
		for i, get := range gets {
			keys[i] = get(v)
		}
		r.spend(0, 32*len(keys))
		return &List{keys}
	}
	return r.listed(r.sorted(r.elements(x), truth(or(got[0], false)), key))
}

func dictSort(r *run, x Value, a *arguments) Value {
	got := r.take("dictsort", a, "case_sensitive?", "by?", "reverse?")
	by := or(got[1], "key")
	at := 0
	switch {
	case r.equal(by, "value"):
		at = 1
	case !r.equal(by, "key"):
		r.fail(`dictsort: by is "key" or "value"`)
	}
	d, ok := x.(*Dict)
	if !ok {
		r.undefined(x)
		r.fail("dictsort wants a dictionary, not a %s", typeName(x))
	}
	key := r.folded(func(v Value) Value { return v.(*Tuple).Items[at] }, truth(or(got[0], false)))
	return r.listed(r.sorted(r.elements(&view{d, "items"}), truth(or(got[2], false)), key))
}

func unique(r *run, x Value, a *arguments) Value {
	got := r.take("unique", a, "case_sensitive?", "attribute?")
	key := r.folded(r.getter(or(got[1], nil), nil), truth(or(got[0], false)))
	next := r.lateElements(x)
	seen := map[string]bool{}
	return r.lazy(func() (Value, bool) {
		for {
			v, ok := next()
			if !ok {
				return nil, false
			}
			h := r.key(key(v))
			r.spend(0, 64+len(h))
			if !seen[h] {
				seen[h] = true
				return v, true
			}
		}
	})
}

// extreme returns max for a sign of 1, and min for −1.
func extreme(sign int) filterFunc {
	return func(r *run, x Value, a *arguments) Value {
		got := r.take("max", a, "case_sensitive?", "attribute?")
		key := r.folded(r.getter(or(got[1], nil), nil), truth(or(got[0], false)))
		it := r.iterate(x)
		best, ok := it.next()
		if !ok {
			return &Undefined{"max and min: there is no element"}
		}
		bestKey := key(best)
		for v, ok := it.next(); ok; v, ok = it.next() {
			k := key(v)
			if c, _ := r.order(k, bestKey); c*sign > 0 {
				best, bestKey = v, k
			}
		}
		return best
	}
}

func groupBy(r *run, x Value, a *arguments) Value {
	got := r.take("groupby", a, "attribute", "default?", "case_sensitive?")
	get := r.getter(got[0], or(got[1], nil))
	key := r.folded(get, truth(or(got[2], false)))
	var groups []Value
	var now Value
	var members *List
	for _, v := range r.sorted(r.elements(x), false, key) {
		k := key(v)
		if members == nil || !r.equal(k, now) {
			now, members = k, &List{}
			r.spend(0, 192)
			groups = append(groups, &Tuple{[]Value{get(v), members}, []string{"grouper", "list"}})
		}
		r.spend(0, 32)
		members.Items = append(members.Items, v)
	}
	return r.listed(groups)
}

func sum(r *run, x Value, a *arguments) Value {
	got := r.take("sum", a, "attribute?", "start?")
	get := r.getter(or(got[0], nil), nil)
	total := or(got[1], integer(0))
	if _, ok := text(total); ok {
		r.fail("sum: the start is a text")
	}
	it := r.iterate(x)
	for v, ok := it.next(); ok; v, ok = it.next() {
		r.spend(16, 0)
		total = r.binary("+", total, get(v))
	}
	return total
}
