package train

import (
	"context"

	"github.com/grovellm/grove/nn"
)

// headLearner is a block head as a learner.
type headLearner struct {
	learning[HeadRecipe, *BlockHead]
	anchors [][]int // of a step
}

// newHeadLearner opens the job's target and makes the texts that are not there yet.
func newHeadLearner(ctx context.Context, j *Job, r *HeadRecipe, shape Shape, mask int32, text *corpus) (*headLearner, error) {
	l := &headLearner{learning: learning[HeadRecipe, *BlockHead]{r: r, job: j}}
	var warm func() error
	if len(r.From) > 0 {
		warm = func() error { return l.head.warm(r.From, l.examples()) }
	}
	return l, l.open(ctx, r.basis(), shape, text, func(target *Network) (*BlockHead, error) {
		return NewBlockHead(r.config(shape, mask), target, l.pool, kindOf(r.Precision))
	}, warm)
}

func (l *headLearner) export(dir, name string, text *corpus) error {
	return l.head.export(dir, name, text)
}

// Work counts the target's pass and distributions, the context's products and the blocks.
func (l *headLearner) Work() (tokens int, operations float64) {
	c, t := l.head.Config(), &l.head.target.Shape
	q, kv := c.Heads*c.HeadDim, c.KVHeads*c.HeadDim
	layer := c.Hidden*(q+2*kv) + q*c.Hidden + 3*c.Hidden*c.FFN
	context := len(c.Taps)*c.Hidden*c.Hidden + c.Layers*c.Hidden*2*kv
	blocks := float64(l.r.Anchors*c.Block) / float64(l.short.length) // block rows per token of text
	operations = t.operations(l.short.length)/3 + 6*float64(context) + blocks*(6*float64(c.Layers*layer)+4*float64(c.Vocab*c.Hidden))
	return l.r.Rows * l.short.length, operations
}

// Gradient is that of a step's texts.
func (l *headLearner) Gradient(step int) (nn.Loss, error) {
	r, o := l.r, l.r.objective()
	d, first, texts := l.step(step)
	block, anchors := r.Block, r.Anchors
	if float64(step) < r.ShortUntil*float64(r.Steps) {
		block, anchors = r.ShortBlock, anchors*r.Block/r.ShortBlock // as many rows
	}
	l.anchors = l.anchors[:0]
	weight := 0.0
	for i, text := range texts {
		l.anchors = append(l.anchors, drawAnchors(r.Seed<<32+uint64(d.length), uint64(first+i), text, d.first, d.length-2, block, anchors, r.Circles))
		weight += o.total(l.anchors[i], block, d.length)
	}
	var total nn.Loss
	for at := 0; at < len(texts); at += r.MicroRows {
		part, err := l.head.gradient(texts[at:at+r.MicroRows], l.anchors[at:at+r.MicroRows], block, o, float32(1/weight))
		if err != nil {
			return nn.Loss{}, err
		}
		total.Add(part)
	}
	return total, nil
}
