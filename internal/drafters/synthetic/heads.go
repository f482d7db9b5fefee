package synthetic

import (
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/grovellm/grove/internal/heads/headfile"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/tensor"
)

// Heads of random numbers fit any target and agree with none. That is enough for laws that hold
// whatever a head predicts.

// Shape draws the shape of a small head of a kind for a target, for one of the kind's drafters. Its
// weights are to be of type t.
func Shape(rng *rand.Rand, kind *headfile.Kind, drafter string, target model.Config, t tensor.Type) headfile.Shape {
	unit, dims := 1, []int{8, 18, 32, 48}
	if t == tensor.Q8_0 {
		unit, dims = 32, []int{32, 64} // rows are a whole number of blocks
	}
	s := kind.New()
	c := s.Common()
	c.Config = model.Config{
		Vocab: target.Vocab, Hidden: target.Hidden, KVHeads: 1 + rng.IntN(2), HeadDim: dims[rng.IntN(len(dims))],
		FFN: unit * (1 + rng.IntN(96/unit)), Context: target.Context, NormEps: 1e-6,
	}
	c.Heads = c.KVHeads * (1 + rng.IntN(3))
	c.Rope = model.RopeConfig{Base: 1e4, Dims: c.HeadDim, Scale: 1}
	c.TargetLayers = target.Layers * rng.IntN(2)
	for range 1 + rng.IntN(4) {
		c.Taps = append(c.Taps, rng.IntN(target.Layers+1))
	}
	if headfile.Shortens(s) {
		c.DraftVocab = target.Vocab
		if rng.IntN(2) == 0 {
			c.DraftVocab = 1 + rng.IntN(target.Vocab)
		}
	}
	s.Draw(rng, drafter, unit)
	if b, ok := s.(headfile.Borrower); ok {
		b.DrawFor(rng, &target, unit)
	}
	if taps := s.DefaultTaps(target.Layers); len(taps) == 1 { // the kind has no choice
		c.Taps = taps
	}
	return s
}

// Config is Shape for the kind whose shapes are C.
func Config[C any, S interface {
	*C
	headfile.Shape
}](rng *rand.Rand, drafter string, target model.Config, t tensor.Type) C {
	return *Shape(rng, S(new(C)).Kind(), drafter, target, t).(S)
}

// Tokens draws the target's tokens for the rows of a head's own output, in ascending order; nil if
// the output covers them all.
func Tokens(s headfile.Shape, seed uint64) []int32 {
	c := s.Common()
	n, vocab := c.Output(), c.Vocab
	if n == vocab {
		return nil
	}
	tokens := make([]int32, n)
	for i, t := range rand.New(rand.NewPCG(seed, 1)).Perm(vocab)[:n] {
		tokens[i] = int32(t)
	}
	slices.Sort(tokens)
	return tokens
}

// Head returns weights that are generated as the head's network requests them. The seed decides whether
// the head has its own output, embedding and biases; with a draft vocabulary it usually has an output.
func Head(s headfile.Shape, t tensor.Type, seed uint64) *Weights {
	c := s.Common()
	shapes := s.Parts().Shapes()
	own := seed%3 == 0 || c.Output() < c.Vocab && seed%16 != 11
	w := &Weights{Type: t, Seed: seed}
	for name, there := range map[string]bool{
		"output.weight": own, "output.bias": own && seed%4 == 3, "token_embd.weight": seed%5 == 0, "fc.bias": seed%6 == 4,
	} {
		if _, may := shapes[name]; may && there {
			w.Extra = append(w.Extra, name)
		}
	}
	for name := range shapes { // biases of products outside the layers
		other := name != "output.bias" && name != "fc.bias" && !strings.HasPrefix(name, "blk.")
		if other && strings.HasSuffix(name, ".bias") && seed%2 == 0 {
			w.Extra = append(w.Extra, name)
		}
	}
	return w
}

// Tensors returns the weights that Head generates from the same arguments, by GGUF name.
func Tensors(s headfile.Shape, t tensor.Type, seed uint64) ([]tensor.Tensor, error) {
	w := Head(s, t, seed)
	err := s.Parts().Load(w)
	return w.Made, err
}
