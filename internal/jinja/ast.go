package jinja

// The tree of a template. Expressions and statements are pointers to the types below; a constant's
// value is in a constant.

type (
	expr any
	stmt any
)

type (
	constant struct{ value Value }
	name     struct {
		line int
		name string
	}
	attribute struct { // x.name
		line int
		x    expr
		name string
	}
	element struct { // x[key]
		line   int
		x, key expr
	}
	slice struct { // x[start:stop:step], each of which may be nil
		line                 int
		x, start, stop, step expr
	}
	call struct {
		line int
		fn   expr
		args *signature
	}
	filter struct { // x|name(args); x is nil for the text captured by a block
		line int
		x    expr
		name string
		args *signature
	}
	test struct { // x is name(args)
		line int
		x    expr
		name string
		args *signature
	}
	unary struct {
		op string
		x  expr
	}
	binary struct {
		line int
		op   string
		x, y expr
	}
	comparison struct { // x op[0] y[0] op[1] y[1] …
		line int
		x    expr
		ops  []string
		ys   []expr
	}
	both   struct{ x, y expr } // and
	either struct{ x, y expr } // or
	choice struct{ test, yes, no expr }
	concat struct{ parts []expr }
	list   struct{ items []expr }
	tuple  struct{ items []expr }
	dict   struct{ keys, values []expr }
)

// signature is the arguments that a call passes.
type signature struct {
	positional     []expr
	names          []string
	named          []expr
	spread, mapped expr // *args and **kwargs, or nil
}

// parameters are those of a macro or a call block. Defaults belong to the last parameters.
type parameters struct {
	names    []string
	defaults []expr
}

// target is what an assignment sets: a name, an attribute of a namespace, or several of them.
type target struct {
	name, field string
	parts       []target
	several     bool
}

type (
	output struct{ parts []expr }
	set    struct {
		line   int
		target target
		value  expr
	}
	setBlock struct {
		line   int
		target target
		filter expr // or nil
		body   []stmt
	}
	branch struct { // if: the first arm that is true, or otherwise no
		tests  []expr
		bodies [][]stmt
		no     []stmt
	}
	forLoop struct {
		line         int
		target       target
		over, filter expr
		body, no     []stmt
	}
	define struct { // macro
		line   int
		name   string
		params parameters
		body   []stmt
		uses   uses
	}
	callBlock struct {
		caller *define
		call   *call
	}
	filterBlock struct {
		filter expr
		body   []stmt
	}
	with struct {
		targets []target
		values  []expr
		body    []stmt
	}
	generation struct{ body []stmt }
	breakLoop  struct{}
	nextTurn   struct{}
)

// uses records which special variables a macro's body reads.
type uses struct{ caller, varargs, kwargs bool }
