package jet_test

import (
	"encoding/json"
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
	"github.com/grovellm/grove/draft/jet"
	jetsynth "github.com/grovellm/grove/draft/jet/synth"
	"github.com/grovellm/grove/gguf"
	"github.com/grovellm/grove/model"
	"github.com/grovellm/grove/model/synth"
	"github.com/grovellm/grove/safetensors"
	"github.com/grovellm/grove/tensor"
)

// fileTarget is a small random model and its file.
func fileTarget(t testing.TB) (*model.Model, *gguf.File) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "target.gguf")
	s, err := synth.Lookup("tiny-qwen3")
	if err != nil {
		t.Fatal(err)
	}
	if err := synth.Write(t.Context(), path, s, synth.Options{Type: tensor.Q8_0, Seed: 1}); err != nil {
		t.Fatal(err)
	}
	m, err := model.Open(path, model.Options{Threads: 2})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	f, err := gguf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return m, f
}

// proposal is the tree that a head proposes after some text, which tells heads apart.
func proposal(t testing.TB, n *jet.Network, m *model.Model) draft.Request {
	t.Helper()
	d := newDrafter(t, jet.Options{Tree: jet.DDTree}, n, m)
	s := begin(t, d, draft.Options{}, 7)
	defer s.Close()
	commit(t, d, s.prompt([]int32{3, 1, 4, 1, 5, 9, 2, 6, 5, 3}, n.Hidden, true))
	q := s.request(60, 20, nil)
	propose(t, d, q)
	return q
}

// A head comes back from a file of any type and from a folder as it was: its shape, and what it proposes to the bit.
func TestFilesRoundTrip(t *testing.T) {
	m, vocabulary := fileTarget(t)
	for seed := range uint64(12) {
		rng := rand.New(rand.NewPCG(seed, 9))
		kind := []tensor.Type{tensor.F32, tensor.F16, tensor.BF16, tensor.Q8_0}[seed%4]
		c := jetsynth.Config(rng, m.Config, kind)
		for i := range c.Taps { // folders cannot name the embedding
			c.Taps[i] = max(c.Taps[i], 1)
		}
		c.Name = fmt.Sprint("head ", seed)
		weights, err := jetsynth.Tensors(c, kind, seed)
		if err != nil {
			t.Fatal(err)
		}
		made, err := jetsynth.Network(c, kind, seed, m)
		if err != nil {
			t.Fatal(err)
		}
		want := proposal(t, made, m)
		dir := t.TempDir()
		file, folder := filepath.Join(dir, "head.gguf"), filepath.Join(dir, "head")
		if err := jet.WriteGGUF(file, c.Name, &c, weights, vocabulary, kind); err != nil {
			t.Fatal(err)
		}
		if err := jet.WriteFolder(folder, &c, weights); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, h := range []draft.Head{{Name: file}, {Name: "embedded", Data: data}, {Name: folder}} {
			got, err := jet.ReadConfig(h)
			if err != nil {
				t.Fatal(err)
			}
			expect := c
			if h.Name == folder {
				expect.Name = "" // which folders do not say
			}
			expect.Tied = got.Tied // the head's is the target's
			if d := cmp.Diff(expect, got); d != "" {
				t.Errorf("%s: the shape came back otherwise: %s", h.Name, d)
			}
			head, err := jet.Open(h, as(m))
			if err != nil {
				t.Fatal(err)
			}
			if h.Name == folder && kind != tensor.F32 { // F32 there: the same numbers, multiplied otherwise
				continue
			}
			if err := same(proposal(t, head.Network, m).Tree, want.Tree); err != nil {
				t.Errorf("%s, %v: %v", h.Name, kind, err)
			}
		}
	}
}

