package speculate

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/grammar"
	"github.com/grovellm/grove/internal/lab/grammars"
	"github.com/grovellm/grove/sample"
	"github.com/grovellm/grove/tree"
	"pgregory.net/rapid"
)

// toy is an exact target: logits are a pure function of the whole context, with some structure, so
// that text repeats now and then and a drafter can find something. Its cache checks every rule that
// the loop must obey.
type toy struct {
	vocab, context int
	salt           uint64
	near           float32 // weight of the last two tokens relative to that of the whole context
	runs           int
	skip           func(...any) // skips a case that a grammar cannot follow
}

func (t *toy) Vocab() int    { return t.vocab }
func (t *toy) Context() int  { return t.context }
func (t *toy) NewPass() Pass { return &toyPass{t: t} }
func (t *toy) NewCache() Cache {
	return &toyCache{}
}

func (t *toy) CheckCache(c Cache) error { return checkCache[*toyCache](c) }
func (t *toy) ForkCache(c Cache) Cache {
	return &toyCache{rows: slices.Clone(c.(*toyCache).rows)}
}
func (t *still) ForkCache(c Cache) Cache      { fork := *c.(*stillCache); return &fork }
func (t *simTarget) ForkCache(c Cache) Cache  { fork := *c.(*stillCache); return &fork }
func (t *lawTarget) ForkCache(c Cache) Cache  { fork := *c.(*stillCache); return &fork }
func (t *still) CheckCache(c Cache) error     { return checkCache[*stillCache](c) }
func (t *simTarget) CheckCache(c Cache) error { return checkCache[*stillCache](c) }
func (t *lawTarget) CheckCache(c Cache) error { return checkCache[*stillCache](c) }

// checkCache refuses a cache that is not a C.
func checkCache[C Cache](c Cache) error {
	if _, ok := c.(C); !ok {
		return fmt.Errorf("the cache is a %T", c)
	}
	return nil
}

func hash(h uint64, v ...uint64) uint64 {
	for _, x := range v {
		h = (h ^ x) * 0x9e3779b97f4a7c15
		h ^= h >> 29
	}
	return h
}

func unit(h uint64) float32 { return float32(h>>40) / (1 << 24) }

// logits returns the logits after a text.
func (t *toy) logits(text []int32) []float32 {
	whole, near := t.salt, t.salt
	for _, tok := range text {
		whole = hash(whole, uint64(tok)+1)
	}
	for _, tok := range text[max(0, len(text)-2):] {
		near = hash(near, uint64(tok)+1)
	}
	l := make([]float32, t.vocab)
	for v := range l {
		a, b := unit(hash(near, uint64(v))), unit(hash(whole, uint64(v), 7))
		l[v] = 8*t.near*a*a*a + 3*b
	}
	return l
}

// feature returns the toy's tap: a number that is unique to this context.
func (t *toy) feature(layer int, text []int32) float32 {
	h := hash(t.salt, uint64(layer))
	for _, tok := range text {
		h = hash(h, uint64(tok)+1)
	}
	return unit(h)
}

type toyCache struct {
	rows    []int32
	pending *tree.Tree // a copy of the last pass's tree
	freed   bool
}

func (c *toyCache) Len() int        { return len(c.rows) }
func (c *toyCache) Reach(n int) int { return min(n, c.Len()) }

func (c *toyCache) KeepState() {}
func (c *toyCache) Free() {
	c.rows = nil
	c.pending = nil
	c.freed = true
}

func (c *toyCache) Truncate(n int) error {
	if n < 0 || n > len(c.rows) {
		return fmt.Errorf("truncate %d rows to %d", len(c.rows), n)
	}
	c.rows, c.pending = c.rows[:n], nil
	return nil
}

func (c *toyCache) Commit(nodes []int32) error {
	if c.pending == nil || c.freed {
		return fmt.Errorf("commit with no pass before it")
	}
	for k, n := range nodes {
		if n < 0 || int(n) >= c.pending.Len() || k == 0 && n != 0 || k > 0 && c.pending.Parent[n] != nodes[k-1] {
			return fmt.Errorf("commit of %v, which is no path from the root of\n%s", nodes, c.pending)
		}
		c.rows = append(c.rows, c.pending.Token[n])
	}
	c.pending = nil
	return nil
}

type toyPass struct {
	t      *toy
	logits [][][]float32
	texts  [][][]int32 // context of each node
	taps   []int
}

