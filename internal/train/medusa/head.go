// Package medusa trains Medusa heads (Medusa-1).
package medusa

import (
	"math"
	"math/rand/v2"
	"strings"

	"github.com/grovellm/grove/internal/autograd"
	"github.com/grovellm/grove/internal/drafters/medusa"
	"github.com/grovellm/grove/internal/heads/headfile"
	"github.com/grovellm/grove/internal/kernels/gemm"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/nn"
	"github.com/grovellm/grove/internal/train"
)

// Heads is a set of Medusa heads in training over a frozen target. A place of a text is a root: the heads
// read the target's row before it, and head i, counted from 0, learns the token i+1 places after it.
type Heads struct {
	train.OverTarget

	net          *medusa.Network
	read, states nn.Buffer
	bufs         medusa.Buffers
	soft         autograd.Soft
}

// weights are trained weights, including biases of residual blocks.
type weights struct{ train.Trained }

func (w weights) Has(name string) bool {
	return strings.HasSuffix(name, ".bias") && !strings.HasSuffix(name, "output.bias") || w.Trained.Has(name)
}

// NewHeads returns heads of zeros over a target; their matrix products run as kind (F32 or BF16).
func NewHeads(c medusa.Config, target *model.Model, kind gemm.Type) (*Heads, error) {
	h := &Heads{OverTarget: train.NewOverTarget(target, c.Taps, kind)}
	var err error
	if h.net, err = medusa.NewNetwork(c, weights{train.Trained{Params: h.Params}}, nil, &target.Network); err != nil {
		return nil, err
	}
	h.Made(func() nn.Pages { return nn.Pages{} }) // Medusa heads cache nothing
	return h, headfile.Fits(&c, &target.Config)
}

// begin starts the heads as the authors' code does: residual blocks add next to nothing, since
// their matrices are zero and their biases at most 1/√width, and output matrices are the target's.
func (h *Heads) begin(seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 0))
	width := 1 / math.Sqrt(float64(h.net.Hidden))
	for _, p := range h.Params.All() {
		switch {
		case p.Vector:
			for i := range p.Data {
				p.Data[i] = float32((2*rng.Float64() - 1) * width)
			}
		case strings.HasSuffix(p.Name, ".output.weight"):
			for i := range p.Rows {
				h.Target.Head.W.Row(p.Mat().Row(i), i)
			}
		default:
			clear(p.Data)
		}
	}
	h.Pack()
}

// goal is what the heads learn.
type goal struct {
	soft  bool    // the target's distributions; else the text
	decay float64 // head i has the weight decay^i
}

// gradient computes the heads at places of some texts of one length and returns the loss. If the
// tape is attached, it adds scale times the loss's gradient to that of the parameters.
func (h *Heads) gradient(texts [][]int32, places [][]int, o goal, scale float32) (all autograd.Loss) {
	x := h.target(texts, places, o)
	y := h.run(x)
	length := len(texts[0])
	for i := range h.net.Depths {
		t := autograd.Targets{Token: make([]int32, 0, x.Rows), Weight: make([]float32, x.Rows)}
		h.soft.Row = h.soft.Row[:0]
		first := firstOf(places)
		for k, text := range texts {
			for _, p := range places[k] {
				token := int32(-1)
				if p+1+i < length {
					token = text[p+1+i]
				}
				t.Token = append(t.Token, token)
				h.soft.Row = append(h.soft.Row, int32(k*(length-1-first)+min(p+i, length-2)-first))
			}
		}
		for j := range t.Weight {
			t.Weight[j] = float32(math.Pow(o.decay, float64(i)))
		}
		if o.soft {
			t.Soft, t.Share = &h.soft, 1
		}
		all.Add(h.Tape.CrossEntropy(nn.Source{X: y.Slice(i*x.Rows, (i+1)*x.Rows)}, h.net.Matrix(i), t, scale))
	}
	return all
}

// target runs the target over texts, and returns the rows before the places, after the
// target's last norm. If distributions are wanted, it fills h.soft with the target's
// after these and later rows.
func (h *Heads) target(texts [][]int32, places [][]int, o goal) nn.Mat {
	read, length := h.Target.Read(texts), len(texts[0])
	if o.soft {
		h.soft.Temperature = 1
		h.Target.Distributions(&h.soft, read, len(texts), firstOf(places), length-1, &h.Target.Head)
	}
	rows := 0
	for _, of := range places {
		rows += len(of)
	}
	x, at := h.read.Mat(rows, h.net.Hidden), 0
	for i, of := range places {
		for _, p := range of {
			copy(x.Row(at), read.Row(i*length+p-1))
			at++
		}
	}
	plain := nn.NewExec(h.Exec.Pool()) // not recorded on the tape
	plain.Normalise(&h.net.Norm, x, x)
	return x
}

// run computes the input of the heads' output matrices.
func (h *Heads) run(x nn.Mat) nn.Mat {
	y := h.Exec.Mat(&h.states, h.net.Depths*x.Rows, h.net.Hidden)
	h.net.Run(h.Exec, x, y, &h.bufs)
	return y
}

// firstOf returns the first place in any of the texts.
func firstOf(places [][]int) int {
	first := math.MaxInt
	for _, of := range places {
		if len(of) > 0 {
			first = min(first, of[0])
		}
	}
	return first
}
