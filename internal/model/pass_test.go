package model_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/model/synth"
	"github.com/grovellm/grove/internal/nn"
	"github.com/grovellm/grove/tensor"
	"github.com/grovellm/grove/tree"
)

// open writes the named random model and opens it.
func open(t testing.TB, shape string, typ tensor.Type, o model.Options) *model.Model {
	t.Helper()
	s, err := synth.Lookup(shape)
	if err != nil {
		t.Fatal(err)
	}
	return openShape(t, s, typ, o)
}

func openShape(t testing.TB, s synth.Shape, typ tensor.Type, o model.Options) *model.Model {
	t.Helper()
	return openFile(t, writeShape(t, s, typ), o)
}

func writeShape(t testing.TB, s synth.Shape, typ tensor.Type) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), s.Name+".gguf")
	if err := synth.Write(context.Background(), path, s, synth.Options{Type: typ, Seed: 7}); err != nil {
		t.Fatal(err)
	}
	return path
}

func openFile(t testing.TB, path string, o model.Options) *model.Model {
	t.Helper()
	m, err := model.Open(path, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

func randomTokens(r *rand.Rand, m *model.Model, n int) []int32 {
	ids := make([]int32, n)
	for i := range ids {
		ids[i] = r.Int32N(int32(m.Config.Vocab))
	}
	return ids
}

func sameBits(a, b []float32) bool {
	for i := range a {
		if math.Float32bits(a[i]) != math.Float32bits(b[i]) {
			return false
		}
	}
	return len(a) == len(b)
}

// A committed path leaves the same cache as a pass over only its tokens, whatever the tree around
// it was. A row's taps are those of its own text.
func TestCommittedPathIsAsIfAlone(t *testing.T) {
	ctx := context.Background()
	for _, shape := range []string{"tiny-llama3", "tiny-qwen2", "tiny-qwen3", "tiny-gptneox"} {
		t.Run(shape, func(t *testing.T) {
			m := open(t, shape, tensor.BF16, model.Options{Threads: 2})
			r := rand.New(rand.NewPCG(1, 2))
			prompt := randomTokens(r, m, 45)
			p, alone := m.NewPass(), m.NewPass()
			c := m.NewCache()
			if err := p.Prefill(ctx, c, prompt, false); err != nil {
				t.Fatal(err)
			}
			text := prompt
			for range 6 {
				tr := tree.New(r.Int32N(int32(m.Config.Vocab)))
				for range r.IntN(20) {
					tr.Append(r.IntN(tr.Len()), r.Int32N(int32(m.Config.Vocab)), 0)
				}
				all := make([]int32, tr.Len())
				for i := range all {
					all[i] = int32(i)
				}
				taps := []int{0, 2, m.Config.Layers}
				if err := p.Run(ctx, []model.Rows{{Cache: c, Tree: tr, Logits: all}}, taps); err != nil {
					t.Fatal(err)
				}
				node := r.IntN(tr.Len())
				path := tr.Path(node, nil)
				for _, v := range path {
					text = append(text, tr.Token[v])
				}
				fresh := m.NewCache()
				if err := alone.Prefill(ctx, fresh, text[:len(text)-1], false); err != nil {
					t.Fatal(err)
				}
				last := []model.Rows{{Cache: fresh, Tree: tree.Chain(text[len(text)-1:]), Logits: []int32{0}}}
				if err := alone.Run(ctx, last, taps); err != nil {
					t.Fatal(err)
				}
				if !sameBits(p.Logits(0, node), alone.Logits(0, 0)) {
					t.Fatalf("node %d of %d: logits differ from the text's own", node, tr.Len())
				}
				for i := range taps {
					if !sameBits(p.Tap(i, 0, node), alone.Tap(i, 0, 0)) {
						t.Fatalf("node %d of %d: tap at layer %d differs from the text's own", node, tr.Len(), taps[i])
					}
				}
				if err := c.Commit(path); err != nil {
					t.Fatal(err)
				}
				if c.Len() != len(text) {
					t.Fatalf("cache holds %d rows of a text of %d", c.Len(), len(text))
				}
			}
		})
	}
}

// An invalid pass is refused with a reason, and leaves the cache as it was.
func TestRunRefuses(t *testing.T) {
	m := open(t, "tiny-qwen3", tensor.F32, model.Options{Threads: 1, Context: 16})
	other := open(t, "tiny-qwen3", tensor.F32, model.Options{Threads: 1})
	p, c := m.NewPass(), m.NewCache()
	ctx := context.Background()
	if err := p.Prefill(ctx, c, []int32{1, 2, 3}, true); err != nil {
		t.Fatal(err)
	}
	deep := tree.Chain(make([]int32, 14))
	for want, rows := range map[string][]model.Rows{
		"without sequences":  {},
		"no cache":           {{Tree: tree.New(1)}},
		"no rows":            {{Cache: c, Tree: tree.Chain(nil)}},
		"another model":      {{Cache: other.NewCache(), Tree: tree.New(1)}},
		"shares its cache":   {{Cache: c, Tree: tree.New(1)}, {Cache: c, Tree: tree.New(1)}},
		"not in the vocabul": {{Cache: c, Tree: tree.New(-1)}},
		"of context":         {{Cache: c, Tree: deep}},
		"asks for logits":    {{Cache: c, Tree: tree.New(1), Logits: []int32{1}}},
	} {
		err := p.Run(ctx, rows, nil)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want an error with %q, got %v", want, err)
		}
	}
	var full *model.ContextError
	if err := p.Prefill(ctx, c, make([]int32, 14), true); !errors.As(err, &full) || full.Need != 17 || full.Limit != 16 {
		t.Errorf("a prompt beyond the context: %v", err)
	}
	if err := p.Run(ctx, []model.Rows{{Cache: c, Tree: tree.New(1)}}, []int{99}); err == nil {
		t.Error("a tap beyond the layers: no error")
	}
	if c.Len() != 3 {
		t.Errorf("the cache has %d rows after refusals, want 3", c.Len())
	}
}

func TestRunStopsWithItsContext(t *testing.T) {
	m := open(t, "tiny-qwen3", tensor.F32, model.Options{Threads: 1})
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	p, c := m.NewPass(), m.NewCache()
	if err := p.Run(ctx, []model.Rows{{Cache: c, Tree: tree.New(1)}}, nil); !errors.Is(err, context.Canceled) {
		t.Fatalf("error %v, want context.Canceled", err)
	}
	if c.Len() != 0 || c.Pending() != 0 {
		t.Fatalf("cache has %d rows and %d pending", c.Len(), c.Pending())
	}
}

// Plain decoding: one node per pass.
func BenchmarkDecode(b *testing.B) {
	m := open(b, "tiny-qwen3", tensor.BF16, model.Options{Threads: 2})
	ctx := context.Background()
	p := m.NewPass()
	c := m.NewCache()
	tr := tree.New(1)
	rows := []model.Rows{{Cache: c, Tree: tr, Logits: []int32{0}}}
	root := []int32{0}
	step := func(c *nn.Cache) {
		if c.Len() == 512 {
			c.Truncate(256)
		}
		tr.Reset(int32(c.Len()))
		if err := p.Run(ctx, rows, nil); err != nil {
			b.Fatal(err)
		}
		if err := c.Commit(root); err != nil {
			b.Fatal(err)
		}
	}
	for range 512 { // allocates all pages and buffers
		step(c)
	}
	b.ReportAllocs()
	for b.Loop() {
		step(c)
	}
}
