package jet_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/gguf"
	. "github.com/grovellm/grove/internal/drafters/drafttest"
	"github.com/grovellm/grove/internal/drafters/jet"
	"github.com/grovellm/grove/internal/drafters/onepass"
	"github.com/grovellm/grove/internal/drafters/registry"
	"github.com/grovellm/grove/internal/drafters/synthetic"
	"github.com/grovellm/grove/internal/heads/headfile"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/nn"
	"github.com/grovellm/grove/tensor"
)

// proposal returns the tree that a head proposes after some text, which distinguishes heads.
func proposal(t testing.TB, n *jet.Network, m *model.Model) draft.Request {
	t.Helper()
	d := newDrafter(t, jet.Options{Tree: onepass.DDTree}, n, m)
	s := Begin(t, d, draft.Options{}, 7)
	defer s.Close()
	Commit(t, d, s.Prompt([]int32{3, 1, 4, 1, 5, 9, 2, 6, 5, 3}, n.Hidden, true))
	q := s.Request(60, 20, nil)
	Propose(t, d, q)
	return q
}

// A head comes back unchanged from a file of any type and from a folder: its shape and, to the bit,
// its proposals.
func TestFilesRoundTrip(t *testing.T) {
	m, vocabulary := FileTarget(t)
	for seed := range uint64(12) {
		rng := rand.New(rand.NewPCG(seed, 9))
		kind := []tensor.Type{tensor.F32, tensor.F16, tensor.BF16, tensor.Q8_0}[seed%4]
		c := synthetic.Config[jet.Config](rng, "", m.Config, kind)
		for i := range c.Taps { // folders cannot name the embedding
			c.Taps[i] = max(c.Taps[i], 1)
		}
		c.Name = fmt.Sprint("head ", seed)
		weights, err := synthetic.Tensors(&c, kind, seed)
		if err != nil {
			t.Fatal(err)
		}
		made, err := jet.NewNetwork(c, synthetic.Head(&c, kind, seed), synthetic.Tokens(&c, seed), &m.Network)
		if err != nil {
			t.Fatal(err)
		}
		want := proposal(t, made, m)
		dir := t.TempDir()
		file, folder := filepath.Join(dir, "head.gguf"), filepath.Join(dir, "head")
		if err := headfile.WriteGGUF(file, c.Name, &c, weights, nil, vocabulary, kind); err != nil {
			t.Fatal(err)
		}
		if err := headfile.WriteFolder(folder, &c, weights, nil); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		// by path without a tokenizer, in memory with one
		if err := headfile.WriteGGUF(file, c.Name, &c, weights, nil, nil, kind); err != nil {
			t.Fatal(err)
		}
		for _, h := range []registry.Head{{Name: file}, {Name: "embedded", Data: data}, {Name: folder}} {
			got, err := headfile.ReadConfig[jet.Config](h, nil)
			if err != nil {
				t.Fatal(err)
			}
			expect := c
			if h.Name == folder {
				expect.Name = "" // folders do not have it
			}
			expect.Tied = got.Tied // the head's is the target's
			if d := cmp.Diff(expect, got); d != "" {
				t.Errorf("%s: the shape came back otherwise: %s", h.Name, d)
			}
			head, err := jet.Open(h, As(m))
			if err != nil {
				t.Fatal(err)
			}
			if h.Name == folder && kind != tensor.F32 { // F32 there: the same numbers, but multiplied in another way
				continue
			}
			if err := Same(proposal(t, head, m).Tree, want.Tree); err != nil {
				t.Errorf("%s, %v: %v", h.Name, kind, err)
			}
		}
	}
}

// A file's own embedding and output matrix are used in place of the target's.
func TestOwnEmbeddingAndHead(t *testing.T) {
	m, vocabulary := FileTarget(t)
	c := synthetic.Config[jet.Config](rand.New(rand.NewPCG(1, 1)), "", m.Config, tensor.F32)
	weights, err := synthetic.Tensors(&c, tensor.F32, 1)
	if err != nil {
		t.Fatal(err)
	}
	x := make([]float32, c.Vocab*c.Hidden)
	rng := rand.New(rand.NewPCG(2, 2))
	for i := range x {
		x[i] = float32(rng.NormFloat64())
	}
	trees := map[string]draft.Request{}
	for _, own := range []string{"", "token_embd.weight", "output.weight"} {
		w := slices.Clone(weights)
		if own != "" {
			o, err := tensor.FromFloat32s(own, tensor.F32, []int{c.Vocab, c.Hidden}, x)
			if err != nil {
				t.Fatal(err)
			}
			w = append(w, o)
		}
		path := filepath.Join(t.TempDir(), "head.gguf")
		if err := headfile.WriteGGUF(path, "x", &c, w, nil, vocabulary, tensor.F32); err != nil {
			t.Fatal(err)
		}
		h, err := jet.Open(registry.Head{Name: path}, As(m))
		if err != nil {
			t.Fatal(err)
		}
		trees[own] = proposal(t, h, m)
		for other, q := range trees {
			if other != own && Same(q.Tree, trees[own].Tree) == nil {
				t.Errorf("own %q proposes what own %q proposes", own, other)
			}
		}
	}
}

