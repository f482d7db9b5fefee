// Package jet trains block heads: JetSpec's, DFlash's, DFlash 2's and DSpark's.
package jet

import (
	"fmt"
	"math"
	"slices"

	"github.com/grovellm/grove/internal/autograd"
	"github.com/grovellm/grove/internal/drafters/jet"
	"github.com/grovellm/grove/internal/heads/headfile"
	"github.com/grovellm/grove/internal/kernels/gemm"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/nn"
	"github.com/grovellm/grove/internal/train"
	"github.com/grovellm/grove/tree"
)

// Head is a block head in training over a frozen target (JetSpec §2.3).
//
// For every text the target computes, once, the taps of all tokens, and the distributions of the
// places from the first anchor on. Anchors are drawn at random. Each gets a block that branches off
// the text just before the anchor, and all blocks of some texts run in one pass. Row k of a block
// learns the target's prediction k−1 places after the anchor, or for DSpark k places after it. Rows
// beyond the text have no loss, nor has row 0 except for DSpark.
type Head struct {
	train.OverTarget

	net        *jet.Network
	correction *correction  // for DFlash 2 and DSpark, else nil
	skip       int          // rows of a block that draft nothing: the anchor's, except for DSpark
	trees      []*tree.Tree // one per text

	chains, branches nn.Forest
	x                nn.Buffer
	bufs             jet.Buffers
	tokens           []int32 // of the blocks
	soft             autograd.Soft
	targets          autograd.Targets
}

// NewHead returns a head of zeros over a target; its matrix products run as kind (F32 or BF16).
func NewHead(c jet.Config, target *model.Model, kind gemm.Type) (*Head, error) {
	h := &Head{OverTarget: train.NewOverTarget(target, c.Taps, kind), skip: 1}
	var err error
	if h.net, err = jet.NewNetwork(c, train.Trained{Params: h.Params}, nil, &target.Network); err != nil {
		return nil, err
	}
	h.Made(h.net.Pages)
	return h, headfile.Fits(&c, &target.Config)
}

// Config is the head's shape.
func (h *Head) Config() *jet.Config { return &h.net.Config }

// objective is what the rows of blocks learn.
type objective struct {
	share       float32 // of the divergence; the rest is cross-entropy against the text
	divergence  autograd.Divergence
	temperature float32
	gamma       float64 // depth k has the weight exp(−(k−1)/gamma); 0: equal weights
}

// weight is the weight of depth k, counted from 1.
func (o *objective) weight(k int) float32 {
	if o.gamma == 0 {
		return 1
	}
	return float32(math.Exp(-float64(k-1) / o.gamma))
}

// total is the weight of all rows of one text's blocks, each of which drafts depths tokens.
func (o *objective) total(anchors []int, depths, length int) float64 {
	sum := 0.0
	for _, a := range anchors {
		for k := 1; k <= depths && a+k < length; k++ {
			sum += float64(o.weight(k))
		}
	}
	return sum
}

// gradient runs blocks at the anchors of some texts of one length, and adds scale times the loss's
// gradient to that of the parameters.
func (h *Head) gradient(texts [][]int32, anchors [][]int, block int, o objective, scale float32) (autograd.Loss, error) {
	h.Tape.Reset()
	h.Tape.Attach()
	x, err := h.forward(texts, anchors, block, o)
	if err != nil {
		return autograd.Loss{}, err
	}
	l := h.loss(x, scale)
	h.Tape.Backward()
	return l, nil
}

// loss is the loss of the rows that forward computed.
func (h *Head) loss(x nn.Mat, scale float32) autograd.Loss {
	src := nn.Source{X: x, Norm: &h.net.Norm}
	if h.correction != nil {
		return h.correction.loss(h, src, scale)
	}
	return h.Tape.CrossEntropy(src, &h.net.Head, h.targets, scale)
}

// forward runs the blocks up to the last norm's input. It returns a block's rows for each anchor,
// in the order of texts and anchors, and leaves their targets in h.targets.
func (h *Head) forward(texts [][]int32, anchors [][]int, block int, o objective) (nn.Mat, error) {
	length := len(texts[0])
	for i, as := range anchors {
		if len(as) == 0 || !slices.IsSorted(as) || as[0] < 1 || as[len(as)-1] > length-2 {
			return nn.Mat{}, fmt.Errorf("text %d: anchors at %v: want some, ascending, each after the first token and before the last of %d", i, as, length)
		}
	}
	h.teach(texts, anchors, block, o)
	h.layOut(texts, anchors, block)
	h.net.Context(h.Exec, &h.chains, h.Target.Taps, &h.bufs)
	x := h.Exec.Mat(&h.x, len(h.tokens), h.net.Hidden)
	if h.correction != nil {
		h.correction.run(h, texts, anchors, block, x)
	} else {
		h.net.Run(h.Exec, &h.branches, h.tokens, x, &h.bufs)
	}

	t := &h.targets
	t.Token, t.Weight = t.Token[:0], t.Weight[:0]
	for i, text := range texts {
		for _, a := range anchors[i] {
			for k := range block {
				id, depth := int32(-1), k+1-h.skip
				if depth > 0 && a+depth < length {
					id = text[a+depth]
				}
				t.Token, t.Weight = append(t.Token, id), append(t.Weight, o.weight(depth))
			}
		}
	}
	return x, nil
}

// teach runs the target over the texts, for their taps and for the distributions of the
// places that some row may predict.
func (h *Head) teach(texts [][]int32, anchors [][]int, block int, o objective) {
	length := len(texts[0])
	first := length
	for _, as := range anchors {
		first = min(first, as[0])
	}
	x := h.Target.Read(texts)

	h.targets.Soft, h.targets.Share = nil, o.share
	if o.share == 0 {
		return
	}
	h.targets.Soft = &h.soft
	s := &h.soft
	s.Divergence = o.divergence
	s.Temperature = o.temperature
	s.Row = s.Row[:0]
	places := length - 1 - first // the last token's distribution is for the token after the text
	h.Target.Distributions(s, x, len(texts), first, length-1, &h.net.Head)
	for i := range texts {
		for _, a := range anchors[i] {
			for k := range block {
				s.Row = append(s.Row, int32(i*places+min(max(a+k-h.skip-first, 0), places-1)))
			}
		}
	}
}

// layOut makes a chain of every text, and attaches a block of the given length below the token
// before each of its anchors.
func (h *Head) layOut(texts [][]int32, anchors [][]int, block int) {
	h.chains.Reset()
	h.branches.Reset()
	h.tokens = h.tokens[:0]
	shape := h.net.Config
	shape.Block = block
	for i, text := range texts {
		if i == len(h.trees) {
			h.trees = append(h.trees, new(tree.Tree))
		}
		t, cache := h.trees[i], h.Cache(i)
		t.ResetChain(text)
		h.chains.Add(cache, t, 0)
		for _, a := range anchors[i] {
			shape.Branch(t, a-1, text[a])
		}
		cache.Reserve(0, t.Len())
		h.branches.Add(cache, t, len(text))
		h.tokens = append(h.tokens, t.Token[len(text):]...)
	}
}
