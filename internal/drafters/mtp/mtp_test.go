package mtp_test

import (
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/grovellm/grove/draft"
	. "github.com/grovellm/grove/internal/drafters/drafttest"
	"github.com/grovellm/grove/internal/drafters/eagle"
	"github.com/grovellm/grove/internal/drafters/grow"
	"github.com/grovellm/grove/internal/drafters/learn"
	"github.com/grovellm/grove/internal/drafters/mtp"
	"github.com/grovellm/grove/internal/drafters/registry"
	"github.com/grovellm/grove/internal/drafters/synthetic"
	"github.com/grovellm/grove/internal/heads/headfile"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/speculate"
	"github.com/grovellm/grove/internal/testing/cases"
	"github.com/grovellm/grove/sample"
	"github.com/grovellm/grove/tensor"
	"pgregory.net/rapid"
)

// config returns a random shape of a head for a target. Its output covers all tokens.
func config(m *model.Model, seed uint64, kind tensor.Type) mtp.Config {
	c := synthetic.Config[mtp.Config](rand.New(rand.NewPCG(seed, 1)), "mtp", m.Config, kind)
	c.DraftVocab = c.Vocab
	return c
}

// tensors returns random weights without an embedding and an output matrix.
func tensors(t Fataler, c *mtp.Config, kind tensor.Type, seed uint64) []tensor.Tensor {
	t.Helper()
	return slices.DeleteFunc(Must(synthetic.Tensors(c, kind, seed))(t), func(w tensor.Tensor) bool {
		return strings.HasPrefix(w.Name, "output.") || strings.HasPrefix(w.Name, "token_embd.")
	})
}

func newDrafter(t Fataler, n *eagle.Network, shape grow.Shape, m *model.Model) draft.Drafter {
	t.Helper()
	return Must(eagle.New(n, shape, false, nil, m.Pool()))(t)
}

func genShape(r *rapid.T) grow.Shape {
	n := func(name string, least, most int) int { return rapid.IntRange(least, most).Draw(r, name) }
	switch n("shape", 0, 3) {
	case 0:
		return &grow.Linear{K: n("k", 1, 5)}
	case 1:
		return &grow.Fixed{D: n("d", 1, 4), B: n("b", 1, 3), Tau: 0.001, N: 40}
	case 2:
		return &grow.BestFirst{Width: n("width", 1, 5), Branch: n("branch", 1, 4), Depth: n("depth", 1, 5)}
	}
	return &grow.Dynamic{K: n("k", 1, 5), Depth: n("depth", 0, 5), N: n("n", 2, 40)}
}

// The probability of every node of a tree is that of the layer's definition, computed in f64 from a folder
// with MiMo's or Qwen's names: the order of the inputs, whether the target's last norm is included, norms
// and rotation agree, and the normalised state of a row is the feature of the rows below it.
func TestNodesAreTheLayers(t *testing.T) {
	m := OpenTarget(t, 400)
	seen := map[bool]bool{}
	cases.Check(t, 50, func(r *rapid.T) {
		seed, shape := rapid.Uint64Range(0, 60).Draw(r, "head"), genShape(r)
		c := config(m, seed, tensor.F32)
		seen[c.StateFirst] = true
		dir := filepath.Join(t.TempDir(), "head")
		if err := headfile.WriteFolder(dir, &c, tensors(r, &c, tensor.F32, seed), nil); err != nil {
			r.Fatal(err)
		}
		n := Must(mtp.Open(registry.Head{Name: dir}, As(m)))(r)
		o := openOracle(r, dir)
		if o.mimo != c.StateFirst {
			r.Fatalf("MiMo's names %v for %+v", o.mimo, c)
		}
		o.last = &m.Norm
		row := make([]float32, c.Hidden)
		for i := range c.Vocab {
			n.Head.W.Row(row, i)
			o.output = append(o.output, widen(row))
		}
		embedding := func(token int32) []float64 {
			n.Embed.Row(row, int(token))
			return widen(row)
		}

		d := newDrafter(r, n, shape, m)
		s := Begin(r, d, draft.Options{}, 1)
		defer s.Close()
		pass := commitPrompt(r, d, s, GenText(r, 1, 12), c.Hidden)
		q := s.Request(40, 6, nil)
		Propose(r, d, q)
		for at := 1; at < len(s.Text); at++ {
			o.row(embedding(s.Text[at]), o.feature(widen(pass.Tap(0, 0, at-1))), at-1)
		}
		var below func(at int, feature []float64, place int)
		below = func(at int, feature []float64, place int) {
			before := len(o.keys)
			state, logs := o.row(embedding(q.Tree.Token[at]), feature, place)
			for _, child := range q.Tree.Children(at, nil) {
				want := logs[q.Tree.Token[child]]
				if got := float64(q.Tree.LogProb[child]); math.Abs(got-want) > 1e-4*(1+math.Abs(want)) {
					r.Fatalf("node %d below %d, head %d: log-probability %g, want %g", child, at, seed, got, want)
				}
				below(int(child), state, place+1)
			}
			o.drop(before)
		}
		below(0, o.feature(widen(pass.Tap(0, 0, len(s.Text)-1))), len(s.Text)-1)
	})
	if len(seen) < 2 {
		t.Error("one of the two orders was not tried")
	}
}

