// Learning while serving: the head as package learn trains it. The rank head does not change: what it
// says about a distribution's shape stays true as the distribution learns.

package specblock

import (
	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/drafters/learn"
	"github.com/grovellm/grove/internal/heads/headfile"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/nn"
)

// Head and Use make the drafter a learn.Learner.
func (d *drafter) Head() learn.Head { return trainable{d.n} }

func (d *drafter) Use(h learn.Head) { d.n = h.(trainable).Network }

// Chance returns the probability that the head last gave to the target's choice where the walk stopped.
func (d *drafter) Chance(r *draft.Rows) (p float32, ok bool) {
	said := r.State.(*state).after(r.Tokens[1:])
	if said == nil {
		return 0, false
	}
	return learn.Chance(said.top, r.Next)
}

// trainable is a network as a learn.Head.
type trainable struct{ *Network }

func (h trainable) Rebuild(w model.Weights) (learn.Head, error) {
	n := layOut(h.Config)
	n.Tokens, n.Ends = h.Tokens, h.Ends
	return trainable{n}, n.Tensors().Load(w)
}

func (h trainable) Last(name string) bool { return learn.LastLayer(name, h.Layers) }

func (h trainable) Output() (norm *nn.Norm, head *nn.Linear, tokens []int32) {
	return &h.Norm, &h.Head, h.Tokens
}

func (h trainable) Shape() headfile.Shape { return new(h.Config) }

// Run computes the first blocks of all entries of the texts in one pass. Then it computes, for every
// round that looked further, a block that continues along the text: from the last row of the first
// one, or for learning from any row, as drafting starts blocks from a place's alternatives.
func (h trainable) Run(e *nn.Exec, b *learn.Batch) (x nn.Mat, rows []learn.Row) {
	p := replay{n: h.Network, b: b}
	before, from := p.first(e)
	rows = p.rows
	x = e.Mat(new(nn.Buffer), len(p.from), h.Hidden)
	e.Gather(before, p.from, x)
	if b.Alone() {
		x = b.Part(e, x)
		e.MLP(p.last(), x, &p.bufs.block)
		return x, rows
	}
	more := p.next(e, before, from)
	if len(p.from) == 0 {
		return x, rows
	}
	both := e.Mat(new(nn.Buffer), x.Rows+len(p.from), h.Hidden)
	e.Normalise(nil, x, both.Slice(0, x.Rows))
	e.Gather(more, p.from, both.Slice(x.Rows, both.Rows))
	return both, append(rows, p.rows...)
}

// replay lays out the passes of a batch.
type replay struct {
	n       *Network
	b       *learn.Batch
	caches  []*nn.Cache
	layouts []*Layout
	bufs    Buffers

	from []int32     // rows of the last pass that rounds look at
	rows []learn.Row // and what they are
}

// began says where a round's first block is.
type began struct{ example, round, node, row int }

// first runs the pass of the entries: entry i of an example has the taps of row i, and token i+1. If
// only the last part learns, it returns that part's input.
func (p *replay) first(e *nn.Exec) (x nn.Mat, blocks []began) {
	n := p.n
	pages := n.Pages()
	pass := new(Pass)
	entries := 0
	for i, l := range p.b.Examples {
		layout, cache := new(Layout), pages.NewCache()
		n.Text(layout, 0, l.Tokens[1:])
		n.Add(pass, layout, cache, 0)
		p.caches, p.layouts = append(p.caches, cache), append(p.layouts, layout)
		for _, number := range p.b.Rounds[i] {
			r := &l.Rounds[number]
			if r.Root == 0 {
				continue // there are no taps before it
			}
			at := began{i, number, (r.Root - 1) * n.Block, (entries + r.Root - 1) * n.Block}
			blocks = append(blocks, at)
			for k := range min(n.Block, r.Looked) {
				p.look(at.row+k, i, number, r.Root+1+k, 1+k)
			}
		}
		entries += len(l.Tokens) - 1
	}
	c := e.Mat(new(nn.Buffer), entries, n.Hidden)
	n.Condition(e, p.b.Taps(), c)
	x = e.Mat(new(nn.Buffer), entries*n.Block, n.Hidden)
	n.layers(e, pass, c, x, &p.bufs)
	e.Attention(p.last(), n.Layers-1, &pass.Forest, nn.Source{X: x, Norm: &p.last().AttnNorm}, x, &p.bufs.block)
	if !p.b.Alone() {
		e.MLP(p.last(), x, &p.bufs.block)
	}
	return x, blocks
}

// last is the last layer.
func (p *replay) last() *nn.Block { return &p.n.Blocks[p.n.Layers-1] }

// next runs the pass of second blocks.
func (p *replay) next(e *nn.Exec, states nn.Mat, blocks []began) nn.Mat {
	n, pass := p.n, new(Pass)
	p.from, p.rows = nil, nil
	var starts []int32
	sizes := make([]int, len(p.layouts))
	for i, l := range p.layouts {
		sizes[i] = l.Tree.Len()
	}
	for _, at := range blocks {
		l := p.b.Examples[at.example]
		r := &l.Rounds[at.round]
		cut := n.Block
		if p.b.Learns() {
			cut = 1 + (at.round+r.Root)%n.Block
		}
		if r.Looked <= cut || r.Root+cut+1 >= len(l.Tokens) {
			continue
		}
		first := len(starts) * n.Block
		starts = append(starts, int32(at.row+cut-1))
		n.Branch(p.layouts[at.example], at.node+cut-1, l.Tokens[r.Root+cut], n.Block)
		for k := range min(n.Block, r.Looked-cut) {
			p.look(first+k, at.example, at.round, r.Root+cut+1+k, cut+1+k)
		}
	}
	if len(starts) == 0 {
		return nn.Mat{}
	}
	for i, l := range p.layouts {
		n.Add(pass, l, p.caches[i], sizes[i])
	}
	c := e.Mat(new(nn.Buffer), len(starts), n.Hidden)
	e.Gather(states, starts, c)
	x := e.Mat(new(nn.Buffer), len(starts)*n.Block, n.Hidden)
	n.Run(e, pass, c, x, &p.bufs)
	return x
}

// look records a row that a round looks at.
func (p *replay) look(row, example, round, place, step int) {
	p.from = append(p.from, int32(row))
	p.rows = append(p.rows, learn.Row{Example: example, Round: round, At: place, Step: step})
}
