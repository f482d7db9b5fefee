package eagle_test

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/gguf"
	. "github.com/grovellm/grove/internal/drafters/drafttest"
	"github.com/grovellm/grove/internal/drafters/eagle"
	"github.com/grovellm/grove/internal/drafters/grow"
	"github.com/grovellm/grove/internal/drafters/registry"
	"github.com/grovellm/grove/internal/drafters/shortlist"
	"github.com/grovellm/grove/internal/drafters/synthetic"
	"github.com/grovellm/grove/internal/heads/headfile"
	"github.com/grovellm/grove/internal/kernels/par"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/model/synth"
	"github.com/grovellm/grove/internal/nn"
	"github.com/grovellm/grove/tensor"
	"github.com/grovellm/grove/tree"
)

// goldenConfig is the shape of a head that llama.cpp runs, with or without a draft vocabulary and
// the normalised residual.
func goldenConfig(m *model.Model, variant bool) eagle.Config {
	c := eagle.Config{Base: headfile.Base{Config: m.Config, Taps: []int{1, 3, 2}, DraftVocab: m.Config.Vocab},
		Version: 3}
	c.Arch = "llama"
	c.Layers = 1
	c.Heads = 6
	c.KVHeads = 2
	c.HeadDim = 48
	c.FFN = 224
	c.Rope.Dims = 48
	c.Rope.Base = 5e5
	if variant {
		c.DraftVocab = 300
		c.NormBeforeResidual = true
		c.NormBeforeFC = true
	}
	return c
}

// A head drafts here what it drafts in llama.cpp (draft-eagle3, d32676d; F32 files, keys and values
// in F32) with the files that this test writes and the same prompts: the taps, their order,
// entries, positions, rotation, norms, names and the draft vocabulary agree.
func TestAsLlamaDrafts(t *testing.T) {
	dir := t.TempDir()
	path, file := filepath.Join(dir, "target.gguf"), filepath.Join(dir, "head.gguf")
	s := Must(synth.Lookup("tiny-qwen3"))(t)
	if err := synth.Write(t.Context(), path, s, synth.Options{Type: tensor.F32, Seed: 7}); err != nil {
		t.Fatal(err)
	}
	m := Must(model.Open(path, model.Options{Threads: 2}))(t)
	defer m.Close()
	vocabulary := Must(gguf.Open(path))(t)
	defer vocabulary.Close()
	for variant, drafts := range [][][]int32{
		{{425, 373, 837, 837, 837, 837, 736}, {624, 260, 572, 572, 572, 572, 572}, {50, 642, 634, 634, 478, 478, 478},
			{585, 120, 687, 687, 687, 687, 687}},
		{{743, 743, 743, 743, 524, 524, 719}, {380, 380, 380, 400, 931, 931, 931},
			{828, 255, 255, 255, 255, 844, 844}, {659, 659, 591, 64, 64, 64, 676}},
	} {
		c, seed := goldenConfig(m, variant == 1), uint64(variant+1)
		weights := Must(synthetic.Tensors(&c, tensor.F32, seed))(t)
		if err := headfile.WriteGGUF(file, "random head", &c, weights, synthetic.Tokens(&c, seed), vocabulary,
			tensor.F32); err != nil {
			t.Fatal(err)
		}
		h := Must(eagle.Open(registry.Head{Name: file}, As(m)))(t)
		d := newDrafter(t, h, &grow.Linear{K: 7}, shortlist.Options{}, m)
		for p, want := range drafts {
			var prompt []int32
			for i := range 20 + 15*p {
				prompt = append(prompt, int32((i*i*31+7+p*101)%900+20))
			}
			last := len(prompt) - 1
			rows := draft.Rows{Tokens: prompt[:last], Tree: tree.Chain(prompt[:last]), Next: -1}
			for i := range rows.Tokens {
				rows.Nodes = append(rows.Nodes, int32(i))
			}
			pass, cache := m.NewPass(), m.NewCache()
			if err := pass.Run(t.Context(), []model.Rows{{Cache: cache, Tree: rows.Tree}}, d.Taps()); err != nil {
				t.Fatal(err)
			}
			state := Must(d.Begin(draft.Options{}))(t)
			rows.State, rows.Pass = state, pass
			Commit(t, d, rows)
			var b tree.Tree
			b.Reset(prompt[last])
			Propose(t, d, draft.Request{State: state, Tree: &b, Budget: 8, Depth: 8})
			if got := b.Token[1:]; !slices.Equal(got, want) {
				t.Errorf("variant %d, prompt %d: drafts %v, llama.cpp drafts %v", variant, p, got, want)
			}
			state.Close()
			cache.Free()
		}
	}
}

