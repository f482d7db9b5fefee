package jinja

import (
	"fmt"
	"slices"
	"strings"
)

const (
	maxSource  = 256 << 10
	maxNesting = 64  // brackets within brackets, blocks within blocks, macros within macros
	maxChain   = 500 // operands of one expression, which are evaluated recursively
)

// An Error is a fault in a template, or an exception that it raised.
type Error struct {
	Line int // 0 for the message of raise_exception
	Text string
}

func (e *Error) Error() string {
	if e.Line == 0 {
		return e.Text
	}
	return fmt.Sprintf("line %d: %s", e.Line, e.Text)
}

// fail ends compiling or rendering: catch, in the package's entry points, turns it into an error.
func fail(line int, format string, args ...any) { panic(&Error{line, fmt.Sprintf(format, args...)}) }

func catch(err *error) {
	switch r := recover().(type) {
	case nil:
	case *Error:
		*err = r
	default:
		panic(r)
	}
}

// parser builds the tree from a template's tokens.
type parser struct {
	tokens  []token
	depth   int  // of brackets and prefixes
	blocks  int  // open blocks
	soft    bool // directly in an if, where jinja2 looks up filter names only at run time
	loops   int  // loops that a break or continue can reach
	inLoop  int  // open loops, to which the name loop refers
	macros  []*define
	unknown []*Error // names of filters and tests that no branch may hide
}

func parse(source string) (body []stmt, err error) {
	if len(source) > maxSource {
		return nil, fmt.Errorf("the template is %d bytes long: at most %d are read", len(source), maxSource)
	}
	tokens, err := lex(source)
	if err != nil {
		return nil, err
	}
	defer catch(&err)
	p := &parser{tokens: tokens}
	body = p.statements()
	if len(p.unknown) > 0 {
		panic(p.unknown[0])
	}
	return body, nil
}

func (p *parser) at() token { return p.tokens[0] }

func (p *parser) fail(format string, args ...any) { fail(p.at().line, format, args...) }

func (p *parser) next() token {
	t := p.tokens[0]
	if t.kind != endAll {
		p.tokens = p.tokens[1:]
	}
	return t
}

// is reports whether the next token is an operator, or a kind of token.
func (p *parser) is(kinds ...string) bool { return slices.Contains(kinds, p.at().kind) }

// isWord reports whether the next token is one of the given names.
func (p *parser) isWord(words ...string) bool {
	return p.at().kind == "name" && slices.Contains(words, p.at().text)
}

func (p *parser) skip(kind string) bool {
	if !p.is(kind) {
		return false
	}
	p.next()
	return true
}

func (p *parser) skipWord(word string) bool {
	if !p.isWord(word) {
		return false
	}
	p.next()
	return true
}

func (p *parser) expect(kind string) token {
	if !p.is(kind) {
		p.fail("unexpected %s, want %s", p.at().describe(), kind)
	}
	return p.next()
}

func (t token) describe() string {
	if t.kind == "name" || t.kind == "string" {
		return fmt.Sprintf("%s %q", t.kind, t.text)
	}
	return t.kind
}

// statements reads up to a tag with one of the given names, or the end. It leaves the name.
func (p *parser) statements(ends ...string) []stmt {
	var body []stmt
	print := func(e expr) {
		if len(body) > 0 {
			if o, ok := body[len(body)-1].(*output); ok {
				o.parts = append(o.parts, e)
				return
			}
		}
		body = append(body, &output{[]expr{e}})
	}
	for {
		switch t := p.next(); t.kind {
		case "data":
			print(&constant{t.text})
		case "{{":
			print(p.tuple(true))
			p.expect(endPrint)
		case "{%":
			if p.isWord(ends...) {
				return body
			}
			body = append(body, p.statement())
			p.expect(endBlock)
		default:
			if len(ends) > 0 {
				fail(t.line, "the template ends where %s is missing", strings.Join(ends, " or "))
			}
			return body
		}
	}
}

// block reads the rest of a tag and everything up to a tag with one of the given names. It leaves that name.
func (p *parser) block(ends ...string) []stmt {
	p.blocks++
	if p.blocks > maxNesting {
		p.fail("more than %d blocks within each other", maxNesting)
	}
	p.skip(":")
	p.expect(endBlock)
	body := p.statements(ends...)
	p.blocks--
	return body
}

// hard reads such a block including its end, in its own scope.
func (p *parser) hard(end string) []stmt {
	soft := p.soft
	p.soft = false
	body := p.block(end)
	p.next()
	p.soft = soft
	return body
}

func (p *parser) statement() stmt {
	t := p.expect("name")
	switch t.text {
	case "set":
		return p.set(t.line)
	case "if":
		return p.branch()
	case "for":
		return p.loop(t.line)
	case "macro":
		return p.macro(t.line)
	case "call":
		return p.callBlock(t.line)
	case "filter":
		f := &filterBlock{}
		f.filter = p.filterOf(nil)
		f.filter = p.filters(f.filter)
		f.body = p.hard("endfilter")
		return f
	case "with":
		return p.with()
	case "generation":
		return &generation{p.function(func() []stmt { return p.hard("endgeneration") })}
	case "print":
		o := &output{}
		for !p.is(endBlock) {
			if len(o.parts) > 0 {
				p.expect(",")
			}
			o.parts = append(o.parts, p.expression())
		}
		return o
	case "break", "continue":
		if p.loops == 0 {
			fail(t.line, "%s outside a loop", t.text)
		}
		if t.text == "break" {
			return breakLoop{}
		}
		return nextTurn{}
	case "block", "extends", "include", "import", "from", "autoescape":
		fail(t.line, "the tag %s is not supported", t.text)
	}
	fail(t.line, "unknown tag %q", t.text)
	return nil
}

