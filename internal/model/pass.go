package model

import (
	"context"
	"fmt"

	"github.com/grovellm/grove/internal/nn"
	"github.com/grovellm/grove/internal/nn/output"
	"github.com/grovellm/grove/tree"
)

// Rows is one sequence's part of a pass.
type Rows struct {
	Cache  *nn.Cache  // committed rows; the pass leaves the tree's rows pending in it
	Tree   *tree.Tree // new rows; the root follows the last committed row
	Logits []int32    // the nodes whose logits are needed

	// Shortlists are, for each of Logits, the tokens whose logits are needed: rows of the model's
	// head in another order; nil: all tokens.
	Shortlists []*output.Shortlist

	// From is the first node to compute. Earlier nodes are pending in the cache, from passes over
	// the beginning of this tree: so a tree grows level by level, and each node is computed once.
	From int
}

// Pass is the memory of forward passes of one model, run one at a time.
type Pass struct {
	m      *Model
	exec   *nn.Exec
	forest nn.Forest
	tokens []int32

	x      nn.Buffer
	bufs   nn.BlockBuffers
	logits output.Logits // of the last run
	first  []int         // per sequence, the first of these logits

	ctx    context.Context // of the run under way, for Layer
	wanted []int           // the layers it must tap
	taps   []nn.Mat        // residual streams of the last run, in the order requested
	tapBuf []nn.Buffer
	tapAt  []int // per sequence, its first row
	from   []int // per sequence, the node of that row
	chain  tree.Tree

	expertsBefore int // experts read before the last run
}

// NewPass returns an empty pass.
func (m *Model) NewPass() *Pass { return &Pass{m: m, exec: nn.NewExec(m.pool)} }

// Model returns the model that the pass runs.
func (p *Pass) Model() *Model { return p.m }

// Run computes every row of the given trees over their caches, all in one pass. taps lists the
// layers whose residual stream to keep, for all rows: 0 is the embedding, i the output of the i-th
// block, up to the number of layers (before the final norm), as Hugging Face counts hidden states.
// Results are valid until the next Run.
//
// When ctx ends, Run returns its error and leaves the caches as before. It does the same to the
// caches if it panics, but then the pass must not be used again.
func (p *Pass) Run(ctx context.Context, rows []Rows, taps []int) error {
	if err := p.check(rows, taps); err != nil {
		return err
	}
	finished := false
	defer func() {
		if !finished { // even if a kernel panicked
			for _, r := range rows {
				r.Cache.Reserve(r.From, 0)
			}
		}
	}()
	p.forest.Reset()
	p.tokens = p.tokens[:0]
	p.tapAt = p.tapAt[:0]
	p.from = p.from[:0]
	for _, r := range rows {
		p.tapAt = append(p.tapAt, len(p.tokens))
		p.forest.Add(r.Cache, r.Tree, r.From)
		p.tokens = append(p.tokens, r.Tree.Token[r.From:]...)
		p.from = append(p.from, r.From)
		r.Cache.Reserve(r.From, r.Tree.Len()-r.From)
	}
	n := len(p.tokens)
	x := p.x.Mat(n, p.m.Config.Hidden)
	p.ctx = ctx
	p.wanted = taps
	p.expertsBefore = p.exec.ExpertsRead()
	if err := p.m.RunLayers(p.exec, &p.forest, p.tokens, x, &p.bufs, (*observer)(p)); err != nil {
		return err
	}
	p.head(rows, x)
	finished = true
	return nil
}

// head computes the requested logits.
func (p *Pass) head(rows []Rows, x nn.Mat) {
	p.first = p.first[:0]
	p.logits.Reset()
	for s, r := range rows {
		p.first = append(p.first, p.logits.Len())
		for i, node := range r.Logits {
			var list *output.Shortlist
			if r.Shortlists != nil {
				list = r.Shortlists[i]
			}
			p.logits.Add(p.tapAt[s]+int(node)-r.From, list)
		}
	}
	p.logits.Run(p.exec, x, &p.m.Norm, &p.m.Head)
}

// Logits returns the logits of the i-th node requested for sequence s: Vocab numbers, or those of its shortlist.
func (p *Pass) Logits(s, i int) []float32 { return p.logits.Row(p.first[s] + i) }

// ExpertsRead is how many experts the last run read, summed over the layers; 0 if there are none.
func (p *Pass) ExpertsRead() int { return p.exec.ExpertsRead() - p.expertsBefore }

// Tap returns the t-th requested tap, at a node of sequence s that the run computed: Hidden numbers.
func (p *Pass) Tap(t, s, node int) []float32 { return p.taps[t].Row(p.tapAt[s] + node - p.from[s]) }

