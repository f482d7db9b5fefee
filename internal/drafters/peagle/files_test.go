package peagle_test

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
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
	"github.com/grovellm/grove/internal/drafters/peagle"
	"github.com/grovellm/grove/internal/drafters/registry"
	"github.com/grovellm/grove/internal/drafters/synthetic"
	"github.com/grovellm/grove/internal/files/ggufkeys"
	"github.com/grovellm/grove/internal/files/numtype"
	"github.com/grovellm/grove/internal/files/reshape"
	"github.com/grovellm/grove/internal/files/safetensors"
	"github.com/grovellm/grove/internal/heads/headfile"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/testing/cases"
	"github.com/grovellm/grove/internal/testing/testfile"
	"github.com/grovellm/grove/tensor"
	"pgregory.net/rapid"
)

// The published forms, but with small numbers: vLLM's speculators, with the head's own embeddings,
// and the folders that vLLM reads without them.
const (
	speculators = `{"architectures": ["PEagleSpeculator"], "speculators_model_type": "peagle", "speculators_version": "0.5.0", "draft_vocab_size": 6,
		"target_hidden_size": null, "norm_before_residual": false, "norm_before_fc": false, "fc_norm": false, "norm_output": false,
		"embed_requires_grad": true, "mask_token_id": 5, "torch_dtype": "bfloat16", "eagle_aux_hidden_state_layer_ids": [2, 6, 9],
		"transformer_layer_config": {"model_type": "llama", "hidden_size": 8, "intermediate_size": 24, "num_hidden_layers": 2,
			"num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 4, "vocab_size": 20, "rms_norm_eps": 1e-05,
			"rope_theta": 10000, "max_position_embeddings": 2048, "hidden_act": "silu", "attention_bias": false},
		"speculators_config": {"algorithm": "peagle", "default_proposal_method": "greedy",
			"proposal_methods": [{"proposal_type": "greedy", "speculative_tokens": 4}], "verifier": {"name_or_path": "Qwen/Qwen3-8B"}}}`
	plain = `{"architectures": ["LlamaForCausalLMEagle3"], "hidden_act": "silu", "hidden_size": 8, "intermediate_size": 24, "head_dim": 4,
		"max_position_embeddings": 2048, "model_type": "llama", "num_attention_heads": 2, "num_key_value_heads": 1, "num_hidden_layers": 2,
		"rms_norm_eps": 1e-05, "rope_theta": 10000, "tie_word_embeddings": false, "vocab_size": 20, "draft_vocab_size": 6,
		"eagle_aux_hidden_state_layer_ids": [2, 6, 9], "pard_token": 5}`
)

// shapes returns the tensors of such a folder, by the names of PyTorch's modules.
func shapes() map[string][]int {
	list := map[string][]int{"mask_hidden": {1, 1, 24}, "embed_tokens.weight": {20, 8}, "fc.weight": {8, 24},
		"norm.weight": {8}, "lm_head.weight": {6, 8},
		"layers.0.hidden_norm.weight": {8}}
	for i, in := range []int{16, 8} {
		name := fmt.Sprintf("layers.%d.", i)
		maps.Copy(list, map[string][]int{
			name + "self_attn.q_proj.weight": {8, in}, name + "self_attn.k_proj.weight": {4, in},
			name + "self_attn.v_proj.weight": {4, in},
			name + "self_attn.o_proj.weight": {8, 8}, name + "mlp.gate_proj.weight": {24, 8},
			name + "mlp.up_proj.weight":   {24, 8},
			name + "mlp.down_proj.weight": {8, 24}, name + "input_layernorm.weight": {8},
			name + "post_attention_layernorm.weight": {8},
		})
	}
	return list
}

// folder writes a config.json with some fields changed (a nil deletes one), and tensors of zeros.
func folder(t testing.TB, config string, change map[string]any, list map[string][]int) string {
	t.Helper()
	var m map[string]any
	if err := json.Unmarshal([]byte(config), &m); err != nil {
		t.Fatal(err)
	}
	for k, v := range change {
		m[k] = v
		if v == nil {
			delete(m, k)
		}
	}
	dir, w := t.TempDir(), safetensors.NewWriter()
	for name, shape := range list {
		w.AddTensor(Must(tensor.FromFloat32s(name, tensor.F16, shape,
			make([]float32, Must(numtype.CountElements(shape))(t))))(t))
	}
	d2t, t2d := []byte{}, make([]byte, 20)
	for i, id := range []int{0, 1, 3, 7, 12, 19} {
		d2t = binary.LittleEndian.AppendUint64(d2t, uint64(id-i))
		t2d[id] = 1
	}
	w.AddTensor(tensor.Tensor{Name: "d2t", Type: numtype.I64, Shape: []int{6}, Data: d2t})
	w.AddTensor(tensor.Tensor{Name: "t2d", Type: numtype.Bool, Shape: []int{20}, Data: t2d})
	if err := w.WriteFile(filepath.Join(dir, "model.safetensors")); err != nil {
		t.Fatal(err)
	}
	testfile.Write(t, filepath.Join(dir, "config.json"), Must(json.Marshal(m))(t))
	return dir
}

