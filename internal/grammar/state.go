package grammar

import (
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"sync"
)

// Grammar is a compiled grammar, expression or schema. Its methods are safe for concurrent use.
type Grammar struct {
	nodes   []node
	start   []int32 // of rules
	root    int32
	thought [2]int     // the nodes of reasoning
	class   [256]uint8 // bytes in the same class have the same edges everywhere
	example []byte     // a byte of each class
	single  []bool     // whether the class has only one byte

	mu         sync.Mutex
	generation int               // of the tables below
	states     map[string]*State // by their configurations
	frames     map[frame]*frame  // by frames without an id
	ids        uint32
	masks      map[*Vocab]map[*State]*Mask

	visits  int    // of the current call
	key     []byte // scratch
	seen    map[config]bool
	work    []config
	pending []config
}

// frame is a call on a stack: its return node, and how many repetitions of its rule must and may still begin.
type frame struct {
	node        int32
	id          uint32
	least, most int32
	up          *frame
}

// config is a node and the stack of open calls; the outermost rule has none.
type config struct {
	node  int32
	stack *frame
}

// State is a place in texts of a grammar. It never changes, except for its cached transitions.
type State struct {
	grammar    *Grammar
	configs    []config
	current    []config // configs, with stacks of the generation
	accepting  bool
	thinking   bool // reasoning may continue
	generation int
	to         []*State // by class; nil: not known yet
	forced     []byte
	known      bool // forced has been computed
}

// Limits of the caches, and of a state. When a limit is reached, everything cached is dropped: it
// can be computed again.
const (
	maxStates   = 1 << 12
	maskMemory  = 4 << 20 // bytes
	maxConfigs  = 1 << 10
	maxVisits   = 1 << 14
	maxForced   = 512 // bytes
	frameMemory = 1 << 16

	// Per mask or token: a hostile grammar must not delay other requests. They take about half a second and 50 MB.
	maxWork      = 1 << 22
	maxNewStates = 16 * maxStates
)

// errAmbiguous ends a generation whose text can be read in too many ways.
var errAmbiguous = errors.New("the text can be read in too many ways: make the grammar less ambiguous")

var dead = &State{}

// classify finds the classes of bytes.
func (g *Grammar) classify() {
	var starts [257]bool
	for _, n := range g.nodes {
		for _, e := range n.bytes {
			starts[e.lo], starts[int(e.hi)+1] = true, true
		}
	}
	starts[0] = true
	for b := range 256 {
		if starts[b] {
			g.example, g.single = append(g.example, byte(b)), append(g.single, starts[b+1] || b == 255)
		}
		g.class[b] = uint8(len(g.example) - 1)
	}
}

// reset drops the caches.
func (g *Grammar) reset() {
	g.generation++
	g.states = map[string]*State{}
	g.frames = map[frame]*frame{}
	g.masks = map[*Vocab]map[*State]*Mask{}
	g.seen = map[config]bool{}
}

// push returns the stack with one more call. Equal stacks are the same pointer.
func (g *Grammar) push(call frame) *frame {
	call.id = 0
	f := g.frames[call]
	if f == nil {
		g.ids++
		f = new(call)
		f.id = g.ids
		g.frames[call] = f
	}
	return f
}

// restack appends configurations with stacks from the current cache, where equal stacks are the same pointer. Larger
// counts of repetitions than far become the same.
func (g *Grammar) restack(list, configs []config, far int32) []config {
	same := map[*frame]*frame{nil: nil}
	var stack func(f *frame) *frame
	stack = func(f *frame) *frame {
		if _, ok := same[f]; !ok {
			call := frame{node: f.node, least: min(f.least, far), most: f.most, up: stack(f.up)}
			if call.most > far {
				call.most = unlimited
			}
			same[f] = g.push(call)
		}
		return same[f]
	}
	for _, c := range configs {
		list = append(list, config{c.node, stack(c.stack)})
	}
	return list
}

// Start returns the state before any text.
func (g *Grammar) Start() (*State, error) { return g.after(nil) }

// after returns the state after the beginning of a text.
func (g *Grammar) after(text []byte) (*State, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.trim()
	g.pending = append(g.pending[:0], config{g.root, nil})
	s, err := g.closure()
	if err != nil {
		return nil, err
	}
	return g.walk(s, text)
}

