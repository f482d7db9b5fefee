package jinja

import (
	"math/big"
	"slices"
)

// tests are those of jinja2.
var tests map[string]func(r *run, x Value, a *arguments) bool

func init() {
	type f = func(r *run, x Value, a *arguments) bool
	compares := func(op string) f {
		return func(r *run, x Value, a *arguments) bool {
			return r.compare(op, x, r.take("a comparison", a, "/other")[0])
		}
	}
	is := func(ask func(x Value) bool) f {
		return func(r *run, x Value, a *arguments) bool {
			r.take("a test", a)
			return ask(x)
		}
	}
	of := func(types ...string) f {
		return is(func(x Value) bool { return slices.Contains(types, typeName(x)) })
	}
	not := func(t f) f { return func(r *run, x Value, a *arguments) bool { return !t(r, x, a) } }
	tests = map[string]f{
		"==": compares("=="), "eq": compares("=="), "equalto": compares("=="), "!=": compares("!="), "ne": compares("!="),
		">": compares(">"), "gt": compares(">"), "greaterthan": compares(">"), ">=": compares(">="), "ge": compares(">="),
		"<": compares("<"), "lt": compares("<"), "lessthan": compares("<"), "<=": compares("<="), "le": compares("<="),
		"in":        func(r *run, x Value, a *arguments) bool { return r.contains(r.take("in", a, "seq")[0], x) },
		"defined":   not(of("Undefined")),
		"undefined": of("Undefined"),
		"none":      of("NoneType"),
		"boolean":   of("bool"),
		"true":      is(func(x Value) bool { return x == true }),
		"false":     is(func(x Value) bool { return x == false }),
		"integer":   of("int"),
		"float":     of("float"),
		"number":    of("int", "float", "bool"),
		"string":    of("str", "Markup"),
		"mapping":   of("dict"),
		"sequence":  of("str", "Markup", "list", "tuple", "dict", "range", "Undefined"),
		"iterable":  is(canIterate),
		"callable":  of("function", "Macro", "LoopContext", "Undefined"),
		"escaped":   of("Markup"),
		"odd":       func(r *run, x Value, a *arguments) bool { return r.rest(x, small[256+2], a, 1) },
		"even":      func(r *run, x Value, a *arguments) bool { return r.rest(x, small[256+2], a, 0) },
		"divisibleby": func(r *run, x Value, a *arguments) bool {
			return r.rest(x, r.take("divisibleby", a, "num")[0], &arguments{}, 0)
		},
		"lower":  func(r *run, x Value, a *arguments) bool { return r.asked(x, a, isLower) },
		"upper":  func(r *run, x Value, a *arguments) bool { return r.asked(x, a, isUpper) },
		"sameas": sameAs,
		"filter": func(r *run, x Value, a *arguments) bool {
			return r.named(x, a, func(s string) bool { return filters[s] != nil })
		},
		"test": func(r *run, x Value, a *arguments) bool {
			return r.named(x, a, func(s string) bool { return tests[s] != nil })
		},
	}
}

// rest reports whether x % by is a number.
func (r *run) rest(x, by Value, a *arguments, want int) bool {
	r.take("a test", a)
	return r.equal(r.binary("%", x, by), integer(want))
}

func (r *run) asked(x Value, a *arguments, is func(string) bool) bool {
	r.take("a test", a)
	s := r.str(x)
	r.spend(len(s), 0)
	return is(s)
}

func (r *run) named(x Value, a *arguments, has func(string) bool) bool {
	r.take("a test", a)
	r.key(x)
	s, ok := text(x)
	return ok && has(s)
}

// sameAs is Python's is. Equal texts and small integers are usually one object in Python, and always here.
func sameAs(r *run, x Value, a *arguments) bool {
	y := r.take("sameas", a, "other")[0]
	i, ok := x.(*big.Int)
	j, ok2 := y.(*big.Int)
	if ok && ok2 {
		return r.equal(i, j)
	}
	if s, ok := text(x); ok {
		r.spend(len(s), 0)
	}
	return x == y
}