// published returns the shape that those folders describe.
func published(change func(c *peagle.Config)) peagle.Config {
	layer := model.Config{Arch: "llama", Vocab: 20, Hidden: 8, Layers: 2, Heads: 2, KVHeads: 1, HeadDim: 4, FFN: 24,
		Context: 2048, NormEps: 1e-5,
		Rope: model.RopeConfig{Base: 1e4, Dims: 4, Scale: 1}}
	c := peagle.Config{Config: eagle.Config{Base: headfile.Base{Config: layer, Taps: []int{2, 6, 9}, DraftVocab: 6},
		Version: 3},
		Depths: 4, Mask: 5}
	change(&c)
	return c
}

func TestPublishedFolders(t *testing.T) {
	target := model.Config{Hidden: 8, Vocab: 20, Layers: 12}
	flat := shapes()
	flat["mask_hidden"] = []int{1, 24}
	delete(flat, "embed_tokens.weight")
	same := func(*peagle.Config) {}
	eight := func(c *peagle.Config) { c.Depths = 8 }
	for name, c := range map[string]struct {
		config string
		change map[string]any
		list   map[string][]int
		want   func(c *peagle.Config)
	}{
		"speculators": {speculators, nil, shapes(), same},
		"speculators, taps unsaid": {speculators, map[string]any{"eagle_aux_hidden_state_layer_ids": nil},
			shapes(), same},
		"speculators, residual unsaid": {speculators, map[string]any{"norm_before_residual": nil}, shapes(), same},
		"speculators, normed residual": {speculators, map[string]any{"norm_before_residual": true}, shapes(),
			func(c *peagle.Config) { c.NormBeforeResidual = true }},
		"speculators, depths unsaid": {speculators, map[string]any{"speculators_config": map[string]any{}},
			shapes(), eight},
		"vLLM, pard_token": {plain, nil, flat, eight},
		"vLLM, ptd_token_id": {plain, map[string]any{"pard_token": nil, "ptd_token_id": 7}, flat,
			func(c *peagle.Config) { c.Depths, c.Mask = 8, 7 }},
		"vLLM, mask_token_id": {plain, map[string]any{"mask_token_id": 9}, flat,
			func(c *peagle.Config) { c.Depths, c.Mask = 8, 9 }},
		"vLLM, dflash_config": {plain, map[string]any{"mask_token_id": 9,
			"dflash_config": map[string]any{"mask_token_id": 0}}, flat, func(c *peagle.Config) {
			c.Depths, c.Mask = 8,
				0
		}},
	} {
		got, err := headfile.ReadConfig[peagle.Config](registry.Head{Name: folder(t, c.config, c.change, c.list)}, &target)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if d := cmp.Diff(published(c.want), got); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}

func TestRefusedFolders(t *testing.T) {
	with := func(name string, shape ...int) map[string][]int {
		list := shapes()
		list[name] = shape
		if shape == nil {
			delete(list, name)
		}
		return list
	}
	for want, c := range map[string]struct {
		change map[string]any
		list   map[string][]int
	}{
		"mask_token_id\" is missing": {map[string]any{"mask_token_id": nil}, shapes()},
		"mask token is 20":           {map[string]any{"mask_token_id": 20}, shapes()},
		"mask_hidden is missing":     {nil, with("mask_hidden")},
		"mask_hidden\" has shape":    {nil, with("mask_hidden", 1, 2, 12)},
		"has no tensor mask_hidden":  {map[string]any{"speculators_model_type": nil}, with("mask_hidden")},
		"speculators_model_type is":  {map[string]any{"speculators_model_type": "eagle3"}, shapes()},
		"depths are 99999": {map[string]any{"speculators_config": map[string]any{
			"proposal_methods": []any{map[string]any{"speculative_tokens": 99999}}}}, shapes()},
		"mask_embd\" does not belong":   {nil, with("mask_embd", 3, 8)},
		"embed_tokens.weight\" has sha": {nil, with("embed_tokens.weight", 19, 8)},
	} {
		dir := folder(t, speculators, c.change, c.list)
		_, err := headfile.ReadConfig[peagle.Config](registry.Head{Name: dir},
			&model.Config{Hidden: 8, Vocab: 20, Layers: 12})
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), dir) {
			t.Errorf("%q: %v", want, err)
		}
	}
}

