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
	head  *Head
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
func NewContext(pool *par.Pool, head *Head, r *Ranks, core, extra int) (*Context, error) {
	tokens := r.First(core)
	if len(tokens) == 0 {
		return nil, fmt.Errorf("shortlist: a core of %d tokens: want 1 or more", core)
	}
	c, err := newContext(pool, head, tokens, extra)
	if err != nil {
		return nil, err
	}
	// A sequence's own tokens are few of those outside the core: the tail counts them in.
	c.tail, err = newTail(pool, head, r.Order[len(tokens):])
	return c, err
}

// orderedHead is rows of tokens, or a panel of none.
func orderedHead(pool *par.Pool, head *Head, tokens []int32) (*nn.OrderedHead, error) {
	if len(tokens) == 0 {
		tokens = []int32{nn.NoToken}
	}
	return nn.NewOrderedHead(pool, head.TokenHead, tokens)
}

// newContext makes one without a tail.
func newContext(pool *par.Pool, head *Head, tokens []int32, extra int) (*Context, error) {
	if extra < 0 {
		return nil, fmt.Errorf("shortlist: %d tokens of each sequence: want none or more", extra)
	}
	ordered, err := orderedHead(pool, head, tokens)
	if err != nil {
		return nil, err
	}
	c := &Context{pool: pool, head: head, core: ordered, in: make([]bool, head.Vocab()), extra: (extra + gemm.Panel - 1) / gemm.Panel * gemm.Panel}
	for _, token := range tokens {
		c.in[token] = true
	}
	return c, nil
}

func (c *Context) Fork() Method { return c }

// Begin reuses the memory of a closed sequence. Where there is none for more, the sequence has the core alone.
func (c *Context) Begin() State { return c.begin() }

func (c *Context) begin() *contextState {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := len(c.free); n > 0 {
		s := c.free[n-1]
		c.free = c.free[:n-1]
		return s
	}
	s := &contextState{c: c, used: make([]int64, c.extra), changed: true}
	none := make([]int32, c.extra)
	for i := range none {
		none[i] = nn.NoToken
	}
	if c.extra > 0 {
		s.own, _ = nn.NewOrderedHead(c.pool, c.head.TokenHead, none)
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

type contextState struct {
	c       *Context
	own     *nn.OrderedHead
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
	if s.own == nil || s.c.head.Row(token) < 0 || s.c.in[token] {
		return
	}
	s.now++
	row := s.own.Row(token)
	if row < 0 {
		if s.n < len(s.used) {
			row = s.n
			s.n++
		} else {
			row = 0
			for i, used := range s.used {
				if used < s.used[row] {
					row = i
				}
			}
		}
		s.own.Set(row, token)
		s.changed = true
	}
	s.used[row] = s.now
}

// lay lists the core and the rows in use.
func (s *contextState) lay() {
	s.changed = false
	s.list.Reset()
	s.onto(&s.list)
	s.list.end(s.c.tail, 0)
}

// onto adds the core and the rows in use to a list.
func (s *contextState) onto(l *List) {
	l.Add(s.c.core, 0, s.c.core.Panels())
	if s.n > 0 {
		l.Add(s.own, 0, (s.n+gemm.Panel-1)/gemm.Panel)
	}
}

// Close keeps the memory for another sequence.
func (s *contextState) Close() {
	for i := s.n - 1; i >= 0; i-- {
		s.own.Unset(i)
	}
	s.n, s.changed = 0, true
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	s.c.free = append(s.c.free, s)
}