// function reads a body that is a function in jinja2: no break can leave it.
func (p *parser) function(read func() []stmt) []stmt {
	loops := p.loops
	p.loops = 0
	body := read()
	p.loops = loops
	return body
}

func (p *parser) set(line int) stmt {
	to := p.target(true)
	if p.skip("=") {
		return &set{line, to, p.tuple(true)}
	}
	s := &setBlock{line: line, target: to}
	soft := p.soft
	p.soft = false
	if p.is("|") {
		s.filter = p.filters(nil)
	}
	s.body = p.hard("endset")
	p.soft = soft
	return s
}

// target reads the target of an assignment.
func (p *parser) target(attributes bool) target {
	var t target
	for {
		t.parts = append(t.parts, p.part(attributes))
		if !p.skip(",") {
			break
		}
		t.several = true
		if !p.is("name", "(") || p.isWord("in") {
			break
		}
	}
	if !t.several {
		return t.parts[0]
	}
	return t
}

func (p *parser) part(attributes bool) target {
	if p.at().kind == "(" {
		p.enter()
		p.next()
		t := target{several: true}
		for !p.is(")") {
			t.parts = append(t.parts, p.part(attributes))
			if !p.is(")") {
				p.expect(",")
			} else if len(t.parts) == 1 {
				t = t.parts[0]
				break
			}
		}
		p.expect(")")
		p.depth--
		return t
	}
	name := p.expect("name")
	t := target{name: name.text}
	if attributes && p.skip(".") {
		t.field = p.expect("name").text
	} else if isConstant(name.text) {
		fail(name.line, "%s cannot be set", name.text)
	}
	if t.name == "loop" && t.field == "" && p.inLoop > 0 {
		fail(name.line, "the variable loop cannot be set in a loop")
	}
	return t
}

func isConstant(name string) bool {
	return slices.Contains([]string{"true", "false", "none", "True", "False", "None"}, name)
}

func (p *parser) branch() stmt {
	b := &branch{}
	soft := p.soft
	for {
		p.soft = true
		b.tests = append(b.tests, p.tuple(false))
		b.bodies = append(b.bodies, p.block("elif", "else", "endif"))
		switch p.next().text {
		case "elif":
			continue
		case "else":
			b.no = p.block("endif")
			p.next()
		}
		p.soft = soft
		return b
	}
}

func (p *parser) loop(line int) stmt {
	f := &forLoop{line: line}
	p.inLoop++
	f.target = p.target(false)
	if !p.skipWord("in") {
		p.fail("unexpected %s, want in", p.at().describe())
	}
	f.over = p.tuple(false, "recursive")
	soft := p.soft
	p.soft = false
	if p.skipWord("if") {
		f.filter = p.expression()
	}
	if p.isWord("recursive") {
		p.fail("recursive loops are not supported")
	}
	p.loops++
	f.body = p.block("endfor", "else")
	p.loops--
	if p.next().text == "else" {
		f.no = p.block("endfor")
		p.next()
	}
	p.inLoop--
	p.soft = soft
	return f
}

func (p *parser) macro(line int) stmt {
	m := &define{line: line, name: p.expect("name").text}
	if isConstant(m.name) {
		fail(line, "%s cannot be set", m.name)
	}
	m.params = p.parameters()
	p.macroBody(m, "endmacro")
	return m
}

// parameters reads (a, b=1).
func (p *parser) parameters() parameters {
	var ps parameters
	soft := p.soft
	p.soft = false
	p.expect("(")
	for !p.is(")") {
		p.link(len(ps.names))
		if len(ps.names) > 0 {
			p.expect(",")
		}
		name := p.expect("name").text
		if slices.Contains(ps.names, name) || isConstant(name) {
			p.fail("%s cannot be a parameter here", name)
		}
		ps.names = append(ps.names, name)
		if p.skip("=") {
			ps.defaults = append(ps.defaults, p.expression())
		} else if len(ps.defaults) > 0 {
			p.fail("the parameter %s wants a default, as the one before it", name)
		}
	}
	p.next()
	p.soft = soft
	return ps
}

func (p *parser) macroBody(m *define, end string) {
	p.macros = append(p.macros, m)
	m.body = p.function(func() []stmt { return p.hard(end) })
	p.macros = p.macros[:len(p.macros)-1]
	i := slices.Index(m.params.names, "caller")
	if m.uses.caller && i >= 0 && i < len(m.params.names)-len(m.params.defaults) {
		fail(m.line, "the parameter caller wants a default")
	}
}

func (p *parser) callBlock(line int) stmt {
	c := &callBlock{caller: &define{line: line, name: "caller"}}
	if p.is("(") {
		c.caller.params = p.parameters()
	}
	call, ok := p.expression().(*call)
	if !ok {
		fail(line, "call: want a call of a macro")
	}
	c.call = call
	p.macroBody(c.caller, "endcall")
	return c
}

func (p *parser) with() stmt {
	w := &with{}
	for !p.is(endBlock) {
		if len(w.targets) > 0 {
			p.expect(",")
		}
		w.targets = append(w.targets, p.part(false))
		p.expect("=")
		w.values = append(w.values, p.expression())
	}
	w.body = p.hard("endwith")
	return w
}