// observer is the pass as the network's Observer.
type observer Pass

// Plans marks the observer as a Planner: Layer only plans.
func (p *observer) Plans() {}

// Layer keeps the residual stream of tapped layers, and ends the pass when its context ends.
func (p *observer) Layer(layer int, x nn.Mat) error {
	for len(p.tapBuf) < len(p.wanted) {
		p.tapBuf = append(p.tapBuf, nn.Buffer{})
		p.taps = append(p.taps, nn.Mat{})
	}
	for t, l := range p.wanted {
		if l == layer {
			p.taps[t] = p.tapBuf[t].Mat(x.Rows, x.Cols)
			p.exec.Normalise(nil, x, p.taps[t]) // a copy
		}
	}
	return p.ctx.Err()
}

// check refuses rows that do not form a pass.
func (p *Pass) check(rows []Rows, taps []int) error {
	m := p.m
	if len(rows) == 0 {
		return fmt.Errorf("model: a pass without sequences")
	}
	for s, r := range rows {
		if r.Cache == nil || r.Tree == nil || r.Tree.Len() == 0 {
			return fmt.Errorf("model: sequence %d has no cache or no rows", s)
		}
		if r.Cache.Pages() != &m.pages {
			return fmt.Errorf("model: sequence %d has a cache of another model", s)
		}
		for _, o := range rows[:s] {
			if o.Cache == r.Cache {
				return fmt.Errorf("model: sequence %d shares its cache with another sequence of the pass: Fork it", s)
			}
		}
		if r.From < 0 || r.From >= r.Tree.Len() || r.From > r.Cache.Pending() {
			return fmt.Errorf("model: sequence %d starts at node %d of %d, but %d are pending: want a node that follows them", s, r.From,
				r.Tree.Len(), r.Cache.Pending())
		}
		for i, id := range r.Tree.Token {
			if id < 0 || int(id) >= m.Config.Vocab {
				return fmt.Errorf("model: sequence %d, node %d: token %d is not in the vocabulary of %d", s, i, id, m.Config.Vocab)
			}
			if at := r.Cache.Len() + int(r.Tree.Depth[i]); at >= m.limit {
				return &ContextError{Need: at + 1, Limit: m.limit}
			}
		}
		for _, node := range r.Logits {
			if int(node) < r.From || int(node) >= r.Tree.Len() {
				return fmt.Errorf("model: sequence %d asks for logits of node %d: want %d to %d", s, node, r.From, r.Tree.Len()-1)
			}
		}
		if r.Shortlists != nil && len(r.Shortlists) != len(r.Logits) {
			return fmt.Errorf("model: sequence %d has %d shortlists for logits of %d nodes", s, len(r.Shortlists), len(r.Logits))
		}
		for _, l := range r.Shortlists {
			if l == nil || l.In() != 0 && l.In() != m.Config.Hidden {
				return fmt.Errorf("model: sequence %d has a shortlist that is not of this model's head", s)
			}
		}
	}
	for _, l := range taps {
		if l < 0 || l > m.Config.Layers {
			return fmt.Errorf("model: tap at layer %d: want 0 to %d", l, m.Config.Layers)
		}
	}
	return nil
}

// ContextError reports that a sequence would outgrow the context.
type ContextError struct{ Need, Limit int }

func (e *ContextError) Error() string {
	return fmt.Sprintf("the text needs %d tokens of context and the limit is %d: shorten it, or open the model with a larger context", e.Need, e.Limit)
}

// PrefillChunk is the number of rows in a prefill pass: enough for products to run at their peak,
// but few enough for activations to stay in cache.
const PrefillChunk = 512

// Prefill runs tokens as a chain in chunks and commits them. With wantLogits, it computes the logits of
// the last token, as Logits(0, 0). When ctx ends, committed tokens stay, and Prefill returns its error.
func (p *Pass) Prefill(ctx context.Context, c *nn.Cache, tokens []int32, wantLogits bool) error {
	if need := c.Len() + len(tokens); need > p.m.limit {
		return &ContextError{Need: need, Limit: p.m.limit}
	}
	for len(tokens) > 0 {
		n := min(PrefillChunk, len(tokens))
		p.chain.ResetChain(tokens[:n])
		rows := [1]Rows{{Cache: c, Tree: &p.chain}}
		if wantLogits && n == len(tokens) {
			rows[0].Logits = []int32{int32(n - 1)}
		}
		if err := p.Run(ctx, rows[:], nil); err != nil {
			return err
		}
		c.CommitAll()
		tokens = tokens[n:]
	}
	return nil
}
