// Learning while serving: heads as package learn trains them.

package medusa

import (
	"strings"

	"github.com/grovellm/grove/internal/drafters/learn"
	"github.com/grovellm/grove/internal/heads/headfile"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/nn"
)

// Head and Use make the drafter a learn.Learner.
func (d *drafter) Head() learn.Head { return trainable{d.heads.n} }

func (d *drafter) Use(h learn.Head) { d.heads.n = h.(trainable).Network }

// trainable is a network, whose heads share an output matrix, as a learn.Head.
type trainable struct{ *Network }

func (h trainable) Rebuild(w model.Weights) (learn.Head, error) {
	n := layOut(h.Config)
	n.Norm = h.Norm
	n.Tokens, n.Ends = h.Tokens, h.Ends
	return trainable{n}, n.Tensors().Load(w)
}

// Last is the first head: what follows its token is lost where it is wrong.
func (h trainable) Last(name string) bool { return strings.HasPrefix(name, "medusa.0.") }

func (h trainable) Output() (norm *nn.Norm, head *nn.Linear, tokens []int32) {
	return nil, &h.Network.Head, h.Tokens
}

func (h trainable) Shape() headfile.Shape { return new(h.Config) }

// Run computes the heads over the rows before the roots of the rounds.
func (h trainable) Run(e *nn.Exec, b *learn.Batch) (x nn.Mat, rows []learn.Row) {
	taps, read := b.Taps(), []int32(nil)
	at := 0
	var roots []learn.Row
	for i, l := range b.Examples {
		for _, number := range b.Rounds[i] {
			if r := &l.Rounds[number]; r.Root > 0 {
				read = append(read, int32(at+r.Root-1))
				roots = append(roots, learn.Row{Example: i, Round: number, At: r.Root})
			}
		}
		at += len(l.Tokens) - 1
	}
	in := nn.NewMat(len(read), h.Hidden)
	for i, row := range read {
		copy(in.Row(i), taps.Row(int(row)))
	}
	in = b.Part(e, in)
	normed := e.Mat(new(nn.Buffer), in.Rows, in.Cols)
	e.Normalise(&h.Norm, in, normed)
	x = e.Mat(new(nn.Buffer), h.Depths*in.Rows, in.Cols)
	h.Network.Run(e, normed, x, new(Buffers))
	for head := range h.Depths {
		for _, r := range roots {
			r.Step = head + 1
			r.At += head + 1
			if head >= b.Examples[r.Example].Rounds[r.Round].Looked {
				r.Example = -1
			}
			rows = append(rows, r)
		}
	}
	return x, rows
}