func (p *toyPass) Run(ctx context.Context, rows []Rows, taps []int) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	p.t.runs++
	p.logits = nil
	p.texts = nil
	p.taps = taps
	seen := map[Cache]bool{}
	for s, r := range rows {
		c := r.Cache.(*toyCache)
		if seen[c] || c.freed {
			return fmt.Errorf("sequence %d: its cache is in the pass twice, or freed", s)
		}
		seen[c] = true
		if err := r.Tree.Check(p.t.vocab); err != nil {
			return err
		}
		var texts [][]int32
		var logits [][]float32
		for i := range r.Tree.Token {
			if at := c.Len() + int(r.Tree.Depth[i]); at >= p.t.context {
				return fmt.Errorf("sequence %d: node %d is at position %d of a context of %d", s, i, at, p.t.context)
			}
			text := slices.Clone(c.rows)
			for _, n := range r.Tree.Visible(i, nil) {
				text = append(text, r.Tree.Token[n])
			}
			texts = append(texts, text)
		}
		for _, n := range r.Logits {
			logits = append(logits, p.t.logits(texts[n]))
		}
		p.texts, p.logits = append(p.texts, texts), append(p.logits, logits)
		c.pending = tree.New(0)
		c.pending.Copy(r.Tree)
	}
	return nil
}

func (p *toyPass) Logits(s, i int) []float32 { return p.logits[s][i] }
func (p *toyPass) Tap(t, s, node int) []float32 {
	return []float32{p.t.feature(p.taps[t], p.texts[s][node])}
}

// plain is plain decoding in its plainest form, without the loop: the reference for every test.
func plain(t *toy, prompt []int32, r Request) []int32 {
	s, err := sample.New(r.Sampling, t.vocab)
	if err != nil {
		panic(err)
	}
	text := slices.Clone(prompt)
	var place *grammar.State
	if r.Grammar != nil {
		if place, err = r.Grammar.Start(); err != nil {
			panic(err)
		}
	}
	for {
		h := sample.NewHistory(&r.Sampling)
		for _, tok := range text {
			h.Push(tok)
		}
		logits := t.logits(text)
		if r.Grammar != nil {
			if any, err := mask(r, place, logits); err != nil {
				t.skip(err)
			} else if !any {
				return text[len(prompt):]
			}
		}
		tok := s.Sample(logits, len(text), h)
		complete := false
		if r.Grammar != nil && !(r.End != nil && r.End(tok)) {
			place, _ = r.Grammar.Next(place, tok, 0)
			complete = place.Complete()
		}
		text = append(text, tok)
		if r.End != nil && r.End(tok) || r.Stop != nil && r.Stop(tok) || len(text) == t.context || complete ||
			r.MaxTokens > 0 && len(text)-len(prompt) == r.MaxTokens {
			return text[len(prompt):]
		}
	}
}

// mask removes the chance of all tokens that the grammar does not allow, one by one. It returns
// false if none is allowed.
func mask(r Request, place *grammar.State, logits []float32) (any bool, err error) {
	for tok := range int32(len(logits)) {
		next, err := r.Grammar.Next(place, tok, 0)
		if err != nil {
			return false, err
		}
		if r.End != nil && r.End(tok) {
			if !place.Accepting() {
				next = nil
			} else {
				next = place
			}
		}
		if next == nil {
			logits[tok] = float32(math.Inf(-1))
		}
		any = any || next != nil
	}
	return any, nil
}

// randomGrammar returns a grammar over the toy's tokens, or nil now and then.
func randomGrammar(r *rapid.T, vocab int, end func(int32) bool) *grammar.Constraint {
	intn := func(n int) int { return rapid.IntRange(0, n-1).Draw(r, "n") }
	g, err := grammar.GBNF(grammars.Random(intn))
	if err != nil || intn(2) == 0 {
		return nil
	}
	pieces := grammars.Vocab(vocab, intn)
	for token := range pieces {
		if end != nil && end(int32(token)) {
			pieces[token] = nil
		}
	}
	return &grammar.Constraint{Grammar: g, Vocab: grammar.NewVocab(pieces), Encode: func(text string) (tokens []int32) {
		for len(text) > 0 {
			best := int32(-1)
			for token, piece := range pieces { // any of those that fit
				if len(piece) > 0 && strings.HasPrefix(text, string(piece)) && (best < 0 || intn(2) == 0) {
					best = int32(token)
				}
			}
			if best < 0 {
				return tokens
			}
			tokens, text = append(tokens, best), text[len(pieces[best]):]
		}
		return tokens
	}}
}

// hostile drafts at random: right tokens (it knows the output), wrong ones, duplicated branches,
// trees beyond budget and depth. It checks that it receives the text and its taps in order and
// without gaps.
type hostile struct {
	draft.Base
	r      *rapid.T
	t      *toy
	output map[int32][]int32 // by first prompt token: the whole text
	right  int               // chance in ten that a chain continues with the right token
	taps   []int

	network bool // it reports that a network made its trees
}

type hostileState struct {
	h        *hostile
	text     []int32
	next     int32 // the target's next token; -1: unknown
	closed   bool
	skipped  bool // the last rows were not to be read
	computed bool // rows have come with a pass

	known    []int32 // the beginning of the text, taken over from another sequence
	first    int     // rows before this one are known, or not needed; -1: Resume was not called
	proposed int     // number of proposals
}

func (s *hostileState) Close() { s.closed = true }

func (h *hostile) Taps() []int { return h.taps }
func (h *hostile) Begin(draft.Options) (draft.State, error) {
	return &hostileState{h: h, next: -1, first: -1}, nil
}

