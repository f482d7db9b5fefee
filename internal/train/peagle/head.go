// Package peagle trains P-EAGLE heads, and ParallelSpec's.
package peagle

import (
	"github.com/grovellm/grove/internal/autograd"
	"github.com/grovellm/grove/internal/drafters/peagle"
	"github.com/grovellm/grove/internal/heads/headfile"
	"github.com/grovellm/grove/internal/kernels/gemm"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/nn"
	"github.com/grovellm/grove/internal/train"
	"github.com/grovellm/grove/tree"
)

// Head is a P-EAGLE head in training over a frozen target.
//
// Every token of a text except the first is an entry, and some entries have mask rows below them.
// All rows of some texts run in one pass. An entry's row learns the target's next prediction, and
// the d-th mask row below it the target's prediction d places later.
type Head struct {
	train.OverTarget

	net   *peagle.Network
	trees []*tree.Tree // one per text

	forest                nn.Forest
	entries, from, wanted []int32
	taps, x, asked        nn.Buffer
	bufs                  peagle.Buffers

	said    train.Output
	soft    autograd.Soft
	targets autograd.Targets
}

// NewHead returns a head of zeros over a target; its matrix products run as kind (F32 or BF16).
// tokens is its draft vocabulary; nil means all.
func NewHead(c peagle.Config, tokens []int32, target *model.Model, kind gemm.Type) (*Head, error) {
	h := &Head{OverTarget: train.NewOverTarget(target, c.Taps, kind)}
	var err error
	if h.said, err = h.Target.OutputOf(tokens, kind); err != nil {
		return nil, err
	}
	w := train.Trained{Params: h.Params, Output: h.said.W}
	if h.net, err = peagle.NewNetwork(c, w, tokens, &target.Network); err != nil {
		return nil, err
	}
	h.Made(h.net.Base.Pages)
	return h, headfile.Fits(&c, &target.Config)
}

// Config is the head's shape.
func (h *Head) Config() *peagle.Config { return &h.net.Config }

// output returns the states x as the output matrix reads them.
func (h *Head) output(x nn.Mat) nn.Source { return h.net.Base.Output(x) }

// gradient runs some texts of one length, each with its group of rows, and adds scale times the
// loss's gradient to that of the parameters.
func (h *Head) gradient(texts [][]int32, groups []group, scale float32) autograd.Loss {
	h.Tape.Reset()
	h.Tape.Attach()
	x := h.forward(texts, groups)
	l := h.Tape.CrossEntropy(h.output(x), &h.net.Base.Head, h.targets, scale)
	h.Tape.Backward()
	return l
}

// forward computes the states of the groups' rows, in the order of texts and places, each place's
// entry row first. It leaves their targets in h.targets.
func (h *Head) forward(texts [][]int32, groups []group) nn.Mat {
	length := len(texts[0])
	first := length
	for _, g := range groups {
		first = min(first, g.places[0])
	}
	last := h.Target.Read(texts)
	t := &h.targets
	t.Token = t.Token[:0]
	t.Soft = &h.soft
	t.Share = 1
	h.soft.Temperature, h.soft.Row = 1, h.soft.Row[:0]
	h.Target.Distributions(&h.soft, last, len(texts), first, length-1, h.said.Says)
	taps := h.layOut(texts, groups)
	for i, text := range texts {
		for n, p := range groups[i].places {
			for d := range groups[i].depths[n] {
				t.Token = append(t.Token, h.said.Rows.Row(text[p+d+1]))
				h.soft.Row = append(h.soft.Row, int32(i*(length-1-first)+p+d-first))
			}
		}
	}
	all := h.Exec.Mat(&h.x, len(h.from), h.net.Hidden)
	h.net.Run(h.Exec, &h.forest, h.entries, taps, h.from, all, &h.bufs)
	x := h.Exec.Mat(&h.asked, len(h.wanted), h.net.Hidden)
	h.Exec.Gather(all, h.wanted, x)
	return x
}

// layOut makes a chain of every text's entries, attaches the mask rows of its group below them,
// and returns the entries' taps.
func (h *Head) layOut(texts [][]int32, groups []group) nn.Mat {
	length, width := len(texts[0]), h.net.Width()
	taps := h.taps.Mat(len(texts)*(length-1), width)
	h.forest.Reset()
	h.entries = h.entries[:0]
	h.from = h.from[:0]
	h.wanted = h.wanted[:0]
	for i, text := range texts {
		if i == len(h.trees) {
			h.trees = append(h.trees, new(tree.Tree))
		}
		t := h.trees[i]
		cache := h.Cache(i)
		start := len(h.from)
		copy(taps.Data[i*(length-1)*width:], h.Target.Taps.Data[i*length*width:][:(length-1)*width])
		t.ResetChain(text[1:])
		for _, token := range text[1:] {
			h.from = append(h.from, int32(len(h.entries)))
			h.entries = append(h.entries, token)
		}
		for n, p := range groups[i].places {
			h.wanted = append(h.wanted, int32(start+p-1))
			for d := range groups[i].depths[n] - 1 {
				h.wanted = append(h.wanted, int32(len(h.from)))
				h.from = append(h.from, int32(taps.Rows+d))
			}
			h.net.Branch(t, p-1, groups[i].depths[n]-1)
		}
		cache.Reserve(0, t.Len())
		h.forest.Add(cache, t, 0)
	}
	return taps
}
