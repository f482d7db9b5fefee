package jinja

import (
	"fmt"
	"slices"
)

// eval computes an expression.
func (r *run) eval(e expr, s *scope) Value {
	r.down()
	defer r.up()
	switch e := e.(type) {
	case *constant:
		return e.value
	case *name:
		r.line = e.line
		return r.variable(e.name, s)
	case *attribute:
		x := r.eval(e.x, s)
		r.line = e.line
		return r.attribute(x, e.name)
	case *element:
		x, key := r.eval(e.x, s), r.eval(e.key, s)
		r.line = e.line
		return r.element(x, key)
	case *slice:
		return r.sliced(e, s)
	case *call:
		return r.call(e, s, nil)
	case *filter:
		return r.filterExpr(e, s)
	case *test:
		x, a := r.eval(e.x, s), r.arguments(e.args, s)
		r.line = e.line
		return r.test(e.name, x, a)
	case *unary:
		return r.unary(e.op, r.eval(e.x, s))
	case *binary:
		x, y := r.eval(e.x, s), r.eval(e.y, s)
		r.line = e.line
		return r.binary(e.op, x, y)
	case *comparison:
		return r.compared(e, s)
	case *both:
		if x := r.eval(e.x, s); !truth(x) {
			return x
		}
		return r.eval(e.y, s)
	case *either:
		if x := r.eval(e.x, s); truth(x) {
			return x
		}
		return r.eval(e.y, s)
	case *choice:
		if truth(r.eval(e.test, s)) {
			return r.eval(e.yes, s)
		}
		if e.no == nil {
			return &Undefined{"an if without an else chose nothing"}
		}
		return r.eval(e.no, s)
	case *concat:
		parts := make([]string, len(e.parts))
		for i, part := range e.parts {
			parts[i] = r.str(r.eval(part, s))
		}
		return r.joined(parts, "")
	case *list:
		return &List{r.all(e.items, s)}
	case *tuple:
		return &Tuple{Items: r.all(e.items, s)}
	case *dict:
		d := NewDict()
		for i, key := range e.keys {
			k := r.eval(key, s)
			r.put(d, k, r.eval(e.values[i], s))
		}
		return d
	}
	panic(fmt.Sprintf("jinja: no expression %T", e))
}

func (r *run) all(items []expr, s *scope) []Value {
	list := make([]Value, len(items))
	for i, item := range items {
		r.spend(0, 32)
		list[i] = r.eval(item, s)
	}
	return list
}

func (r *run) put(d *Dict, key, v Value) {
	r.spend(16, 160)
	d.put(r.key(key), key, v)
}

// key returns the hash of a value used as a key.
func (r *run) key(v Value) string {
	r.walk(v)
	h, ok := hash(v)
	if !ok {
		r.fail("a %s cannot be a key", typeName(v))
	}
	return h
}

func (r *run) variable(name string, s *scope) Value {
	r.spend(len(name), 0)
	if v, ok := s.get(name); ok {
		return v
	}
	if g, ok := globals[name]; ok {
		return g
	}
	if name == "self" {
		r.fail("the variable self is not supported")
	}
	return &Undefined{fmt.Sprintf("the variable %.100s is undefined", name)}
}

func (r *run) compared(e *comparison, s *scope) Value {
	x := r.eval(e.x, s)
	for i, op := range e.ops {
		y := r.eval(e.ys[i], s)
		r.line = e.line
		ok := r.compare(op, x, y)
		if !ok || i == len(e.ops)-1 {
			return ok
		}
		x = y
	}
	return nil
}

func (r *run) compare(op string, x, y Value) bool {
	switch op {
	case "==":
		return r.equal(x, y)
	case "!=":
		return !r.equal(x, y)
	case "in":
		return r.contains(y, x)
	case "not in":
		return !r.contains(y, x)
	}
	return r.ordered(op, x, y)
}

// arguments are the arguments of one call. Keyword arguments keep their order.
type arguments struct {
	positional []Value
	names      []string
	named      []Value
}

