// Learning while serving: the head as package learn trains it.

package eagle

import (
	"strings"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/drafters/grow"
	"github.com/grovellm/grove/internal/drafters/learn"
	"github.com/grovellm/grove/internal/heads/headfile"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/nn"
)

// Head and Use make the drafter a learn.Learner.
func (d *drafter) Head() learn.Head { return trainable{d.rows.n} }

func (d *drafter) Use(h learn.Head) { d.rows.n = h.(trainable).Network }

// Chance returns the probability of the target's choice at the node where the walk stopped, if it was expanded.
func (d *drafter) Chance(r *draft.Rows) (p float32, ok bool) {
	return learn.Chance(grow.Candidates(r.State, r.Tokens), r.Next)
}

// trainable is a network as a learn.Head.
type trainable struct{ *Network }

func (h trainable) Rebuild(w model.Weights) (learn.Head, error) {
	n := h.Network
	twin := LayOut(n.Config)
	twin.Tokens, twin.Ends = n.Tokens, n.Ends
	twin.GNorm = n.GNorm
	twin.As = n.As
	return trainable{twin}, twin.Tensors().Load(w)
}

// Last reports whether a tensor is in the last part: the feed-forward half of the layer and the norm
// after it. With more layers it is only the norm, or nothing if the norm is part of the states.
func (h trainable) Last(name string) bool {
	switch {
	case h.Layers == 1:
		return name == "output_norm.weight" || name == NativeNorm+".weight" || strings.HasPrefix(name, "blk.0.ffn_")
	default:
		return name == "output_norm.weight" && h.outNorm == nil
	}
}

func (h trainable) Output() (norm *nn.Norm, head *nn.Linear, tokens []int32) {
	return h.Norm, &h.Network.Head, h.Tokens
}

func (h trainable) Shape() headfile.Shape {
	if h.As != nil {
		return h.As(h.Config)
	}
	return new(h.Config)
}

// Run computes the entries of the texts in one pass, and then, pass by pass, the chains that
// drafting would grow along the text: each row takes the state of the one before as its feature, as
// in the training-time test.
func (h trainable) Run(e *nn.Exec, b *learn.Batch) (x nn.Mat, rows []learn.Row) {
	n := h.Network
	p := replay{b: b}
	taps := b.Taps()
	g := e.Mat(new(nn.Buffer), taps.Rows, n.Hidden)
	n.Features(e, taps, g, &p.bufs)

	var parts []part
	pages := n.Pages()
	for tokens := p.runTexts(&pages); len(tokens) > 0; tokens = p.branches() {
		in, states := g, e.Mat(new(nn.Buffer), len(tokens), n.Hidden)
		if len(parts) > 0 {
			in = e.Mat(new(nn.Buffer), len(tokens), n.Hidden)
			e.Gather(g, p.from, in)
		}
		at := part{states: states, wanted: p.wanted}
		if h.again(b) {
			n.attend(e, p.along.Forest, n.embed(e, tokens, &p.bufs), in, states, &p.bufs)
			at.before = nn.NewMat(states.Rows, states.Cols)
			e.Normalise(nil, states, at.before)
			n.finish(e, p.along.Forest, states, &p.bufs)
		} else {
			n.Run(e, p.along.Forest, tokens, in, states, &p.bufs)
		}
		parts = append(parts, at)
		rows = append(rows, p.rows...)
		g = states
	}
	return h.collect(e, b, parts, len(rows)), rows
}

// again reports whether only the last part learns, and can be computed row by row.
func (h trainable) again(b *learn.Batch) bool { return b.Alone() && h.Last("blk.0.ffn_down.weight") }

// part is the result of a pass.
type part struct {
	before, states nn.Mat // input of the feed-forward half, if it is computed again; output of the layers
	wanted         []int32
}

// collect gathers the wanted rows of all passes. If only the last part learns, it is computed again,
// under the tape.
func (h trainable) collect(e *nn.Exec, b *learn.Batch, parts []part, total int) nn.Mat {
	x := e.Mat(new(nn.Buffer), total, h.Hidden)
	at := 0
	for _, p := range parts {
		src := p.states
		if h.again(b) {
			src = p.before
		}
		e.Gather(src, p.wanted, x.Slice(at, at+len(p.wanted)))
		at += len(p.wanted)
	}
	x = b.Part(e, x)
	if h.again(b) {
		h.finish(e, nil, x, new(Buffers))
	}
	return x
}

// replay lays out the passes of a batch.
type replay struct {
	b      *learn.Batch
	along  Along
	chains []chain

	// The current pass.
	from   []int32 // after the first pass: of each row, its row in the pass before
	wanted []int32 // rows that the rounds look at
	rows   []learn.Row
	bufs   Buffers
}

// chain is a round's rows so far.
type chain struct {
	example, round int
	step           int   // of its last row
	row            int32 // its last, in the pass
}

// runTexts lays out the pass of the entries: entry i of an example has token i+1 and the taps of row i.
func (p *replay) runTexts(pages *nn.Pages) (tokens []int32) {
	var texts [][]int32
	var caches []*nn.Cache // new ones: a tape reads them until it has run backward
	at := 0
	for i, l := range p.b.Examples {
		texts, caches = append(texts, l.Tokens[1:]), append(caches, pages.NewCache())
		for _, number := range p.b.Rounds[i] {
			if r := &l.Rounds[number]; r.Root > 0 {
				p.chains = append(p.chains, chain{i, number, 1, int32(at + r.Root - 1)})
			}
		}
		at += len(l.Tokens) - 1
	}
	p.along.Cache = func(i int) *nn.Cache { return caches[i] }
	p.note()
	return p.along.Begin(texts)
}

// branches lays out a pass with one more row for each round that looked further, as far as the text is known.
func (p *replay) branches() (tokens []int32) {
	p.from = nil // a tape holds on to it
	kept := p.chains[:0]
	for _, c := range p.chains {
		l := p.b.Examples[c.example]
		r := &l.Rounds[c.round]
		if c.step >= r.Looked || r.Root+c.step+1 >= len(l.Tokens) {
			continue
		}
		p.from = append(p.from, c.row)
		kept = append(kept, chain{c.example, c.round, c.step + 1, int32(len(tokens))})
		tokens = append(tokens, l.Tokens[r.Root+c.step])
	}
	p.chains = kept
	p.along.Below(p.from, tokens)
	p.note()
	return tokens
}

// note lists the rows of the pass that rounds look at.
func (p *replay) note() {
	p.wanted, p.rows = nil, nil
	for _, c := range p.chains {
		root := p.b.Examples[c.example].Rounds[c.round].Root
		p.wanted = append(p.wanted, c.row)
		p.rows = append(p.rows, learn.Row{Example: c.example, Round: c.round, At: root + c.step, Step: c.step})
	}
}
