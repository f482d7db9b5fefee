// Learning while serving: the head as package learn trains it.

package jet

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
	n := LayOutNetwork(h.Config)
	n.Tokens, n.Ends = h.Tokens, h.Ends
	return trainable{n}, n.Tensors().Load(w)
}

func (h trainable) Last(name string) bool { return learn.LastLayer(name, h.Layers) }

func (h trainable) Output() (norm *nn.Norm, head *nn.Linear, tokens []int32) {
	return &h.Norm, &h.Network.Head, h.Tokens
}

func (h trainable) Shape() headfile.Shape { return new(h.Config) }

// Run lays the texts out as chains, as training does, with a block under the root of each round.
// A causal block ends where the drafter stopped looking.
func (h trainable) Run(e *nn.Exec, b *learn.Batch) (x nn.Mat, rows []learn.Row) {
	n := h.Network
	var chains, branches nn.Forest
	var bufs Buffers
	var tokens []int32
	pages := n.Pages()
	for i, l := range b.Examples {
		t, cache := new(tree.Tree), pages.NewCache() // a tape reads them until it has run backward
		text := l.Tokens[:len(l.Tokens)-1]
		t.ResetChain(text)
		chains.Add(cache, t, 0)
		for _, number := range b.Rounds[i] {
			r := &l.Rounds[number]
			shape := n.Config
			if n.Causal {
				shape.Block = min(r.Looked, n.Block-1) + 1
			}
			if r.Root == 0 {
				continue // there is no text before the block
			}
			shape.Branch(t, r.Root-1, l.Tokens[r.Root])
			for step := range shape.Block {
				row := learn.Row{Example: i, Round: number, At: r.Root + step, Step: step}
				if step == 0 {
					row.Example = -1
				}
				rows = append(rows, row)
			}
		}
		cache.Reserve(0, t.Len())
		branches.Add(cache, t, len(text))
		tokens = append(tokens, t.Token[len(text):]...)
	}
	n.Context(e, &chains, b.Taps(), &bufs)
	var first nn.Buffer
	x = e.Mat(&first, len(tokens), n.Hidden)
	e.Embed(n.Embed, tokens, x)
	last := len(n.Blocks) - 1
	for i := range last {
		e.Block(&n.Blocks[i], i, &branches, x, &bufs.block)
	}
	e.Attention(&n.Blocks[last], last, &branches, nn.Source{X: x, Norm: &n.Blocks[last].AttnNorm}, x, &bufs.block)
	x = b.Part(e, x)
	e.MLP(&n.Blocks[last], x, &bufs.block)
	return x, rows
}