func (r *run) arguments(sig *signature, s *scope) *arguments {
	a := &arguments{positional: r.all(sig.positional, s), names: sig.names, named: r.all(sig.named, s)}
	for _, n := range sig.names {
		r.spend(len(n), 0)
	}
	if sig.spread != nil {
		items := r.elements(r.eval(sig.spread, s))
		r.spend(len(items), 32*len(items))
		a.positional = append(a.positional, items...)
	}
	if sig.mapped == nil {
		return a
	}
	v := r.eval(sig.mapped, s)
	d, ok := v.(*Dict)
	if !ok {
		r.fail("** wants a dictionary, not a %s", typeName(v))
	}
	a.names = append([]string(nil), a.names...)
	for i, key := range d.keys {
		name, ok := text(key)
		r.spend(16+len(name)+8*len(a.names), 32) // has scans the names
		if !ok || a.has(name) {
			r.fail("** has a key that is no name, or that is an argument already")
		}
		a.names, a.named = append(a.names, name), append(a.named, d.values[i])
	}
	return a
}

func (a *arguments) has(name string) bool { return slices.Contains(a.names, name) }

// call calls the value that an expression names. caller is the macro of a call block, or nil.
func (r *run) call(c *call, s *scope, caller *macro) Value {
	fn := r.eval(c.fn, s)
	a := r.arguments(c.args, s)
	r.line = c.line
	if caller != nil {
		if a.has("caller") {
			r.fail("the argument caller comes twice")
		}
		a.names, a.named = append(a.names[:len(a.names):len(a.names)], "caller"), append(a.named, caller)
	}
	switch fn := fn.(type) {
	case *function:
		r.spend(32, 0)
		return fn.call(r, a)
	case *macro:
		return r.invoke(fn, a)
	case *Undefined:
		r.fail("%s", fn.why)
	case *loop:
		r.fail("recursive loops are not supported")
	}
	r.fail("a %s cannot be called", typeName(fn))
	return nil
}

func (r *run) filterExpr(f *filter, s *scope) Value {
	var x Value
	if f.x == nil {
		x, _ = s.get(blockText)
	} else {
		x = r.eval(f.x, s)
	}
	a := r.arguments(f.args, s)
	r.line = f.line
	return r.filter(f.name, x, a)
}

func (r *run) filter(name string, x Value, a *arguments) Value {
	f, ok := filters[name]
	if !ok {
		r.fail("no filter is named %s", name)
	}
	r.spend(32, 0)
	return f(r, x, a)
}

func (r *run) test(name string, x Value, a *arguments) bool {
	f, ok := tests[name]
	if !ok {
		r.fail("no test is named %s", name)
	}
	r.spend(16, 0)
	return f(r, x, a)
}

// absent is an argument that was not given.
type absent struct{}

// take assigns arguments to parameters, as Python does. The name of a parameter that may be absent
// ends with "?", and that of a positional-only one begins with "/".
func (r *run) take(what string, a *arguments, params ...string) []Value {
	got := make([]Value, len(params))
	if len(a.positional) > len(params) {
		r.fail("%s takes %d arguments at most", what, len(params))
	}
	used := 0
	for i, p := range params {
		name := trimParam(p)
		at := -1
		for k, n := range a.names {
			if n == name && p[0] != '/' {
				at = k
				used++
			}
		}
		switch {
		case i < len(a.positional) && at >= 0:
			r.fail("%s: the argument %s comes twice", what, name)
		case i < len(a.positional):
			got[i] = a.positional[i]
		case at >= 0:
			got[i] = a.named[at]
		case p[len(p)-1] == '?':
			got[i] = absent{}
		default:
			r.fail("%s wants the argument %s", what, name)
		}
	}
	if used < len(a.names) {
		r.fail("%s does not take an argument that it is given by name: %v", what, a.names)
	}
	return got
}

func trimParam(p string) string {
	if p[0] == '/' {
		p = p[1:]
	}
	if p[len(p)-1] == '?' {
		p = p[:len(p)-1]
	}
	return p
}

// or returns an argument, or otherwise if it is absent.
func or(v, otherwise Value) Value {
	if _, ok := v.(absent); ok {
		return otherwise
	}
	return v
}