// Written folders have the names and shapes that vLLM's speculators look for, and no others.
func TestNames(t *testing.T) {
	c := published(func(*peagle.Config) {})
	tokens := []int32{0, 1, 3, 7, 12, 19}
	weights := Must(synthetic.Tensors(&c, tensor.F32, 5))(t) // with its own embeddings
	dir := t.TempDir()
	target := model.Config{Arch: "llama", Name: "target", Vocab: 20, Hidden: 8, Layers: 12, Heads: 2, KVHeads: 1,
		HeadDim: 4, FFN: 24, Context: 64, NormEps: 1e-5,
		Rope: model.RopeConfig{Base: 1e4, Dims: 4, Scale: 1}}
	if err := headfile.WriteSpeculators(dir, &c, weights, tokens, target); err != nil {
		t.Fatal(err)
	}
	f := Must(safetensors.OpenFolder(dir))(t)
	defer f.Close()
	got := map[string][]int{}
	for _, x := range f.Tensors {
		got[x.Name] = x.Shape
	}
	want := shapes()
	want["d2t"], want["t2d"] = []int{6}, []int{20}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	var written, like map[string]any
	if err := errors.Join(json.Unmarshal(Must(os.ReadFile(filepath.Join(dir, "config.json")))(t), &written),
		json.Unmarshal([]byte(speculators), &like)); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"architectures", "speculators_model_type", "mask_token_id", "draft_vocab_size",
		"eagle_aux_hidden_state_layer_ids", "norm_before_residual"} {
		if !cmp.Equal(written[key], like[key]) {
			t.Errorf("config.json has %s = %v, want %v", key, written[key], like[key])
		}
	}
	if got := Must(headfile.ReadConfig[peagle.Config](registry.Head{Name: dir}, &target))(t); !cmp.Equal(got, c) {
		t.Errorf("read back: %s", cmp.Diff(c, got))
	}
}

// A head read from any form has the weights that were written, to the bit.
func TestForms(t *testing.T) {
	m := OpenTarget(t, 400)
	dir := t.TempDir()
	cases.Check(t, 40, func(r *rapid.T) {
		seed := rapid.Uint64Range(0, 99).Draw(r, "head")
		c := synthetic.Config[peagle.Config](rand.New(rand.NewPCG(seed, 9)), "", m.Config, tensor.F32)
		weights, tokens := Must(synthetic.Tensors(&c, tensor.F32, 3*seed))(r), synthetic.Tokens(&c, seed)
		file, vllm := filepath.Join(dir, "head.gguf"), filepath.Join(dir, "vllm")
		if err := headfile.WriteGGUF(file, "x", &c, weights, tokens, nil, tensor.F32); err != nil {
			r.Fatal(err)
		}
		forms := []string{file}
		switch err := headfile.WriteSpeculators(vllm, &c, weights, tokens, m.Config); {
		case (err == nil) != (c.Masks == 0):
			r.Fatalf("%d mask embeddings: a folder for vLLM: %v", c.Masks, err)
		case err == nil:
			forms = append(forms, vllm)
		}
		for _, name := range forms {
			f := Must(headfile.Read(registry.Head{Name: name}, c.Kind()))(r)
			got := *f.Shape.(*peagle.Config)
			got.Rope.Neighbours = false
			got.Name = ""
			got.Context = c.Context
			if !cmp.Equal(got, c) || !slices.Equal(f.Tokens, tokens) {
				r.Fatalf("%s: %s", name, cmp.Diff(c, got))
			}
			if name == vllm { // a file stores rows of llama layers in another order
				for _, w := range f.Weights {
					i := slices.IndexFunc(weights, func(x tensor.Tensor) bool { return x.Name == w.Name })
					if same, err := reshape.Equal(Must(w.ReadAll())(r), weights[i]); !same || err != nil {
						r.Fatalf("%s: tensor %s is another", name, w.Name)
					}
				}
			}
			f.Close()
		}
	})
}

