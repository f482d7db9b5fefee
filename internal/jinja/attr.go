package jinja

import (
	"fmt"
	"math"
	"math/big"
	"slices"
	"strings"
)

// attribute returns x.name: the result of Python's getattr, or else x[name].
func (r *run) attribute(x Value, name string) Value {
	if v, ok := r.getattr(x, name); ok {
		return v
	}
	if v, ok := r.getitem(x, name); ok {
		return v
	}
	return missing(x, name)
}

// element returns x[key]: an element, or else an attribute.
func (r *run) element(x, key Value) Value {
	if v, ok := r.getitem(x, key); ok {
		return v
	}
	if name, ok := text(key); ok {
		if v, ok := r.getattr(x, name); ok {
			return v
		}
	}
	return missing(x, key)
}

func missing(x, key Value) Value {
	if name, ok := text(key); ok {
		return &Undefined{fmt.Sprintf("a %s has no attribute or key %.100q", typeName(x), name)}
	}
	return &Undefined{fmt.Sprintf("a %s has no such element", typeName(x))}
}

// getitem is Python's x[key]. ok is false if Python raises a TypeError or a LookupError.
func (r *run) getitem(x, key Value) (v Value, ok bool) {
	switch x := x.(type) {
	case *Undefined:
		r.undefined(x)
	case *Dict:
		r.walk(key)
		h, ok := hash(key)
		if !ok {
			return nil, false
		}
		return x.get(h)
	}
	if whole(key) == nil {
		return nil, false
	}
	n, at, ok := r.sequence(x)
	if !ok {
		return nil, false
	}
	i := r.index(key, "an element")
	if i < 0 {
		i += n
	}
	if i < 0 || i >= n {
		return nil, false
	}
	return at(i), true
}

// changing lists the methods that the sandbox withholds from templates because they would change the value.
var changing = map[string][]string{
	"list": {"clear", "reverse", "insert", "sort", "extend", "remove"},
	"dict": {"clear", "pop", "popitem", "setdefault", "update"},
}

// getattr is Python's, within the sandbox. ok is false if x has no such attribute.
func (r *run) getattr(x Value, name string) (v Value, ok bool) {
	r.spend(len(name), 0)
	if ns, ok := x.(*namespace); ok {
		return ns.get("s" + name)
	}
	r.undefined(x)
	kind := typeName(x)
	if slices.Contains(changing[kind], name) || strings.HasPrefix(name, "__") && strings.HasSuffix(name, "__") {
		return &Undefined{fmt.Sprintf("the attribute %s of a %s is unsafe: templates cannot use it", name, kind)}, true
	}
	switch x := x.(type) {
	case string, Markup:
		if f, ok := textMethods[name]; ok {
			s, _ := text(x)
			return method(func(r *run, a *arguments) Value { return f(r, x, s, a) }), true
		}
	case *Dict:
		return dictMethod(x, name)
	case *List, *Tuple, *span:
		return r.listMethod(x, name)
	case *function:
		if name == "fromkeys" && x == globals["dict"] {
			return method(fromKeys), true
		}
	case *loop:
		return x.attribute(r, name)
	case *macro:
		return x.attribute(r, name)
	case *cycler:
		return x.attribute(name)
	case bool, *big.Int:
		return integerMethod(whole(x), name)
	case float64:
		return floatMethod(x, name)
	}
	return nil, false
}

func method(call func(r *run, a *arguments) Value) *function {
	return &function{func(r *run, a *arguments) Value {
		r.spend(32, 0)
		return call(r, a)
	}}
}

// unsupported returns a method that Python has, but whose call is refused.
func unsupported(name string) *function {
	return method(func(r *run, _ *arguments) Value {
		r.fail("%s is not supported", name)
		return nil
	})
}

func dictMethod(d *Dict, name string) (Value, bool) {
	switch name {
	case "keys", "values", "items":
		return method(func(r *run, a *arguments) Value {
			r.take(name, a)
			r.spend(0, 48)
			return &view{d, name}
		}), true
	case "get":
		return method(func(r *run, a *arguments) Value {
			got := r.take(name, a, "/key", "/default?")
			v, ok := d.get(r.key(got[0]))
			if !ok {
				return or(got[1], nil)
			}
			return v
		}), true
	case "copy":
		return method(func(r *run, a *arguments) Value {
			r.take(name, a)
			return r.copied(d)
		}), true
	case "fromkeys":
		return method(fromKeys), true
	}
	return nil, false
}

func (r *run) copied(d *Dict) *Dict {
	c := NewDict()
	for i, key := range d.keys {
		r.put(c, key, d.values[i])
	}
	return c
}

func fromKeys(r *run, a *arguments) Value {
	got := r.take("fromkeys", a, "/iterable", "/value?")
	d := NewDict()
	for _, key := range r.elements(got[0]) {
		r.put(d, key, or(got[1], nil))
	}
	return d
}

