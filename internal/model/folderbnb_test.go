package model

import (
	"fmt"
	"hash/fnv"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/grovellm/grove/internal/files/safetensors"
)

// openCodebooks opens testdata/codebooks.safetensors, which codebooks.py made.
func openCodebooks(t *testing.T) *safetensors.File {
	t.Helper()
	f, err := safetensors.Open(filepath.Join("testdata", "codebooks.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// Weights of 4 bits are those that bitsandbytes makes of them, bit for bit except for the sign of zeros, in its type.
// Nothing remains of their other tensors.
func TestCodebooks(t *testing.T) {
	f := openCodebooks(t)
	q := &quantization{Method: "bitsandbytes"}
	if err := q.check(); err != nil {
		t.Error(err)
	}
	if err := decodeFolder(f, q); err != nil {
		t.Fatal(err)
	}
	if len(f.Tensors) != len(f.Metadata) || len(f.Tensors) != 3 {
		t.Errorf("there are %d tensors, want those of %d modules", len(f.Tensors), len(f.Metadata))
	}
	for module, want := range f.Metadata {
		x, ok := f.Tensor(module + ".weight")
		stored, _ := f.Stored(x.Name)
		typ, kind, _ := strings.Cut(module, ".")
		if !ok || x.Type.String() != typ || stored.String() != kind {
			t.Errorf("%s: it is stored as %v and became %v", module, stored, x.Type)
			continue
		}
		for range 2 { // the second reading decodes again
			all, err := x.ReadAll()
			if err != nil {
				t.Fatal(err)
			}
			h := fnv.New64a()
			size := x.RowBytes() / x.Cols()
			for number := range slices.Chunk(all.Data, size) {
				rest := number[:size-1]
				if number[size-1] == 1<<7 && !slices.ContainsFunc(rest, func(b byte) bool { return b != 0 }) {
					number[size-1] = 0 // zeros have no sign
				}
				h.Write(number)
			}
			if got := fmt.Sprintf("%016x", h.Sum64()); got != want {
				t.Errorf("%s: the numbers have the sum %s, want %s", module, got, want)
			}
			part := make([]byte, 2*x.RowBytes())
			want := all.Data[3*x.RowBytes() : 5*x.RowBytes()]
			if err := x.ReadRows(part, 3, 5); err != nil || !slices.Equal(part, want) {
				t.Errorf("%s: rows 3 and 4 alone are others: %v", module, err)
			}
		}
	}
}

// Tensors that are missing or have another size are refused by name, and so are descriptions of other weights.
func TestCodebookRefusals(t *testing.T) {
	var names []string
	for _, info := range openCodebooks(t).Tensors {
		names = append(names, info.Name)
	}
	for _, name := range names {
		f := openCodebooks(t)
		x, _ := f.Tensor(name)
		if isCodebook(name) {
			all, err := x.ReadAll()
			if err != nil {
				t.Fatal(err)
			}
			for _, change := range [][2]string{{"{", ""}, {"blocksize\": ", "blocksize\": -"}, {"dtype\": \"", "dtype\": \"u"},
				{"shape\": [", "shape\": [0, "}, {"shape\": [", "shape\": [-"}} {
				f := openCodebooks(t)
				text := []byte(strings.ReplaceAll(string(all.Data), change[0], change[1]))
				x.Shape = []int{len(text)}
				x.Reader = func(dst []byte, _, _ int) error { copy(dst, text); return nil }
				f.Replace(name, x, x.Type)
				if err := decodeFolder(f, nil); err == nil || !strings.Contains(err.Error(), name) {
					t.Errorf("%s with %q: %v", name, text, err)
				}
			}
			continue
		}
		x.Shape = []int{x.Elements() + 1}
		f.Replace(x.Name, x, x.Type)
		if err := decodeFolder(f, nil); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s with a further number: %v", name, err)
		}
		f = openCodebooks(t)
		f.Drop(func(other string) bool { return other == name })
		name = strings.Replace(name, "nested_absmax", "absmax", 1) // which has the scales then
		if err := decodeFolder(f, nil); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("without %s: %v", name, err)
		}
	}
}
