// Package learn trains a drafter's head on what the target makes of its drafts (paper 004 §3.4): the text that was committed, with the
// target's taps and what it thought likely, and where the drafts went wrong.
//
// A family takes part with a Head, its layers over any weights, and a Learner, its drafter. The Student trains a second copy of the
// weights, built by the same code as the first over nn.Params. Package adapt decides when, and brings the outcome into use.
package learn

import (
	"fmt"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/gemm"
	"github.com/grovellm/grove/internal/headfile"
	"github.com/grovellm/grove/model"
	"github.com/grovellm/grove/nn"
)

// Learner is a Drafter that can draft with other weights from one call to the next.
type Learner interface {
	draft.Drafter

	// Head is what it drafts with. Use makes it draft with another of the same shape from its next call on: what sequences keep
	// of the one before stays in use, which cannot make a token wrong. Both are called by the goroutine that uses the drafter.
	Head() Head
	Use(Head)

	// Chance is the probability that the drafter gave to the target's choice after the last of the rows, whose tree is the last
	// that it proposed for their sequence. ok is false where it gave none to any token. It is called before Commit.
	Chance(r *draft.Rows) (p float32, ok bool)
}

// Head is the layers of a drafter over some weights. It is immutable, and can be a key of a map.
type Head interface {
	// Weights calls yield for every tensor that the head has of its own, by its name in files.
	Weights(yield func(Weight))

	// Rebuild makes the same layers over other weights; those that are Fixed stay.
	Rebuild(w model.Weights) (Head, error)

	// Last reports whether a tensor is of the last and cheapest part, which can be trained alone (the action "head" of paper 004).
	Last(name string) bool

	// Run computes the rows that drafting would compute at the rounds of a batch, and says which they are: x is their states.
	// Under a tape what leads up to the last part is recorded only where the batch asks for all; see Batch.Part.
	Run(e *nn.Exec, b *Batch) (x nn.Mat, rows []Row)

	// Output is what makes logits of states: Head·Norm(x). tokens are the target's for each row of the matrix; nil: the same.
	Output() (norm *nn.Norm, head *nn.Linear, tokens []int32)

	// Write writes the head as a GGUF file of its family. A head opened from that file drafts the
	// same to the bit.
	Write(path, name string) error
}

// Weight is a tensor of a head: a matrix, a vector, or a table of so many rows and columns.
type Weight struct {
	Name       string
	Matrix     *gemm.Matrix
	Vector     []float32
	Table      nn.Table
	Rows, Cols int
	Fixed      bool // it is not trained
}

// Each calls f for every row; the slice is used again.
func (w *Weight) Each(f func(i int, row []float32)) {
	rows, cols, table := w.Rows, w.Cols, w.Table
	switch {
	case w.Vector != nil:
		f(0, w.Vector)
		return
	case w.Matrix != nil:
		rows, cols, table = w.Matrix.Out(), w.Matrix.In(), w.Matrix
	}
	row := make([]float32, cols)
	for i := range rows {
		table.Row(row, i)
		f(i, row)
	}
}

// Row is a row that a Head computed: its logits are of the token at place At of a lesson's text, the Step-th below the root of a
// round. Lesson -1: its logits count for nothing.
type Row struct{ Lesson, Round, At, Step int }

// Yield yields the tensors of a product: name stands before ".weight" and ".bias".
func Yield(name string, l *nn.Linear, yield func(Weight)) {
	yield(Weight{Name: name + ".weight", Matrix: l.W})
	if l.Bias != nil {
		yield(Weight{Name: name + ".bias", Vector: l.Bias})
	}
}

// YieldNorm yields the weights of a norm, if it has any.
func YieldNorm(name string, n *nn.Norm, yield func(Weight)) {
	if n != nil && len(n.Weight) > 0 {
		yield(Weight{Name: name + ".weight", Vector: n.Weight})
	}
}

// YieldEnds yields the embedding and the output matrix of a head, where it has its own.
func YieldEnds(e *headfile.Ends, c *model.Config, yield func(Weight)) {
	if e.OwnEmbed {
		yield(Weight{Name: "token_embd.weight", Table: e.Embed, Rows: c.Vocab, Cols: c.Hidden, Fixed: true})
	}
	if e.OwnHead {
		Yield("output", &e.Head, func(w Weight) {
			w.Fixed = true
			yield(w)
		})
	}
}

// YieldBlocks yields the weights of layers, by the names of package model.
func YieldBlocks(blocks []nn.Block, yield func(Weight)) {
	for i := range blocks {
		b := &blocks[i]
		part := func(name string) string { return fmt.Sprintf("blk.%d.%s", i, name) }
		YieldNorm(part("attn_norm"), &b.AttnNorm, yield)
		for k, name := range []string{"attn_q", "attn_k", "attn_v"} {
			Yield(part(name), &b.QKV[k], yield)
		}
		YieldNorm(part("attn_q_norm"), b.Attn.QNorm, yield)
		YieldNorm(part("attn_k_norm"), b.Attn.KNorm, yield)
		Yield(part("attn_output"), &b.Out, yield)
		YieldNorm(part("ffn_norm"), &b.MLPNorm, yield)
		Yield(part("ffn_gate"), b.MLP.Gate, yield)
		Yield(part("ffn_up"), &b.MLP.Up, yield)
		Yield(part("ffn_down"), &b.MLP.Down, yield)
	}
}
