package eagle_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/grovellm/grove/gguf"
	. "github.com/grovellm/grove/internal/drafters/drafttest"
	"github.com/grovellm/grove/internal/drafters/eagle"
	"github.com/grovellm/grove/internal/drafters/registry"
	"github.com/grovellm/grove/internal/drafters/synthetic"
	"github.com/grovellm/grove/internal/heads/headfile"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/nn"
	"github.com/grovellm/grove/tensor"
	"github.com/grovellm/grove/tree"
)

// logits returns those of a draft of two rows after a text of three entries, which distinguish heads.
func logits(n *eagle.Network, m *model.Model) []float32 {
	e, rng := nn.NewExec(m.Pool()), rand.New(rand.NewPCG(1, 1))
	mat := func(rows, cols int) nn.Mat {
		x := nn.Mat{Rows: rows, Cols: cols, Stride: cols, Data: make([]float32, rows*cols)}
		for i := range x.Data {
			x.Data[i] = float32(rng.NormFloat64())
		}
		return x
	}
	tokens := []int32{3, 1, 4, 1, 5}
	for i := range tokens {
		tokens[i] %= int32(n.Vocab)
	}
	var b eagle.Buffers
	g := mat(5, n.Hidden)
	x := mat(5, n.Hidden)
	out := mat(5, n.DraftVocab)
	n.Features(e, mat(3, n.Width()), g.Slice(0, 3), &b)
	pages := n.Pages()
	cache := pages.NewCache()
	defer cache.Free()
	var f nn.Forest
	f.Add(cache, tree.Chain(tokens), 0)
	cache.Reserve(0, 5)
	n.Run(e, &f, tokens, g, x, &b)
	e.Linear(n.Output(x), nn.Proj{Linear: &n.Head, Dst: out})
	return out.Data
}

// apart returns how far numbers differ, relative to the largest.
func apart(a, b []float32) float64 {
	if len(a) != len(b) {
		return math.Inf(1)
	}
	most, gap := 1e-9, 0.0
	for i := range a {
		most, gap = max(most, math.Abs(float64(a[i]))), max(gap, math.Abs(float64(a[i]-b[i])))
	}
	return gap / most
}

// written writes a random head with its own output in every form.
func written(t testing.TB, m *model.Model, vocabulary *gguf.File, version int, kind tensor.Type,
	seed uint64) (c eagle.Config, n *eagle.Network, files map[string]registry.Head) {
	t.Helper()
	c = synthetic.Config[eagle.Config](rand.New(rand.NewPCG(seed, 9)), fmt.Sprint("eagle", version), m.Config, kind)
	c.Name = fmt.Sprint("head ", seed)
	weights, tokens := Must(synthetic.Tensors(&c, kind, seed))(t), synthetic.Tokens(&c, seed)
	n = Must(eagle.NewNetwork(c, synthetic.Head(&c, kind, seed), synthetic.Tokens(&c, seed), &m.Network))(t)
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	if err := headfile.WriteGGUF(at("with.gguf"), c.Name, &c, weights, tokens, vocabulary, kind); err != nil {
		t.Fatal(err)
	}
	if err := headfile.WriteGGUF(at("without.gguf"), c.Name, &c, weights, tokens, nil, kind); err != nil {
		t.Fatal(err)
	}
	files = map[string]registry.Head{"file": {Name: at("without.gguf")},
		"data": {Name: "embedded", Data: Must(os.ReadFile(at("with.gguf")))(t)}}
	if !slices.ContainsFunc(weights, func(w tensor.Tensor) bool { return w.Name == "output.weight" }) {
		if err := headfile.WriteFolder(at("folder"), &c, weights, tokens); err == nil ||
			!strings.Contains(err.Error(), "add the target's") {
			t.Errorf("a folder without an output: %v", err)
		}
		return c, n, files
	}
	if err := headfile.WriteFolder(at("folder"), &c, weights, tokens); err != nil {
		t.Fatal(err)
	}
	files["folder"] = registry.Head{Name: at("folder")}
	if version == 3 {
		if err := headfile.WriteSpeculators(at("speculators"), &c, weights, tokens, m.Config); err != nil {
			t.Fatal(err)
		}
		files["speculators"] = registry.Head{Name: at("speculators")}
	}
	return c, n, files
}

