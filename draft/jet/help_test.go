package jet_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/draft/jet"
	jetsynth "github.com/grovellm/grove/draft/jet/synth"
	"github.com/grovellm/grove/model"
	"github.com/grovellm/grove/model/synth"
	"github.com/grovellm/grove/sample"
	"github.com/grovellm/grove/tensor"
	"github.com/grovellm/grove/tree"
	"pgregory.net/rapid"
)

type fataler interface {
	Helper()
	Fatal(...any)
	Fatalf(string, ...any)
}

const vocab = 420

// openTarget opens a small random model.
func openTarget(t testing.TB, context int) *model.Model {
	t.Helper()
	path := filepath.Join(t.TempDir(), "target.gguf")
	shape := synth.Shape{
		Name: "target", Arch: "llama", Vocab: vocab, Hidden: 32, Layers: 3, Heads: 2, KVHeads: 1, HeadDim: 16, FFN: 64,
		Context: context, NormEps: 1e-6, RopeBase: 1e4, RopeDims: 16, Tokens: synth.Llama3,
	}
	if err := synth.Write(t.Context(), path, shape, synth.Options{Type: tensor.F32, Seed: 1}); err != nil {
		t.Fatal(err)
	}
	m, err := model.Open(path, model.Options{Threads: 2})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

func as(m *model.Model) draft.Target {
	return draft.Target{Vocab: m.Config.Vocab, Context: m.Context(), Model: m}
}

// head is a random head for a target, of random shape.
func head(t fataler, m *model.Model, seed uint64) *jet.Network {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 1))
	kind := []tensor.Type{tensor.F32, tensor.BF16, tensor.Q8_0}[rng.IntN(3)]
	n, err := jetsynth.Network(jetsynth.Config(rng, m.Config, kind), kind, seed, m)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func genHead(r *rapid.T, m *model.Model) *jet.Network {
	return head(r, m, rapid.Uint64Range(0, 40).Draw(r, "head"))
}

// genOptions draws a tree that says all about the distributions, or any of those that do not go by rounds before.
func genOptions(r *rapid.T, n *jet.Network) jet.Options {
	return jet.Options{
		Tree:  rapid.SampledFrom([]string{jet.DDTree, jet.DDTree, jet.AccumLogP, jet.Hybrid, jet.Entropy, jet.Chain}).Draw(r, "tree"),
		Width: rapid.IntRange(1, 9).Draw(r, "width"), Depth: rapid.IntRange(0, n.Block-1).Draw(r, "depth"), Lambda: 0.5,
	}
}

func newDrafter(t fataler, o jet.Options, n *jet.Network, m *model.Model) draft.Drafter {
	t.Helper()
	d, err := jet.New(o, n, as(m))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// pass is a target pass over the next rows of a text, whose taps are numbers that only the row's place in the text decides.
type pass struct {
	text, at, hidden int
	tree             *tree.Tree
}

// Logits are those of a target that likes what its row's place and token decide.
func (p *pass) Logits(_, node int) []float32 {
	x := make([]float32, vocab)
	x[(p.tree.Position(node, p.at)*7+int(p.tree.Token[node]))%vocab] = 5
	return x
}

func (p *pass) Tap(t, _, node int) []float32 {
	rng := rand.New(rand.NewPCG(uint64(p.text), uint64(p.tree.Position(node, p.at)<<8+t)))
	x := make([]float32, p.hidden)
	for i := range x {
		x[i] = float32(rng.NormFloat64())
	}
	return x
}

// told is a sequence as its target sees it: the rows committed, and the last token, whose row is not.
type told struct {
	draft.State
	text []int32
	root int32
	id   int // of the text, for its taps
}

// prompt is the rows of a chain that are committed as a prompt's; without a pass they came with a cache.
func (s *told) prompt(tokens []int32, hidden int, computed bool) draft.Rows {
	r := draft.Rows{State: s.State, Tokens: tokens, Next: -1}
	if computed {
		r.Tree = tree.Chain(tokens)
		for i := range tokens {
			r.Nodes = append(r.Nodes, int32(i))
		}
		r.Pass = &pass{s.id, len(s.text), hidden, r.Tree}
	}
	s.text = append(s.text, tokens...)
	return r
}

// accept is the rows of a path of the tree down to node, and the token that follows.
func (s *told) accept(t *tree.Tree, node int, next int32, hidden int) draft.Rows {
	r := draft.Rows{State: s.State, Tree: t, Nodes: t.Path(node, nil), Next: next, Pass: &pass{s.id, len(s.text), hidden, t}}
	for _, i := range r.Nodes {
		r.Tokens = append(r.Tokens, t.Token[i])
	}
	s.text = append(s.text, r.Tokens...)
	s.root = next
	return r
}

func begin(t fataler, d draft.Drafter, o draft.Options, id int) *told {
	t.Helper()
	s, err := d.Begin(o)
	if err != nil {
		t.Fatal(err)
	}
	return &told{State: s, id: id, root: int32(id)}
}

func commit(t fataler, d draft.Drafter, rows ...draft.Rows) {
	t.Helper()
	if err := d.Commit(rows); err != nil {
		t.Fatal(err)
	}
}

func (s *told) request(budget, depth int, g draft.Guide) draft.Request {
	return draft.Request{State: s.State, Tree: tree.New(s.root), Budget: budget, Depth: depth, Guide: g}
}

func propose(t fataler, d draft.Drafter, requests ...draft.Request) {
	t.Helper()
	if err := d.Propose(context.Background(), requests); err != nil {
		t.Fatal(err)
	}
}

func same(a, b *tree.Tree) error {
	if !slices.Equal(a.Token, b.Token) || !slices.Equal(a.Parent, b.Parent) || !slices.Equal(a.LogProb, b.LogProb) {
		return fmt.Errorf("trees differ: %v %v %v, %v %v %v", a.Token, a.Parent, a.LogProb, b.Token, b.Parent, b.LogProb)
	}
	return nil
}

func genText(r *rapid.T, least, most int) []int32 {
	return rapid.SliceOfN(rapid.Int32Range(0, vocab-1), least, most).Draw(r, "text")
}

func genParams(r *rapid.T) sample.Params {
	p := sample.Params{Temperature: rapid.SampledFrom([]float32{0, 0, .7, 1}).Draw(r, "temperature"), Seed: rapid.Uint64().Draw(r, "seed")}
	p.TopK = rapid.SampledFrom([]int{0, 0, 1, 3, 50}).Draw(r, "top-k")
	p.TopP = rapid.SampledFrom([]float32{0, 0, .9}).Draw(r, "top-p")
	p.MinP = rapid.SampledFrom([]float32{0, 0, .05}).Draw(r, "min-p")
	if rapid.Bool().Draw(r, "penalties") {
		p.RepetitionPenalty, p.FrequencyPenalty, p.PenaltyLast = 1.2, .3, rapid.SampledFrom([]int{0, 5}).Draw(r, "last")
	}
	if rapid.Bool().Draw(r, "bias") { // the choice is then between these, for any head as for the target
		p.LogitBias = map[int32]float32{3: 30, 77: 30.5, vocab - 1: 31}
	}
	return p
}

func sameShape(a, b *tree.Tree) error {
	if !slices.Equal(a.Token, b.Token) || !slices.Equal(a.Parent, b.Parent) {
		return fmt.Errorf("trees differ: %v %v, %v %v", a.Token, a.Parent, b.Token, b.Parent)
	}
	return nil
}

func exp(x float32) float32 { return float32(math.Exp(float64(x))) }