// A head that PyTorch saved computes here what PyTorch computes with it (testdata/golden.py): the
// names and shapes of the tensors in the authors' folders, the draft vocabulary, the fusion of the
// taps, positions, rotation, norms and the residual agree, and so do rows below the text, whose
// features are the states of the rows before.
func TestAsPyTorch(t *testing.T) {
	c, tokens := asGolden(t, "testdata/golden", 1e-5)
	if len(tokens) != 12 || !slices.Equal(c.Taps, []int{2, 4, 5}) {
		t.Errorf("a draft vocabulary of %v, taps %v", tokens, c.Taps)
	}
}

// Heads saved by vLLM's speculators package compute here what its layers compute with them
// (testdata/golden_speculators.py), with any combination of the flags.
func TestAsSpeculators(t *testing.T) {
	for name, want := range map[string]eagle.Config{
		"plain": {}, "residual": {NormBeforeResidual: true}, "before-fc": {NormBeforeFC: true},
		"three-one":    {NormBeforeResidual: true, FCNorm: true, NormOutput: true},
		"qwen3-layers": {NormBeforeResidual: true}, "all-tokens": {NormOutput: true},
	} {
		c, tokens := asGolden(t, "testdata/speculators/"+name, 1e-5)
		got := eagle.Config{NormBeforeResidual: c.NormBeforeResidual, NormBeforeFC: c.NormBeforeFC, FCNorm: c.FCNorm,
			NormOutput: c.NormOutput}
		if d := cmp.Diff(want, got); d != "" || (len(tokens) == 12) != (name != "all-tokens") {
			t.Errorf("%s: %s, %d tokens", name, d, len(tokens))
		}
	}
}

// asGolden reads the head of a golden, and compares its logits of rows of text, and of drafted rows
// below, with those stored with it.
func asGolden(t *testing.T, dir string, within float64) (eagle.Config, []int32) {
	t.Helper()
	var golden struct {
		Tokens, Draft, Vocabulary []int32
		Embed, Taps, Logits       []float32 // Embed: the target's, if the head has none
	}
	if err := json.Unmarshal(Must(os.ReadFile(filepath.Join(dir, "logits.json")))(t), &golden); err != nil {
		t.Fatal(err)
	}
	f := Must(headfile.Read(registry.Head{Name: dir}, (&eagle.Config{}).Kind()))(t)
	defer f.Close()
	if err := headfile.For(f.Shape, model.Config{Hidden: 16, Vocab: 20, Layers: 8}); err != nil {
		t.Fatal(err)
	}
	c := *f.Shape.(*eagle.Config)
	if f.Tokens != nil && !slices.Equal(f.Tokens, golden.Vocabulary) {
		t.Errorf("%s: a draft vocabulary of %v, want %v", dir, f.Tokens, golden.Vocabulary)
	}
	weights := f.Weights
	if golden.Embed != nil {
		weights = append(weights, Must(tensor.FromFloat32s("token_embd.weight", tensor.F32, []int{20, 16}, golden.Embed))(t))
	}
	w, pool := model.NewLoader(weights, c.FileArch()), par.New(2)
	defer pool.Close()
	n := Must(eagle.NewNetwork(c, w, f.Tokens, new(model.Network)))(t)
	if err := w.Pack(pool); err != nil {
		t.Fatal(err)
	}

	e := nn.NewExec(pool)
	pages := n.Pages()
	text := len(golden.Tokens)
	all := text + len(golden.Draft)
	cache, rows := pages.NewCache(), new(tree.Tree)
	x, out := nn.NewMat(all, c.Hidden), nn.NewMat(all, c.DraftVocab)
	var bufs eagle.Buffers
	run := func(from int, g nn.Mat) {
		var forest nn.Forest
		forest.Add(cache, rows, from)
		cache.Reserve(from, rows.Len()-from)
		n.Run(e, &forest, rows.Token[from:], g, x.Slice(from, rows.Len()), &bufs)
	}
	taps, g := nn.NewMat(text, n.Width()), nn.NewMat(text, c.Hidden)
	copy(taps.Data, golden.Taps)
	n.Features(e, taps, g, &bufs)
	rows.ResetChain(golden.Tokens)
	run(0, g)
	for i, token := range golden.Draft {
		rows.AppendApart(text+i-1, token)
		copy(g.Row(0), x.Row(text+i-1))
		run(text+i, g.Slice(0, 1))
	}
	e.Linear(n.Output(x), nn.Proj{Linear: &n.Head, Dst: out})
	if len(out.Data) != len(golden.Logits) {
		t.Fatalf("%s: %d logits, want %d", dir, len(out.Data), len(golden.Logits))
	}
	for i, v := range out.Data {
		if math.Abs(float64(v-golden.Logits[i])) > within {
			t.Fatalf("%s: logit %d of row %d is %g, want %g", dir, i%c.DraftVocab, i/c.DraftVocab, v, golden.Logits[i])
		}
	}
	return c, f.Tokens
}
