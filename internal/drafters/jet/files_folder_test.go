package jet_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	. "github.com/grovellm/grove/internal/drafters/drafttest"
	"github.com/grovellm/grove/internal/drafters/jet"
	"github.com/grovellm/grove/internal/drafters/registry"
	"github.com/grovellm/grove/internal/drafters/synthetic"
	"github.com/grovellm/grove/internal/files/safetensors"
	"github.com/grovellm/grove/internal/heads/headfile"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/testing/testfile"
	"github.com/grovellm/grove/tensor"
)

// The published form of JetSpec's head for Qwen3-8B: its config.json, and the names and shapes of
// its 58 tensors.
const published = `{"architectures": ["DFlashDraftModel"], "attention_bias": false, "block_size": 16,
	"dflash_config": {"causal_head": true, "mask_token_id": 151669, "target_layer_ids": [1, 9, 17, 25, 33]},
	"dtype": "bfloat16", "head_dim": 128, "hidden_act": "silu", "hidden_size": 4096, "intermediate_size": 12288,
	"layer_types": ["full_attention", "full_attention", "full_attention", "full_attention", "full_attention"],
	"max_position_embeddings": 40960, "model_type": "qwen3", "num_attention_heads": 32, "num_hidden_layers": 5,
	"num_key_value_heads": 8, "num_target_layers": 36, "rms_norm_eps": 1e-06, "rope_parameters": {"rope_theta": 1000000, "rope_type": "default"},
	"sliding_window": null, "tie_word_embeddings": false, "use_sliding_window": false, "vocab_size": 151936}`

// writeConfig writes config.json with some fields changed; a nil deletes one. A name with a dot is
// a field of dflash_config.
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
		into[k] = v
		if v == nil {
			delete(into, k)
		}
	}
	data, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	testfile.Write(t, filepath.Join(dir, "config.json"), data)
	return dir
}

// readFolder reads the shape that a config.json describes.
func readFolder(dir string) (c jet.Config, err error) {
	f := headfile.File{Dir: dir}
	if f.JSON, err = headfile.ReadFolder(dir); err != nil {
		return c, err
	}
	if _, err = c.ReadFolder(&f); err == nil {
		err = c.Validate()
	}
	return c, headfile.Named(registry.Head{Name: dir}, err)
}

func TestPublishedConfig(t *testing.T) {
	want := jet.Config{
		Base: headfile.Base{Config: model.Config{Arch: "qwen3", Vocab: 151936, Hidden: 4096, Layers: 5, Heads: 32,
			KVHeads: 8,
			HeadDim: 128, FFN: 12288, Context: 40960,
			NormEps: 1e-6, Rope: model.RopeConfig{Base: 1e6, Dims: 128, Scale: 1}},
			Taps: []int{2, 10, 18, 26, 34}, TargetLayers: 36},
		Block: 16, Causal: true, Mask: 151669,
	}
	flash := want
	flash.Causal = false
	short := want
	short.Block = 8
	long := want // as exporters write heads that were trained on short texts
	long.Context = 131072
	long.Rope.Scale, long.Rope.Original = 32, 4096
	long.Rope.Yarn = &model.Yarn{Fast: 32, Slow: 1}
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
		{map[string]any{".block_size": 8, "block_size": nil}, short},
		{map[string]any{"rope_parameters": map[string]any{"rope_theta": 1e6, "rope_type": "yarn", "factor": 32.,
			"original_max_position_embeddings": 4096}}, long},
	} {
		got, err := readFolder(writeConfig(t, c.change))
		if err != nil {
			t.Errorf("%v: %v", c.change, err)
		} else if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%v: %s", c.change, d)
		}
	}
}

func TestRefusedFolders(t *testing.T) {
	for want, change := range map[string]map[string]any{
		"this is a DSpark head of another": {"architectures": []string{"Gemma4DSparkModel"}},
		"DFlash2DraftModel":                {"architectures": []string{"DFlash2DraftModel"}},
		"no block head":                    {"architectures": []string{"Qwen3ForCausalLM"}},
		"hidden_dim_adapter":               {".target_hidden_size": 2048},
		"draft_shift":                      {".draft_shift": true},
		"projector_type":                   {".projector_type": "domino"},
		"leave one of them out":            {".block_size": 8},
		"mask_token_id\" is missing":       {".mask_token_id": nil},
		"mask token is 151936":             {".mask_token_id": 151936},
		"dflash_config\" is missing":       {"dflash_config": nil},
		"want an integer":                  {".mask_token_id": "no"},
		"taps layers":                      {".target_layer_ids": []int{36}},
		"\"num_target_layers\" are":        {".target_layer_ids": nil, "num_target_layers": nil},
		"lists 2 layers": {"use_sliding_window": true, "sliding_window": 4096,
			"layer_types": []string{"full_attention", "sliding_attention"}},
		"use_sliding_window\" is missing": {"use_sliding_window": nil, "sliding_window": 128,
			"layer_types": []string{"sliding_attention"}},
		"block size is 1":            {"block_size": 1},
		"yarn":                       {"rope_parameters": map[string]any{"rope_theta": 1e6, "rope_type": "yarn"}},
		"\"hidden_size\" is missing": {"hidden_size": nil},
		"model_type \"bloom\"":       {"model_type": "bloom"},
	} {
		dir := writeConfig(t, change)
		_, err := readFolder(dir)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), dir) {
			t.Errorf("%v: %v: want %s", change, err, want)
		}
	}
	if _, err := headfile.ReadConfig[jet.Config](registry.Head{Name: filepath.Join(t.TempDir(), "none")},
		nil); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("no file: %v", err)
	}
}

// A folder has what the published ones have, and no more.
func TestPublishedNames(t *testing.T) {
	m, _ := FileTarget(t)
	c := jet.Config{Base: headfile.Base{Config: m.Config, Taps: []int{1, 3}}, Block: 4}
	c.Layers, c.FFN = 2, 96
	weights, err := synthetic.Tensors(&c, tensor.F32, 1)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := headfile.WriteFolder(dir, &c, weights, nil); err != nil {
		t.Fatal(err)
	}
	f, err := safetensors.OpenFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	h := c.Hidden
	q := c.Heads * c.HeadDim
	kv := c.KVHeads * c.HeadDim
	want := map[string][]int{"fc.weight": {h, 2 * h}, "hidden_norm.weight": {h}, "norm.weight": {h}}
	for i := range 2 {
		for name, shape := range map[string][]int{
			"input_layernorm": {h}, "post_attention_layernorm": {h}, "self_attn.q_proj": {q, h},
			"self_attn.k_proj": {kv, h},
			"self_attn.v_proj": {kv, h}, "self_attn.o_proj": {h, q}, "self_attn.q_norm": {c.HeadDim},
			"self_attn.k_norm": {c.HeadDim},
			"mlp.gate_proj":    {96, h}, "mlp.up_proj": {96, h}, "mlp.down_proj": {h, 96},
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
