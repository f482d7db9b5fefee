// context needs no training, and no ranks from the right corpus, only the text itself. Tokens that
// occurred in it are likely to occur again, and tokens that the verifier nearly chose are likely to
// be chosen next (reference: in-context vocabularies).

package shortlist

import (
	"fmt"
	"slices"
	"sync"

	"github.com/grovellm/grove/internal/kernels/gemm"
	"github.com/grovellm/grove/internal/kernels/par"
	"github.com/grovellm/grove/internal/kernels/simd"
	"github.com/grovellm/grove/internal/nn/output"
	"github.com/grovellm/grove/sample"
)

// Context lists a core of frequent tokens and, for each sequence, the tokens that its text and its
// verifier brought up last. The rows of these are copied, once each, to a head of the sequence's own.
type Context struct {
	pool  *par.Pool
	head  *Head
	core  *output.OrderedHead
	in    []bool // for each token, whether it is in the core
	tail  *tail
	extra int

	mu   sync.Mutex
	free []*contextState // of closed sequences: the memory of their heads is kept for reuse
}

// alternatives is the number of the verifier's likeliest tokens that are listed.
const alternatives = 8

// NewContext lists core tokens by rank, and up to extra more for each sequence.
func NewContext(pool *par.Pool, head *Head, r *Ranks, core, extra int) (*Context, error) {
	tokens := r.First(core)
	if len(tokens) == 0 {
		return nil, fmt.Errorf("shortlist: a core of %d tokens: want 1 or more", core)
	}
	c, err := newContext(pool, head, tokens, extra)
	if err != nil {
		return nil, err
	}
	// A sequence's own tokens are few among those outside the core: the tail includes them.
	c.tail, err = newTail(pool, head, r.Order[len(tokens):])
	return c, err
}

// orderedHead returns a head of the rows of tokens, or an empty panel if there are none.
func orderedHead(pool *par.Pool, head *Head, tokens []int32) (*output.OrderedHead, error) {
	if len(tokens) == 0 {
		tokens = []int32{output.NoToken}
	}
	return output.NewOrderedHead(pool, head.TokenHead, tokens)
}

// newContext returns a Context without a tail.
func newContext(pool *par.Pool, head *Head, tokens []int32, extra int) (*Context, error) {
	if extra < 0 {
		return nil, fmt.Errorf("shortlist: %d tokens of each sequence: want none or more", extra)
	}
	ordered, err := orderedHead(pool, head, tokens)
	if err != nil {
		return nil, err
	}
	c := &Context{pool: pool, head: head, core: ordered, in: make([]bool, head.Vocab()),
		extra: (extra + gemm.Panel - 1) / gemm.Panel * gemm.Panel}
	for _, token := range tokens {
		c.in[token] = true
	}
	return c, nil
}

func (c *Context) Fork() Method { return c }

// Begin reuses the memory of a closed sequence if there is one. If extra is 0, sequences have only
// the core.
func (c *Context) Begin(p *sample.Params) State { return c.begin(p) }

func (c *Context) begin(p *sample.Params) *contextState {
	s := c.state()
	s.at, s.seed = 0, p.Seed
	// Where unlikely tokens are excluded anyway, noise cannot bring them in.
	s.noisy = s.rows != nil && p.Temperature > 0 && p.TopK == 0 && p.MinP == 0 && (p.TopP == 0 || p.TopP >= 1)
	return s
}

// state returns a state without a text.
func (c *Context) state() *contextState {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := len(c.free); n > 0 {
		s := c.free[n-1]
		c.free = c.free[:n-1]
		return s
	}
	s := &contextState{c: c, changed: true}
	if c.extra > 0 {
		s.rows = newTextRows(c)
	}
	return s
}

func (c *Context) Choose(queries []Query, lists []*List) {
	for i, q := range queries {
		s := q.State.(*contextState)
		if s.changed {
			s.lay()
			if s.rows != nil {
				s.c.pool.Run(s.rows.fills(), s.rows)
			}
		}
		lists[i] = &s.list
	}
}

type contextState struct {
	c       *Context
	rows    *textRows // nil: no tokens other than the core
	changed bool      // since the list was laid out
	list    List
	at      int  // number of tokens of the text
	noisy   bool // tokens are chosen also by their noise
	seed    uint64
	logits  Rows        // set while alternatives are added
	top     []topTokens // for each row
}

// topTokens is a row's most probable tokens.
type topTokens struct {
	n   int
	idx [alternatives]int32
	val [alternatives]float32
}

func (s *contextState) Commit(tokens []int32) {
	for _, token := range tokens {
		s.add(token)
	}
	s.at += len(tokens)
	s.addNoiseRows()
}

func (s *contextState) Alternatives(n int, logits Rows) {
	if s.rows == nil {
		return
	}
	s.top = slices.Grow(s.top[:0], n)[:n]
	s.logits = logits
	s.c.pool.Run(n, (*topTask)(s))
	s.logits = nil
	for i := range s.top {
		for _, token := range s.top[i].idx[:s.top[i].n] {
			s.add(token)
		}
	}
	s.addNoiseRows()
}

// topTask finds the most probable tokens, one row per task.
type topTask contextState

func (s *topTask) Do(_, i int) {
	h, logits := &s.top[i], s.logits.Row(i)
	h.n = simd.TopK(logits, h.idx[:min(alternatives, len(logits))], h.val[:])
}

func (s *contextState) add(token int32) {
	if s.rows != nil && s.c.head.Row(token) >= 0 && !s.c.in[token] && s.rows.add(token) {
		s.changed = true
	}
}

// addNoiseRows lists the tokens that noise may choose next.
func (s *contextState) addNoiseRows() {
	if s.noisy && s.rows.addNoiseRows(s.seed, s.at) {
		s.changed = true
	}
}

// lay lists the core and the sequence's own tokens.
func (s *contextState) lay() {
	s.changed = false
	s.list.Reset()
	s.onto(&s.list)
	s.list.end(s.c.tail, 0)
}

// onto adds the core and the sequence's own tokens to a list.
func (s *contextState) onto(l *List) {
	l.Add(s.c.core, 0, s.c.core.Panels())
	if s.rows != nil {
		l.Add(s.rows.head, 0, s.rows.panels())
	}
	if s.noisy {
		from := s.c.extra / gemm.Panel
		l.Add(s.rows.head, from, from+ahead*noiseRows/gemm.Panel)
	}
}

// Close keeps the memory for another sequence.
func (s *contextState) Close() {
	if s.rows != nil {
		s.rows.clear()
	}
	s.changed = true
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	s.c.free = append(s.c.free, s)
}