// An embedding and an output head of a file's own are used in place of the target's.
func TestOwnEmbeddingAndHead(t *testing.T) {
	m, vocabulary := fileTarget(t)
	c := jetsynth.Config(rand.New(rand.NewPCG(1, 1)), m.Config, tensor.F32)
	weights, err := jetsynth.Tensors(c, tensor.F32, 1)
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
		if err := jet.WriteGGUF(path, "x", &c, w, vocabulary, tensor.F32); err != nil {
			t.Fatal(err)
		}
		h, err := jet.Open(draft.Head{Name: path}, as(m))
		if err != nil {
			t.Fatal(err)
		}
		trees[own] = proposal(t, h.Network, m)
		for other, q := range trees {
			if other != own && same(q.Tree, trees[own].Tree) == nil {
				t.Errorf("own %q proposes what own %q proposes", own, other)
			}
		}
	}
}

// The published form of JetSpec's head for Qwen3-8B: its config.json, and the 58 tensors' names and shapes (reference
// jetspec.md §1.8, §1.9).
const published = `{"architectures": ["DFlashDraftModel"], "attention_bias": false, "block_size": 16,
	"dflash_config": {"causal_head": true, "mask_token_id": 151669, "target_layer_ids": [1, 9, 17, 25, 33]},
	"dtype": "bfloat16", "head_dim": 128, "hidden_act": "silu", "hidden_size": 4096, "intermediate_size": 12288,
	"layer_types": ["full_attention", "full_attention", "full_attention", "full_attention", "full_attention"],
	"max_position_embeddings": 40960, "model_type": "qwen3", "num_attention_heads": 32, "num_hidden_layers": 5,
	"num_key_value_heads": 8, "num_target_layers": 36, "rms_norm_eps": 1e-06, "rope_parameters": {"rope_theta": 1000000, "rope_type": "default"},
	"sliding_window": null, "tie_word_embeddings": false, "use_sliding_window": false, "vocab_size": 151936}`

// writeConfig writes config.json with some fields changed; a nil deletes one. A dot names a field of dflash_config.
func writeConfig(t testing.TB, change map[string]any) string {
	t.Helper()
	var m map[string]any
	if err := json.Unmarshal([]byte(published), &m); err != nil {
		t.Fatal(err)
	}
	for k, v := range change {
		into := m
		if rest, ok := strings.CutPrefix(k, "."); ok {
			into, k = m["dflash_config"].(map[string]any), rest
		}
		if into[k] = v; v == nil {
			delete(into, k)
		}
	}
	data, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "config.json"), data, 0o666); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestPublishedConfig(t *testing.T) {
	want := jet.Config{
		Config: model.Config{Arch: "qwen3", Vocab: 151936, Hidden: 4096, Layers: 5, Heads: 32, KVHeads: 8, HeadDim: 128, FFN: 12288, Context: 40960,
			NormEps: 1e-6, Rope: model.RopeConfig{Base: 1e6, Dims: 128, Scale: 1}},
		Block: 16, Causal: true, Mask: 151669, Taps: []int{2, 10, 18, 26, 34}, TargetLayers: 36,
	}
	flash := want
	flash.Causal = false
	for _, c := range []struct {
		change map[string]any
		want   jet.Config
	}{
		{nil, want},
		{map[string]any{".target_layer_ids": nil}, want}, // the default for 5 layers and a target of 36
		{map[string]any{".causal_head": nil, "block_size": nil}, flash},
		{map[string]any{".causal_head": nil, ".causal": true}, want},
		{map[string]any{".causal_head": false}, flash},
		{map[string]any{"rope_parameters": nil, "rope_theta": 1e6}, want},
		{map[string]any{"sliding_window": 40960, "use_sliding_window": true}, want}, // as wide as the context
		{map[string]any{".target_hidden_size": 4096}, want},
	} {
		got, err := jet.ReadFolder(writeConfig(t, c.change))
		if err != nil {
			t.Errorf("%v: %v", c.change, err)
		} else if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%v: %s", c.change, d)
		}
	}
}

