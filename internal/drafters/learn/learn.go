// Package learn trains a drafter's head on the target's responses to its drafts (SpecBlock §3.4):
// the committed text, with the target's taps and the tokens that it thought likely, and the places
// where the drafts went wrong.
//
// A family takes part with a Head, its layers over any weights, and a Learner, its drafter. The
// Student trains a second copy of the weights, built by the same code as the first over
// autograd.Params. Package adapt decides when, and puts the result into use.
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

	// Head returns the head that it drafts with. Use makes it draft with another of the same shape
	// from its next call on. Sequences' state from the head before stays in use, which cannot make a
	// token wrong. Both are called by the goroutine that uses the drafter.
	Head() Head
	Use(Head)

	ListStats() shortlist.Stats // see shortlist.StatsOf

	// Chance returns the probability that the drafter gave to the target's choice after the last of the
	// rows, whose tree is the last one that it proposed for their sequence. ok is false if it gave
	// none to any token. It is called before Commit.
	Chance(r *draft.Rows) (p float32, ok bool)
}

// Head has the layers of a drafter over some weights. It is immutable, and can be a map key.
type Head interface {
	// Weights calls yield for every tensor that the head has of its own, by its name in files.
	Tensors() headfile.Parts

	// Rebuild makes the same layers over other weights; Fixed ones stay.
	Rebuild(w model.Weights) (Head, error)

	// Last reports whether a tensor belongs to the last and cheapest part, which can be trained alone
	// (the action "head" of SpecBlock).
	Last(name string) bool

	// Run computes the rows that drafting would compute at the rounds of a batch, and lists them: x
	// has their states. Under a tape, everything before the last part is recorded only if all weights
	// learn; see Batch.Part.
	Run(e *nn.Exec, b *Batch) (x nn.Mat, rows []Row)

	// Output makes logits from states: Head·Norm(x). tokens has the target's token for each row of the
	// matrix; nil: the same.
	Output() (norm *nn.Norm, head *nn.Linear, tokens []int32)

	// Shape returns a copy of the head's shape: writing a file uses its fields while others draft with the head.
	Shape() headfile.Shape
}

// LastLayer is Head.Last for a head whose last part is the feed-forward half of the last of so many
// layers, and the norm after it.
func LastLayer(name string, layers int) bool {
	return name == "output_norm.weight" || strings.HasPrefix(name, fmt.Sprintf("blk.%d.ffn_", layers-1))
}

// Chance returns the result of Learner.Chance for a drafter that considered a list of candidates: 0
// for a token that is not among them.
func Chance(list []sample.Candidate, token int32) (p float32, ok bool) {
	for _, c := range list {
		if c.Token == token {
			return float32(math.Exp(float64(c.LogProb))), true
		}
	}
	return 0, len(list) > 0
}

// Row is a row that a Head computed: its logits are of the token at place At of an example's text,
// the Step-th below the root of a round. Example -1: its logits are not used.
type Row struct{ Example, Round, At, Step int }
