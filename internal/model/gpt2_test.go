package model_test

import (
	"maps"
	"path/filepath"
	"strings"
	"testing"

	"github.com/grovellm/grove/internal/files/safetensors"
	"github.com/grovellm/grove/internal/model"
)

// GPT-2's folders may have masks, and names without their common beginning, as the first ones have. Fields that would
// change the result are refused by name.
func TestGPT2Folders(t *testing.T) {
	f := latentFolder(t, "tiny-gpt2")
	base, err := f.logits(nil)
	if err != nil {
		t.Fatal(err)
	}
	masks := f.with(filled(t, "transformer.h.0.attn.bias", 1, 1, 1, 4, 4),
		filled(t, "transformer.h.1.attn.masked_bias", 1, 1))
	got, err := masks.logits(nil)
	if err != nil || !sameBits(got, base) {
		t.Errorf("masks change the logits: %v", err)
	}
	for field, v := range map[string]any{"scale_attn_by_inverse_layer_idx": true, "scale_attn_weights": false,
		"activation_function": "relu", "add_cross_attention": true} {
		named := strings.Replace(field, "activation_function", "hidden_act", 1)
		if _, err := f.logits(object{field: v}); err == nil || !strings.Contains(err.Error(), named) {
			t.Errorf("%s = %v is not refused by its name: %v", field, v, err)
		}
	}
	if got, err := f.logits(object{"n_inner": nil}); err != nil || !sameBits(got, base) {
		t.Errorf("without n_inner, the MLP is not four times as wide: %v", err)
	}
	from, err := safetensors.OpenFolder(f.dir)
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	old, w := &folder{t: t, dir: t.TempDir(), fields: maps.Clone(f.fields)}, safetensors.NewWriter()
	for _, info := range from.Tensors {
		x, err := from.Load(info.Name)
		if err != nil {
			t.Fatal(err)
		}
		x.Name = strings.TrimPrefix(x.Name, "transformer.")
		w.AddTensor(x)
	}
	if err := w.WriteFile(filepath.Join(old.dir, "model.safetensors")); err != nil {
		t.Fatal(err)
	}
	if got, err := old.logits(nil); err != nil || !sameBits(got, base) {
		t.Errorf("names of the first folders give other logits: %v", err)
	}
	if _, err := model.Open(f.dir, model.Options{Context: 1025}); err == nil || !strings.Contains(err.Error(), "1024") {
		t.Errorf("a context beyond the model's positions is not refused: %v", err)
	}
	if _, err := f.with(filled(t, "transformer.h.0.attn.c_attn.extra", 1, 4)).logits(nil); err == nil {
		t.Error("another tensor is not refused")
	}
}
