// Learning while serving: the head in the form that package learn trains.

package peagle

import (
	"github.com/grovellm/grove/internal/drafters/learn"
	"github.com/grovellm/grove/internal/heads/headfile"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/nn"
	"github.com/grovellm/grove/tree"
)

// Head and Use make the drafter a learn.Learner.
func (d *drafter) Head() learn.Head { return d.blocks.trainable }

func (d *drafter) Use(h learn.Head) { d.blocks.trainable = h.(trainable) }

// trainable is a network as a learn.Head.
type trainable struct{ *Network }

func (h trainable) Rebuild(w model.Weights) (learn.Head, error) {
	n := layOut(h.Config)
	n.Base.Tokens, n.Base.Ends = h.Base.Tokens, h.Base.Ends
	return trainable{n}, n.Tensors().Load(w)
}

func (h trainable) Last(name string) bool { return learn.LastLayer(name, h.Layers) }

func (h trainable) Output() (norm *nn.Norm, head *nn.Linear, tokens []int32) {
	return h.Base.Norm, &h.Base.Head, h.Base.Tokens
}

func (h trainable) Shape() headfile.Shape { return new(h.Config) }

// Run lays out the texts as chains of entries, with the mask rows of each round below the entry of
// its root.
func (h trainable) Run(e *nn.Exec, b *learn.Batch) (x nn.Mat, rows []learn.Row) {
	n, taps := h.Network, b.Taps()
	var forest nn.Forest
	var entries, from, wanted []int32
	pages := n.Base.Pages()
	for i, l := range b.Examples {
		t, cache := new(tree.Tree), pages.NewCache() // a tape reads them until its backward pass is done
		text, start := l.Tokens[1:], len(from)
		t.ResetChain(text)
		for range text {
			from = append(from, int32(len(entries)+len(from)-start))
		}
		entries = append(entries, text...)
		for _, number := range b.Rounds[i] {
			r := &l.Rounds[number]
			if r.Root == 0 {
				continue // the root has no entry
			}
			row := start + r.Root - 1
			for step := 1; step <= min(r.Looked, n.Depths); step++ {
				if step > 1 {
					row, from = len(from), append(from, int32(taps.Rows+step-2))
				}
				wanted = append(wanted, int32(row))
				rows = append(rows, learn.Row{Example: i, Round: number, At: r.Root + step, Step: step})
			}
			n.Branch(t, r.Root-1, min(r.Looked, n.Depths)-1)
		}
		cache.Reserve(0, t.Len())
		forest.Add(cache, t, 0)
	}
	var bufs Buffers
	all := e.Mat(new(nn.Buffer), len(from), n.Hidden)
	embed, g := n.inputs(e, entries, taps, from, &bufs)
	n.Base.RunToMLP(e, &forest, embed, g, all, &bufs.base)
	x = e.Mat(new(nn.Buffer), len(wanted), n.Hidden)
	e.Gather(all, wanted, x)
	x = b.Part(e, x)
	n.Base.LastMLP(e, x, &bufs.base)
	return x, rows
}
