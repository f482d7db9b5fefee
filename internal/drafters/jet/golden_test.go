package jet_test

import (
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"testing"

	. "github.com/grovellm/grove/internal/drafters/drafttest"
	"github.com/grovellm/grove/internal/drafters/jet"
	"github.com/grovellm/grove/internal/drafters/registry"
	"github.com/grovellm/grove/internal/heads/headfile"
	"github.com/grovellm/grove/internal/kernels/par"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/nn"
	"github.com/grovellm/grove/tensor"
	"github.com/grovellm/grove/tree"
)

// Heads saved by vLLM's speculators package compute here what its layers compute with them
// (testdata/golden_speculators.py): with windows, with several views of a block, and over a part of
// the vocabulary. So do the GGUF file and the folders that grove makes of each.
func TestAsSpeculators(t *testing.T) {
	for name, want := range map[string]jet.Config{
		"full": {}, "windows": {WindowCausal: true}, "mixed": {WindowCausal: true}, "both-ways": {},
		"draft-vocabulary": {WindowCausal: true,
			Base: headfile.Base{DraftVocab: 12}}, "narrow": {WindowCausal: true}, "narrow-both-ways": {},
	} {
		dir := "testdata/speculators/" + name
		c := asGolden(t, dir, dir)
		if c.WindowCausal != want.WindowCausal || c.DraftVocab != want.DraftVocab || c.Causal {
			t.Errorf("%s: %+v", name, c)
		}
		f := Must(headfile.Read(registry.Head{Name: dir}, c.Kind()))(t)
		again := t.TempDir()
		file := filepath.Join(again, "x.gguf")
		folder := filepath.Join(again, "hf")
		vllm := filepath.Join(again, "vllm")
		target := c.Config
		target.Layers, target.Window = 8, 0
		target.Name = "org/target"
		forms := []string{file, folder}
		err := errors.Join(headfile.WriteGGUF(file, "x", &c, f.Weights, f.Tokens, nil, tensor.F32),
			headfile.WriteFolder(folder, &c, f.Weights, f.Tokens))
		if _, speculators := c.Folders(); speculators {
			forms = append(forms, vllm)
			err = errors.Join(err, headfile.WriteSpeculators(vllm, &c, f.Weights, f.Tokens, target))
		}
		if err := errors.Join(err, f.Close()); err != nil {
			t.Fatal(err)
		}
		for _, path := range forms {
			asGolden(t, dir, path)
		}
	}
}

// asGolden compares the logits of a block of the head at path with those of a golden.
func asGolden(t *testing.T, dir, path string) jet.Config {
	t.Helper()
	var golden struct {
		Root                        int32
		Embed, Output, Taps, Logits []float32
	}
	if err := json.Unmarshal(Must(os.ReadFile(filepath.Join(dir, "logits.json")))(t), &golden); err != nil {
		t.Fatal(err)
	}
	f := Must(headfile.Read(registry.Head{Name: path}, (&jet.Config{}).Kind()))(t)
	defer f.Close()
	if err := headfile.For(f.Shape, model.Config{Hidden: 16, Vocab: 20, Layers: 8}); err != nil {
		t.Fatal(err)
	}
	c := *f.Shape.(*jet.Config)
	weights := append(f.Weights, Must(tensor.FromFloat32s("token_embd.weight", tensor.F32, []int{20, 16}, golden.Embed))(t))
	if !f.Own() {
		weights = append(weights, Must(tensor.FromFloat32s("output.weight", tensor.F32, []int{20, 16}, golden.Output))(t))
	}
	w, pool := model.NewLoader(weights, c.FileArch()), par.New(2)
	defer pool.Close()
	n := Must(jet.NewNetwork(c, w, f.Tokens, new(model.Network)))(t)
	if err := w.Pack(pool); err != nil {
		t.Fatal(err)
	}
	e, pages := nn.NewExec(pool), n.Pages()
	cache := pages.NewCache()
	defer cache.Free()
	var forest nn.Forest
	var bufs jet.Buffers
	text := len(golden.Taps) / (3 * 16)
	taps := nn.NewMat(text, 3*16)
	copy(taps.Data, golden.Taps)
	chain := tree.Chain(make([]int32, text))
	forest.Add(cache, chain, 0)
	cache.Reserve(0, text)
	n.Context(e, &forest, taps, &bufs)
	cache.CommitAll()
	var block tree.Tree
	n.LayOut(&block, golden.Root, c.Block)
	forest.Reset()
	forest.Add(cache, &block, 0)
	cache.Reserve(0, c.Block)
	x, out := nn.NewMat(c.Block, 16), nn.NewMat(c.Block, n.Head.W.Out())
	n.Run(e, &forest, block.Token, x, &bufs)
	e.Linear(nn.Source{X: x, Norm: &n.Norm}, nn.Proj{Linear: &n.Head, Dst: out})
	if len(out.Data) != len(golden.Logits) {
		t.Fatalf("%s: %d logits, want %d", path, len(out.Data), len(golden.Logits))
	}
	for i, v := range out.Data {
		if math.Abs(float64(v-golden.Logits[i])) > 1e-5 {
			t.Fatalf("%s: logit %d of row %d is %g, want %g", path, i%out.Cols, i/out.Cols, v, golden.Logits[i])
		}
	}
	return c
}
