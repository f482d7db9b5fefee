package jinja

import (
	"math/big"
	"slices"
	"strconv"
	"strings"
)

// enter goes down one level: into brackets, or after a prefix.
func (p *parser) enter() {
	p.depth++
	if p.depth > maxNesting {
		p.fail("more than %d brackets and prefixes within each other", maxNesting)
	}
}

// tuple reads one expression, or several separated by commas, up to the tag's end or a word.
func (p *parser) tuple(choices bool, ends ...string) expr {
	var items []expr
	commas := false
	for !p.is(endPrint, endBlock, ")") && !p.isWord(ends...) {
		if choices {
			items = append(items, p.expression())
		} else {
			items = append(items, p.or())
		}
		if !p.skip(",") {
			break
		}
		commas = true
	}
	switch {
	case commas:
		return &tuple{items}
	case len(items) == 0:
		p.fail("unexpected %s, want an expression", p.at().describe())
	}
	return items[0]
}

// expression reads an expression, including its if and else.
func (p *parser) expression() expr {
	unknown := len(p.unknown)
	x := p.or()
	for n := 0; p.skipWord("if"); n++ {
		p.link(n)
		c := &choice{yes: x, test: p.or()}
		if p.skipWord("else") {
			p.enter()
			c.no = p.expression()
			p.depth--
		}
		p.unknown = p.unknown[:unknown] // jinja2 looks them up at run time
		x = c
	}
	return x
}

// link counts the operands of a chain.
func (p *parser) link(n int) {
	if n >= maxChain {
		p.fail("more than %d operands and operators in a row", maxChain)
	}
}

func (p *parser) or() expr {
	x := p.and()
	for n := 0; p.skipWord("or"); n++ {
		p.link(n)
		x = &either{x, p.and()}
	}
	return x
}

func (p *parser) and() expr {
	x := p.not()
	for n := 0; p.skipWord("and"); n++ {
		p.link(n)
		x = &both{x, p.not()}
	}
	return x
}

func (p *parser) not() expr {
	if !p.skipWord("not") {
		return p.compare()
	}
	p.enter()
	x := &unary{"not", p.not()}
	p.depth--
	return x
}

func (p *parser) compare() expr {
	c := &comparison{line: p.at().line, x: p.sum()}
	for n := 0; ; n++ {
		p.link(n)
		op := p.at().kind
		switch {
		case p.is("==", "!=", "<", "<=", ">", ">="):
			p.next()
		case p.skipWord("in"):
			op = "in"
		case p.isWord("not") && p.tokens[1].kind == "name" && p.tokens[1].text == "in":
			p.next()
			p.next()
			op = "not in"
		default:
			if len(c.ops) == 0 {
				return c.x
			}
			return c
		}
		c.ops, c.ys = append(c.ops, op), append(c.ys, p.sum())
	}
}

// chain reads operands separated by some operators, from left to right.
func (p *parser) chain(operand func() expr, ops ...string) expr {
	x := operand()
	for n := 0; p.is(ops...); n++ {
		p.link(n)
		op := p.next()
		x = &binary{op.line, op.kind, x, operand()}
	}
	return x
}

func (p *parser) sum() expr { return p.chain(p.joined, "+", "-") }

func (p *parser) joined() expr {
	parts := []expr{p.product()}
	for p.skip("~") {
		p.link(len(parts))
		parts = append(parts, p.product())
	}
	if len(parts) == 1 {
		return parts[0]
	}
	return &concat{parts}
}

func (p *parser) product() expr { return p.chain(p.power, "*", "/", "//", "%") }

func (p *parser) power() expr {
	return p.chain(func() expr { return p.unary(true) }, "**")
}

func (p *parser) unary(filters bool) expr {
	var x expr
	if p.is("-", "+") {
		p.enter()
		op := p.next()
		x = &unary{op.kind, p.unary(false)}
		p.depth--
	} else {
		x = p.primary()
	}
	x = p.postfix(x)
	for n := 0; filters; n++ {
		p.link(n)
		switch {
		case p.is("|"):
			x = p.filters(x)
		case p.isWord("is"):
			x = p.test(x)
		case p.is("("):
			x = p.call(x)
		default:
			return x
		}
	}
	return x
}

func (p *parser) primary() expr {
	t := p.next()
	switch t.kind {
	case "name":
		switch t.text {
		case "true", "True", "false", "False":
			return &constant{t.text[0]|0x20 == 't'}
		case "none", "None":
			return &constant{nil}
		}
		p.mention(t.text)
		return &name{t.line, t.text}
	case "string":
		parts := []string{t.text}
		for p.is("string") {
			parts = append(parts, p.next().text)
		}
		return &constant{strings.Join(parts, "")}
	case "integer":
		return &constant{integerLiteral(t)}
	case "float":
		f, _ := strconv.ParseFloat(strings.ReplaceAll(t.text, "_", ""), 64) // ±Inf, as in Python
		return &constant{f}
	case "(":
		p.enter()
		x := expr(&tuple{})
		if !p.is(")") {
			x = p.tuple(true)
		}
		p.expect(")")
		p.depth--
		return x
	case "[":
		p.enter()
		l := &list{p.items("]")}
		p.depth--
		return l
	case "{":
		return p.dict()
	}
	fail(t.line, "unexpected %s", t.describe())
	return nil
}

// mention records that the enclosing macros may read a name from their callers.
func (p *parser) mention(name string) {
	for _, m := range p.macros {
		m.uses.caller = m.uses.caller || name == "caller"
		m.uses.varargs = m.uses.varargs || name == "varargs"
		m.uses.kwargs = m.uses.kwargs || name == "kwargs"
	}
}

