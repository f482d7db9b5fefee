// Package hostile is a drafter at its worst: it drafts random tokens, almost certain of them, as
// many as it may. It ignores all advice. Nothing it drafts is useful, so its cost is what a
// controller fails to save. It tests law 3 of docs/design.md, never slower, as in `grove bench spec
// --methods plain,hostile`.
package hostile

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/drafters/batch"
	"github.com/grovellm/grove/internal/drafters/option"
	"github.com/grovellm/grove/internal/drafters/registry"
)

// Options of the drafter.
type Options struct {
	Seed       int     `draft:"seed" help:"seed of the random tokens"`
	Confidence float32 `draft:"confidence" help:"the probability that it reports for each token (above 0, at most 1)"`
}

// Default returns the default options.
func Default() Options { return Options{Confidence: 0.9} }

func init() {
	o := Default()
	registry.Register(registry.Family{
		Name:    "hostile",
		Help:    "random tokens with high confidence",
		About:   "It tests the controller. Nothing that it drafts is useful.",
		Test:    true,
		Options: &o,
		New: func(options string, _ registry.Modifiers, target registry.Target) (draft.Drafter, error) {
			o := Default()
			if err := option.Parse(options, &o); err != nil {
				return nil, err
			}
			return New(o, target.Vocab)
		},
	})
}

// New returns a drafter of tokens below vocab.
func New(o Options, vocab int) (draft.Drafter, error) {
	switch {
	case !(o.Confidence > 0 && o.Confidence <= 1):
		return nil, fmt.Errorf("hostile: confidence is %g: want more than 0, at most 1", o.Confidence)
	case vocab < 1:
		return nil, fmt.Errorf("hostile: the target's vocabulary has %d tokens: want at least 1", vocab)
	}
	d := &drafter{vocab: int32(vocab), logProb: float32(math.Log(float64(o.Confidence))), seed: uint64(o.Seed)}
	d.rng = rand.New(&d.source)
	return d, nil
}

type drafter struct {
	draft.Base
	proposals []draft.Proposal
	vocab     int32
	logProb   float32
	seed      uint64
	source    rand.PCG
	rng       *rand.Rand
}

// state is the number of committed tokens of the sequence: drafts at the same place are the same.
type state struct{ committed int }

func (*state) Close() {}

func (d *drafter) Begin(draft.Options) (draft.State, error) { return &state{}, nil }

func (d *drafter) Commit(rows []draft.Rows) error {
	for _, r := range rows {
		r.State.(*state).committed += len(r.Tokens)
	}
	return nil
}

// Propose fills the budget: about one of two nodes continues from the last, the other starts
// anywhere. Tokens that duplicate an existing node are lost, so a tiny vocabulary may leave some of
// the budget unused.
func (d *drafter) Propose(ctx context.Context, requests []draft.Request) ([]draft.Proposal, error) {
	for _, r := range requests {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		d.source.Seed(d.seed, uint64(r.State.(*state).committed))
		for tries := 2 * r.Budget; r.Tree.Len() < r.Budget && tries > 0; tries-- {
			parent := r.Tree.Len() - 1
			if d.rng.IntN(2) == 0 {
				parent = d.rng.IntN(r.Tree.Len())
			}
			if int(r.Tree.Depth[parent]) >= r.Depth {
				parent = int(r.Tree.Parent[parent])
			}
			r.Tree.Append(parent, d.rng.Int32N(d.vocab), d.logProb)
		}
	}
	d.proposals = batch.Proposals(d.proposals, len(requests))
	return d.proposals, nil
}
