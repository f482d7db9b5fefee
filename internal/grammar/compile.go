package grammar

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"
)

// maxNodes limits the size of an automaton. A node takes about 100 bytes.
const maxNodes = 1 << 17

var errStates = fmt.Errorf("it takes more than %d states: make its repetitions and lists shorter", maxNodes)

// maxDepth limits the nesting of expressions and schemas.
const maxDepth = 256

// node is a place in a rule. At most one of bytes, empty and call is used.
type node struct {
	bytes []edge
	empty []int32 // nodes reached without a byte
	call  int32   // a rule, none for no call
	ret   int32   // where to continue after it

	least, most int32 // how many repetitions the rule that it calls has; most is unlimited if there is no limit
	repeats     bool  // a repetition of the rule begins
}

// counts reports whether a call limits the repetitions of its rule.
func (n *node) counts() bool { return n.least > 0 || n.most != unlimited }

type edge struct {
	lo, hi byte
	to     int32
}

const (
	none = -1
	end  = 0 // the node at which every rule ends
)

// compiler turns expressions into nodes. build(e, to) returns the node at which e begins if the text continues at to.
type compiler struct {
	g     *grammar
	nodes []node
	start []int32       // of rules
	tails map[int]int32 // calls of rules at the ends of other rules, which share a node
	err   error

	thought [2]int // the nodes of reasoning
}

// compile builds the automaton of a rule.
func (g *grammar) compile(root int) (*Grammar, error) {
	c := &compiler{g: g, tails: map[int]int32{}}
	c.node(node{})
	for i := 0; i < len(g.rules); i++ { // repetitions add rules
		if i == g.thought[0] {
			c.thought[0] = len(c.nodes)
		}
		c.start = append(c.start, c.build(g.rules[i], end, 0))
		if i == g.thought[1]-1 {
			c.thought[1] = len(c.nodes)
		}
	}
	g.nodes = len(c.nodes)
	if c.err != nil {
		return nil, c.err
	}
	if !c.prune()[root] {
		return nil, cmp.Or(g.lack, errors.New("no text can complete it"))
	}
	if rule := c.leftRecursive(); rule != none {
		return nil, fmt.Errorf("rule %s begins with itself: write repetition with * or on the right", g.names[rule])
	}
	m := &Grammar{nodes: c.nodes, start: c.start, root: c.start[root], thought: c.thought}
	m.classify()
	m.reset()
	return m, nil
}

func (c *compiler) node(n node) int32 {
	if n.call == 0 {
		n.call = none
	}
	if len(c.nodes) >= maxNodes {
		if c.err == nil {
			c.err = errStates
		}
		return end
	}
	c.nodes = append(c.nodes, n)
	return int32(len(c.nodes) - 1)
}

func (c *compiler) build(e *expr, to int32, depth int) int32 {
	if depth > 2*maxDepth && c.err == nil {
		c.err = fmt.Errorf("it is nested more than %d deep", maxDepth)
	}
	if c.err != nil {
		return end
	}
	switch e.op {
	case opSeq:
		for i := len(e.kids) - 1; i >= 0; i-- {
			to = c.build(e.kids[i], to, depth+1)
		}
		return to
	case opAlt:
		at := c.node(node{})
		for _, kid := range e.kids {
			from := c.build(kid, to, depth+1)
			c.nodes[at].empty = append(c.nodes[at].empty, from)
		}
		return at
	case opChars:
		at := c.node(node{})
		for _, r := range e.set.normal() {
			c.addSpan(at, r.lo, r.hi, to)
		}
		return at
	case opRepeat:
		return c.buildRepeat(e, to, depth)
	case opEach:
		return c.node(node{empty: []int32{to}, repeats: true})
	case opControl:
		piece := ControlPiece(e.name)
		for i := len(piece) - 1; i >= 0; i-- {
			to = c.node(node{bytes: []edge{{piece[i], piece[i], to}}})
		}
		return to
	}
	at, known := c.tails[e.rule]
	counts := e.min > 0 || e.max != unlimited
	if to == end && known && !counts {
		return at
	}
	at = c.node(node{ret: to, least: int32(e.min), most: int32(e.max)})
	c.nodes[at].call = int32(e.rule)
	if to == end && !counts {
		c.tails[e.rule] = at
	}
	return at
}

func (c *compiler) buildRepeat(e *expr, to int32, depth int) int32 {
	kid := e.kids[0]
	if max(e.min, e.max) > 1 { // a call counts them
		if e.min > 0 && kid.op != opChars {
			kid = c.g.rule("a part", kid)
		}
		parts := repeat(seq(&expr{op: opEach}, kid), min(e.min, 1), unlimited)
		return c.build(c.g.rule("a repetition", parts).times(e.min, e.max), to, depth+1)
	}
	if e.max != e.min {
		at := c.node(node{})
		next := to
		if e.max == unlimited {
			next = at
		}
		from := c.build(kid, next, depth+1)
		c.nodes[at].empty = []int32{from, to}
		to = at
	}
	if e.min > 0 {
		to = c.build(kid, to, depth+1)
	}
	return to
}

