// context: no training and no ranks from the right corpus, only the text itself. What occurred in it is likely to occur again, and
// what the verifier nearly chose is what it chooses next (reference: in-context vocabularies).

package shortlist

import (
	"fmt"
	"sync"

	"github.com/grovellm/grove/internal/gemm"
	"github.com/grovellm/grove/internal/par"
	"github.com/grovellm/grove/internal/simd"
	"github.com/grovellm/grove/nn"
)

// Context lists a core of frequent tokens, and of each sequence those that its text and its verifier brought up last. Rows
// of these are copied, once each, to a head of the sequence's own.
type Context struct {
	pool  *par.Pool
	head  *nn.Linear
	core  *nn.OrderedHead
	in    []bool // of each token: it is in the core
	tail  *tail
	extra int

	mu   sync.Mutex
	free []*contextState // of sequences that are closed: a head's memory is never given back to others
}

// alternatives is how many of the verifier's likeliest tokens are listed.
const alternatives = 8

// NewContext lists core tokens by rank and up to extra more of each sequence.
func NewContext(pool *par.Pool, head *nn.Linear, norm *nn.Norm, r *Ranks, core, extra int) (*Context, error) {
	tokens := r.First(core)
	if len(tokens) == 0 || extra < 0 {
		return nil, fmt.Errorf("shortlist: a core of %d tokens and %d more of each sequence: want 1 or more, and none or more", core, extra)
	}
	ordered, err := nn.NewOrderedHead(pool, head, tokens)
	if err != nil {
		return nil, err
	}
	c := &Context{pool: pool, head: head, core: ordered, in: make([]bool, head.W.Out()), extra: (extra + gemm.Panel - 1) / gemm.Panel * gemm.Panel}
	for _, token := range tokens {
		c.in[token] = true
	}
	// A sequence's own tokens are few of those outside the core: the tail counts them in.
	c.tail, err = newTail(pool, head, norm, [][]int32{r.Order[len(tokens):]})
	return c, err
}

func (c *Context) Fork() Method { return c }

// Begin reuses the memory of a closed sequence. Where there is none for more, the sequence has the core alone.
func (c *Context) Begin() State {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := len(c.free); n > 0 {
		s := c.free[n-1]
		c.free = c.free[:n-1]
		return s
	}
	s := &contextState{c: c, at: make([]int32, c.head.W.Out()), used: make([]int64, c.extra), changed: true}
	for token := range s.at {
		s.at[token] = nowhere
	}
	none := make([]int32, c.extra)
	for i := range none {
		none[i] = nn.NoToken
	}
	if c.extra > 0 {
		s.own, _ = nn.NewOrderedHead(c.pool, c.head, none)
	}
	return s
}

func (c *Context) Choose(queries []Query, lists []*List) {
	for i, q := range queries {
		s := q.State.(*contextState)
		if s.changed {
			s.lay()
		}
		lists[i] = &s.list
	}
}

const nowhere = -1

type contextState struct {
	c       *Context
	own     *nn.OrderedHead
	at      []int32 // of each token, its row of own
	used    []int64 // of each row, when its token came up last
	n       int     // rows in use
	now     int64
	changed bool // since the list was laid out
	list    List
	idx     [alternatives]int32
	val     [alternatives]float32
}

func (s *contextState) Commit(tokens []int32) {
	for _, token := range tokens {
		s.add(token)
	}
}

func (s *contextState) Alternatives(logits []float32) {
	for _, token := range s.idx[:simd.TopK(logits, s.idx[:min(alternatives, len(logits))], s.val[:])] {
		s.add(token)
	}
}

// add lists a token, in place of the one that came up longest ago where all rows are in use.
func (s *contextState) add(token int32) {
	if uint(token) >= uint(len(s.at)) || s.c.in[token] || s.own == nil {
		return
	}
	s.now++
	row := s.at[token]
	switch {
	case row != nowhere:
	case s.n < len(s.used):
		row = int32(s.n)
		s.n++
	default:
		row = 0
		for i, used := range s.used {
			if used < s.used[row] {
				row = int32(i)
			}
		}
		s.at[s.own.Tokens[row]] = nowhere
	}
	s.used[row] = s.now
	if s.at[token] == nowhere {
		s.at[token] = row
		s.own.Set(int(row), s.c.head, token)
		s.changed = true
	}
}

// lay lists the core and the rows in use.
func (s *contextState) lay() {
	l := &s.list
	s.changed = false
	l.Reset()
	l.Add(s.c.core, 0, s.c.core.Panels())
	if s.n > 0 {
		l.Add(s.own, 0, (s.n+gemm.Panel-1)/gemm.Panel)
	}
	l.tail = s.c.tail
	l.Beside(s.c.tail.head)
}

// Close keeps the memory for another sequence.
func (s *contextState) Close() {
	for i := range s.n {
		s.at[s.own.Tokens[i]] = nowhere
		s.own.Tokens[i] = nn.NoToken
	}
	s.n, s.changed = 0, true
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	s.c.free = append(s.c.free, s)
}
