// Package hostile is a drafter at its worst: random tokens, of which it is nearly certain, as many
// as it may propose. It takes no advice. Nothing it drafts is any use, so what it costs is what a
// controller fails to save: it is there to test docs/design.md's law 3, never slower, as `grove
// bench spec --methods plain,hostile` does.
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

// Default are the options that are used unless others are given.
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

// state is how many tokens of the sequence are committed: the same place is drafted for in the same way.
type state struct{ committed int }

func (*state) Close() {}

func (d *drafter) Begin(draft.Options) (draft.State, error) { return &state{}, nil }

func (d *drafter) Commit(rows []draft.Rows) error {
	for _, r := range rows {
		r.State.(*state).committed += len(r.Tokens)
	}
	return nil
}

// Propose fills the budget: of two nodes about one goes on from the last, the other starts
// anywhere. Tokens that fall on a node that is there already are lost, so a tiny vocabulary may
// leave some of the budget.
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
