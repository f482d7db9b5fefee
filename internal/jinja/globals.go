package jinja

import (
	"math"
	"math/bits"
)

// globals are the names available in every template.
var globals map[string]Value

const maxRange = 100_000 // elements, the limit of the sandbox's range

func init() {
	globals = map[string]Value{}
	for name, f := range map[string]func(r *run, a *arguments) Value{
		"range": makeRange, "dict": makeDict, "namespace": makeNamespace, "cycler": makeCycler, "joiner": makeJoiner,
		"raise_exception": raise, "strftime_now": strftimeNow,
		"lipsum": func(r *run, _ *arguments) Value { r.fail("the function lipsum is not supported"); return nil },
	} {
		globals[name] = &function{f}
	}
}

func makeRange(r *run, a *arguments) Value {
	bounds := []int{0, 0, 1}
	if len(a.names) > 0 || len(a.positional) == 0 || len(a.positional) > 3 {
		r.fail("range wants up to three integers")
	}
	for i, v := range a.positional {
		bounds[i] = r.index(v, "range")
		if whole(v).BitLen() >= bits.UintSize {
			r.fail("range: more than %d bits of a bound are not supported", bits.UintSize-1)
		}
	}
	if len(a.positional) == 1 {
		bounds[0], bounds[1] = 0, bounds[0]
	}
	start := bounds[0]
	stop := bounds[1]
	step := bounds[2]
	if step == 0 {
		r.fail("range: the step is 0")
	}
	n := 0.0
	if (stop > start) == (step > 0) && stop != start {
		n = math.Ceil((float64(stop) - float64(start)) / float64(step))
	}
	if n > maxRange {
		r.fail("range: more than %d elements", maxRange)
	}
	return &span{start, stop, step, int(n)}
}

func makeDict(r *run, a *arguments) Value {
	d := NewDict()
	if len(a.positional) > 1 {
		r.fail("dict takes one argument, and names")
	}
	for _, v := range a.positional {
		from, ok := v.(*Dict)
		if ok {
			d = r.copied(from)
			continue
		}
		for _, pair := range r.elements(v) {
			items := r.elements(pair)
			if len(items) != 2 {
				r.fail("dict wants pairs")
			}
			r.put(d, items[0], items[1])
		}
	}
	for i, name := range a.names {
		r.put(d, name, a.named[i])
	}
	return d
}

func makeNamespace(r *run, a *arguments) Value {
	d := makeDict(r, a).(*Dict)
	for _, key := range d.keys {
		if name, ok := text(key); ok && name != "" && name[0] == '_' {
			r.fail("a namespace cannot have the attribute %s", name)
		}
	}
	return &namespace{*d}
}

func makeCycler(r *run, a *arguments) Value {
	if len(a.positional) == 0 || len(a.names) > 0 {
		r.fail("cycler wants items")
	}
	return &cycler{items: a.positional}
}

// makeJoiner returns a function whose first call returns nothing, and later calls the text between elements.
func makeJoiner(r *run, a *arguments) Value {
	sep := or(r.take("joiner", a, "sep?")[0], ", ")
	first := true
	return method(func(r *run, a *arguments) Value {
		r.take("a joiner", a)
		if first {
			first = false
			return ""
		}
		return sep
	})
}

// raise ends the rendering with the template's message.
func raise(r *run, a *arguments) Value {
	v := r.take("raise_exception", a, "message")[0]
	panic(&Error{Text: r.str(v)})
}

func strftimeNow(r *run, a *arguments) Value {
	format := r.string(r.take("strftime_now", a, "format")[0], "strftime_now")
	return r.text(strftime(format, r.now))
}
