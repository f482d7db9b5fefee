// Package draft trains draft models: shallow copies of their target.
package draft

import (
	"fmt"
	"strings"

	"github.com/grovellm/grove/internal/autograd"
	"github.com/grovellm/grove/internal/kernels/gemm"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/nn"
	"github.com/grovellm/grove/internal/train"
	"github.com/grovellm/grove/tree"
)

// Draft is a draft model in training over a frozen target. Its layers begin as some of the target's
// and learn the target's distributions by distillation on its own text (DistillSpec, arXiv
// 2310.08461). Embedding, last norm and output matrix are the target's and do not change.
type Draft struct {
	train.OverTarget

	model         *model.Model
	forest        nn.Forest
	tree          tree.Tree
	states, asked nn.Buffer
	bufs          nn.BlockBuffers
	soft          autograd.Soft
}

// New returns a draft model whose layers begin as the given layers of a target, counted from 0, and
// whose products run as kind (F32 or BF16).
func New(target *model.Model, from []int, kind gemm.Type) (*Draft, error) {
	d := &Draft{OverTarget: train.NewOverTarget(target, nil, kind)}
	w := train.Trained{Params: d.Params}
	for i, b := range from {
		for _, name := range target.Optional {
			if part, ok := strings.CutPrefix(name, fmt.Sprintf("blk.%d.", b)); ok {
				w.Biases = append(w.Biases, fmt.Sprintf("blk.%d.%s", i, part))
			}
		}
	}
	var err error
	if d.model, err = target.Shallow(len(from), w); err != nil {
		return nil, err
	}
	c := &target.Config
	d.Made(func() nn.Pages { return nn.Pages{Layers: len(from), Heads: c.KVHeads, Dim: c.HeadDim} })
	return d, nil
}

// begin copies the layers of the target.
func (d *Draft) begin(from []int) {
	for i, b := range from {
		train.CopyBlock(d.Params, &d.model.Blocks[i], &d.Target.Blocks[b])
	}
	d.Pack()
}

// loss returns the draft model's loss after some places of texts of one length, whose gradient is
// multiplied by scale if the tape is attached: soft times the divergence from the target's
// distribution there, plus 1-soft times the cross-entropy of the next token.
func (d *Draft) loss(texts [][]int32, places [][]int, soft, scale float32) autograd.Loss {
	n, length := &d.model.Network, len(texts[0])
	first := length
	for _, of := range places {
		first = min(first, of[0])
	}
	d.soft.Temperature = 1
	d.Target.Distributions(&d.soft, d.Target.Read(texts), len(texts), first, length-1, &d.Target.Head)

	targets := autograd.Targets{Soft: &d.soft, Share: soft}
	d.soft.Row = d.soft.Row[:0]
	d.forest.Reset()
	var tokens, rows []int32
	for i, text := range texts {
		tokens = append(tokens, text[:length-1]...)
		d.tree.ResetChain(text[:length-1])
		d.forest.Add(d.Cache(i), &d.tree, 0)
		d.Cache(i).Reserve(0, length-1)
		for _, p := range places[i] {
			rows = append(rows, int32(i*(length-1)+p))
			d.soft.Row = append(d.soft.Row, int32(i*(length-1-first)+p-first))
			targets.Token = append(targets.Token, text[p+1])
		}
	}
	x := d.Exec.Mat(&d.states, len(tokens), n.Config.Hidden)
	_ = n.RunLayers(d.Exec, &d.forest, tokens, x, &d.bufs, nil) // errors are an observer's, and there is none
	y := d.Exec.Mat(&d.asked, len(rows), n.Config.Hidden)
	d.Exec.Gather(x, rows, y)
	return d.Tape.CrossEntropy(nn.Source{X: y, Norm: &n.Norm}, &n.Head, targets, scale)
}
