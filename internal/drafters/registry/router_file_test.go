package registry_test

import (
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/grovellm/grove/gguf"
	"github.com/grovellm/grove/internal/drafters/shortlist"
	"github.com/grovellm/grove/internal/drafters/synthetic/shortlist"
	"github.com/grovellm/grove/internal/kernels/gemm"
	"github.com/grovellm/grove/internal/kernels/par"
	"github.com/grovellm/grove/internal/nn"
	"github.com/grovellm/grove/sample"
	"github.com/grovellm/grove/tensor"
)

func load(path string, pool *par.Pool) (*shortlist.RouterFile, *shortlist.Routing, error) {
	f, err := gguf.Open(path)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	r, err := shortlist.ReadRouter(f)
	if err != nil {
		return nil, nil, err
	}
	routing, err := r.Load(f, pool)
	return r, routing, err
}

// A router comes back unchanged from its file, and if it lists all clusters, it lists every token
// of the vocabulary.
func TestRouterFiles(t *testing.T) {
	pool := par.New(1)
	defer pool.Close()
	dir := t.TempDir()
	kinds := []tensor.Type{tensor.F32, tensor.BF16, tensor.Q8_0}
	for seed := range uint64(12) { // few seeds, since each writes files, which takes a while
		rng := rand.New(rand.NewPCG(seed, 1))
		vocab := 1 + rng.IntN(300)
		hidden := 32
		kind := kinds[seed%3]
		path := filepath.Join(dir, "router.gguf")
		if err := synth.Write(path, rng, vocab, hidden, kind); err != nil {
			t.Fatal(err)
		}
		f, r, err := load(path, pool)
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Fits(vocab, hidden, hidden); err != nil {
			t.Fatal(err)
		}
		if f.Fits(vocab+1, hidden, hidden) == nil || f.Fits(vocab, hidden, hidden+1) == nil ||
			f.Fits(vocab, hidden+1, hidden) == nil {
			t.Fatal("a router fits heads of all shapes")
		}
		if r.Listed < 1 || r.Listed > len(r.Clusters) || f.Listed != r.Listed {
			t.Fatalf("%d of %d clusters listed, the file says %d", r.Listed, len(r.Clusters), f.Listed)
		}
		w, err := gemm.New(gemm.F32, vocab, hidden)
		if err != nil {
			t.Fatal(err)
		}
		head, err := shortlist.NewHead(&nn.Linear{W: w}, nil, nil, vocab)
		if err != nil {
			t.Fatal(err)
		}
		m, err := shortlist.NewRouted(pool, head, w, r, shortlist.RoutedOptions{Clusters: len(r.Clusters)})
		if err != nil {
			t.Fatal(err)
		}
		lists := make([]*shortlist.List, 1)
		m.Choose([]shortlist.Query{{State: m.Begin(&sample.Params{}), Token: 0, Hidden: make([]float32, hidden)}},
			lists)
		if lists[0].Count() != vocab {
			t.Fatalf("all clusters list %d tokens of %d", lists[0].Count(), vocab)
		}

		// Writing it again gives the same file.
		g, err := gguf.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		var weights []tensor.Tensor
		for _, info := range g.Tensors {
			x, err := g.Load(info.Name)
			if err != nil {
				t.Fatal(err)
			}
			weights = append(weights, x)
		}
		defer g.Close()
		again := filepath.Join(dir, "again.gguf")
		if err := r.Write(again, *f, weights); err != nil {
			t.Fatal(err)
		}
		a, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(again)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(a, b) {
			t.Fatal("another file")
		}
	}
}

// Faults are errors that name what is wrong.
func TestRouterFilesRefused(t *testing.T) {
	pool := par.New(1)
	defer pool.Close()
	path := filepath.Join(t.TempDir(), "router.gguf")
	if err := synth.Write(path, rand.New(rand.NewPCG(1, 1)), 60, 32, tensor.F32); err != nil {
		t.Fatal(err)
	}
	good, err := gguf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer good.Close()
	changed := func(key string, value any) error {
		w := new(gguf.Writer)
		for name, v := range good.Meta() {
			if name != key {
				w.Set(name, v)
			} else if value != nil {
				w.Set(key, value)
			}
		}
		for _, info := range good.Tensors {
			x, err := good.Load(info.Name)
			if err != nil {
				t.Fatal(err)
			}
			w.AddTensor(x)
		}
		if key == "tensor" {
			x, err := tensor.FromFloat32s(value.(string), tensor.F32, []int{1}, []float32{0})
			if err != nil {
				t.Fatal(err)
			}
			w.AddTensor(x)
		}
		bad := filepath.Join(t.TempDir(), "bad.gguf")
		if err := w.WriteFile(bad); err != nil {
			t.Fatal(err)
		}
		_, _, err := load(bad, pool)
		return err
	}
	if err := changed("", nil); err != nil {
		t.Fatalf("unchanged: %v", err)
	}
	if err := changed("general.architecture", "llama"); !errors.Is(err, shortlist.ErrNoRouter) {
		t.Errorf("another architecture: %v", err)
	}
	for _, c := range []struct {
		key   string
		value any
		say   string
	}{
		{"router.listed", uint32(0), "router.listed"},
		{"router.listed", uint32(1000), "router.listed"},
		{"router.listed", nil, "router.listed"},
		{"router.hidden_length", uint32(0), "hidden layer of 0"},
		{"router.hidden_length", uint32(7), "want [7 64]"},
		{"router.feature_length", "wide", "router.feature_length"},
		{"router.clusters", []int32{0, 1, 3, 3}, "cluster 2 of 4 is empty"},
		{"router.clusters", []int32{0, 1, 4, 2}, "in cluster 4"},
		{"router.clusters", []int32{0, -3}, "in cluster -3"},
		{"router.clusters", []int32{-1, -2}, "no clusters"},
		{"router.clusters", []int32{}, "no clusters"},
		{"router.clusters", nil, "router.clusters"},
		{"tensor", "router.other", "no place in a router"},
	} {
		if err := changed(c.key, c.value); err == nil || !strings.Contains(err.Error(), c.say) {
			t.Errorf("%s = %v: %v, want an error that says %q", c.key, c.value, err, c.say)
		}
	}
}