// The drafters open the first head of their method, or the given file, and say what does not fit.
func TestFamilies(t *testing.T) {
	m := OpenTarget(t, 400)
	dir := t.TempDir()
	target := As(m)
	target.Shared = new(registry.Shared)
	for i, masks := range []bool{true, false, true, false} { // they are distinguished by their taps
		c := synthetic.Config[peagle.Config](rand.New(rand.NewPCG(uint64(i), 0)),
			map[bool]string{true: "parallelspec", false: "peagle"}[masks], m.Config, tensor.F32)
		c.Taps, c.DraftVocab = make([]int, i+1), c.Vocab
		h := registry.Head{Name: filepath.Join(dir, fmt.Sprint("head", i))}
		if err := headfile.WriteGGUF(h.Name, "head", &c, Must(synthetic.Tensors(&c, tensor.F32, 1))(t), nil, nil,
			tensor.F32); err != nil {
			t.Fatal(err)
		}
		target.Heads = append(target.Heads, h)
	}
	for text, taps := range map[string]int{
		"peagle": 2, "parallelspec": 1, "peagle+text": 2, "peagle:tree=chain": 2,
		"peagle:width=3,depth=1+freq:size=40":                        2,
		"parallelspec:tree=accum-logp,model=" + target.Heads[2].Name: 3, "peagle:model=" + target.Heads[3].Name: 4,
	} {
		if d, err := registry.New(text, target); err != nil {
			t.Errorf("%s: %v", text, err)
		} else if got := d.Taps(); len(got) != taps {
			t.Errorf("%s taps %v, want the head with %d taps", text, got, taps)
		}
	}
	for text, say := range map[string]string{
		"peagle:model=" + target.Heads[0].Name:       "is a ParallelSpec head",
		"parallelspec:model=" + target.Heads[1].Name: "is a P-EAGLE head",
		"peagle:tree=oak":                            "want one of accum-logp, ddtree",
		"peagle:depth=4000":                          "the tokens that a pass drafts",
		"peagle:model=" + dir:                        "config.json",
		"peagle:preset=paper":                        "no such option",
		"peagle:width=many":                          "want a value like",
		"peagle+dynaspec":                            "peagle takes",
		"parallelspec:lambda=.5":                     "no such option",
	} {
		if _, err := registry.New(text, target); err == nil || !strings.Contains(err.Error(), say) {
			t.Errorf("%s: %v, want an error that says %q", text, err, say)
		}
	}
	target.Heads = target.Heads[:1]
	if _, err := registry.New("peagle", target); err == nil || !strings.Contains(err.Error(), "no P-EAGLE head") {
		t.Errorf("without a P-EAGLE head: %v", err)
	}
}

// Whatever config.json says, reading it ends in an error that names the folder, or in a shape that
// matches its tensors.
func FuzzConfig(f *testing.F) {
	dir := folder(f, speculators, nil, shapes())
	f.Add([]byte(speculators))
	f.Add([]byte(strings.ReplaceAll(speculators, `"mask_token_id": 5`, `"mask_token_id": -1`)))
	f.Add([]byte(strings.ReplaceAll(speculators, `"speculative_tokens": 4`, `"speculative_tokens": 1e9`)))
	f.Add([]byte(strings.ReplaceAll(speculators, `[2, 6, 9]`, `[]`)))
	f.Add([]byte(`{"speculators_model_type": "peagle", "dflash_config": 3}`))
	f.Fuzz(func(t *testing.T, config []byte) {
		testfile.Write(t, filepath.Join(dir, "config.json"), config)
		c, err := headfile.ReadConfig[peagle.Config](registry.Head{Name: dir},
			&model.Config{Hidden: 8, Vocab: 20, Layers: 12})
		if err != nil && !strings.Contains(err.Error(), dir) {
			t.Fatalf("an error that does not name the folder: %v", err)
		}
		if err == nil && (c.Hidden != 8 || c.Depths < 2 || int(c.Mask) >= c.Vocab) {
			t.Fatalf("%+v is not what the tensors make", c)
		}
	})
}

// A GGUF file with more or fewer keys or tensors than such heads have is refused.
func TestRefusedFiles(t *testing.T) {
	c := published(func(c *peagle.Config) { c.Masks = 3 })
	name := filepath.Join(t.TempDir(), "head.gguf")
	if err := headfile.WriteGGUF(name, "x", &c, Must(synthetic.Tensors(&c, tensor.F32, 5))(t),
		[]int32{0, 1, 3, 7, 12, 19}, nil, tensor.F32); err != nil {
		t.Fatal(err)
	}
	f := Must(gguf.Open(name))(t)
	defer f.Close()
	for say, change := range map[string]func(w *gguf.Writer){
		"":                         func(*gguf.Writer) {},
		"depths are 1":             func(w *gguf.Writer) { w.Set("peagle.depths", uint32(1)) },
		"mask_embd.weight\" has":   func(w *gguf.Writer) { w.Set("peagle.depths", uint32(9)) },
		"mask_embd.weight\" does":  func(w *gguf.Writer) { w.Set("peagle.mask_embeddings", false) },
		"peagle.a_key_of_tomorrow": func(w *gguf.Writer) { w.Set("peagle.a_key_of_tomorrow", true) },
	} {
		w := new(gguf.Writer)
		ggufkeys.SetAll(w, f)
		for _, info := range f.Tensors {
			x, _ := f.Tensor(info.Name)
			w.AddTensor(x)
		}
		change(w)
		changed := filepath.Join(t.TempDir(), "changed.gguf")
		if err := w.WriteFile(changed); err != nil {
			t.Fatal(err)
		}
		_, err := headfile.ReadConfig[peagle.Config](registry.Head{Name: changed}, nil)
		if say == "" && err != nil || say != "" && (err == nil || !strings.Contains(err.Error(), say)) {
			t.Errorf("%q: %v", say, err)
		}
	}
}