// addSpan adds edges for the UTF-8 encodings of a range of characters. It splits the range until
// the encodings differ in independent ranges of bytes.
func (c *compiler) addSpan(at int32, lo, hi rune, to int32) {
	const surrogates, afterSurrogates = 0xd800, 0xe000
	if lo < surrogates && hi >= surrogates {
		c.addSpan(at, lo, surrogates-1, to)
		lo = surrogates
	}
	if lo >= surrogates && lo < afterSurrogates {
		lo = afterSurrogates
	}
	if lo > hi {
		return
	}
	for _, last := range []rune{0x7f, 0x7ff, 0xffff} { // for each length
		if lo <= last && last < hi {
			c.addSpan(at, lo, last, to)
			c.addSpan(at, last+1, hi, to)
			return
		}
	}
	for i := range utf8.RuneLen(hi) - 1 { // the last i+1 bytes must be free where others differ
		low := rune(1)<<(6*(i+1)) - 1
		if lo&^low != hi&^low {
			if lo&low != 0 {
				c.addSpan(at, lo, lo|low, to)
				c.addSpan(at, (lo|low)+1, hi, to)
				return
			}
			if hi&low != low {
				c.addSpan(at, lo, hi&^low-1, to)
				c.addSpan(at, hi&^low, hi, to)
				return
			}
		}
	}
	var a, b [utf8.UTFMax]byte
	n := utf8.EncodeRune(a[:], lo)
	utf8.EncodeRune(b[:], hi)
	for i := n - 1; i > 0; i-- {
		to = c.node(node{bytes: []edge{{a[i], b[i], to}}})
	}
	c.nodes[at].bytes = append(c.nodes[at].bytes, edge{a[0], b[0], to})
}

// reach finds the nodes from which the end of their rule can be reached, and the rules that have an
// end: over all edges, or only over those without a byte.
func (c *compiler) reach(overBytes bool) (live, ends []bool) {
	live, ends = make([]bool, len(c.nodes)), make([]bool, len(c.start))
	from := make([][]int32, len(c.nodes)) // nodes that lead to a node
	callers := make([][]int32, len(c.start))
	rulesAt := make([][]int32, len(c.nodes))
	for r, at := range c.start {
		rulesAt[at] = append(rulesAt[at], int32(r))
	}
	for i, n := range c.nodes {
		if overBytes {
			for _, e := range n.bytes {
				from[e.to] = append(from[e.to], int32(i))
			}
		}
		for _, to := range n.empty {
			from[to] = append(from[to], int32(i))
		}
		if n.call != none {
			from[n.ret] = append(from[n.ret], int32(i))
			callers[n.call] = append(callers[n.call], int32(i))
		}
	}
	work := []int32{end}
	for len(work) > 0 {
		i := work[len(work)-1]
		work = work[:len(work)-1]
		if n := &c.nodes[i]; live[i] || n.call != none && (!live[n.ret] || !ends[n.call]) {
			continue
		}
		live[i] = true
		work = append(work, from[i]...)
		for _, r := range rulesAt[i] {
			ends[r] = true
			work = append(work, callers[r]...)
		}
	}
	return live, ends
}

// prune removes edges to nodes from which the end of their rule cannot be reached. It returns which rules have an end.
func (c *compiler) prune() []bool {
	live, ends := c.reach(true)
	for i := range c.nodes {
		n := &c.nodes[i]
		if !live[i] {
			*n = node{call: none}
			continue
		}
		n.bytes = slices.DeleteFunc(n.bytes, func(e edge) bool { return !live[e.to] })
		n.empty = slices.DeleteFunc(n.empty, func(to int32) bool { return !live[to] })
	}
	return ends
}

// leftRecursive finds a rule that can call itself before reading a byte, and must then return: its
// stack would grow without end.
func (c *compiler) leftRecursive() int {
	_, nullable := c.reach(false)
	type call struct {
		rule  int32
		grows bool
	}
	calls := make([][]call, len(c.start)) // before a byte is read
	for r := range c.start {
		seen := map[int32]bool{}
		work := []int32{c.start[r]}
		for len(work) > 0 {
			i := work[len(work)-1]
			work = work[:len(work)-1]
			if seen[i] {
				continue
			}
			seen[i] = true
			n := &c.nodes[i]
			work = append(work, n.empty...)
			if n.call != none {
				calls[r] = append(calls[r], call{n.call, n.ret != end || n.counts()})
				if nullable[n.call] {
					work = append(work, n.ret)
				}
			}
		}
	}
	// Tarjan's algorithm: rules in one strong component call each other.
	index := make([]int, len(c.start))
	low := make([]int, len(c.start))
	component := make([]int, len(c.start))
	var stack []int
	count := 0
	var visit func(r int)
	visit = func(r int) {
		count++
		index[r], low[r] = count, count
		stack = append(stack, r)
		for _, k := range calls[r] {
			if to := int(k.rule); index[to] == 0 {
				visit(to)
				low[r] = min(low[r], low[to])
			} else if component[to] == 0 {
				low[r] = min(low[r], index[to])
			}
		}
		for low[r] == index[r] {
			last := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			component[last] = r + 1
			if last == r {
				break
			}
		}
	}
	for r := range c.start {
		if index[r] == 0 {
			visit(r)
		}
	}
	for r := range calls {
		for _, k := range calls[r] {
			if k.grows && component[r] == component[k.rule] {
				return r
			}
		}
	}
	return none
}
