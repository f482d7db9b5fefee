package headfile

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/grovellm/grove/internal/drafters/registry"
	"github.com/grovellm/grove/internal/files/numtype"
	"github.com/grovellm/grove/internal/files/safetensors"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/tensor"
)

// A draft vocabulary comes back from either format. One of all tokens in order counts as none.
func TestTokens(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		vocab := rapid.IntRange(1, 40).Draw(t, "vocab")
		var all []int32
		for i := range vocab {
			all = append(all, int32(i))
		}
		tokens := rapid.Permutation(all).Draw(t, "tokens")[:rapid.IntRange(1, vocab).Draw(t, "size")]
		want := tokens
		if slices.Equal(tokens, all) {
			want = nil
		}
		list := FolderTokens(tokens, vocab)
		got, err := readTokens(list[0].Tensor, list[1].Tensor, true, vocab)
		if err != nil || !slices.Equal(got, want) {
			t.Fatalf("a folder: %v, %v; want %v", got, err, want)
		}
		if got, err = readTokens(numbers(tokens, 0), tensor.Tensor{}, false, vocab); err != nil || !slices.Equal(got, want) {
			t.Fatalf("GGUF: %v, %v; want %v", got, err, want)
		}
		list[1].Data[tokens[0]] = 0
		if _, err := readTokens(list[0].Tensor, list[1].Tensor, true, vocab); err == nil ||
			!strings.Contains(err.Error(), "disagree") {
			t.Fatalf("a token that the other list has not: %v", err)
		}
		if _, err := readTokens(numbers(tokens, 0), tensor.Tensor{}, false, int(slices.Max(tokens))); err == nil {
			t.Fatal("a token beyond the vocabulary is no error")
		}
	})
	if _, err := readTokens(tensor.Tensor{Name: "d2t", Type: tensor.F32, Shape: []int{1}, Data: make([]byte, 4)},
		tensor.Tensor{}, false, 5); err == nil {
		t.Error("a list of numbers that are not whole is no error")
	}
}

// Pairs and Halves undo each other.
func TestOrders(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dim := 2 * rapid.IntRange(1, 40).Draw(t, "half")
		there, back := model.Pairs(dim), model.Halves(dim)
		for i := range 3 * dim {
			if j := there(i); j < 0 || j >= 3*dim || back(j) != i || there(back(i)) != i {
				t.Fatalf("row %d goes to %d and back to %d", i, j, back(j))
			}
		}
	})
}

// Written tensors have the requested types where possible, and parts of several types are joined in F32.
func TestWritten(t *testing.T) {
	ones := func(name string, typ tensor.Type, shape ...int) tensor.Tensor {
		n, err := numtype.CountElements(shape)
		if err != nil {
			t.Fatal(err)
		}
		x, err := tensor.FromFloat32s(name, typ, shape, slices.Repeat([]float32{1}, n))
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
	for _, c := range []struct {
		x    tensor.Tensor
		want tensor.Type
	}{
		{ones("matrix", tensor.F32, 2, 64), tensor.Q8_0}, {ones("odd", tensor.F32, 2, 15),
			tensor.F32}, {ones("vector", tensor.BF16, 64), tensor.F32},
		{ones("wide", tensor.F16, 2, 32), tensor.Q8_0}, {numbers([]int32{1, 2}, 0), numtype.I64},
	} {
		o := Out{Tensor: c.x}
		if got, err := o.encode(tensor.Q8_0); err != nil || got.Type != c.want {
			t.Errorf("%s is written as %v, want %v; %v", c.x.Name, got.Type, c.want, err)
		}
	}
	joined, err := Join("both", []tensor.Tensor{ones("a", tensor.Q8_0, 2, 32), ones("b", tensor.F16, 2, 3)})
	if err != nil || joined.Type != tensor.F32 || !slices.Equal(joined.Shape, []int{2, 35}) {
		t.Errorf("%v of shape %v, %v", joined.Type, joined.Shape, err)
	}
	dir := t.TempDir()
	if err := writeOuts(dir, "model.safetensors", map[string]any{"x": 1},
		append([]Out{{Tensor: ones("m", tensor.Q8_0, 2, 32)}}, FolderTokens([]int32{1}, 3)...)); err != nil {
		t.Fatal(err)
	}
	f, err := safetensors.OpenFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for name, want := range map[string]tensor.Type{"m": tensor.F32, "d2t": numtype.I64, "t2d": numtype.Bool} {
		if x, ok := f.Tensor(name); !ok || x.Type != want {
			t.Errorf("%s is %v, want %v", name, x.Type, want)
		}
	}
}

// If a head's file changes while the head is read, the result is an error that names the file.
func TestFileChanges(t *testing.T) {
	x, err := tensor.FromFloat32s("w", tensor.F32, []int{2}, []float32{1, 2})
	if err != nil {
		t.Fatal(err)
	}
	weights := filepath.Join(t.TempDir(), "model.safetensors")
	config := filepath.Join(filepath.Dir(weights), "config.json")
	move := func(name string) error { // another file with the same contents takes the name
		data, err1 := os.ReadFile(name)
		return errors.Join(err1, os.WriteFile(name+".new", data, 0o666), os.Rename(name+".new", name))
	}
	for _, c := range []struct {
		file, want string
		change     func(name string) error
	}{
		{weights, "", nil},
		{weights, "emptied", func(name string) error { return os.Truncate(name, 0) }},
		{weights, "cut short", func(name string) error { return os.Truncate(name, 60) }},
		{weights, "replaced", move},
		{config, "replaced", move},
		{config, "removed", os.Remove},
	} {
		if err := writeOuts(filepath.Dir(weights), "model.safetensors", map[string]any{}, []Out{{Tensor: x}}); err != nil {
			t.Fatal(err)
		}
		h := registry.Head{Name: filepath.Dir(weights)}
		f, err := Open(h)
		values, err := With(h, f, err, func(f *File) ([]float32, error) {
			if c.change != nil {
				if err := c.change(c.file); err != nil {
					t.Fatal(err)
				}
			}
			x, err := f.Load("w")
			if err != nil {
				return nil, err
			}
			return x.Float32s()
		})
		if c.want == "" && (err != nil || !slices.Equal(values, []float32{1, 2})) {
			t.Errorf("unchanged: %v, %v", values, err)
		}
		says := func(what string) bool { return err != nil && strings.Contains(err.Error(), what) }
		if c.want != "" && !(says(c.file+": ") && says(c.want)) {
			t.Errorf("%s, %s: %v", c.file, c.want, err)
		}
	}
}
