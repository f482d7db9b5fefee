// Package learn trains a drafter's head on what the target makes of its drafts (SpecBlock §3.4):
// the text that was committed, with the target's taps and what it thought likely, and where the
// drafts went wrong.
//
// A family takes part with a Head, its layers over any weights, and a Learner, its drafter. The
// Student trains a second copy of the weights, built by the same code as the first over
// autograd.Params. Package adapt decides when, and brings the outcome into use.
package learn

import (
	"fmt"
	"math"
	"strings"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/drafters/shortlist"
	"github.com/grovellm/grove/internal/heads/headfile"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/nn"
	"github.com/grovellm/grove/sample"
)

// Learner is a Drafter that can draft with other weights from one call to the next.
type Learner interface {
	draft.Drafter

	// Head is what it drafts with. Use makes it draft with another of the same shape from its next
	// call on: what sequences keep of the one before stays in use, which cannot make a token wrong.
	// Both are called by the goroutine that uses the drafter.
	Head() Head
	Use(Head)

	ListStats() shortlist.Stats // see shortlist.StatsOf

	// Chance is the probability that the drafter gave to the target's choice after the last of the
	// rows, whose tree is the last that it proposed for their sequence. ok is false where it gave none
	// to any token. It is called before Commit.
	Chance(r *draft.Rows) (p float32, ok bool)
}

// Head is the layers of a drafter over some weights. It is immutable, and can be a key of a map.
type Head interface {
	// Weights calls yield for every tensor that the head has of its own, by its name in files.
	Weights(yield func(headfile.Weight))

	// Rebuild makes the same layers over other weights; those that are Fixed stay.
	Rebuild(w model.Weights) (Head, error)

	// Last reports whether a tensor is of the last and cheapest part, which can be trained alone (the
	// action "head" of SpecBlock).
	Last(name string) bool

	// Run computes the rows that drafting would compute at the rounds of a batch, and says which they
	// are: x is their states. Under a tape what leads up to the last part is recorded only where the
	// batch asks for all; see Batch.Part.
	Run(e *nn.Exec, b *Batch) (x nn.Mat, rows []Row)

	// Output is what makes logits of states: Head·Norm(x). tokens are the target's for each row of
	// the matrix; nil: the same.
	Output() (norm *nn.Norm, head *nn.Linear, tokens []int32)

	// Shape is a copy of the head's shape: writing a file goes through its fields, while others draft with the head.
	Shape() headfile.Shape
}

// LastLayer is Head.Last of a head whose last part is the feed-forward half of the last of so many
// layers, and the norm after it.
func LastLayer(name string, layers int) bool {
	return name == "output_norm.weight" || strings.HasPrefix(name, fmt.Sprintf("blk.%d.ffn_", layers-1))
}

// Chance is what Learner.Chance returns where the drafter looked at a list of candidates: 0 for a
// token that is not among them.
func Chance(list []sample.Candidate, token int32) (p float32, ok bool) {
	for _, c := range list {
		if c.Token == token {
			return float32(math.Exp(float64(c.LogProb))), true
		}
	}
	return 0, len(list) > 0
}

// Row is a row that a Head computed: its logits are of the token at place At of an example's text,
// the Step-th below the root of a round. Example -1: its logits count for nothing.
type Row struct{ Example, Round, At, Step int }
