// Package drafttest has what the tests of drafters with heads share: a small target, a target's
// part in a sequence's life (by rule, not computed), and generators of what a caller may request.
package drafttest

import (
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/grovellm/grove/internal/drafters/registry"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/model/synth"
	_ "github.com/grovellm/grove/internal/testing/testfile" // no waiting for the disk
	"github.com/grovellm/grove/sample"
	"github.com/grovellm/grove/tensor"
	"github.com/grovellm/grove/tree"
	"pgregory.net/rapid"
)

// Vocab is the target's vocabulary.
const Vocab = 420

// Fataler is the common interface of tests and generated cases.
type Fataler interface {
	Helper()
	Fatal(...any)
	Fatalf(string, ...any)
}

// Must returns v if err is nil.
func Must[T any](v T, err error) func(t Fataler) T {
	return func(t Fataler) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// OpenTarget opens a small random model.
func OpenTarget(t testing.TB, context int) *model.Model {
	t.Helper()
	path := filepath.Join(t.TempDir(), "target.gguf")
	shape := synth.Shape{
		Name: "target", Arch: "llama", Vocab: Vocab, Hidden: 32, Layers: 3, Heads: 2, KVHeads: 1, HeadDim: 16, FFN: 64,
		Context: context, NormEps: 1e-6, RopeBase: 1e4, RopeDims: 16, Tokens: synth.Llama3,
	}
	if err := synth.Write(t.Context(), path, shape, synth.Options{Type: tensor.F32, Seed: 1}); err != nil {
		t.Fatal(err)
	}
	m, err := model.Open(path, model.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

// As returns m in the form that drafters know.
func As(m *model.Model) registry.Target {
	return registry.Target{Vocab: m.Config.Vocab, Context: m.Context(), Model: m}
}

// Pass is a target pass over the next rows of a text. Its taps are numbers that depend only on the
// row's place in the text.
type Pass struct {
	Text, At, Hidden int
	Tree             *tree.Tree
}

// liked is the logit of the token that the target prefers.
const liked = 5

// Logits returns those of a target whose preferred token depends only on the row's place and token.
func (p *Pass) Logits(_, node int) []float32 {
	x := make([]float32, Vocab)
	x[((p.At+int(p.Tree.Depth[node]))*7+int(p.Tree.Token[node]))%Vocab] = liked
	return x
}

func (p *Pass) Tap(t, _, node int) []float32 {
	rng := rand.New(rand.NewPCG(uint64(p.Text), uint64((p.At+int(p.Tree.Depth[node]))<<8+t)))
	x := make([]float32, p.Hidden)
	for i := range x {
		x[i] = float32(rng.NormFloat64())
	}
	return x
}

// GenText draws a text of any length: slices that rapid draws are nearly always short.
func GenText(r *rapid.T, least, most int) []int32 {
	n := rapid.IntRange(least, most).Draw(r, "length")
	if rapid.Bool().Draw(r, "long") {
		n = least + most - n
	}
	return rapid.SliceOfN(rapid.Int32Range(0, Vocab-1), n, n).Draw(r, "text")
}

// GenParams draws ways to choose tokens.
func GenParams(r *rapid.T) sample.Params {
	p := sample.Params{Temperature: rapid.SampledFrom([]float32{0, 0, .7, 1}).Draw(r, "temperature"),
		Seed: rapid.Uint64().Draw(r, "seed")}
	p.TopK = rapid.SampledFrom([]int{0, 0, 1, 3, 50}).Draw(r, "top-k")
	p.TopP = rapid.SampledFrom([]float32{0, 0, .9}).Draw(r, "top-p")
	p.MinP = rapid.SampledFrom([]float32{0, 0, .05}).Draw(r, "min-p")
	if rapid.Bool().Draw(r, "penalties") {
		p.RepetitionPenalty = 1.2
		p.FrequencyPenalty = .3
		p.PenaltyLast = rapid.SampledFrom([]int{0, 5}).Draw(r, "last")
	}
	if rapid.Bool().Draw(r, "bias") { // the choice is then among these, for any head and for the target
		p.LogitBias = map[int32]float32{3: 30, 77: 30.5, Vocab - 1: 31}
	}
	return p
}
