// Package lm drafts with a model: any one that has the target's tokenizer. Its trees have a shape: a
// chain (Linear), a tree of fixed breadth (Fixed), DynaTree (paper 002), or the most probable nodes (BestFirst).
//
// The drafter keeps a cache of its own over the committed text. A tree grows in steps: each step computes, in one
// batched pass of the draft model for all sequences, the nodes that the shape chooses to expand, and adds their children. A
// node is computed once, leaves never; the target's choice is then walked down the tree, and the rows of the path stay
// in the cache. What was committed without a row (a leaf, the bonus token, text that was decoded plainly) is
// computed at the beginning of the next tree, so a sequence that is not drafted for costs nothing beyond its prompt.
//
// At temperature 0 candidates are ranked by their logits. Above, by the race that the target's choice will be
// (sample.Sampler.Top): the same noise, position for position, over the draft model's logits. Scores are made chances
// (estimate), and put right by what the target chose beside the last paths (draft.Asides), unless the draft model is taken at its word (Raw).
package lm

import (
	"context"
	"fmt"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/model"
	"github.com/grovellm/grove/sample"
	"github.com/grovellm/grove/shortlist"
)

// Shape is how trees grow: *Linear, *Fixed, *DynaTree or *BestFirst.
type Shape interface {
	// limits are the shape's own, whatever a request allows. An option out of range is an error.
	limits() (limits, error)

	// begin readies a new sequence's state.
	begin(s *state)

	// choose appends to s.expand the nodes to expand next; none ends the tree. At the first step the root is the only node.
	choose(s *state)

	// breadth is how many children node gets; confidence is the drafter's in its first candidate.
	breadth(s *state, node int32, confidence float32) int

	// floor is the least log-probability of a path whose node is proposed; nodes below it are dropped from the finished tree.
	floor() float32

	// learn hears how deep the target followed a tree of some depth.
	learn(s *state, accepted, depth int)
}

// limits of a tree.
type limits struct {
	nodes    int // root included
	depth    int
	children int  // of one node
	raw      bool // take the draft model at its word
}

// maxNodes bounds every tree, and with it what a row sees.
const maxNodes = 4096

// New returns a drafter that grows trees of a shape with m. It refuses a model whose vocabulary is not the target's.
func New(shape Shape, m *model.Model, target draft.Target) (draft.Sampler, error) {
	return newDrafter(shape, nil, m, target)
}

// newDrafter is New over shortlists, where lists is not nil.
func newDrafter(shape Shape, lists shortlist.Method, m *model.Model, target draft.Target) (draft.Sampler, error) {
	l, err := shape.limits()
	if err != nil {
		return nil, err
	}
	if err := compatible(m, target); err != nil {
		return nil, err
	}
	d := &drafter{
		shape: shape, limits: l, m: m, pass: m.NewPass(),
		vocab: min(m.Config.Vocab, target.Vocab), target: target.Vocab,
		ranked:  max(l.children, rankedLeast),
		workers: make([]*sample.Sampler, m.Threads()),
		listing: listing{method: lists},
	}
	for i := range d.workers {
		if d.workers[i], err = sample.New(sample.Params{}, d.vocab); err != nil {
			return nil, err
		}
	}
	for i := range d.yield {
		d.yield[i] = newYield(l.children)
	}
	return d, nil
}

type drafter struct {
	shape  Shape
	limits limits
	m      *model.Model
	pass   *model.Pass
	vocab  int // tokens that both models know
	target int // tokens of the target's vocabulary
	ranked int // candidates looked at below a node

	workers []*sample.Sampler // scratch of each worker
	yield   [2]yield          // at temperature 0 and above

	listing

	// The Propose under way.
	live  []*state
	rows  []model.Rows
	tasks []task

	heard []hearing // of the Commit under way
}

// rankedLeast candidates are looked at even where fewer become children: the others say how sure the first is.
const rankedLeast = 8

func (d *drafter) Taps() []int { return nil }

// drawSeed parts the noise of drawn trees from the coupled noise, whatever the seeds.
const drawSeed = 0x6c6d2d647261776e

func (d *drafter) Begin(o draft.Options) (draft.State, error) {
	p := o.Sampling
	if o.Sampled {
		p.Seed = o.Seed ^ drawSeed
	}
	for token := range p.LogitBias {
		if int(token) >= d.vocab { // of the target alone: nothing that could be drafted
			p.LogitBias = known(p.LogitBias, d.vocab)
			break
		}
	}
	sampler, err := sample.New(p, d.vocab)
	if err != nil {
		return nil, err
	}
	s := &state{d: d, sampler: sampler, cache: d.m.NewCache(), drawing: o.Sampled, scarce: o.Sampled}
	if p.Temperature > 0 {
		s.warm = 1
		s.scarce = p.TopK > 0 || p.TopP > 0 || p.MinP > 0
	}
	if p.Penalised() {
		s.history = sample.NewHistory(p.PenaltyLast)
	}
	if d.method != nil && !s.drawing { // what is drawn from must be known for all tokens
		s.words = d.method.Begin()
	}
	d.shape.begin(s)
	return s, nil
}

// known is the part of a bias that names tokens of a vocabulary.
func known(bias map[int32]float32, vocab int) map[int32]float32 {
	m := map[int32]float32{}
	for token, b := range bias {
		if int(token) < vocab {
			m[token] = b
		}
	}
	return m
}

// Commit takes note of rows. Those of a prompt are computed now, where their time is expected, many in a pass.
func (d *drafter) Commit(rows []draft.Rows) error {
	d.live, d.heard = d.live[:0], d.heard[:0]
	for i := range rows {
		r := &rows[i]
		s := r.State.(*state)
		if err := s.commit(r); err != nil {
			return fmt.Errorf("lm: %w", err)
		}
		if r.Next < 0 && !s.outgrown() {
			d.live = append(d.live, s)
		}
	}
	d.m.Pool().Run(len(d.heard), (*hearings)(d))
	return d.read(context.Background(), 0)
}

// Drawn is the distribution that a node's children were drawn from; see draft.Sampler.
func (d *drafter) Drawn(s draft.State, node int) []float32 { return s.(*state).drawn(node) }
