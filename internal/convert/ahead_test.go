package convert

import (
	"context"
	"errors"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/grovellm/grove/gguf"
	"github.com/grovellm/grove/internal/files/safetensors"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/model/synth"
	"github.com/grovellm/grove/tensor"
)

// Layers that draft, after a model's own, stay in its file, with the names, the numbers and the
// keys that llama.cpp's converter gives them; converted back to a folder they are unchanged.
func TestLayersAhead(t *testing.T) {
	ctx := context.Background()
	for _, name := range []string{"tiny-qwen35-mtp", "tiny-qwen3next-mtp", "tiny-glm4moe-mtp", "tiny-glm4lite-mtp",
		"tiny-deepseek3-mtp", "tiny-exaone-moe-mtp", "tiny-hy3-mtp", "tiny-mimo2-mtp"} {
		t.Run(name, func(t *testing.T) {
			published := filepath.Join("..", "drafters", "mtp", "testdata", name)
			dir := t.TempDir()
			made, back := filepath.Join(dir, "made.gguf"), filepath.Join(dir, "back")
			if _, err := ToGGUF(ctx, published, made, Options{Type: Keep}); err != nil {
				t.Fatal(err)
			}
			sameNumbers(t, ggufNumbers(t, made), ggufNumbers(t, published+".gguf"))
			if _, err := ToHF(ctx, made, back, Options{Type: Keep}); err != nil {
				t.Fatal(err)
			}
			sameNumbers(t, folderNumbers(t, back), folderNumbers(t, published))
		})
	}
}

// numbers are tensors, with their model's number of layers and the number of layers after it.
type numbers struct {
	values         map[string][]float32
	shapes         map[string][]int
	layers, behind int
}

func (n *numbers) add(t *testing.T, x tensor.Tensor, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	n.shapes[x.Name] = x.Shape
	if n.values[x.Name], err = x.Float32s(); err != nil {
		t.Fatal(err)
	}
}

func ggufNumbers(t *testing.T, path string) numbers {
	t.Helper()
	f, err := gguf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	c, err := model.ReadGGUF(f)
	if err != nil {
		t.Fatal(err)
	}
	n := numbers{map[string][]float32{}, map[string][]int{}, c.Layers, c.Ahead}
	for _, info := range f.Tensors {
		x, err := f.Load(info.Name)
		n.add(t, x, err)
	}
	return n
}

func folderNumbers(t *testing.T, dir string) numbers {
	t.Helper()
	c, f, err := model.OpenFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	n := numbers{map[string][]float32{}, map[string][]int{}, c.Layers, c.Ahead}
	for _, info := range f.Tensors {
		x, err := f.Load(info.Name)
		n.add(t, x, err)
	}
	return n
}

// sameNumbers compares numbers, apart from the rounding when they are shifted by 1, or exponentiated, and back.
func sameNumbers(t *testing.T, got, want numbers) {
	t.Helper()
	if got.behind != want.behind || got.layers != want.layers || want.behind < 1 {
		t.Errorf("%d layers and %d behind, want %d and %d", got.layers, got.behind, want.layers, want.behind)
	}
	if d := cmp.Diff(want.shapes, got.shapes); d != "" {
		t.Errorf("other tensors: %s", d)
	}
	for name, values := range want.values {
		near := func(a, b float32) bool { return math.Abs(float64(a-b)) < 1e-6 }
		if !slices.EqualFunc(got.values[name], values, near) {
			t.Errorf("tensor %s differs", name)
		}
	}
}

