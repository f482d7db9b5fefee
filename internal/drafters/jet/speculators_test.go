package jet_test

import (
	"encoding/json"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/grovellm/grove/internal/drafters/drafttest"
	"github.com/grovellm/grove/internal/drafters/jet"
	"github.com/grovellm/grove/internal/drafters/registry"
	"github.com/grovellm/grove/internal/drafters/synthetic"
	"github.com/grovellm/grove/internal/heads"
	"github.com/grovellm/grove/internal/heads/headfile"
	"github.com/grovellm/grove/internal/testing/testfile"
	"github.com/grovellm/grove/tensor"
)

// A DFlash head in the form of vLLM's speculators drafts as the same head in its authors' form.
// What such a folder may have but grove does not implement is refused by name.
func TestSpeculators(t *testing.T) {
	m, _ := FileTarget(t)
	c := synthetic.Config[jet.Config](rand.New(rand.NewPCG(4, 4)), "", m.Config, tensor.F32)
	c.Causal = false
	c.Block = 8
	c.Taps = []int{2, 1, 4}
	c.TargetLayers = 0
	weights := Must(synthetic.Tensors(&c, tensor.F32, 1))(t)
	dir := t.TempDir()
	if err := headfile.WriteFolder(dir, &c, weights, nil); err != nil {
		t.Fatal(err)
	}
	open := func() (*jet.Network, error) { return jet.Open(registry.Head{Name: dir}, As(m)) }
	want := proposal(t, Must(open())(t), m)

	var layers map[string]any
	path := filepath.Join(dir, "config.json")
	if err := json.Unmarshal(Must(os.ReadFile(path))(t), &layers); err != nil {
		t.Fatal(err)
	}
	delete(layers, "dflash_config")
	delete(layers, "block_size")
	// Fields of the target's config.json; the layers are Qwen3's.
	layers["tie_word_embeddings"], layers["architectures"] = true, []string{"LlamaForCausalLM"}
	layers["model_type"] = "llama"
	top := map[string]any{
		"architectures": []string{"DFlashSpeculator"}, "speculators_model_type": "dflash",
		"speculators_version": "0.5.0", "draft_vocab_size": c.Vocab,
		"block_size": 8, "aux_hidden_state_layer_ids": c.Taps, "mask_token_id": c.Mask, "target_hidden_size": nil,
		"projector_type":            "dflash",
		"sliding_window_non_causal": false, "sample_from_anchor": false, "shift_label": false,
		"transformer_layer_config": layers,
		"speculators_config": map[string]any{"algorithm": "dflash",
			"verifier": map[string]any{"name_or_path": "x"}},
	}
	write := func(change map[string]any) {
		t.Helper()
		config := maps.Clone(top)
		for name, v := range change {
			if rest, ok := strings.CutPrefix(name, "layers."); ok {
				inner := maps.Clone(layers)
				inner[rest] = v
				config["transformer_layer_config"] = inner
				continue
			}
			config[name] = v
			if v == "gone" {
				delete(config, name)
			}
		}
		testfile.Write(t, path, Must(json.Marshal(config))(t))
	}
	for _, change := range []map[string]any{nil, {"architectures": []string{"DFlashDraftModel"}},
		{"block_size": "gone"}, {"draft_vocab_size": "gone"}, {"layers.model_type": "qwen3"}} {
		write(change)
		h, err := open()
		if err != nil {
			t.Fatalf("%v: %v", change, err)
		}
		if err := Same(proposal(t, h, m).Tree, want.Tree); err != nil {
			t.Errorf("%v: %v", change, err)
		}
		if text, err := heads.Describe(registry.Head{Name: dir}); err != nil ||
			!strings.Contains(text, "bidirectional (DFlash)") {
			t.Errorf("%v: %q, %v", change, text, err)
		}
	}
	for name, v := range map[string]any{
		"projector_type": "domino", "sample_from_anchor": true, "shift_label": true, "draft_vocab_size": 0,
		"target_hidden_size": 7, "mask_token_id": nil,
		"aux_hidden_state_layer_ids": []int{}, "layers.layer_types": []string{"sliding_attention"},
		"layers.quantization_config": map[string]any{"quant_method": "fp8"},
		"layers.hidden_act":          "gelu",
	} {
		write(map[string]any{name: v})
		err := heads.Check(registry.Head{Name: dir}, m.Config)
		if err == nil || !strings.Contains(err.Error(), strings.TrimPrefix(name, "layers.")) ||
			!strings.Contains(err.Error(), dir) {
			t.Errorf("%s = %v is not refused by its name: %v", name, v, err)
		}
	}
}
