package jinja

import (
	"fmt"
	"strings"
	"time"
)

// A Template is safe for concurrent rendering.
type Template struct{ body []stmt }

// Compile parses a template.
func Compile(source string) (*Template, error) {
	body, err := parse(source)
	if err != nil {
		return nil, err
	}
	return &Template{body}, nil
}

// Render runs the template with variables. now is the time used by strftime_now.
func (t *Template) Render(vars map[string]Value, now time.Time) (text string, err error) {
	defer catch(&err)
	r := &run{now: now, line: 1, meter: meter{maxWork: maxWork, maxMade: maxMade}}
	r.allow(vars)
	r.top = &scope{vars: map[string]Value{}, parent: &scope{vars: vars}}
	return r.captured(func() { r.execute(t.body, r.top) }), nil
}

// run is one rendering.
type run struct {
	meter
	now  time.Time
	top  *scope
	out  *strings.Builder
	line int // of the running statement
}

// scope has variables, and gives access to those of its parents. Names that start with a space are
// the evaluator's own.
type scope struct {
	vars   map[string]Value
	parent *scope
}

func (s *scope) inner() *scope { return &scope{parent: s} }

func (s *scope) set(name string, v Value) {
	if s.vars == nil {
		s.vars = map[string]Value{}
	}
	s.vars[name] = v
}

func (s *scope) get(name string) (Value, bool) {
	for ; s != nil; s = s.parent {
		if v, ok := s.vars[name]; ok {
			return v, true
		}
	}
	return nil, false
}

const blockText = " block" // the variable that holds the text captured by a block

// fail ends the rendering with an error that names the line.
func (r *run) fail(format string, args ...any) { fail(r.line, format, args...) }

func (r *run) write(s string) {
	r.spend(len(s), len(s))
	r.out.WriteString(s)
}

// captured returns the text that a function writes.
func (r *run) captured(f func()) string {
	out := r.out
	r.out = &strings.Builder{}
	f()
	text := r.out.String()
	r.out = out
	return text
}

// ending is how statements ended: at their end, or at a break or continue.
type ending int

const (
	atEnd ending = iota
	atBreak
	atContinue
)

func (r *run) execute(body []stmt, s *scope) ending {
	r.down()
	defer r.up()
	for _, st := range body {
		r.spend(16, 0)
		switch st := st.(type) {
		case *output:
			for _, e := range st.parts {
				r.print(e, s)
			}
		case *set:
			r.line = st.line
			r.check(st.target, s)
			r.assign(st.target, r.eval(st.value, s), s)
		case *setBlock:
			r.line = st.line
			v, end := r.block(st.body, st.filter, s)
			if end != atEnd {
				return end
			}
			r.assign(st.target, v, s)
		case *branch:
			if end := r.execute(st.taken(r, s), s); end != atEnd {
				return end
			}
		case *forLoop:
			if end := r.loop(st, s); end != atEnd {
				return end
			}
		case *define:
			r.spend(len(st.name), 64)
			s.set(st.name, &macro{st, s})
		case *callBlock:
			r.write(r.str(r.call(st.call, s, &macro{st.caller, s})))
		case *filterBlock:
			v, end := r.block(st.body, st.filter, s)
			if end != atEnd {
				return end
			}
			r.write(r.str(v))
		case *with:
			in := s.inner()
			for i, t := range st.targets {
				r.assign(t, r.eval(st.values[i], s), in)
			}
			if end := r.execute(st.body, in); end != atEnd {
				return end
			}
		case *generation:
			r.write(r.captured(func() { r.execute(st.body, s.inner()) }))
		case breakLoop:
			return atBreak
		case nextTurn:
			return atContinue
		}
	}
	return atEnd
}

func (r *run) print(e expr, s *scope) {
	if c, ok := e.(*constant); ok {
		if text, ok := c.value.(string); ok {
			r.write(text)
			return
		}
	}
	r.write(r.str(r.eval(e, s)))
}

// taken returns the arm of a branch that runs.
func (b *branch) taken(r *run, s *scope) []stmt {
	for i, test := range b.tests {
		if truth(r.eval(test, s)) {
			return b.bodies[i]
		}
	}
	return b.no
}

// block captures the text that a body writes, and applies the filter if there is one. If the body
// ends at a break or continue, the text is dropped, as in jinja2.
func (r *run) block(body []stmt, filter expr, s *scope) (v Value, end ending) {
	in := s.inner()
	text := r.captured(func() { end = r.execute(body, in) })
	if filter == nil || end != atEnd {
		return text, end
	}
	in.set(blockText, text)
	return r.eval(filter, in), atEnd
}

// check refuses attributes of a value that is not a namespace, before the assigned value is computed.
func (r *run) check(t target, s *scope) {
	for _, part := range t.parts {
		r.check(part, s)
	}
	if t.field == "" {
		return
	}
	v, _ := s.get(t.name)
	if _, ok := v.(*namespace); !ok {
		r.fail("%s.%s cannot be set: %s is no namespace", t.name, t.field, t.name)
	}
}

