package spark

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/grovellm/grove/internal/drafters/registry"
	"github.com/grovellm/grove/internal/drafters/textrank"
	"github.com/grovellm/grove/internal/files/safetensors"
	"github.com/grovellm/grove/internal/heads/headfile"
	"github.com/grovellm/grove/internal/kernels/par"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/nn"
	"github.com/grovellm/grove/tensor"
	"github.com/grovellm/grove/tree"
)

// Published layouts of each kind compute here what the reference does along a path (testdata/golden.py):
// the block's rows, the correction of each row by the tokens before it, and DSpark's confidence. So do
// the GGUF files and folders that grove makes of them, which have the published tensors.
func TestAsReference(t *testing.T) {
	for name, variant := range map[string]string{"vanilla": dspark, "gated": dspark, "rnn": dspark, "not-anchor": dspark,
		"deepspec": dspark, "dflash2": dflash2, "domino": domino, "domino-shifted": domino} {
		dir := filepath.Join("testdata", "heads", name)
		f := asGolden(t, dir, dir)
		if f.Variant != variant {
			t.Errorf("%s is read as a %s head", name, f.Variant)
		}
		h, err := headfile.Read(registry.Head{Name: dir}, &kind)
		if err != nil {
			t.Fatal(err)
		}
		if err := headfile.For(h.Shape, model.Config{Hidden: 16, Vocab: 20, Layers: 8}); err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(t.TempDir(), "head.gguf")
		if err := headfile.WriteGGUF(file, "x", h.Shape, h.Weights, h.Tokens, nil, tensor.F32); err != nil {
			t.Fatal(err)
		}
		if variant != domino {
			target := h.Shape.(*Config).Config.Config
			target.Name = "org/target"
			authors, speculators := t.TempDir(), t.TempDir()
			if err := headfile.WriteFolder(authors, h.Shape, h.Weights, h.Tokens); err != nil {
				t.Fatal(err)
			}
			if err := headfile.WriteSpeculators(speculators, h.Shape, h.Weights, h.Tokens, target); err != nil {
				t.Fatal(err)
			}
			for _, written := range []string{authors, speculators} {
				if c := asGolden(t, dir, written); fmt.Sprint(c) != fmt.Sprint(f) {
					t.Errorf("%s: written as\n%+v, was\n%+v", name, c, f)
				}
				if got, want := tensorsIn(t, written), tensorsIn(t, dir); got != want {
					t.Errorf("%s: written with the tensors\n%s\nwas\n%s", name, got, want)
				}
			}
		}
		if err := h.Close(); err != nil {
			t.Fatal(err)
		}
		asGolden(t, dir, file)
	}
}

// tensorsIn lists the names and shapes of a folder's tensors.
func tensorsIn(t *testing.T, dir string) string {
	t.Helper()
	f, err := safetensors.OpenFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var list []string
	for _, x := range f.Tensors {
		list = append(list, fmt.Sprintf("%s %v", x.Name, x.Shape))
	}
	slices.Sort(list)
	return strings.Join(list, "\n")
}

// asGolden compares the head at path with a golden.
func asGolden(t *testing.T, dir, path string) Config {
	t.Helper()
	var golden struct {
		Path, Tokens                            []int32
		Embed, Output, Taps, Logits, Confidence []float32
	}
	data, err := os.ReadFile(filepath.Join(dir, "logits.json"))
	if err == nil {
		err = json.Unmarshal(data, &golden)
	}
	if err != nil {
		t.Fatal(err)
	}
	f, err := headfile.Read(registry.Head{Name: path}, &kind)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := headfile.For(f.Shape, model.Config{Hidden: 16, Vocab: 20, Layers: 8}); err != nil {
		t.Fatal(err)
	}
	c := *f.Shape.(*Config)
	weights := f.Weights
	add := func(name string, rows int, values []float32) {
		x, err := tensor.FromFloat32s(name, tensor.F32, []int{rows, 16}, values)
		if err != nil {
			t.Fatal(err)
		}
		weights = append(weights, x)
	}
	add("token_embd.weight", 20, golden.Embed)
	if !f.Own() {
		add("output.weight", len(golden.Tokens), golden.Output)
	}
	pool := par.New(2)
	defer pool.Close()
	w := model.NewLoader(weights, c.FileArch())
	n, err := NewNetwork(c, w, f.Tokens, new(model.Network))
	if err == nil {
		err = w.Pack(pool)
	}
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}

	b := &blocks{n: n, places: textrank.Places(f.Tokens, c.Vocab)}
	e := nn.NewExec(pool)
	pages := b.Pages()
	cache := pages.NewCache()
	defer cache.Free()
	var forest nn.Forest
	text := len(golden.Taps) / (3 * 16)
	taps := nn.NewMat(text, 3*16)
	copy(taps.Data, golden.Taps)
	forest.Add(cache, tree.Chain(make([]int32, text)), 0)
	cache.Reserve(0, text)
	b.Read(e, &forest, nil, taps)
	cache.CommitAll()
	var block tree.Tree
	b.LayOut(&block, golden.Path[0], c.Block)
	forest.Reset()
	forest.Add(cache, &block, 0)
	cache.Reserve(0, c.Block)
	x, unary := nn.NewMat(c.Block, 16), nn.NewMat(c.Block, n.Base.Head.W.Out())
	n.Run(e, &forest, block.Token, x, &b.bufs)
	layout := b.Block()
	x = x.Slice(layout.Skip, layout.Skip+layout.Depths)
	unary = unary.Slice(0, layout.Depths)
	e.Linear(nn.Source{X: x, Norm: &n.Base.Norm}, nn.Proj{Linear: &n.Base.Head, Dst: unary})
	b.Prepare(e, x)
	if want := layout.Depths * len(golden.Tokens); len(golden.Logits) != want {
		t.Fatalf("%s: %d logits, want %d", path, want, len(golden.Logits))
	}
	var state []float32
	for depth := range layout.Depths {
		scores := unary.Row(depth)
		after, ok := b.Follow(e, depth, depth+1, golden.Path[depth], state, golden.Tokens, scores)
		if !ok {
			t.Fatalf("%s: no confidence is asked", path)
		}
		state = after
		for i, v := range scores {
			if want := golden.Logits[depth*len(scores)+i]; math.Abs(float64(v-want)) > 1e-5 {
				t.Fatalf("%s: logit %d of depth %d is %g, want %g", path, i, depth+1, v, want)
			}
		}
		if c.Confidence == noConfidence {
			continue
		}
		for _, least := range []float64{-1e-5, 1e-5} {
			b.least = float64(golden.Confidence[depth]) + least
			if b.sure(e, b.states.Row(depth), n.rowBefore(golden.Path[depth])) != (least < 0) {
				t.Errorf("%s: confidence at depth %d is not %g", path, depth+1, golden.Confidence[depth])
			}
		}
		b.least = 0
	}
	return c
}
