package grove_test

import (
	"bytes"
	"context"
	"maps"
	"slices"
	"testing"

	"github.com/grovellm/grove"
	"github.com/grovellm/grove/gguf"
	"github.com/grovellm/grove/models"
)

// Tokens that the file says are never chosen, as Gemma 4's marks of images, are not, with a drafter as without.
func TestSuppressedTokens(t *testing.T) {
	const prompt = "package sort\n\nimport \"fmt\"\n\nfunc "
	generate := func(model []byte, drafter string, bias map[int32]float32) []int32 {
		t.Helper()
		m, err := grove.OpenGGUF("target", model, grove.Options{Threads: 1, HeadGGUF: models.Heads()})
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		r, err := grove.Collect(m.Generate(context.Background(), prompt, grove.Request{MaxTokens: 40, Drafter: drafter,
			Uncontrolled: true, Sampling: grove.Sampling{LogitBias: bias}}))
		if err != nil {
			t.Fatal(err)
		}
		return r.Tokens
	}
	plain := generate(models.Target(), "plain", nil)
	banned := []int32{plain[0], plain[7]}
	f, err := gguf.Parse("target", models.Target())
	if err != nil {
		t.Fatal(err)
	}
	w := new(gguf.Writer)
	for key, v := range f.Meta() {
		w.Set(key, v)
	}
	w.Set("tokenizer.ggml.suppress_tokens", append([]int32{1 << 30}, banned...)) // the first is no token
	for _, info := range f.Tensors {
		x, _ := f.Tensor(info.Name)
		w.AddTensor(x)
	}
	var b bytes.Buffer
	if _, err := w.WriteTo(&b); err != nil {
		t.Fatal(err)
	}
	bias := map[int32]float32{banned[0]: 90, 5: -1}
	want := maps.Clone(bias)
	for _, id := range banned {
		want[id] = -100
	}
	for _, drafter := range []string{"plain", "jetspec"} {
		got := generate(b.Bytes(), drafter, bias)
		if !slices.Equal(got, generate(models.Target(), drafter, want)) || slices.Contains(got, banned[0]) {
			t.Errorf("%s: %v, without the list %v, of which %v are never chosen", drafter, got, plain, banned)
		}
	}
}