func (r *run) assign(t target, v Value, s *scope) {
	r.spend(16+len(t.name)+len(t.field), 0)
	switch {
	case t.several:
		var items []Value
		it := r.iterate(v)
		for len(items) <= len(t.parts) {
			item, ok := it.next()
			if !ok {
				break
			}
			items = append(items, item)
		}
		if len(items) != len(t.parts) {
			r.fail("a value with other than %d elements cannot be set to %[1]d variables", len(t.parts))
		}
		for i, part := range t.parts {
			r.assign(part, items[i], s)
		}
	case t.field != "":
		if strings.HasPrefix(t.field, "_") {
			r.fail("a namespace cannot have the attribute %s", t.field)
		}
		r.spend(0, 64)
		ns, _ := s.get(t.name)
		n, ok := ns.(*namespace)
		if !ok {
			r.fail("%s.%s cannot be set: %[1]s is no namespace", t.name, t.field)
		}
		n.Set(t.field, v)
	default:
		s.set(t.name, v)
	}
}

// loop is the variable called loop.
type loop struct {
	over               *iterator
	size               int // −1: not yet known
	at                 int // from 0
	now, before, after Value
	peeked, ended      bool
	changed            []Value
	whole              Value
}

func (r *run) loop(f *forLoop, s *scope) ending {
	r.line = f.line
	over := r.eval(f.over, s)
	l := &loop{whole: over, size: -1, at: -1}
	if f.filter == nil {
		l.over = r.iterate(over)
	} else {
		l.over, l.whole = r.filtered(f, r.iterate(over), s), nil
	}
	ran := false
	for {
		item, ok := l.next()
		if !ok {
			break
		}
		r.turn()
		in := s.inner()
		in.set("loop", l)
		r.assign(f.target, item, in)
		end := r.execute(f.body, in)
		if end == atBreak {
			break
		}
		ran = ran || end == atEnd
	}
	if !ran { // jinja2 also runs it if every iteration ended with break or continue
		return r.execute(f.no, s.inner())
	}
	return atEnd
}

// filtered iterates over the elements that satisfy a loop's condition.
func (r *run) filtered(f *forLoop, over *iterator, s *scope) *iterator {
	return &iterator{func() (Value, bool) {
		for {
			item, ok := over.next()
			if !ok {
				return nil, false
			}
			r.turn()
			in := s.inner()
			r.assign(f.target, item, in)
			if truth(r.eval(f.filter, in)) {
				return item, true
			}
		}
	}}
}

func (l *loop) next() (Value, bool) {
	item, ok := l.peek()
	if !ok {
		return nil, false
	}
	l.peeked = false
	l.at++
	l.before, l.now = l.now, item
	return item, true
}

// peek returns the next element without taking it.
func (l *loop) peek() (Value, bool) {
	if !l.peeked && !l.ended {
		v, ok := l.over.next()
		l.after = v
		l.peeked = ok
		l.ended = !ok
	}
	return l.after, l.peeked
}

// length returns the number of elements; if it is not known, all of them are read.
func (l *loop) length(r *run) int {
	if l.size >= 0 {
		return l.size
	}
	if n, ok := r.len(l.whole); ok {
		l.size = n
		return n
	}
	var rest []Value
	for {
		v, ok := l.over.next()
		if !ok {
			break
		}
		r.spend(0, 32)
		rest = append(rest, v)
	}
	l.size = len(rest) + l.at + 1
	if l.peeked {
		l.size++
	}
	l.over = overList(rest)
	l.ended = false
	return l.size
}

// macro is a macro with the scope in which it was defined.
type macro struct {
	*define
	scope *scope
}

// invoke calls a macro.
func (r *run) invoke(m *macro, a *arguments) Value {
	r.enterMacro()
	defer r.leaveMacro()
	line := r.line
	n := len(m.params.names) + len(a.names)
	r.spend(64*n, 32*n)
	in := m.scope.inner()
	given := map[string]Value{}
	for i, n := range a.names {
		given[n] = a.named[i]
	}
	rest := a.positional
	foundCaller := false
	for i, n := range m.params.names {
		r.spend(len(n), 0)
		if len(rest) > 0 {
			in.set(n, rest[0])
			rest = rest[1:]
			foundCaller = foundCaller || n == "caller"
			continue
		}
		v, ok := given[n]
		delete(given, n)
		foundCaller = foundCaller || n == "caller"
		switch k := i - len(m.params.names) + len(m.params.defaults); {
		case ok:
			in.set(n, v)
		case k >= 0:
			in.set(n, r.eval(m.params.defaults[k], in))
		default:
			in.set(n, &Undefined{fmt.Sprintf("the parameter %.100s was not given", n)})
		}
	}
	if m.uses.caller && !foundCaller {
		v, ok := given["caller"]
		delete(given, "caller")
		if !ok || v == nil {
			v = &Undefined{"no caller is defined"}
		}
		in.set("caller", v)
	}
	r.extra(m, in, a, given, rest)
	text := r.captured(func() { r.execute(m.body, in) })
	r.line = line
	return text
}

// extra passes a macro the arguments for which it has no parameters, or refuses them.
func (r *run) extra(m *macro, in *scope, a *arguments, given map[string]Value, rest []Value) {
	if len(given) > 0 && !m.uses.kwargs {
		for _, n := range a.names {
			if _, ok := given[n]; ok {
				r.fail("the macro %s takes no argument %s", m.name, n)
			}
		}
	}
	if len(rest) > 0 && !m.uses.varargs {
		r.fail("the macro %s takes %d arguments at most", m.name, len(m.params.names))
	}
	if m.uses.kwargs {
		d := NewDict()
		for i, n := range a.names {
			if _, ok := given[n]; ok {
				d.Set(n, a.named[i])
			}
		}
		in.set("kwargs", d)
	}
	if m.uses.varargs {
		in.set("varargs", &Tuple{Items: rest})
	}
}
