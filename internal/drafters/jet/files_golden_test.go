package jet_test

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/gguf"
	. "github.com/grovellm/grove/internal/drafters/drafttest"
	"github.com/grovellm/grove/internal/drafters/jet"
	"github.com/grovellm/grove/internal/drafters/onepass"
	"github.com/grovellm/grove/internal/drafters/registry"
	"github.com/grovellm/grove/internal/drafters/synthetic"
	"github.com/grovellm/grove/internal/heads/headfile"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/model/synth"
	"github.com/grovellm/grove/tensor"
	"github.com/grovellm/grove/tree"
)

// A bidirectional head drafts here what it drafts in llama.cpp (draft-dflash, d32676d; F32 files,
// keys and values in F32) with the two files that this test writes and the same prompts: the taps,
// their order, positions, masks and names agree.
func TestAsLlamaDrafts(t *testing.T) {
	dir := t.TempDir()
	path, head := filepath.Join(dir, "target.gguf"), filepath.Join(dir, "head.gguf")
	s, err := synth.Lookup("tiny-qwen3")
	if err != nil {
		t.Fatal(err)
	}
	if err := synth.Write(t.Context(), path, s, synth.Options{Type: tensor.F32, Seed: 7}); err != nil {
		t.Fatal(err)
	}
	m, err := model.Open(path, model.Options{Threads: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	vocabulary, err := gguf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer vocabulary.Close()
	c := jet.Config{Base: headfile.Base{Config: m.Config, Taps: []int{1, 3, 2}}, Block: 8, Mask: 5}
	c.Layers = 2
	c.Heads = 6
	c.KVHeads = 2
	c.HeadDim = 48
	c.FFN = 224
	c.Rope.Dims = 48
	c.Rope.Base = 5e5
	weights, err := synthetic.Tensors(&c, tensor.F32, 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := headfile.WriteGGUF(head, "random head", &c, weights, nil, vocabulary, tensor.F32); err != nil {
		t.Fatal(err)
	}
	h, err := jet.Open(registry.Head{Name: head}, As(m))
	if err != nil {
		t.Fatal(err)
	}
	d := newDrafter(t, jet.Options{Tree: onepass.Chain}, h, m)
	for p, want := range [][]int32{
		{932, 817, 123, 123, 626, 817, 817},
		{198, 257, 415, 257, 198, 198, 415},
		{835, 835, 925, 835, 835, 835, 835},
		{778, 778, 778, 765, 765, 765, 765},
	} {
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
		state := Begin(t, d, draft.Options{}, 0)
		rows.State, rows.Pass = state.State, pass
		Commit(t, d, rows)
		state.Root = prompt[last]
		q := state.Request(c.Block, c.Block, nil)
		Propose(t, d, q)
		if got := q.Tree.Token[1:]; !slices.Equal(got, want) {
			t.Errorf("prompt %d: drafts %v, llama.cpp drafts %v", p, got, want)
		}
		state.Close()
		cache.Free()
	}
}
