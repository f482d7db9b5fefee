package convert

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/grovellm/grove/internal/files/safetensors"
	"github.com/grovellm/grove/internal/model/synth"
	"github.com/grovellm/grove/tensor"
)

// A folder of Granite 4, which has gate and up in one tensor under other names, is the same model
// as a Granite 3 folder with the same numbers, and so is the GGUF file made from it. A folder with
// layers of another kind is refused.
func TestGranite4Folder(t *testing.T) {
	ctx, dir := context.Background(), t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	if err := synth.WriteHF(ctx, at("three"), shape(t, "tiny-granite"),
		synth.Options{Type: tensor.F32, Seed: 5}); err != nil {
		t.Fatal(err)
	}
	f, err := safetensors.OpenFolder(at("three"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w := safetensors.NewWriter()
	get := func(name string) tensor.Tensor {
		x, err := f.Load(name)
		if err == nil {
			x, err = x.ReadAll()
		}
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
	for _, info := range f.Tensors {
		x := get(info.Name)
		switch prefix, part, _ := strings.Cut(x.Name, "mlp."); part {
		case "gate_proj.weight":
			x.Name = prefix + "shared_mlp.input_linear.weight"
			x.Data = append(x.Data, get(prefix+"mlp.up_proj.weight").Data...)
			x.Shape = []int{2 * x.Shape[0], x.Shape[1]}
		case "up_proj.weight":
			continue
		case "down_proj.weight":
			x.Name = prefix + "shared_mlp.output_linear.weight"
		}
		w.AddTensor(x)
	}
	data, err := os.ReadFile(filepath.Join(at("three"), "config.json"))
	if err != nil {
		t.Fatal(err)
	}
	var c map[string]any
	if err := json.Unmarshal(data, &c); err != nil {
		t.Fatal(err)
	}
	c["model_type"] = "granitemoehybrid"
	c["shared_intermediate_size"] = c["intermediate_size"]
	c["intermediate_size"] = 7
	c["position_embedding_type"], c["num_local_experts"] = "rope", 0
	c["layer_types"] = []string{"attention", "attention", "attention", "attention"}
	delete(c, "mlp_bias")
	write := func() {
		t.Helper()
		data, err := json.Marshal(c)
		if err == nil {
			err = os.MkdirAll(at("four"), 0o755)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(at("four"), "config.json"), data, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	write()
	if err := w.WriteFile(filepath.Join(at("four"), "model.safetensors")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"tokenizer.json", "tokenizer_config.json"} {
		data, err := os.ReadFile(filepath.Join(at("three"), name))
		if err == nil {
			err = os.WriteFile(filepath.Join(at("four"), name), data, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	sameBits(t, "Granite 4's folder", logits(t, at("four")), logits(t, at("three")))
	for _, from := range []string{"three", "four"} {
		if _, err := ToGGUF(ctx, at(from), at(from+".gguf"), Options{Type: Keep}); err != nil {
			t.Fatal(err)
		}
	}
	sameBits(t, "Granite 4 as GGUF", logits(t, at("four.gguf")), logits(t, at("three.gguf")))
	sameTensors(t, at("three.gguf"), at("four.gguf"))

	c["layer_types"] = []string{"full_attention", "full_attention", "full_attention", "full_attention"} // transformers 5
	write()
	sameBits(t, "Granite 4's folder, newer", logits(t, at("four")), logits(t, at("three")))
	c["layer_types"] = []string{"attention", "mamba", "attention", "attention"}
	write()
	if _, err := ToGGUF(ctx, at("four"), at("x.gguf"), Options{}); err == nil || !strings.Contains(err.Error(), "mamba") {
		t.Errorf("a layer of another kind: %v", err)
	}
}