// closure returns the state of the pending configurations and those that they reach without a byte.
func (g *Grammar) closure() (*State, error) {
	clear(g.seen)
	g.work = append(g.work[:0], g.pending...)
	var configs []config
	accepting := false
	for visits := 0; len(g.work) > 0; visits++ {
		c := g.work[len(g.work)-1]
		g.work = g.work[:len(g.work)-1]
		if g.seen[c] {
			continue
		}
		g.seen[c] = true
		g.visits++
		if visits > maxVisits || len(configs) > maxConfigs || g.visits > maxWork || len(g.states) > maxNewStates {
			return nil, errAmbiguous
		}
		n := &g.nodes[c.node]
		switch {
		case c.node == end && c.stack == nil:
			accepting = true
		case c.node == end && c.stack.least == 0:
			g.work = append(g.work, config{c.stack.node, c.stack.up})
		case n.call != none && n.ret == end && !n.counts(): // a call at the end of a rule need not return
			g.work = append(g.work, config{g.start[n.call], c.stack})
		case n.call != none:
			g.work = append(g.work, config{g.start[n.call], g.push(frame{node: n.ret, least: n.least, most: n.most, up: c.stack})})
		case n.repeats && c.stack != nil && c.stack.most == 0:
			continue
		case n.repeats && c.stack != nil: // the outermost rule counts nothing
			call := *c.stack
			call.least, call.most = max(call.least-1, 0), max(call.most-1, unlimited)
			c.stack = g.push(call)
		case len(n.bytes) > 0:
			configs = append(configs, c)
		}
		for _, to := range n.empty {
			g.work = append(g.work, config{to, c.stack})
		}
	}
	return g.intern(configs, accepting), nil
}

// intern returns the one state that has these configurations.
func (g *Grammar) intern(configs []config, accepting bool) *State {
	id := func(f *frame) uint32 {
		if f == nil {
			return 0
		}
		return f.id
	}
	slices.SortFunc(configs, func(a, b config) int {
		if a.node != b.node {
			return int(a.node - b.node)
		}
		return int(int64(id(a.stack)) - int64(id(b.stack)))
	})
	g.key = g.key[:0]
	for _, c := range configs {
		g.key = binary.LittleEndian.AppendUint32(g.key, uint32(c.node))
		g.key = binary.LittleEndian.AppendUint32(g.key, id(c.stack))
	}
	if accepting {
		g.key = append(g.key, 1)
	}
	s := g.states[string(g.key)]
	if s == nil {
		s = &State{grammar: g, configs: configs, current: configs, accepting: accepting, generation: g.generation}
		s.thinking = slices.ContainsFunc(configs, func(c config) bool {
			return int(c.node) >= g.thought[0] &&
				int(c.node) < g.thought[1]
		})
		g.states[string(g.key)] = s
	}
	return s
}

// step returns the state after a byte, or dead if the byte is not allowed.
func (g *Grammar) step(s *State, b byte) (*State, error) {
	if s.generation != g.generation { // drop references that keep older states in memory
		s.to = nil
		s.current = g.restack(nil, s.configs, math.MaxInt32)
		s.generation = g.generation
	}
	class := g.class[b]
	if s.to == nil {
		s.to = make([]*State, len(g.example))
	}
	if next := s.to[class]; next != nil {
		return next, nil
	}
	g.pending = g.pending[:0]
	for _, c := range s.current {
		for _, e := range g.nodes[c.node].bytes {
			if e.lo <= b && b <= e.hi {
				g.pending = append(g.pending, config{e.to, c.stack})
			}
		}
	}
	next := dead
	if len(g.pending) > 0 {
		var err error
		if next, err = g.closure(); err != nil {
			return nil, err
		}
	}
	s.to[class] = next
	return next, nil
}

// trim begins a call. It drops the caches if they are large.
func (g *Grammar) trim() {
	g.visits = 0
	if len(g.states) > maxStates || len(g.frames) > frameMemory {
		g.reset()
	}
}

// walk returns the state after some bytes, or dead if they are not allowed.
func (g *Grammar) walk(s *State, text []byte) (*State, error) {
	for _, b := range text {
		if s == dead {
			break
		}
		next, err := g.step(s, b)
		if err != nil {
			return nil, err
		}
		s = next
	}
	return s, nil
}

// Accepts reports whether the whole text matches the grammar.
func (g *Grammar) Accepts(text string) (bool, error) {
	s, err := g.Start()
	if err != nil {
		return false, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	s, err = g.walk(s, []byte(text))
	return err == nil && s.accepting, err
}

// Accepting reports whether the text may end here.
func (s *State) Accepting() bool { return s.accepting }

// Complete reports whether the text can only end here.
func (s *State) Complete() bool { return s.accepting && len(s.configs) == 0 }

// Forced returns the text that must follow: as long as the text may not end and only one byte is
// allowed, up to maxForced bytes.
func (g *Grammar) Forced(s *State) ([]byte, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.trim()
	if s.known {
		return s.forced, nil
	}
	var text []byte
	for at := s; !at.accepting && len(text) < maxForced; {
		var only *State
		var b byte
		for class, example := range g.example {
			next, err := g.step(at, example)
			if err != nil {
				return nil, err
			}
			if next == dead {
				continue
			}
			if only != nil || !g.single[class] {
				only = nil
				break
			}
			only, b = next, example
		}
		if only == nil {
			break
		}
		text, at = append(text, b), only
	}
	s.forced, s.known = text, true
	return text, nil
}
