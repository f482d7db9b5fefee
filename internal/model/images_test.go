package model_test

import (
	"strings"
	"testing"

	"github.com/grovellm/grove/gguf"
	"github.com/grovellm/grove/internal/model/synth"
)

// A file of a model with images, under the names that llama.cpp's converter gives it and its keys, is its text model.
func TestFilesOfModelsWithImages(t *testing.T) {
	for name, alone := range map[string]string{"qwen2vl": "qwen2", "qwen3vl": "qwen3", "qwen3vlmoe": "qwen3moe"} {
		f := keyFile(t, smallShape(t, alone))
		want, err := lastLogits(t, f, func(*gguf.Writer) {})
		if err != nil {
			t.Fatal(err)
		}
		rename := func(w *gguf.Writer) {
			for key, value := range f.Meta() {
				if rest, ok := strings.CutPrefix(key, alone+"."); ok {
					w.Set(name+"."+rest, value)
				}
			}
			w.Set("general.architecture", name)
			w.Set(name+".rope.dimension_sections", []int32{24, 20, 20, 0})
			w.Set(name+".n_deepstack_layers", uint32(3))
		}
		if got, err := lastLogits(t, f, rename); !same(got, err, want) {
			t.Errorf("%s is not %s: %v", name, alone, err)
		}
		_, err = lastLogits(t, f, func(w *gguf.Writer) {
			rename(w)
			w.Set(name+".final_logit_softcapping", float32(2))
		})
		if err == nil || !strings.Contains(err.Error(), name+".final_logit_softcapping") {
			t.Errorf("%s with a key that changes the result: error %v", name, err)
		}
	}
}

// So is a folder. Its config.json says how the rotation's dimensions are divided: in text_config
// or, in older folders, next to the fields of the image encoder.
func TestFoldersOfModelsWithImages(t *testing.T) {
	for kind, alone := range map[string]string{"qwen2_vl": "qwen2", "qwen2_5_vl": "qwen2", "qwen2_vl_text": "qwen2",
		"qwen2_5_vl_text": "qwen2", "qwen3_vl_text": "qwen3"} {
		f := keyFolder(t, smallShape(t, alone))
		want, err := f.logits(nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, rope := range []object{
			{"rope_scaling": object{"type": "mrope", "mrope_section": []int{16, 24, 24}}},
			{"rope_scaling": object{"rope_type": "default", "mrope_section": []int{24, 20, 20}, "mrope_interleaved": true}},
		} {
			rope["model_type"] = kind
			rope["vision_config"] = object{"hidden_size": 1}
			if got, err := f.logits(rope); !same(got, err, want) {
				t.Errorf("%s, %v is not %s: %v", kind, rope, alone, err)
			}
		}
		if _, err := f.logits(object{"model_type": alone, "rope_scaling": object{"type": "mrope"}}); err == nil {
			t.Errorf("%s with a rotation of three dimensions is taken", alone)
		}
	}
}

func smallShape(t *testing.T, name string) synth.Shape {
	t.Helper()
	for _, s := range synth.Small() {
		if s.Name == name {
			return s
		}
	}
	t.Fatalf("no small shape %s", name)
	return synth.Shape{}
}
