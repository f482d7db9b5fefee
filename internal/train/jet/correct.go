// DFlash 2 and DSpark: what is trained in addition to a block.

package jet

import (
	"fmt"
	"strings"

	"github.com/grovellm/grove/internal/autograd"
	jethead "github.com/grovellm/grove/internal/drafters/jet"
	"github.com/grovellm/grove/internal/drafters/onepass"
	"github.com/grovellm/grove/internal/drafters/registry"
	"github.com/grovellm/grove/internal/drafters/spark"
	"github.com/grovellm/grove/internal/heads/headfile"
	"github.com/grovellm/grove/internal/kernels/gemm"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/nn"
	"github.com/grovellm/grove/internal/train"
)

// correction scores the tokens of a row given the previous token, which is taken from the text: a
// drafter sees the same as long as its drafts are right.
//
//	DSpark    the loss of the block's logits plus W2·e, and that of the confidence head, which learns the overlap of
//	          a row's distribution with the target's, 1 − ½‖p − q‖₁: how often the row's drafts are accepted
//	DFlash 2  the loss of the block's logits, and the text's cross-entropy over the row's best tokens, scored again
type correction struct {
	net    *spark.Network
	weight float32 // of the loss of the confidence head or the selector

	bufs                       spark.Buffers
	embed, mixed, latent, sure nn.Buffer
	before                     []int32            // for each row, the token before the one that it drafts
	rows                       []autograd.RowLoss // of the last call of loss
	shares, weights            []float32          // of rows, for the confidence head
}

// NewCorrectedHead returns a head of zeros over a target, as NewHead does. weight scales the part
// of the loss that the correction adds.
func NewCorrectedHead(c spark.Config, target *model.Model, kind gemm.Type, weight float32) (*Head, error) {
	h := &Head{OverTarget: train.NewOverTarget(target, c.Taps, kind), skip: 1}
	if c.Anchor {
		h.skip = 0
	}
	n, err := spark.NewNetwork(c, train.Trained{Params: h.Params, Biases: []string{"markov.gate.bias", "confidence.bias"}},
		nil, &target.Network)
	if err != nil {
		return nil, err
	}
	h.net = n.Base
	h.correction = &correction{net: n, weight: weight}
	h.Made(h.net.Pages)
	return h, headfile.Fits(&c, &target.Config)
}

// begin starts the head as a DFlash head: the one that the recipe names, or one with the warm start
// of JetSpec heads. The correction starts by adding nothing.
func (h *Head) begin(r *CorrectedRecipe, texts [][]int32) error {
	for _, p := range h.Params.All() {
		switch {
		case strings.HasSuffix(p.Name, "_conv.base.weight"):
			clear(p.Data)
			for half := range 2 {
				for i := range h.net.Hidden {
					p.Data[half*len(p.Data)/2+i] = 1
				}
			}
		case strings.HasSuffix(p.Name, "_conv.kernel.weight"), strings.HasSuffix(p.Name, ".bias"),
			p.Name == "markov.token.weight", p.Name == "selector.token.weight", p.Name == "confidence.weight":
			clear(p.Data)
		}
	}
	switch {
	case r.start != nil:
		return h.copyFrom(r.start)
	case len(r.From) > 0:
		return h.warm(r.From, texts)
	}
	h.Pack()
	return nil
}

// copyFrom copies the block of a DFlash head of the same shape.
func (h *Head) copyFrom(n *jethead.Network) (err error) {
	params := train.ByName(h.Params)
	n.Tensors().Weights(func(w headfile.Weight) {
		p := params[w.Name]
		if p == nil {
			err = fmt.Errorf("the DFlash head has a tensor %s: want one that uses the target's embeddings and output matrix", w.Name)
			return
		}
		w.Each(func(i int, row []float32) { copy(train.Row(p, i), row) })
	})
	h.Pack()
	return err
}

// run computes the rows of blocks, as the network does, and records which token precedes the one that each drafts.
func (c *correction) run(h *Head, texts [][]int32, anchors [][]int, block int, x nn.Mat) {
	c.bufs.Rows = block
	c.net.Run(h.Exec, &h.branches, h.tokens, x, &c.bufs)
	c.before = c.before[:0]
	for i, text := range texts {
		for _, a := range anchors[i] {
			for k := range block {
				c.before = append(c.before, text[min(max(a, a+k-h.skip), len(text)-1)])
			}
		}
	}
}