func TestRefusedFolders(t *testing.T) {
	for want, change := range map[string]map[string]any{
		"DFlash2DraftModel is not a head": {"architectures": []string{"DFlash2DraftModel"}},
		"DSpark":                          {"architectures": []string{"Qwen3DSparkModel"}},
		"not a block head":                {"architectures": []string{"Qwen3ForCausalLM"}},
		"hidden_dim_adapter":              {".target_hidden_size": 2048},
		"draft_shift":                     {".draft_shift": true},
		"mask_token_id\" is missing":      {".mask_token_id": nil},
		"mask token is 151936":            {".mask_token_id": 151936},
		"dflash_config\" is missing":      {"dflash_config": nil},
		"want an integer":                 {".mask_token_id": "no"},
		"tapped layers":                   {".target_layer_ids": []int{36}},
		"\"num_target_layers\" are":       {".target_layer_ids": nil, "num_target_layers": nil},
		"window of 4096":                  {"use_sliding_window": true, "sliding_window": 4096, "layer_types": []string{"full_attention", "sliding_attention"}},
		"window of 128":                   {"use_sliding_window": nil, "sliding_window": 128, "layer_types": []string{"sliding_attention"}},
		"block size is 1":                 {"block_size": 1},
		"yarn":                            {"rope_parameters": map[string]any{"rope_theta": 1e6, "rope_type": "yarn"}},
		"\"hidden_size\" is missing":      {"hidden_size": nil},
		"model_type \"gemma\"":            {"model_type": "gemma"},
	} {
		dir := writeConfig(t, change)
		_, err := jet.ReadFolder(dir)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), dir) {
			t.Errorf("%v: %v: want %s", change, err, want)
		}
	}
	if _, err := jet.ReadConfig(draft.Head{Name: filepath.Join(t.TempDir(), "none")}); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("no file: %v", err)
	}
}

// A folder holds what the published ones hold, and no more.
func TestPublishedNames(t *testing.T) {
	m, _ := fileTarget(t)
	c := jet.Config{Config: m.Config, Block: 4, Taps: []int{1, 3}}
	c.Layers, c.FFN = 2, 96
	weights, err := jetsynth.Tensors(c, tensor.F32, 1)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := jet.WriteFolder(dir, &c, weights); err != nil {
		t.Fatal(err)
	}
	f, err := safetensors.OpenFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	h, q, kv := c.Hidden, c.Heads*c.HeadDim, c.KVHeads*c.HeadDim
	want := map[string][]int{"fc.weight": {h, 2 * h}, "hidden_norm.weight": {h}, "norm.weight": {h}}
	for i := range 2 {
		for name, shape := range map[string][]int{
			"input_layernorm": {h}, "post_attention_layernorm": {h}, "self_attn.q_proj": {q, h}, "self_attn.k_proj": {kv, h},
			"self_attn.v_proj": {kv, h}, "self_attn.o_proj": {h, q}, "self_attn.q_norm": {c.HeadDim}, "self_attn.k_norm": {c.HeadDim},
			"mlp.gate_proj": {96, h}, "mlp.up_proj": {96, h}, "mlp.down_proj": {h, 96},
		} {
			want[fmt.Sprintf("layers.%d.%s.weight", i, name)] = shape
		}
	}
	got := map[string][]int{}
	for _, x := range f.Tensors {
		got[x.Name] = x.Shape
	}
	if d := cmp.Diff(want, got); d != "" || len(got) != 3+11*2 {
		t.Error(d)
	}
}

// A head that is not for the target is refused, saying what differs; so are weights that are not the shape's.
func TestRefusedHeads(t *testing.T) {
	m, vocabulary := fileTarget(t)
	good := jetsynth.Config(rand.New(rand.NewPCG(3, 3)), m.Config, tensor.F32)
	good.Taps, good.TargetLayers = []int{1, 2}, m.Config.Layers
	path := filepath.Join(t.TempDir(), "head.gguf")
	for want, change := range map[string]func(c *jet.Config){
		"":                       func(*jet.Config) {},
		"hidden size is 96":      func(c *jet.Config) { c.Hidden = 96 },
		"vocabulary has 999":     func(c *jet.Config) { c.Vocab, c.Mask = 999, 5 },
		"made for a target of 9": func(c *jet.Config) { c.TargetLayers = 9 },
		"taps layers [1 7]":      func(c *jet.Config) { c.Taps, c.TargetLayers = []int{1, 7}, 0 },
	} {
		c := good
		change(&c)
		weights, err := jetsynth.Tensors(c, tensor.F32, 1)
		if err != nil {
			t.Fatal(err)
		}
		if err := jet.WriteGGUF(path, "x", &c, weights, vocabulary, tensor.F32); err != nil {
			t.Fatal(err)
		}
		_, err = jet.Open(draft.Head{Name: path}, as(m))
		if want == "" != (err == nil) || err != nil && (!strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path)) {
			t.Errorf("%q: %v", want, err)
		}
	}
	weights, err := jetsynth.Tensors(good, tensor.F32, 1)
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
		"is missing": weights[1:], "not one of a head": append(slices.Clone(weights), extra), "has shape": wide, "there twice": append(slices.Clone(weights), weights[0]),
	} {
		for _, err := range []error{jet.WriteGGUF(path, "x", &good, w, vocabulary, tensor.F32), jet.WriteFolder(t.TempDir(), &good, w)} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v", want, err)
			}
		}
	}
	if _, err := jet.ReadConfig(draft.Head{Name: vocabulary.Path}); !errors.Is(err, jet.ErrKind) {
		t.Errorf("a model for a head: %v", err)
	}
	if _, err := model.Open(path, model.Options{}); err == nil || !strings.Contains(err.Error(), "a drafter's head") {
		t.Errorf("a head for a model: %v", err)
	}
}