// A head comes back unchanged from a file of any type and from folders of both layouts: its shape,
// its tokens, and its results.
func TestFilesRoundTrip(t *testing.T) {
	m, vocabulary := FileTarget(t)
	for seed := range uint64(12) {
		kind := []tensor.Type{tensor.F32, tensor.F16, tensor.BF16, tensor.Q8_0}[seed%4]
		version := 3 - int(seed/4%3/2)
		c, made, files := written(t, m, vocabulary, version, kind, seed)
		want := logits(made, m)
		for form, h := range files {
			got, err := headfile.ReadConfig[eagle.Config](h, &m.Config)
			if err != nil {
				t.Fatal(err)
			}
			folder := form == "folder" || form == "speculators"
			expect := c
			if folder {
				expect.Name = "" // folders do not have it
			}
			expect.Rope.Neighbours = c.Arch == "llama" && !folder
			if d := cmp.Diff(expect, got); d != "" {
				t.Errorf("%s: the shape came back otherwise: %s", form, d)
			}
			head, err := eagle.Open(h, As(m))
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(head.Tokens, made.Tokens) {
				t.Errorf("%s: the draft vocabulary came back otherwise", form)
			}
			most := 0.0
			switch {
			case folder && kind == tensor.Q8_0: // F32 there: the same numbers, but multiplied in another way
				most = 0.05
			case folder && kind != tensor.F32 || expect.Rope.Neighbours: // the same numbers in another order
				most = 0.02
				if kind == tensor.F32 {
					most = 1e-5
				}
			}
			if d := apart(logits(head, m), want); d > most {
				t.Errorf("%s, EAGLE-%d %s, %v: logits are %g apart, want %g at most", form, version, c.Arch, kind, d,
					most)
			}
		}
	}
}