// A head that does not fit the target is refused with an error that says what differs; so are
// weights that do not fit the shape.
func TestRefusedHeads(t *testing.T) {
	m, vocabulary := FileTarget(t)
	good := synthetic.Config[jet.Config](rand.New(rand.NewPCG(3, 3)), "", m.Config, tensor.F32)
	good.Taps, good.TargetLayers = []int{1, 2}, m.Config.Layers
	path := filepath.Join(t.TempDir(), "head.gguf")
	for want, change := range map[string]func(c *jet.Config){
		"":                       func(*jet.Config) {},
		"hidden size 96":         func(c *jet.Config) { c.Hidden = 96 },
		"vocabulary has 999":     func(c *jet.Config) { c.Vocab, c.Mask = 999, 5 },
		"made for a target of 9": func(c *jet.Config) { c.TargetLayers = 9 },
		"taps layers [1 7]":      func(c *jet.Config) { c.Taps, c.TargetLayers = []int{1, 7}, 0 },
	} {
		c := good
		change(&c)
		weights, err := synthetic.Tensors(&c, tensor.F32, 1)
		if err != nil {
			t.Fatal(err)
		}
		if err := headfile.WriteGGUF(path, "x", &c, weights, nil, vocabulary, tensor.F32); err != nil {
			t.Fatal(err)
		}
		_, err = jet.Open(registry.Head{Name: path}, As(m))
		if want == "" != (err == nil) || err != nil && (!strings.Contains(err.Error(), want) ||
			!strings.Contains(err.Error(), path)) {
			t.Errorf("%q: %v", want, err)
		}
	}
	weights, err := synthetic.Tensors(&good, tensor.F32, 1)
	if err != nil {
		t.Fatal(err)
	}
	extra, err := tensor.FromFloat32s("extra.weight", tensor.F32, []int{2}, []float32{1, 2})
	if err != nil {
		t.Fatal(err)
	}
	wide := slices.Clone(weights)
	wide[0].Shape = []int{wide[0].Shape[1], wide[0].Shape[0]}
	for want, w := range map[string][]tensor.Tensor{
		"is missing": weights[1:], "does not belong": append(slices.Clone(weights), extra), "has shape": wide,
		"occurs twice": append(slices.Clone(weights), weights[0]),
	} {
		for _, err := range []error{headfile.WriteGGUF(path, "x", &good, w, nil, vocabulary, tensor.F32),
			headfile.WriteFolder(t.TempDir(), &good, w, nil)} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v", want, err)
			}
		}
	}
	if _, err := headfile.ReadConfig[jet.Config](registry.Head{Name: vocabulary.Path}, nil); !errors.Is(err,
		headfile.ErrKind) {
		t.Errorf("a model for a head: %v", err)
	}
	if _, err := model.Open(path, model.Options{}); err == nil || !strings.Contains(err.Error(), "a drafter's head") {
		t.Errorf("a head for a model: %v", err)
	}
}

func TestTakesTheFirst(t *testing.T) {
	m, vocabulary := FileTarget(t)
	heads := []registry.Head{{Name: vocabulary.Path}} // a head of another kind
	for i, causal := range []bool{false, true, true} {
		heads = append(heads, writtenHead(t, m, vocabulary, uint64(i), causal))
	}
	for i, causal := range map[int]bool{1: false, 2: true} {
		name := map[bool]string{true: "jetspec", false: "dflash"}[causal]
		choose := func(target registry.Target) (*nn.Linear, error) { // the result identifies the network by its output matrix
			d, err := registry.New(name, target)
			if err != nil {
				return nil, err
			}
			_, head, _ := d.(interface{ Blocks() onepass.Model }).Blocks().Output()
			return head, nil
		}
		open := func(h registry.Head, target registry.Target) (*nn.Linear, error) {
			n, err := jet.Open(h, target)
			if err != nil {
				return nil, err
			}
			return &n.Head, nil
		}
		TakesTheFirst(t, As(m), heads, i, choose, open)
	}
}

// writtenHead writes the file of a random head.
func writtenHead(t testing.TB, m *model.Model, vocabulary *gguf.File, seed uint64, causal bool) registry.Head {
	t.Helper()
	c := synthetic.Config[jet.Config](rand.New(rand.NewPCG(seed, 4)), "", m.Config, tensor.F32)
	c.Causal = causal
	weights := Must(synthetic.Tensors(&c, tensor.F32, 1))(t)
	h := registry.Head{Name: filepath.Join(t.TempDir(), "head.gguf")}
	if err := headfile.WriteGGUF(h.Name, "x", &c, weights, nil, vocabulary, tensor.F32); err != nil {
		t.Fatal(err)
	}
	return h
}

func FuzzOpen(f *testing.F) {
	m, vocabulary := FileTarget(f)
	data := Must(os.ReadFile(writtenHead(f, m, vocabulary, 5, true).Name))(f)
	FuzzHead(f, m, data, jet.Open, func(t *testing.T, n *jet.Network) { proposal(t, n, m) })
}
