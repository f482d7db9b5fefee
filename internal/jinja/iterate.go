package jinja

import (
	"slices"
	"unicode/utf8"
)

// iterate iterates over the elements of a value. It fails if the value cannot have any.
func (r *run) iterate(v Value) *iterator {
	if s, ok := text(v); ok {
		return &iterator{func() (Value, bool) {
			if s == "" {
				return nil, false
			}
			_, n := utf8.DecodeRuneInString(s)
			c := s[:n]
			s = s[n:]
			r.spend(8, 24)
			return c, true // without its type, as in Python's str
		}}
	}
	switch v := v.(type) {
	case *List:
		i := 0
		return &iterator{func() (Value, bool) { // with what is appended meanwhile
			i++
			if i > len(v.Items) {
				return nil, false
			}
			return v.Items[i-1], true
		}}
	case *Tuple:
		return overList(v.Items)
	case *Dict:
		return overList(v.keys)
	case *view:
		return counted(len(v.dict.keys), func(i int) Value {
			r.spend(8, 0)
			return v.at(i)
		})
	case *span:
		return counted(v.n, func(i int) Value {
			r.spend(32, 0)
			return v.at(i)
		})
	case *iterator:
		return v
	case *Undefined:
		return overList(nil)
	case *loop:
		return r.lazy(func() (Value, bool) {
			r.spend(32, 0)
			item, ok := v.next()
			return &Tuple{Items: []Value{item, v}}, ok
		})
	}
	r.fail("a %s has no elements to go through", typeName(v))
	return nil
}

// canIterate reports whether iterate would succeed.
func canIterate(v Value) bool {
	if _, ok := text(v); ok {
		return true
	}
	switch v.(type) {
	case *List, *Tuple, *Dict, *view, *span, *iterator, *Undefined, *loop:
		return true
	}
	return false
}

func counted(n int, at func(int) Value) *iterator {
	i := 0
	return &iterator{func() (Value, bool) {
		if i >= n {
			return nil, false
		}
		i++
		return at(i - 1), true
	}}
}

func overList(items []Value) *iterator {
	return counted(len(items), func(i int) Value { return items[i] })
}

// elements returns all elements of a value. The list must not be changed.
func (r *run) elements(v Value) []Value {
	switch v := v.(type) {
	case *List:
		return v.Items
	case *Tuple:
		return v.Items
	case *Dict:
		return v.keys
	}
	var items []Value
	it := r.iterate(v)
	for {
		item, ok := it.next()
		if !ok {
			return items
		}
		r.spend(8, 32)
		items = append(items, item)
	}
}

// sequence returns the number of elements and a function for one of them; ok is false if v has no indices.
func (r *run) sequence(v Value) (n int, at func(int) Value, ok bool) {
	switch v := v.(type) {
	case *List:
		return len(v.Items), func(i int) Value { return v.Items[i] }, true
	case *Tuple:
		return len(v.Items), func(i int) Value { return v.Items[i] }, true
	case *span:
		return v.n, v.at, true
	}
	s, ok := text(v)
	if !ok {
		return 0, nil, false
	}
	n, _ = r.len(v)
	if n == len(s) {
		return n, func(i int) Value { return likeText(v, s[i:i+1]) }, true
	}
	r.spend(len(s), 4*len(s))
	r.made -= 4 * len(s) // it is dropped immediately
	list := []rune(s)
	return n, func(i int) Value { return likeText(v, string(list[i])) }, true
}

// sliced returns x[start:stop:step].
func (r *run) sliced(e *slice, s *scope) Value {
	x := r.eval(e.x, s)
	bounds := [3]Value{}
	for i, b := range []expr{e.start, e.stop, e.step} {
		if b != nil {
			bounds[i] = r.eval(b, s)
		}
	}
	r.line = e.line
	r.undefined(x)
	n, at, ok := r.sequence(x)
	if !ok {
		r.fail("a %s cannot be sliced", typeName(x))
	}
	step := 1
	if bounds[2] != nil {
		step = r.index(bounds[2], "the step of a slice")
	}
	if step == 0 {
		r.fail("the step of a slice is 0")
	}
	// A step longer than the sequence takes one element, like a step of its length.
	step = max(min(step, n+1), -n-1)
	first, last := 0, n
	if step < 0 {
		first, last = n-1, -1
	}
	bound := func(v Value, otherwise int) int {
		if v == nil {
			return otherwise
		}
		i := r.index(v, "a slice")
		if i < 0 {
			i = max(i+n, -1)
		}
		if step > 0 {
			return min(max(i, 0), n)
		}
		return min(i, n-1)
	}
	first, last = bound(bounds[0], first), bound(bounds[1], last)
	count := 0
	switch {
	case step > 0 && first < last:
		count = (last - first + step - 1) / step
	case step < 0 && first > last:
		count = (first - last - step - 1) / -step
	}
	return r.cut(x, first, last, step, count, at)
}

// cut takes count elements of a sequence.
func (r *run) cut(x Value, first, last, step, count int, at func(int) Value) Value {
	if s, ok := x.(*span); ok {
		start := s.start + first*s.step
		stop := s.start + last*s.step
		return &span{start, stop, s.step * step, count}
	}
	if s, ok := text(x); ok {
		b := make([]byte, 0, min(len(s), 4*count))
		for i := range count {
			c, _ := text(at(first + i*step))
			b = append(b, c...)
		}
		return likeText(x, r.text(string(b)))
	}
	items := make([]Value, count)
	for i := range items {
		items[i] = at(first + i*step)
	}
	list := r.listed(items).(*List)
	if _, ok := x.(*Tuple); ok {
		return &Tuple{Items: list.Items}
	}
	return list
}

// sorted orders values by their keys, keeping the order of equal ones.
func (r *run) sorted(items []Value, reverse bool, key func(Value) Value) []Value {
	type keyed struct{ key, item Value }
	list := make([]keyed, len(items))
	for i, item := range items {
		r.spend(16, 80)
		list[i] = keyed{key(item), item}
	}
	slices.SortStableFunc(list, func(a, b keyed) int {
		if reverse {
			a, b = b, a
		}
		c, _ := r.order(a.key, b.key)
		return c
	})
	out := make([]Value, len(list))
	for i := range list {
		out[i] = list[i].item
	}
	return out
}