func (r *run) listMethod(x Value, name string) (Value, bool) {
	if t, ok := x.(*Tuple); ok {
		if i := slices.Index(t.names, name); i >= 0 {
			return t.Items[i], true
		}
	}
	switch _, isList := x.(*List); {
	case name == "count":
		return method(func(r *run, a *arguments) Value {
			got := r.take(name, a, "/value")
			n := 0
			for _, v := range r.elements(x) {
				if r.equal(v, got[0]) {
					n++
				}
			}
			return integer(n)
		}), true
	case name == "index":
		return method(func(r *run, a *arguments) Value { return r.indexOf(x, a) }), true
	case name == "copy" && isList:
		return method(func(r *run, a *arguments) Value {
			r.take(name, a)
			return r.listed(slices.Clone(x.(*List).Items))
		}), true
	case name == "append" && isList:
		return method(func(r *run, a *arguments) Value {
			item := r.take(name, a, "/object")[0]
			list := x.(*List)
			r.spend(len(list.Items), 32)
			list.Items = append(slices.Clip(list.Items), item) // others may share the items
			return nil
		}), true
	case name == "pop" && isList:
		return method(func(r *run, a *arguments) Value { return r.pop(x.(*List), a) }), true
	}
	if s, ok := x.(*span); ok {
		switch name {
		case "start":
			return integer(s.start), true
		case "step":
			return integer(s.step), true
		case "stop":
			return integer(s.stop), true
		}
	}
	return nil, false
}

// pop takes an element, by default the last, out of a list.
func (r *run) pop(list *List, a *arguments) Value {
	at := r.index(or(r.take("pop", a, "/index?")[0], integer(-1)), "pop")
	if at < 0 {
		at += len(list.Items)
	}
	if at < 0 || at >= len(list.Items) {
		r.fail("pop: the list has no such element")
	}
	item := list.Items[at]
	r.spend(len(list.Items), 0)
	list.Items = slices.Concat(list.Items[:at], list.Items[at+1:])
	return item
}

func (r *run) indexOf(x Value, a *arguments) Value {
	got := r.take("index", a, "/value", "/start?", "/stop?")
	items := r.elements(x)
	first, last := r.window(len(items), got[1], got[2])
	for i := first; i < last; i++ {
		if r.equal(items[i], got[0]) {
			return integer(i)
		}
	}
	r.fail("index: the value is not in the list")
	return nil
}

// window returns the range to search, between start and stop, either of which may be absent, in n elements.
func (r *run) window(n int, start, stop Value) (first, last int) {
	bound := func(v Value, otherwise int) int {
		v = or(v, nil)
		if v == nil {
			return otherwise
		}
		i := r.index(v, "a bound")
		if i < 0 {
			i = max(i+n, 0)
		}
		return i
	}
	return bound(start, 0), min(bound(stop, n), n)
}

func integerMethod(i *big.Int, name string) (Value, bool) {
	switch name {
	case "real", "numerator":
		return i, true
	case "imag":
		return integer(0), true
	case "denominator":
		return integer(1), true
	case "bit_length":
		return method(func(r *run, a *arguments) Value {
			r.take(name, a)
			return integer(i.BitLen())
		}), true
	case "bit_count", "conjugate", "to_bytes", "from_bytes", "as_integer_ratio":
		return unsupported("the method " + name), true
	}
	return nil, false
}

func floatMethod(f float64, name string) (Value, bool) {
	switch name {
	case "real":
		return f, true
	case "imag":
		return 0.0, true
	case "is_integer":
		return method(func(r *run, a *arguments) Value {
			r.take(name, a)
			return f == math.Trunc(f) && !math.IsInf(f, 0)
		}), true
	case "conjugate", "hex", "fromhex", "as_integer_ratio":
		return unsupported("the method " + name), true
	}
	return nil, false
}

func (l *loop) attribute(r *run, name string) (Value, bool) {
	switch name {
	case "index":
		return integer(l.at + 1), true
	case "index0":
		return integer(l.at), true
	case "first":
		return l.at == 0, true
	case "last":
		_, more := l.peek()
		return !more, true
	case "length":
		return integer(l.length(r)), true
	case "revindex":
		return integer(l.length(r) - l.at), true
	case "revindex0":
		return integer(l.length(r) - l.at - 1), true
	case "depth":
		return integer(1), true
	case "depth0":
		return integer(0), true
	case "previtem":
		if l.at == 0 {
			return &Undefined{"there is no previous item"}, true
		}
		return l.before, true
	case "nextitem":
		v, ok := l.peek()
		if !ok {
			return &Undefined{"there is no next item"}, true
		}
		return v, true
	case "cycle":
		return method(func(r *run, a *arguments) Value {
			if len(a.positional) == 0 || len(a.names) > 0 {
				r.fail("cycle wants items")
			}
			return a.positional[l.at%len(a.positional)]
		}), true
	case "changed":
		return method(l.change), true
	}
	return nil, false
}

// change reports whether values differ from those of the previous call.
func (l *loop) change(r *run, a *arguments) Value {
	if len(a.names) > 0 {
		r.fail("changed takes no arguments by name")
	}
	if l.changed != nil && r.allEqual(l.changed, a.positional) {
		return false
	}
	l.changed = append([]Value{}, a.positional...)
	return true
}

func (m *macro) attribute(r *run, name string) (Value, bool) {
	switch name {
	case "name":
		return m.name, true
	case "arguments":
		var list []Value
		r.spend(32*len(m.params.names), 32*len(m.params.names))
		for _, n := range m.params.names {
			list = append(list, n)
		}
		return &Tuple{Items: list}, true
	case "catch_kwargs":
		return m.uses.kwargs, true
	case "catch_varargs":
		return m.uses.varargs, true
	case "caller":
		return m.uses.caller, true
	}
	return nil, false
}

func (c *cycler) attribute(name string) (Value, bool) {
	switch name {
	case "current":
		return c.items[c.at], true
	case "next":
		return method(func(r *run, a *arguments) Value {
			r.take(name, a)
			v := c.items[c.at]
			c.at = (c.at + 1) % len(c.items)
			return v
		}), true
	case "reset":
		return method(func(r *run, a *arguments) Value {
			r.take(name, a)
			c.at = 0
			return nil
		}), true
	}
	return nil, false
}
