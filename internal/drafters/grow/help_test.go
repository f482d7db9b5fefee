package grow

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/drafters/registry"
	"github.com/grovellm/grove/internal/drafters/sequence"
	"github.com/grovellm/grove/internal/drafters/shortlist"
	"github.com/grovellm/grove/internal/drafters/textrank"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/model/synth"
	"github.com/grovellm/grove/sample"
	"github.com/grovellm/grove/tensor"
	"github.com/grovellm/grove/tree"
	"pgregory.net/rapid"
)

const vocab = 420

// small is the shape of the tests' models.
var small = synth.Shape{
	Name: "small", Arch: "qwen3", Vocab: vocab, Hidden: 32, Layers: 2, Heads: 2, KVHeads: 1, HeadDim: 32, FFN: 64,
	Context: 400, NormEps: 1e-6, RopeBase: 1e4, RopeDims: 32, Tied: true, Tokens: synth.Qwen2,
}

// models are a target, the target rounded to 8 bits, which often agrees with it, and a stranger,
// which does not.
type models struct{ target, rounded, stranger *model.Model }

func openSynth(t testing.TB, s synth.Shape, typ tensor.Type, seed uint64, o model.Options) *model.Model {
	t.Helper()
	path := filepath.Join(t.TempDir(), fmt.Sprintf("%s-%v-%d.gguf", s.Name, typ, seed))
	if err := synth.Write(context.Background(), path, s, synth.Options{Type: typ, Seed: seed}); err != nil {
		t.Fatal(err)
	}
	m, err := model.Open(path, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

func openModels(t testing.TB) models {
	m := models{target: openSynth(t, small, tensor.F32, 1, model.Options{Threads: 2})}
	m.rounded = openSynth(t, small, tensor.Q8_0, 1, model.Options{Workers: m.target})
	m.stranger = openSynth(t, small, tensor.F32, 2, model.Options{Workers: m.target})
	return m
}

// ofModel returns a drafter with a draft model, and listed one whose head computes a shortlist.
func ofModel(shape Shape, m *model.Model, target registry.Target) (draft.Drafter, error) {
	return listed(shape, shortlist.Options{}, m, target)
}

func listed(shape Shape, o shortlist.Options, m *model.Model, target registry.Target) (draft.Drafter, error) {
	lists, err := registry.Shortlists(o, shortlist.Drafter{Pool: m.Pool(), Head: &m.Head, Norm: &m.Norm,
		Vocab: m.Config.Vocab, Tokenizer: m.Tokenizer}, m, target)
	if err != nil {
		return nil, err
	}
	c := Config{Shape: shape, Model: NewDraftModel(m), Target: target.Vocab, Lists: lists,
		Shared: sequence.Shared{Pool: m.Pool(), Vocab: m.Config.Vocab}}
	if s, ok := shape.(withText); ok {
		c.Shape, c.Weights = s.Shape, textrank.NewModel()
	}
	return New(c)
}

// withText is a shape with the modifier +text.
type withText struct{ Shape }

func (m models) draws(r *rapid.T) *model.Model {
	return []*model.Model{m.target, m.rounded, m.rounded, m.stranger}[rapid.IntRange(0, 3).Draw(r, "draft model")]
}

func (m models) as() registry.Target {
	return registry.Target{Vocab: m.target.Config.Vocab, Context: m.target.Context(), Model: m.target}
}

type fataler interface {
	Helper()
	Fatal(...any)
	Fatalf(string, ...any)
}

func must[T any](v T, err error) func(t fataler) T {
	return func(t fataler) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// one computes logits of texts, one row per pass: no trees, no batches.
type one struct {
	m *model.Model
	p *model.Pass
}

func (o *one) logits(t fataler, text []int32) []float32 {
	t.Helper()
	c := o.m.NewCache()
	defer c.Free()
	if err := o.p.Prefill(context.Background(), c, text, true); err != nil {
		t.Fatal(err)
	}
	return slices.Clone(o.p.Logits(0, 0))
}

func newOne(m *model.Model) *one { return &one{m, m.NewPass()} }

func pushAll(p sample.Params, text []int32) *sample.History {
	h := sample.NewHistory(&p)
	for _, token := range text {
		h.Push(token)
	}
	return h
}

// plain decodes n tokens after a prompt and returns the whole text.
func plain(t fataler, m *model.Model, prompt []int32, p sample.Params, n int) []int32 {
	t.Helper()
	s := must(sample.New(p, m.Config.Vocab))(t)
	text := slices.Clone(prompt)
	c := m.NewCache()
	pass := m.NewPass()
	ctx := context.Background()
	defer c.Free()
	for range n {
		if err := pass.Prefill(ctx, c, text[c.Len():], true); err != nil {
			t.Fatal(err)
		}
		text = append(text, s.Sample(pass.Logits(0, 0), len(text), pushAll(p, text)))
	}
	return text
}

// genText draws a text of some length.
func genText(r *rapid.T, name string, least, most int) []int32 {
	n := rapid.IntRange(least, most).Draw(r, name)
	x := rapid.Uint64().Draw(r, name+" tokens")
	text := make([]int32, n)
	for i := range text {
		x = x*6364136223846793005 + 1442695040888963407
		text[i] = int32(x>>33) % vocab
	}
	return text
}

func genParams(r *rapid.T) sample.Params {
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
	if rapid.Bool().Draw(r, "bias") {
		p.LogitBias = map[int32]float32{rapid.Int32Range(0, vocab-1).Draw(r, "biased"): 6}
	}
	return p
}

// genShape draws small options of any shape.
func genShape(r *rapid.T) Shape {
	prob := rapid.SampledFrom([]float32{0, .01, .1, .3, .6})
	switch rapid.IntRange(0, 5).Draw(r, "shape") {
	case 0:
		return &Linear{K: rapid.IntRange(1, 12).Draw(r, "k")}
	case 1:
		return &Fixed{D: rapid.IntRange(1, 6).Draw(r, "d"), B: rapid.IntRange(1, 5).Draw(r, "b"),
			Tau: prob.Draw(r, "tau"),
			N:   rapid.SampledFrom([]int{2, 17, 256}).Draw(r, "n"), Prune: rapid.Bool().Draw(r, "prune")}
	case 2:
		o := DefaultDynaTree()
		o.Adapt = false
		o.TauH, o.TauL = rapid.SampledFrom([]float32{.5, .9, 1}).Draw(r, "tau-h"),
			rapid.SampledFrom([]float32{0, .2, .5}).Draw(r, "tau-l")
		o.BMin = rapid.IntRange(1, 2).Draw(r, "b-min")
		o.BMid = o.BMin + rapid.IntRange(0, 2).Draw(r, "b-mid")
		o.BMax = o.BMid + rapid.IntRange(0, 2).Draw(r, "b-max")
		o.D0 = rapid.IntRange(1, 4).Draw(r, "d0")
		o.DMax = o.D0 + rapid.IntRange(0, 4).Draw(r, "d-max")
		o.BRoot = rapid.IntRange(0, 3).Draw(r, "b-root")
		o.RhoStop = prob.Draw(r, "rho-stop")
		o.RhoDeep = max(o.RhoStop, prob.Draw(r, "rho-deep"))
		o.Tau, o.Prune = prob.Draw(r, "tau"), rapid.Bool().Draw(r, "prune")
		o.NMax = rapid.SampledFrom([]int{2, 17, 256}).Draw(r, "n-max")
		return &o
	case 3:
		return &Dynamic{K: rapid.IntRange(1, 6).Draw(r, "k"), Depth: rapid.IntRange(0, 8).Draw(r, "depth"),
			N: rapid.IntRange(2, 60).Draw(r, "n")}
	}
	best := &BestFirst{Width: rapid.SampledFrom([]int{1, 2, 8}).Draw(r, "width"),
		Branch: rapid.IntRange(1, 7).Draw(r, "branch"), Depth: rapid.IntRange(1, 9).Draw(r, "depth")}
	if rapid.Bool().Draw(r, "text") {
		return withText{best}
	}
	return best
}

// prompted returns a new state that has received a text.
func prompted(t fataler, d draft.Drafter, o draft.Options, text []int32) draft.State {
	t.Helper()
	s := must(d.Begin(o))(t)
	if len(text) > 0 {
		if err := d.Commit([]draft.Rows{{State: s, Tokens: text, Next: -1}}); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func propose(t fataler, d draft.Drafter, s draft.State, root int32, budget, depth int, g draft.Guide) *tree.Tree {
	t.Helper()
	tr := tree.New(root)
	if _, err := d.Propose(context.Background(), []draft.Request{{State: s, Tree: tr, Budget: budget, Depth: depth,
		Guide: g}}); err != nil {
		t.Fatal(err)
	}
	return tr
}

// follow is the target's part of a round if the text to come is known: it returns the rows to commit.
func follow(s draft.State, tr *tree.Tree, text []int32, at int) draft.Rows {
	node, nodes := 0, []int32{0}
	end := at + 1
	for ; end < len(text)-1; end++ {
		node = tr.Child(node, text[end])
		if node < 0 {
			break
		}
		nodes = append(nodes, int32(node))
	}
	return draft.Rows{State: s, Tokens: text[at:end], Tree: tr, Nodes: nodes, Next: text[end]}
}

func sameTree(a, b *tree.Tree) bool {
	return slices.Equal(a.Token, b.Token) && slices.Equal(a.Parent, b.Parent) && slices.Equal(a.LogProb, b.LogProb)
}
