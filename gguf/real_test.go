package gguf

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/grovellm/grove/internal/files/safetensors"
	"github.com/grovellm/grove/internal/testing/testdata"
	"github.com/grovellm/grove/tensor"
)

// ggufName is llama.cpp's name for a tensor of a Hugging Face qwen3.
func ggufName(hf string) string {
	r := strings.NewReplacer("model.layers.", "blk.", "model.embed_tokens", "token_embd", "model.norm", "output_norm",
		"input_layernorm", "attn_norm",
		"post_attention_layernorm", "ffn_norm", "self_attn.o_proj", "attn_output", "self_attn.", "attn_",
		"_proj", "", "mlp.", "ffn_")
	return r.Replace(hf)
}

// Files made by other programs from one model: GGUF and safetensors hold the same values, Q8_0 made here has the
// bytes of theirs, and writing again what was read gives the same file.
func TestRealModel(t *testing.T) {
	dir := testdata.Path(t, "models/go-7m")
	hf, err := safetensors.OpenFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer hf.Close()
	for _, name := range []string{"go-7m-f32.gguf", "go-7m-q8_0.gguf"} {
		path := filepath.Join(dir, name)
		f, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if len(f.Tensors) != len(hf.Tensors) {
			t.Errorf("%s has %d tensors, safetensors %d", name, len(f.Tensors), len(hf.Tensors))
		}
		for _, info := range hf.Tensors {
			want := must(must(hf.Load(info.Name)).ReadAll())
			got := must(must(f.Load(ggufName(info.Name))).ReadAll())
			if got.Type != want.Type {
				if want, err = tensor.FromFloat32s(info.Name, got.Type, want.Shape, must(want.Float32s())); err != nil {
					t.Fatal(err)
				}
			}
			if !slices.Equal(got.Shape, want.Shape) || !bytes.Equal(got.Data, want.Data) {
				t.Errorf("%s: %s differs", name, got.Name)
			}
		}
		w, b := new(Writer), &bytes.Buffer{}
		copyMeta(w, f)
		for _, info := range f.Tensors {
			w.AddTensor(must(f.Load(info.Name)))
		}
		if _, err := w.WriteTo(b); err != nil || !bytes.Equal(b.Bytes(), must(os.ReadFile(path))) {
			t.Errorf("%s written again differs (%v)", name, err)
		}
	}
}

// A large vocabulary costs a few allocations, not one a string, and outlives the file.
func TestVocabulary(t *testing.T) {
	tokens := make([]string, 150_000)
	for i := range tokens {
		tokens[i] = fmt.Sprintf("token %d", i)
	}
	w, path := new(Writer), filepath.Join(t.TempDir(), "v.gguf")
	w.Set("tokenizer.ggml.tokens", tokens)
	if err := w.WriteFile(path); err != nil {
		t.Fatal(err)
	}
	var got []string
	allocs := testing.AllocsPerRun(3, func() {
		f, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		got, _ = Get[[]string](f, "tokenizer.ggml.tokens")
		f.Close()
	})
	if !slices.Equal(got, tokens) {
		t.Error("the strings differ")
	}
	if allocs > 100 {
		t.Errorf("%v allocations", allocs)
	}
}