// Resume takes over the common text, and requests a random number of rows again.
func (h *hostile) Resume(to draft.State, n int, from draft.State, common int) int {
	s := to.(*hostileState)
	if from != nil {
		text := from.(*hostileState).text
		if len(text) == 0 {
			text = from.(*hostileState).known
		}
		s.known = text[:common:common]
	}
	s.first = rapid.IntRange(0, n).Draw(h.r, "first")
	return s.first
}

// left returns how many rows of a prefix must be in the cache of a sequence that was just started.
func (h *hostile) left(s *Sequence, n int) int {
	first := s.state.(*hostileState).first
	if first < 0 || s.r.MaxTokens > 0 && n-first > s.r.MaxTokens {
		return n
	}
	return first
}

func (h *hostile) Propose(_ context.Context, requests []draft.Request) ([]draft.Proposal, error) {
	proposals := make([]draft.Proposal, len(requests))
	for i, q := range requests {
		if h.network {
			if q.Guide != nil && !q.Guide.Deeper(0, 1) {
				continue
			}
			proposals[i].Levels = 1
		}
		s := q.State.(*hostileState)
		root := q.Tree.Token[0]
		if s.closed || s.skipped && h.network || q.Tree.Len() != 1 || s.next >= 0 && root != s.next {
			return nil, fmt.Errorf("a request with root %d where %d was to come, %d nodes", root, s.next, q.Tree.Len())
		}
		if q.Budget < 2 || q.Depth < 1 {
			return nil, fmt.Errorf("a request for %d nodes of depth %d", q.Budget, q.Depth)
		}
		truth := h.output[s.text[0]]
		if !slices.Equal(truth[:len(s.text)], s.text) || truth[len(s.text)] != root {
			return nil, fmt.Errorf("the text is %v and %d, want the beginning of %v", s.text, root, truth)
		}
		s.proposed++
		one, two := tree.New(root), tree.New(root)
		for _, half := range []*tree.Tree{one, two} {
			for range rapid.IntRange(0, q.Budget+2).Draw(h.r, "nodes") {
				parent := rapid.IntRange(0, half.Len()-1).Draw(h.r, "parent")
				if rapid.Bool().Draw(h.r, "deepest") {
					parent = half.Len() - 1
				}
				at := len(s.text) + 1 + int(half.Depth[parent])
				token := rapid.Int32Range(0, int32(h.t.vocab)-1).Draw(h.r, "token")
				if at < len(truth) && rapid.IntRange(0, 9).Draw(h.r, "luck") < h.right {
					token = truth[at]
				}
				half.Append(parent, token, -rapid.Float32Range(0, 3).Draw(h.r, "nll"))
			}
		}
		// A splice has duplicate siblings under the root, and may be twice as large as the budget.
		splice(q.Tree, one, two)
	}
	return proposals, nil
}

// splice makes dst one tree of two that share only their root.
func splice(dst, one, two *tree.Tree) {
	dst.Copy(one)
	at := []int{0}
	for i := 1; i < two.Len(); i++ {
		at = append(at, dst.AppendApart(at[two.Parent[i]], two.Token[i]))
		dst.LogProb[at[i]] = two.LogProb[i]
	}
}

func (h *hostile) Commit(rows []draft.Rows) error {
	for _, r := range rows {
		s := r.State.(*hostileState)
		if s.closed || len(r.Tokens) == 0 {
			return fmt.Errorf("a commit of %d rows, closed: %v", len(r.Tokens), s.closed)
		}
		if s.next >= 0 && r.Tokens[0] != s.next {
			return fmt.Errorf("rows start with %d, want %d", r.Tokens[0], s.next)
		}
		if r.Tree == nil && (r.Pass != nil || s.computed) {
			return fmt.Errorf("rows without a tree")
		}
		s.computed = r.Tree != nil
		s.skipped = r.Skip
		for i, tok := range r.Tokens {
			s.text = append(s.text, tok)
			if r.Tree == nil {
				continue
			}
			if r.Tree.Token[r.Nodes[i]] != tok {
				return fmt.Errorf("row %d carries %d, its node %d", i, tok, r.Tree.Token[r.Nodes[i]])
			}
			for k, layer := range h.taps {
				if got, want := r.Tap(k, i)[0], h.t.feature(layer, s.text); got != want {
					return fmt.Errorf("tap of layer %d after %v: %g, want %g", layer, s.text, got, want)
				}
			}
			if r.Next >= 0 {
				if d := math.Float32bits(r.Pass.Logits(r.Sequence,
					int(r.Nodes[i]))[0]) ^ math.Float32bits(h.t.logits(s.text)[0]); d != 0 {
					return fmt.Errorf("logits of row %d are not those of its context", i)
				}
			}
		}
		s.next = r.Next
		if n := min(len(s.known), len(s.text)); !slices.Equal(s.known[:n], s.text[:n]) {
			return fmt.Errorf("the text is %v, and began like %v", s.text, s.known)
		}
	}
	return nil
}