// Nemotron's drafting layers are left out, as in llama.cpp's converter, and the rest comes back unchanged.
func TestLayersAheadLeftOut(t *testing.T) {
	published := filepath.Join("..", "drafters", "mtp", "testdata", "tiny-nemotron-mtp")
	dir := t.TempDir()
	made, back := filepath.Join(dir, "made.gguf"), filepath.Join(dir, "back")
	notes, err := ToGGUF(context.Background(), published, made, Options{Type: Keep})
	if err != nil || !slices.ContainsFunc(notes, func(n string) bool { return strings.Contains(n, "mtp.*") }) {
		t.Fatal(notes, err)
	}
	if _, err := ToHF(context.Background(), made, back, Options{Type: Keep}); err != nil {
		t.Fatal(err)
	}
	got, want := folderNumbers(t, back), folderNumbers(t, published)
	maps.DeleteFunc(want.shapes, func(name string, _ []int) bool { return strings.HasPrefix(name, "mtp.") })
	if d := cmp.Diff(want.shapes, got.shapes); d != "" || got.layers != want.layers || got.behind != 0 || want.behind != 1 {
		t.Errorf("%d layers and %d behind, want %d and 0 (of %d); %s", got.layers, got.behind, want.layers, want.behind, d)
	}
}

// So are those of models whose drafting layer grove does not know, such as EXAONE 4.5.
func TestLayersAheadOfOthersLeftOut(t *testing.T) {
	ctx, dir := context.Background(), t.TempDir()
	plain, folder := filepath.Join(dir, "plain"), filepath.Join(dir, "hf")
	path := filepath.Join(dir, "made.gguf")
	s := shape(t, "tiny-exaone4")
	if err := synth.WriteHF(ctx, plain, s, synth.Options{Type: tensor.F32, Seed: 5}); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(folder, os.DirFS(plain)); err != nil {
		t.Fatal(err)
	}
	f, err := safetensors.OpenFolder(plain)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w := safetensors.NewWriter()
	for _, info := range f.Tensors {
		x, _ := f.Tensor(info.Name)
		w.AddTensor(x)
	}
	values := make([]float32, 2*s.Hidden*s.Hidden)
	fuse, err := tensor.FromFloat32s("mtp.fc.weight", tensor.F32, []int{s.Hidden, 2 * s.Hidden}, values)
	if err != nil {
		t.Fatal(err)
	}
	w.AddTensor(fuse)
	data, err := os.ReadFile(filepath.Join(folder, "config.json"))
	if err != nil {
		t.Fatal(err)
	}
	data = append([]byte(`{"num_nextn_predict_layers": 1, `), data[1:]...)
	if err := errors.Join(w.WriteFile(filepath.Join(folder, "model.safetensors")),
		os.WriteFile(filepath.Join(folder, "config.json"), data, 0o600)); err != nil {
		t.Fatal(err)
	}
	if _, err := ToGGUF(ctx, folder, path, Options{Type: Keep}); err != nil {
		t.Fatal(err)
	}
	if got := ggufNumbers(t, path); got.behind != 0 || got.layers != s.Layers {
		t.Errorf("%d layers and %d behind, want %d and 0", got.layers, got.behind, s.Layers)
	}
}

// A quantized file keeps the drafting layer in 8 bits.
func TestLayerAheadQuantized(t *testing.T) {
	ctx, dir := context.Background(), t.TempDir()
	s := shape(t, "tiny-glm4moe")
	tune := s.Tune
	s.Tune = func(c *model.Config) {
		tune(c)
		c.Ahead = 1
	}
	folder, path := filepath.Join(dir, "hf"), filepath.Join(dir, "q4_0.gguf")
	if err := synth.WriteHF(ctx, folder, s, synth.Options{Type: tensor.F32, Seed: 5}); err != nil {
		t.Fatal(err)
	}
	if _, err := ToGGUF(ctx, folder, path, Options{Type: tensor.Q4_0}); err != nil {
		t.Fatal(err)
	}
	f, err := gguf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	layer := map[int]string{0: "blk.0.attn_q.weight", s.Layers: "blk.4.attn_q.weight"}
	for i, want := range map[int]tensor.Type{0: tensor.Q4_0, s.Layers: tensor.Q8_0} {
		x, err := f.Load(layer[i])
		if err != nil || x.Type != want {
			t.Errorf("%s is %v, want %v: %v", layer[i], x.Type, want, err)
		}
	}
}
