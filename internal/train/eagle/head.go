// Package eagle trains EAGLE heads, and the routers of their shortlists.
package eagle

import (
	"github.com/grovellm/grove/internal/autograd"
	"github.com/grovellm/grove/internal/drafters/eagle"
	"github.com/grovellm/grove/internal/heads/headfile"
	"github.com/grovellm/grove/internal/kernels/gemm"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/nn"
	"github.com/grovellm/grove/internal/train"
)

// Head is an EAGLE head in training over a frozen target (EAGLE-3, arXiv 2503.01840: training-time test).
//
// Every token of a text except the first is an entry: its embedding, and the feature of the token
// before it, computed from the target's taps. An entry's row learns what the target predicts next;
// all entries of some texts run in one pass. Then, as in drafting, more rows follow below it, one
// pass each, for the text's next tokens; each takes the state of the row before it as its feature.
// Such a row sees the text's entries up to the one that it descends from, and the rows between:
// this is the training-time test.
type Head struct {
	train.OverTarget

	net   *eagle.Network
	along eagle.Along

	passes []*pass
	used   int // number of passes since begin
	bufs   eagle.Buffers

	features, asked, wanted, logits nn.Buffer

	said train.Output
	soft autograd.Soft
}

// pass is the memory of one pass: its states last until the next pass has read them.
type pass struct{ input, states nn.Buffer }

// NewHead returns a head of zeros over a target; its matrix products run as kind (F32 or BF16). tokens is its
// draft vocabulary; nil means all. With own, its output matrix is its own and trained, else the target's.
func NewHead(c eagle.Config, tokens []int32, own bool, target *model.Model, kind gemm.Type) (*Head, error) {
	h := &Head{OverTarget: train.NewOverTarget(target, c.Taps, kind)}
	var err error
	if h.said, err = h.Target.OutputOf(tokens, kind); err != nil {
		return nil, err
	}
	w := train.Trained{Params: h.Params, Output: h.said.W, Own: own}
	if h.net, err = eagle.NewNetwork(c, w, tokens, &target.Network); err != nil {
		return nil, err
	}
	h.Made(h.net.Pages)
	h.along.Cache = h.Cache
	return h, headfile.Fits(&c, &target.Config)
}

// Config is the head's shape.
func (h *Head) Config() *eagle.Config { return &h.net.Config }

// begin runs the target over texts of one length L, and the head over their entries: row (L−1)·i +
// p − 1 of x is the state of the entry for token p of text i. last holds the target's rows before
// its last norm, features those of all tokens. noise, which may be nil, changes the features
// before the head reads them.
func (h *Head) begin(texts [][]int32, noise func(g nn.Mat, length int)) (last, features, x nn.Mat) {
	length := len(texts[0])
	last = h.Target.Read(texts)
	features = h.Exec.Mat(&h.features, last.Rows, h.net.Hidden)
	h.net.Features(h.Exec, h.Target.Taps, features, &h.bufs)

	h.used = 0
	read := make([][]int32, len(texts))
	var of []int32
	for i, text := range texts {
		read[i] = text[1:]
		for p := range length - 1 {
			of = append(of, int32(i*length+p))
		}
	}
	shake := func(g nn.Mat) {
		if noise != nil {
			noise(g, length)
		}
	}
	return last, features, h.run(h.along.Begin(read), features, of, shake)
}

// grow runs one new row below each row of the last pass that from lists, in that order. tokens are
// the new rows' tokens; x is the last pass's states.
func (h *Head) grow(x nn.Mat, from, tokens []int32) nn.Mat {
	h.along.Below(from, tokens)
	return h.run(tokens, x, from, nil)
}

// run computes the rows of the pass that was laid out; their features are the rows of g that of lists.
func (h *Head) run(tokens []int32, g nn.Mat, of []int32, noise func(g nn.Mat)) nn.Mat {
	if h.used == len(h.passes) {
		h.passes = append(h.passes, new(pass))
	}
	p := h.passes[h.used]
	h.used++
	in := h.Exec.Mat(&p.input, len(tokens), h.net.Hidden)
	h.Exec.Gather(g, of, in)
	if noise != nil {
		noise(in)
	}
	x := h.Exec.Mat(&p.states, len(tokens), h.net.Hidden)
	h.net.Run(h.Exec, h.along.Forest, tokens, in, x, &h.bufs)
	return x
}
