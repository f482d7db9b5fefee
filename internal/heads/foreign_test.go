package heads_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/grovellm/grove/internal/drafters/registry"
	"github.com/grovellm/grove/internal/files/safetensors"
	"github.com/grovellm/grove/internal/heads"
	"github.com/grovellm/grove/internal/heads/headfile"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/testing/testfile"
	"github.com/grovellm/grove/tensor"
)

// A folder of a published kind of head that grove does not run is refused by the name of its kind,
// whoever opens it, and inspection recognises it as a head.
func TestForeignKinds(t *testing.T) {
	const layer = `"model_type": "llama", "hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2,
	"intermediate_size": 24, "vocab_size": 20,
		"max_position_embeddings": 64`
	for i, c := range []struct{ config, tensor, kind string }{
		{`{"hydra_num_heads": 4, "hydra_num_layers": 4}`, "", "a Hydra head"},
		{`{"speculators_model_type": "fast_mtp"}`, "mtp_layers.0.input_proj.weight", "another head of vLLM's speculators"},
		{`{"architectures": ["Gemma4DSparkModel"], ` + layer + `}`, "fc.weight", "a DSpark head of another family"},
		{`{"architectures": ["Other"], ` + layer + `}`, "markov_w1.weight", "a DSpark head of another family or of llama.cpp"},
		{`{"speculators_model_type": "xpress"}`, "fc.weight", "another head of vLLM's speculators"},
		{`{"model_type": "mlp_speculator", "n_predict": 3}`, "emb.0.weight", "an MLP speculator"},
		{`{"speculators_model_type": "jetspec"}`, "fc.weight", "a causal block head of vLLM's speculators"},
		{`{"speculators_model_type": "of tomorrow"}`, "fc.weight", "another head of vLLM's speculators"},
	} {
		dir := t.TempDir()
		w := safetensors.NewWriter()
		if c.tensor != "" {
			x, err := tensor.FromFloat32s(c.tensor, tensor.F32, []int{2, 2}, make([]float32, 4))
			if err != nil {
				t.Fatal(err)
			}
			w.AddTensor(x)
			if err := w.WriteFile(filepath.Join(dir, "model.safetensors")); err != nil {
				t.Fatal(err)
			}
		}
		testfile.Write(t, filepath.Join(dir, "config.json"), []byte(c.config))
		h := registry.Head{Name: dir}
		_, shown := heads.Describe(h)
		for _, err := range []error{shown, heads.Check(h, model.Config{Hidden: 8, Vocab: 20, Layers: 4})} {
			if err == nil || !strings.Contains(err.Error(), c.kind) || !strings.Contains(err.Error(), dir) ||
				!strings.Contains(err.Error(), "want a "+headfile.Names()) {
				t.Errorf("folder %d: %v: want %s", i, err, c.kind)
			}
		}
		if !heads.Is(h) {
			t.Errorf("folder %d, %s: taken for a model", i, c.kind)
		}
		if _, err := model.Open(dir, model.Options{}); err == nil || errors.Is(err, os.ErrNotExist) {
			t.Errorf("folder %d opens as a model: %v", i, err)
		}
	}
}