// commitPrompt commits a prompt, and returns the pass that computed it.
func commitPrompt(t Fataler, d draft.Drafter, s *Sequence, text []int32, hidden int) draft.Pass {
	t.Helper()
	rows := s.Prompt(text, hidden, true)
	Commit(t, d, rows)
	return rows.Pass
}

// Law 2 in a loop: a batch decodes to the same tokens as each text alone and without drafting, with
// both orders of inputs and every tree, with and without a controller.
func TestSameTokens(t *testing.T) {
	m := OpenTarget(t, 512)
	prompts := [][]int32{{1, 2, 3}, make([]int32, 70), {9}}
	choice := map[int32]float32{7: 60, 8: 60, 9: 60}
	dynamic, best := grow.DefaultDynamic(), grow.DefaultBestFirst()
	for _, p := range []sample.Params{{}, {Temperature: 1, Seed: 4, LogitBias: choice}} {
		var want [][]int32
		for _, prompt := range prompts {
			out, _ := Generate(t, m, nil, speculate.Options{}, p, [][]int32{prompt})
			want = append(want, out[0])
		}
		for _, first := range []bool{false, true} {
			c := config(m, 3, tensor.F32)
			c.StateFirst = first
			n := Must(mtp.NewNetwork(c, synthetic.Head(&c, tensor.F32, 3), nil, &m.Network))(t)
			for _, shape := range []grow.Shape{&dynamic, &best, &grow.Linear{K: 3}} {
				for _, free := range []bool{false, true} {
					out, stats := Generate(t, m, newDrafter(t, n, shape, m), speculate.Options{Budget: 24, Chunk: 33,
						Uncontrolled: free}, p, prompts)
					for text := range want {
						if !slices.Equal(out[text], want[text]) {
							t.Errorf("state first %v, %T, uncontrolled %v, text %d: %v, want %v", first, shape, free, text,
								out[text], want[text])
						}
					}
					if free && p.Temperature == 1 && shape == &dynamic && stats.Tau() < 1.15 {
						t.Errorf("τ is %.2f where the noise decides between three tokens", stats.Tau())
					}
				}
			}
		}
	}
}

// An exported head, whether or not it has learned, drafts the same when it is opened again as an MTP head.
func TestExports(t *testing.T) {
	m := OpenTarget(t, 4096)
	Exports(t, m.Config.Hidden, func(r *rapid.T) (learn.Learner, func(string) learn.Learner) {
		seed, shape := rapid.Uint64Range(0, 60).Draw(r, "head"), genShape(r)
		kind := rapid.SampledFrom([]tensor.Type{tensor.F32, tensor.BF16, tensor.Q8_0}).Draw(r, "type")
		c := config(m, seed, kind)
		c.Rope.Neighbours = c.Arch == "llama" // the order that files have: another order gives other bits
		drafter := func(n *eagle.Network) learn.Learner { return newDrafter(r, n, shape, m).(learn.Learner) }
		return drafter(Must(mtp.NewNetwork(c, synthetic.Head(&c, kind, seed), nil, &m.Network))(r)),
			func(path string) learn.Learner {
				return drafter(Must(mtp.Open(registry.Head{Name: path}, As(m)))(r))
			}
	})
}