// A head that does not fit the target is refused with an error that says what differs; so are
// weights that do not fit the shape.
func TestRefusedHeads(t *testing.T) {
	m, vocabulary := FileTarget(t)
	good := synthetic.Config[eagle.Config](rand.New(rand.NewPCG(3, 3)), "eagle3", m.Config, tensor.F32)
	good.Taps = []int{1, 2, 3}
	good.TargetLayers = m.Config.Layers
	good.DraftVocab = 50
	good.Arch = "llama"
	path := filepath.Join(t.TempDir(), "head.gguf")
	for want, change := range map[string]func(c *eagle.Config){
		"":                       func(*eagle.Config) {},
		"hidden size 96":         func(c *eagle.Config) { c.Hidden = 96 },
		"vocabulary has 999":     func(c *eagle.Config) { c.Vocab = 999 },
		"made for a target of 9": func(c *eagle.Config) { c.TargetLayers = 9 },
		"taps layers [1 2 7]":    func(c *eagle.Config) { c.Taps, c.TargetLayers = []int{1, 2, 7}, 0 },
		"tap the last": func(c *eagle.Config) {
			*c = synthetic.Config[eagle.Config](rand.New(rand.NewPCG(3, 3)), "eagle2", m.Config, tensor.F32)
			c.Taps, c.TargetLayers = []int{1}, 0
		},
	} {
		c := good
		change(&c)
		weights := Must(synthetic.Tensors(&c, tensor.F32, 1))(t)
		if err := headfile.WriteGGUF(path, "x", &c, weights, synthetic.Tokens(&c, 1), vocabulary,
			tensor.F32); err != nil {
			t.Fatal(err)
		}
		_, err := eagle.Open(registry.Head{Name: path}, As(m))
		if want == "" != (err == nil) || err != nil && (!strings.Contains(err.Error(), want) ||
			!strings.Contains(err.Error(), path)) {
			t.Errorf("%q: %v", want, err)
		}
	}
	weights, tokens := Must(synthetic.Tensors(&good, tensor.F32, 1))(t), synthetic.Tokens(&good, 1)
	extra := Must(tensor.FromFloat32s("extra.weight", tensor.F32, []int{2}, []float32{1, 2}))(t)
	wide := slices.Clone(weights)
	wide[0].Shape = []int{wide[0].Shape[1], wide[0].Shape[0]}
	bias := Must(tensor.FromFloat32s("output.bias", tensor.F32, []int{len(tokens)}, make([]float32, len(tokens))))(t)
	without := slices.DeleteFunc(slices.Clone(weights), func(w tensor.Tensor) bool { return w.Name == "output.weight" })
	twice := slices.Clone(tokens)
	twice[1] = twice[0]
	partial := good
	partial.Rope.Dims -= 2
	type part struct {
		c       eagle.Config
		weights []tensor.Tensor
		tokens  []int32
	}
	for want, p := range map[string]part{
		"is missing":           {good, weights[:len(weights)-1], tokens},
		"does not belong":      {good, append(slices.Clone(weights), extra), tokens},
		"has shape":            {good, wide, tokens},
		"occurs twice":         {good, append(slices.Clone(weights), weights[0]), tokens},
		"says which":           {good, weights, nil},
		"must be equal":        {good, weights, tokens[1:]},
		"at most once":         {good, weights, twice},
		"of an attention head": {partial, weights, tokens},
		"want both or neither": {good, append(slices.Clone(without), bias), tokens},
	} {
		if err := headfile.WriteGGUF(path, "x", &p.c, p.weights, p.tokens, vocabulary, tensor.F32); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	if _, err := headfile.Read(registry.Head{Name: vocabulary.Path}, (&eagle.Config{}).Kind()); !errors.Is(err,
		headfile.ErrKind) {
		t.Errorf("a model for a head: %v", err)
	}
	if err := headfile.WriteGGUF(path, "x", &good, weights, tokens, vocabulary, tensor.F32); err != nil {
		t.Fatal(err)
	}
	if _, err := model.Open(path, model.Options{}); err == nil || !strings.Contains(err.Error(), "a drafter's head") {
		t.Errorf("a head for a model: %v", err)
	}
}

// A head with a draft vocabulary and no output matrix takes the rows of its tokens from the target's.
func TestTakesRowsOfTheTarget(t *testing.T) {
	m, _ := FileTarget(t)
	c := synthetic.Config[eagle.Config](rand.New(rand.NewPCG(3, 3)), "eagle3", m.Config, tensor.F32)
	c.DraftVocab = 50
	weights, tokens := Must(synthetic.Tensors(&c, tensor.F32, 1))(t), synthetic.Tokens(&c, 1)
	weights = slices.DeleteFunc(weights, func(w tensor.Tensor) bool {
		return w.Name == "output.weight" ||
			w.Name == "output.bias"
	})
	path := filepath.Join(t.TempDir(), "head.gguf")
	if err := headfile.WriteGGUF(path, "x", &c, weights, tokens, nil, tensor.F32); err != nil {
		t.Fatal(err)
	}
	n := Must(eagle.Open(registry.Head{Name: path}, registry.Target{Vocab: m.Config.Vocab, Model: m}))(t)
	if n.OwnHead || n.Head.W.Out() != len(tokens) || !slices.Equal(n.Tokens, tokens) {
		t.Fatalf("an output of %d rows for the tokens %v, its own: %v", n.Head.W.Out(), n.Tokens, n.OwnHead)
	}
	got, want := make([]float32, n.Hidden), make([]float32, n.Hidden)
	for i, token := range tokens {
		n.Head.W.Row(got, i)
		m.Head.W.Row(want, int(token))
		if !slices.Equal(got, want) {
			t.Fatalf("row %d is not that of token %d", i, token)
		}
	}
}

func TestTakesTheFirst(t *testing.T) {
	m, vocabulary := FileTarget(t)
	heads := []registry.Head{{Name: vocabulary.Path}} // a head of another kind
	for i, version := range []int{2, 3, 3} {
		_, _, files := written(t, m, vocabulary, version, tensor.F32, uint64(i))
		heads = append(heads, files["file"])
	}
	for i, version := range map[int]int{1: 2, 2: 3} {
		TakesTheFirst(t, As(m), heads, i, func(target registry.Target) (*eagle.Network, error) {
			wanted := func(s headfile.Shape) bool { return s.(*eagle.Config).Version == version }
			return headfile.Choose("", target, (&eagle.Config{}).Kind(), "EAGLE", wanted, eagle.Open)
		}, eagle.Open)
	}
}

func FuzzOpen(f *testing.F) {
	m, vocabulary := FileTarget(f)
	_, _, files := written(f, m, vocabulary, 3, tensor.F32, 7)
	FuzzHead(f, m, Must(os.ReadFile(files["file"].Name))(f), eagle.Open,
		func(_ *testing.T, n *eagle.Network) { logits(n, m) })
}