// loss is the loss of the rows of src.
func (c *correction) loss(h *Head, src nn.Source, scale float32) autograd.Loss {
	n, by := src.X.Rows, c.net.Correction()
	if cap(c.rows) < n {
		c.rows = make([]autograd.RowLoss, n)
	}
	targets := h.targets
	targets.Rows = c.rows[:n]
	embed := h.Exec.Mat(&c.embed, n, c.net.Rank)
	h.Exec.Embed(by.Before, c.before, embed)
	both := src
	both.With = embed
	latent := embed
	if c.net.Variant == DFlash2 || c.net.Markov == Gated {
		mixed := h.Exec.Mat(&c.mixed, n, c.net.Rank)
		latent = h.Exec.Mat(&c.latent, n, c.net.Rank)
		if c.net.Variant == DFlash2 {
			h.Exec.Linear(src, nn.Proj{Linear: by.Mix, Dst: mixed})
			h.Tape.Product(latent, mixed, embed)
		} else {
			h.Exec.Linear(both, nn.Proj{Linear: by.Mix, Dst: mixed})
			h.Tape.Gate(latent, mixed, embed)
		}
	}
	if c.net.Variant == DFlash2 {
		targets.Selector = &autograd.Selector{Latent: latent, Token: by.Token, Top: c.net.Top, Weight: c.weight}
		return h.Tape.CrossEntropy(src, &h.net.Head, targets, scale)
	}
	targets.Plus = &autograd.Plus{X: latent, By: by.Token}
	l := h.Tape.CrossEntropy(src, &h.net.Head, targets, scale)
	if by.Sure == nil {
		return l
	}
	sure := h.Exec.Mat(&c.sure, n, 1)
	h.Exec.Linear(both, nn.Proj{Linear: by.Sure, Dst: sure})
	c.shares, c.weights = c.shares[:0], c.weights[:0]
	for i, r := range targets.Rows {
		weight := targets.Weight[i]
		if targets.Token[i] < 0 {
			weight = 0
		}
		c.shares, c.weights = append(c.shares, float32(1-r.Divergence)), append(c.weights, weight)
	}
	l.Sum += float64(c.weight) * h.Tape.BinaryCrossEntropy(sure, c.shares, c.weights, c.weight*scale).Sum
	return l
}

// measure makes the head draft after every token that the target generated. It reports, by depth,
// the share of correct first guesses, given the text's tokens before; and τ of decoding the text
// with chains and trees of the drafter that serving uses.
func (c *correction) measure(h *Head, t *train.HeldText, o objective, figure func(string, float64)) (autograd.Loss,
	error) {
	h.Tape.Detach()
	var loss autograd.Loss
	block, depths := h.net.Block, c.net.Depths()
	places := 0
	right := make([]int, depths)
	names := [2]string{"chain", train.HeldTree}
	var rounds, tokens [len(names)]float64
	err := t.Each(train.HeldTexts, train.HeldTokens, block+1, func(text []int32, anchors []int) error {
		x, err := h.forward([][]int32{text}, [][]int{anchors}, block, o)
		if err != nil {
			return err
		}
		loss.Add(h.loss(x, 1))
		places += len(anchors)
		for n := range anchors {
			for d := range depths {
				if c.rows[n*block+h.skip+d].Correct {
					right[d]++
				}
			}
		}
		for i, tree := range []string{onepass.Chain, onepass.DDTree} {
			d, err := spark.New(spark.Options{Tree: tree}, c.net, registry.Target{Vocab: h.net.Vocab,
				Context: h.net.Config.Context, Model: h.Target.Model})
			if err != nil {
				return err
			}
			r, brought, err := train.Rounds(d, h.Target.Taps, h.net.Hidden, text, anchors[0], len(anchors), train.HeldBudget)
			if err != nil {
				return err
			}
			rounds[i] += float64(r)
			tokens[i] += float64(brought)
		}
		return nil
	})
	for i, name := range names {
		figure(name, tokens[i]/rounds[i])
	}
	for d, n := range right {
		figure(fmt.Sprintf("depth %02d", d+1), float64(n)/float64(places))
	}
	return loss, err
}