// The first head of its kind is taken, once for all who ask.
func TestFind(t *testing.T) {
	m, vocabulary := fileTarget(t)
	target := as(m)
	target.Shared = &draft.Shared{}
	if _, err := jet.Find(target, true); err == nil || !strings.Contains(err.Error(), "model=FILE") {
		t.Errorf("no heads: %v", err)
	}
	target.Heads = []draft.Head{{Name: vocabulary.Path}} // of another kind
	for i, causal := range []bool{false, true, true} {
		c := jetsynth.Config(rand.New(rand.NewPCG(uint64(i), 4)), m.Config, tensor.F32)
		c.Causal = causal
		weights, err := jetsynth.Tensors(c, tensor.F32, 1)
		if err != nil {
			t.Fatal(err)
		}
		h := draft.Head{Name: filepath.Join(t.TempDir(), "head.gguf")}
		if err := jet.WriteGGUF(h.Name, "x", &c, weights, vocabulary, tensor.F32); err != nil {
			t.Fatal(err)
		}
		target.Heads = append(target.Heads, h)
	}
	for i, causal := range map[int]bool{1: false, 2: true} {
		h, err := jet.Find(target, causal)
		if err != nil {
			t.Fatal(err)
		}
		again, err := jet.Open(target.Heads[i], target)
		if err != nil || h != again || h.Name != target.Heads[i].Name || h.Causal != causal {
			t.Errorf("causal %v: got %s, which is loaded anew: %v", causal, h.Name, h != again)
		}
	}
}

// Whatever happens to a file, opening it ends in an error that names it or in a head that drafts.
func FuzzOpen(f *testing.F) {
	m, vocabulary := fileTarget(f)
	c := jetsynth.Config(rand.New(rand.NewPCG(5, 5)), m.Config, tensor.F32)
	weights, err := jetsynth.Tensors(c, tensor.F32, 1)
	if err != nil {
		f.Fatal(err)
	}
	path := filepath.Join(f.TempDir(), "head.gguf")
	if err := jet.WriteGGUF(path, "x", &c, weights, vocabulary, tensor.F32); err != nil {
		f.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	head := len(data) - 4*sizeOf(weights)
	rng := rand.New(rand.NewPCG(6, 6))
	f.Add(uint32(0), byte(0))
	for range 40 {
		f.Add(rng.Uint32(), byte(rng.Uint32()))
	}
	f.Fuzz(func(t *testing.T, at uint32, value byte) {
		bad := slices.Clone(data)
		bad[int(at)%head] = value
		h, err := jet.Open(draft.Head{Name: "damaged", Data: bad}, as(m))
		if err != nil {
			if !strings.Contains(err.Error(), "damaged") {
				t.Fatalf("an error that does not name the file: %v", err)
			}
			return
		}
		proposal(t, h.Network, m)
	})
}

func sizeOf(weights []tensor.Tensor) int {
	n := 0
	for _, w := range weights {
		n += w.Elements()
	}
	return n
}