func integerLiteral(t token) Value {
	if len(t.text) <= maxDigits {
		if i, ok := new(big.Int).SetString(strings.ReplaceAll(t.text, "_", ""), 0); ok {
			return i
		}
	}
	fail(t.line, "an integer of %d digits is not supported", len(t.text))
	return nil
}

// items reads expressions separated by commas, up to a bracket.
func (p *parser) items(end string) []expr {
	var items []expr
	for !p.is(end) {
		if len(items) > 0 {
			p.expect(",")
		}
		if p.is(end) {
			break
		}
		items = append(items, p.expression())
	}
	p.next()
	return items
}

func (p *parser) dict() expr {
	p.enter()
	d := &dict{}
	for !p.is("}") {
		if len(d.keys) > 0 {
			p.expect(",")
		}
		if p.is("}") {
			break
		}
		d.keys = append(d.keys, p.expression())
		p.expect(":")
		d.values = append(d.values, p.expression())
	}
	p.next()
	p.depth--
	return d
}

func (p *parser) postfix(x expr) expr {
	for n := 0; ; n++ {
		p.link(n)
		switch {
		case p.is("."):
			p.next()
			t := p.next()
			switch t.kind {
			case "name":
				x = &attribute{t.line, x, t.text}
			case "integer":
				x = &element{t.line, x, &constant{integerLiteral(t)}}
			default:
				fail(t.line, "unexpected %s, want a name or a number", t.describe())
			}
		case p.is("["):
			x = p.subscript(x)
		case p.is("("):
			x = p.call(x)
		default:
			return x
		}
	}
}

func (p *parser) subscript(x expr) expr {
	p.enter()
	line := p.next().line
	var keys []expr
	cut := false
	for !p.is("]") {
		if len(keys) > 0 {
			p.expect(",")
		}
		key := p.subscribed(x, line)
		if _, ok := key.(*slice); ok {
			cut = true
		}
		keys = append(keys, key)
	}
	p.next()
	p.depth--
	switch {
	case len(keys) == 1 && cut:
		return keys[0]
	case len(keys) == 1:
		return &element{line, x, keys[0]}
	case cut:
		fail(line, "a slice among several keys is not supported")
	}
	return &element{line, x, &tuple{keys}}
}

func (p *parser) subscribed(x expr, line int) expr {
	var start expr
	if !p.is(":") {
		start = p.expression()
		if !p.is(":") {
			return start
		}
	}
	p.next()
	s := &slice{line: line, x: x, start: start}
	if !p.is("]", ",", ":") {
		s.stop = p.expression()
	}
	if p.skip(":") && !p.is("]", ",") {
		s.step = p.expression()
	}
	return s
}

func (p *parser) call(x expr) expr {
	line := p.at().line
	return &call{line, x, p.signature()}
}

// signature reads the arguments of a call.
func (p *parser) signature() *signature {
	p.enter()
	line := p.expect("(").line
	a := &signature{}
	wrong := func(is bool) {
		if is {
			fail(line, "the arguments of a call are in a wrong order")
		}
	}
	for first := true; !p.is(")"); first = false {
		if !first {
			p.expect(",")
			if p.is(")") {
				break
			}
		}
		switch {
		case p.is("*"):
			wrong(a.spread != nil || a.mapped != nil)
			p.next()
			a.spread = p.expression()
		case p.is("**"):
			wrong(a.mapped != nil)
			p.next()
			a.mapped = p.expression()
		case p.is("name") && p.tokens[1].kind == "=":
			wrong(a.mapped != nil)
			p.link(len(a.names))
			key := p.next().text
			p.next()
			if slices.Contains(a.names, key) {
				fail(line, "the argument %s comes twice", key)
			}
			a.names, a.named = append(a.names, key), append(a.named, p.expression())
		default:
			wrong(a.spread != nil || a.mapped != nil || len(a.names) > 0)
			a.positional = append(a.positional, p.expression())
		}
	}
	p.next()
	p.depth--
	return a
}

// filters reads any number of |name(args).
func (p *parser) filters(x expr) expr {
	for n := 0; p.skip("|"); n++ {
		p.link(n)
		x = p.filterOf(x)
	}
	return x
}

func (p *parser) dotted() (name string, line int) {
	t := p.expect("name")
	name = t.text
	for p.skip(".") {
		name += "." + p.expect("name").text
	}
	return name, t.line
}

func (p *parser) filterOf(x expr) expr {
	f := &filter{x: x}
	f.name, f.line = p.dotted()
	_, ok := filters[f.name]
	p.known("filter", f.name, f.line, ok)
	f.args = &signature{}
	if p.is("(") {
		f.args = p.signature()
	}
	return f
}

// known records a name that jinja2 does not have. It refuses one that only jinja2 has.
func (p *parser) known(what, name string, line int, ok bool) {
	switch {
	case slices.Contains(refused, name) && what == "filter":
		fail(line, "the filter %s is not supported", name)
	case !ok && !p.soft:
		p.unknown = append(p.unknown, &Error{line, "no " + what + " is named " + name})
	}
}

func (p *parser) test(x expr) expr {
	p.next()
	negated := p.skipWord("not")
	t := &test{x: x, args: &signature{}}
	t.name, t.line = p.dotted()
	_, ok := tests[t.name]
	p.known("test", t.name, t.line, ok)
	switch {
	case p.is("("):
		t.args = p.signature()
	case p.is("name", "string", "integer", "float", "[", "{") && !p.isWord("else", "or", "and"):
		if p.isWord("is") {
			p.fail("tests cannot follow each other")
		}
		t.args.positional = []expr{p.postfix(p.primary())}
	}
	if negated {
		return &unary{"not", t}
	}
	return t
}
