package safetensors

import (
	"bytes"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/grovellm/grove/internal/files/numtype"
	"github.com/grovellm/grove/internal/testing/testfile"
	"github.com/grovellm/grove/tensor"
)

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func drawTensor(t *rapid.T, name string) tensor.Tensor {
	typ := dtypes[rapid.SampledFrom(slices.Sorted(maps.Keys(dtypes))).Draw(t, "dtype")]
	shape := rapid.SliceOfN(rapid.IntRange(1, 4), 0, 5).Draw(t, "shape")
	if len(shape) == 0 {
		shape = []int{}
	}
	size := must(typ.Size(must(numtype.CountElements(shape))))
	return tensor.Tensor{Name: name, Type: typ, Shape: shape, Data: bytes.Repeat([]byte{byte(len(name)), 7, 9}, size)[:size]}
}

// A file is read as it was written, aligned to its elements, whatever the order of adding.
func TestRoundTrip(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.SliceOfNDistinct(rapid.StringN(1, 20, -1).Filter(func(s string) bool { return s != metadataName }), 0,
			8, rapid.ID).Draw(t, "names")
		meta := rapid.MapOfN(rapid.String(), rapid.String(), 0, 4).Draw(t, "metadata")
		tensors := make([]tensor.Tensor, len(names))
		for i, name := range names {
			tensors[i] = drawTensor(t, name)
		}
		write := func(ts []tensor.Tensor) []byte {
			w, b := NewWriter(), &bytes.Buffer{}
			for k, v := range meta {
				w.SetMetadata(k, v)
			}
			for _, x := range ts {
				w.AddTensor(x)
			}
			if n, err := w.WriteTo(b); err != nil || n != int64(b.Len()) {
				t.Fatal(n, err)
			}
			return b.Bytes()
		}
		data, path := write(tensors), filepath.Join(dir, "a.safetensors")
		if !bytes.Equal(data, write(rapid.Permutation(tensors).Draw(t, "order"))) {
			t.Fatal("the order of adding shows")
		}
		testfile.Write(t, path, data)
		f, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if len(f.Tensors) != len(tensors) || !maps.Equal(f.Metadata, meta) {
			t.Fatalf("%d tensors, metadata %q", len(f.Tensors), f.Metadata)
		}
		for _, want := range tensors {
			got, ok := f.Tensor(want.Name)
			if !ok {
				t.Fatalf("no %q", want.Name)
			}
			if diff := cmp.Diff(want, must(got.ReadAll())); diff != "" {
				t.Fatal(diff)
			}
		}
		for _, info := range f.Tensors {
			if _, size := info.Type.Block(); info.Offset%int64(size) != 0 {
				t.Fatalf("%q of %s lies at %d", info.Name, info.DType, info.Offset)
			}
		}
	})
}

func TestWriteFails(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.safetensors")
	boom := errors.New("boom")
	fill := func(io.Writer) error { return boom }
	for want, do := range map[string]func(*Writer){
		`tensor "x": boom`:         func(w *Writer) { w.Add("x", tensor.F32, []int{1}, fill) },
		"added twice":              func(w *Writer) { w.Add("x", tensor.F32, nil, fill); w.Add("x", tensor.F32, nil, fill) },
		"no dtype for Q8_0":        func(w *Writer) { w.Add("x", tensor.Q8_0, []int{32}, fill) },
		"below 1":                  func(w *Writer) { w.Add("x", tensor.F32, []int{0}, fill) },
		"cannot be the name":       func(w *Writer) { w.Add(metadataName, tensor.F32, nil, fill) },
		"is not valid UTF-8":       func(w *Writer) { w.SetMetadata("a", "\xff") },
		`tensor "x": 0 bytes were`: func(w *Writer) { w.Add("x", tensor.F32, nil, func(io.Writer) error { return nil }) },
	} {
		w := NewWriter()
		do(w)
		err := w.WriteFile(path)
		if err == nil || !strings.HasPrefix(err.Error(), "safetensors: "+path+": ") || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
		if left := must(os.ReadDir(dir)); len(left) != 0 {
			t.Fatalf("%s: the folder now has %v", want, left)
		}
	}
}
