package train

import (
	"context"
	"math"
	"math/rand/v2"

	"github.com/grovellm/grove/nn"
	"github.com/grovellm/grove/shortlist"
)

// eagleLearner is an EAGLE head as a learner.
type eagleLearner struct {
	learning[EagleRecipe, *EagleHead]
	tokens []int32 // the draft vocabulary; nil: all
}

// newEagleLearner opens the job's target and makes the texts that are not there yet.
func newEagleLearner(ctx context.Context, j *Job, r *EagleRecipe, shape Shape, text *corpus) (*eagleLearner, error) {
	l := &eagleLearner{learning: learning[EagleRecipe, *EagleHead]{r: r, job: j}}
	var warm func() error
	if len(r.From) > 0 {
		warm = func() error { return l.head.warm(r.From, r.Seed, l.sample(32), l.short.first) }
	}
	return l, l.open(ctx, r.basis(), shape, text, func(target *Network) (*EagleHead, error) {
		if r.DraftVocab > 0 {
			l.tokens = shortlist.Count(shape.Vocab, text.tok, "the text a head learns from", l.sample(4096)...).Order[:r.DraftVocab]
		}
		return NewEagleHead(r.config(shape), l.tokens, target, l.pool, kindOf(r.Precision))
	}, warm)
}

func (l *eagleLearner) export(dir, name string, text *corpus) error {
	return l.head.export(dir, name, l.tokens, text)
}

// Work counts the target's pass and distributions, and the head's rows.
func (l *eagleLearner) Work() (tokens int, operations float64) {
	c, t, r := l.head.Config(), &l.head.target.Shape, l.r
	q, kv := c.Heads*c.HeadDim, c.KVHeads*c.HeadDim
	layer := 2*c.Hidden*(q+2*kv) + q*c.Hidden + 3*c.Hidden*c.FFN
	later := float64(r.Later*(r.TestSteps-1)) / float64(l.short.length) // rows per token of text
	learn := float64(r.Places)/float64(l.short.length) + later
	said := float64(l.short.length-l.short.first) / float64(l.short.length)
	operations = t.operations(l.short.length)/3 + 6*float64(len(c.Taps)*c.Hidden*c.Hidden) + (1+later)*6*float64(layer) +
		(learn*4+said*2)*float64(c.DraftVocab*c.Hidden)
	return r.Rows * l.short.length, operations
}

// goal weighs the test steps of a lesson: each the mean of its rows, times Decay^step, of all such means the mean.
func (r *EagleRecipe) goal(l *lesson) goal {
	o := goal{hard: 1}
	if r.Version == 2 {
		o.states, o.hard = 1, 0.1
	}
	total := 0.0
	for s := range r.TestSteps {
		if l.rows(s) > 0 {
			total += math.Pow(r.Decay, float64(s))
		}
	}
	for s := range r.TestSteps {
		w := 0.0
		if n := l.rows(s); n > 0 {
			w = math.Pow(r.Decay, float64(s)) / total / float64(n)
		}
		o.scale = append(o.scale, float32(w))
	}
	return o
}

// Gradient is that of a step's texts.
func (l *eagleLearner) Gradient(step int) (nn.Loss, error) {
	r := l.r
	d, first, texts := l.step(step)
	all := lesson{texts: texts, noise: r.noise(step, d.length)}
	for i, text := range texts {
		seed, number := r.Seed<<32+uint64(d.length), uint64(first+i)
		places := drawAnchors(seed, number, text, d.first, d.length-2, r.TestSteps, r.Places, r.Circles)
		all.places = append(all.places, places)
		all.later = append(all.later, spread(places, d.length-1-r.TestSteps, r.Later))
	}
	o := r.goal(&all)
	var total nn.Loss
	for at := 0; at < len(texts); at += r.MicroRows {
		part := all.part(at, at+r.MicroRows)
		total.Add(l.head.gradient(&part, o))
	}
	return total, nil
}

// noise is what EAGLE-2's features are shaken with, so that a head gets used to features that are its own: uniform, of width 0.2 at
// 512 tokens and less in longer texts (reference specblock.md §5.1). EAGLE-3 has none.
func (r *EagleRecipe) noise(step, length int) func(g nn.Mat) {
	if r.Version != 2 {
		return nil
	}
	random := rand.New(rand.NewPCG(r.Seed, uint64(step)))
	width := 0.2 * 512 / float64(length)
	return func(g nn.Mat) {
		for i := range g.Rows {
			for j := range g.Row(i) {
				g.Row(i)[j] += float32((random.Float64() - 0.5) * width)
			}
		}
	}
}

// spread takes n of the places up to last, evenly.
func spread(places []int, last, n int) (some []int) {
	for len(places) > 0 && places[len(places)-1] > last {
		places = places[:len(places)-1]
	}
	n = min(n, len(places))
	for i := range n {
		some = append(some, places[i*len(places)/n])
	}
	return some
}
