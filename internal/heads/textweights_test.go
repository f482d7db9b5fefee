package heads_test

import (
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"github.com/grovellm/grove/gguf"
	"github.com/grovellm/grove/internal/drafters/registry"
	"github.com/grovellm/grove/internal/files/ggufkeys"
	"github.com/grovellm/grove/internal/heads"
	"github.com/grovellm/grove/internal/heads/headfile"
	"github.com/grovellm/grove/internal/testing/testfile"
	"github.com/grovellm/grove/models"
)

// A head's file to which weights of +text are written has them, and otherwise what it had.
func TestWriteTextWeights(t *testing.T) {
	for i, data := range append(models.Heads(), models.PublishedHeads()...) {
		from, to := filepath.Join(t.TempDir(), "from.gguf"), filepath.Join(t.TempDir(), "to.gguf")
		testfile.Write(t, from, data)
		want := make([]float32, 5)
		for k := range want {
			want[k] = rand.Float32()
		}
		if err := headfile.WriteTextWeights(from, to, want); err != nil {
			t.Fatal(err)
		}
		a, err := gguf.Open(from)
		if err != nil {
			t.Fatal(err)
		}
		defer a.Close()
		b, err := gguf.Open(to)
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		const key = "grove.text.weights"
		if got := ggufkeys.Of(b).Floats(key, nil); !slices.Equal(got, want) {
			t.Errorf("head %d: the weights are %v, want %v", i, got, want)
		}
		for name, value := range a.Meta() {
			if got, ok := b.Lookup(name); name != key && (!ok || got != value) {
				t.Errorf("head %d: key %s is lost", i, name)
			}
		}
		for _, info := range a.Tensors {
			x, _ := a.Tensor(info.Name)
			y, ok := b.Tensor(info.Name)
			if !ok || x.Type != y.Type || !slices.Equal(x.Data, y.Data) {
				t.Errorf("head %d: tensor %s is another", i, info.Name)
			}
		}
		if text, err := heads.Describe(registry.Head{Name: to}); err != nil {
			t.Errorf("head %d: %s, %v", i, text, err)
		}
	}
}
