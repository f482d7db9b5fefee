package model_test

import (
	"fmt"
	"maps"
	"path/filepath"
	"strings"
	"testing"

	"github.com/grovellm/grove/gguf"
	"github.com/grovellm/grove/internal/files/safetensors"
	"github.com/grovellm/grove/internal/model/synth"
	"github.com/grovellm/grove/tensor"
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

// A folder of Qwen3-VL with experts, whose matrices share transposed tensors, is the text model.
func TestFolderOfQwen3VLWithExperts(t *testing.T) {
	s := smallShape(t, "qwen3moe")
	s.Tied = false
	plain := keyFolder(t, s)
	want, err := plain.logits(nil)
	if err != nil {
		t.Fatal(err)
	}
	from, err := safetensors.OpenFolder(plain.dir)
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	f := &folder{t: t, dir: t.TempDir(), fields: object{"model_type": "qwen3_vl_moe", "vision_config": object{"depth": 1}}}
	write := func(transposed bool) {
		w := safetensors.NewWriter()
		for _, info := range from.Tensors {
			x, _ := from.Tensor(info.Name)
			layer, rest, ofExpert := strings.Cut(info.Name, ".experts.")
			layer = strings.Replace(layer, "model.", "model.language_model.", 1)
			switch {
			case !ofExpert:
				x.Name = layer
				w.AddTensor(x)
			case rest == "0.gate_proj.weight":
				w.AddTensor(gather(t, from, info.Name, layer+".experts.gate_up_proj", transposed, "gate_proj", "up_proj"))
				w.AddTensor(gather(t, from, info.Name, layer+".experts.down_proj", transposed, "down_proj"))
			}
		}
		if err := w.WriteFile(filepath.Join(f.dir, "model.safetensors")); err != nil {
			t.Fatal(err)
		}
	}
	text := maps.Clone(plain.fields)
	text["model_type"] = "qwen3_vl_moe_text"
	text["rope_scaling"] = object{"rope_type": "default", "mrope_section": []int{24, 20, 20}, "mrope_interleaved": true}
	for _, transposed := range []bool{true, false} { // as published, and as transformers 5 writes it
		write(transposed)
		if got, err := f.logits(object{"text_config": text}); !same(got, err, want) {
			t.Errorf("transposed %v: it is not qwen3moe: %v", transposed, err)
		}
	}
	text["tie_word_embeddings"] = true // transformers 5 writes its default there
	if got, err := f.logits(object{"text_config": text, "tie_word_embeddings": false}); !same(got, err, want) {
		t.Errorf("the whole's tie_word_embeddings does not count: %v", err)
	}
	text["norm_topk_prob"] = false
	if _, err := f.logits(object{"text_config": text}); err == nil || !strings.Contains(err.Error(), "norm_topk_prob") {
		t.Errorf("weights that are not normalised: error %v", err)
	}
}

// gather returns matrices of every expert in one tensor, side by side. first is the name of an expert 0's.
func gather(t *testing.T, f *safetensors.File, first, name string, transposed bool, kinds ...string) tensor.Tensor {
	t.Helper()
	x := tensor.Tensor{Name: name, Type: tensor.F32}
	var experts, rows, cols int
	for ; ; experts++ {
		var all []byte // of the expert, a row after the other
		for _, kind := range kinds {
			m, ok := f.Tensor(strings.Replace(first, ".experts.0.gate_proj", fmt.Sprintf(".experts.%d.%s", experts, kind), 1))
			if !ok {
				break
			}
			m, err := m.ReadAll()
			if err != nil {
				t.Fatal(err)
			}
			rows, cols = len(kinds)*m.Shape[0], m.Shape[1]
			all = append(all, m.Data...)
		}
		if all == nil {
			break
		}
		for i := range rows * cols {
			at := i
			if transposed {
				at = i%rows*cols + i/rows
			}
			x.Data = append(x.Data, all[4*at:4*at+4]...)
		}
	}
	x.Shape = []int{experts, rows, cols}
	if transposed {
		x.Shape = []int{experts, cols, rows}
	}
	return x
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
