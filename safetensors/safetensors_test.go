package safetensors

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

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
	size := must(typ.Size(must(tensor.Elements(shape))))
	return tensor.Tensor{Name: name, Type: typ, Shape: shape, Data: bytes.Repeat([]byte{byte(len(name)), 7, 9}, size)[:size]}
}

// What is written is what is read, aligned to its elements, whatever the order of adding.
func TestRoundTrip(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.SliceOfNDistinct(rapid.StringN(1, 20, -1).Filter(func(s string) bool { return s != metadataName }), 0, 8, rapid.ID).Draw(t, "names")
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
		if err := os.WriteFile(path, data, 0o666); err != nil {
			t.Fatal(err)
		}
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
			if diff := cmp.Diff(want, got); diff != "" {
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

// file puts a header before n bytes of data.
func file(header string, n int) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(b, header...), make([]byte, n)...)
}

// Every kind of damage has its own message.
func TestHostile(t *testing.T) {
	one := func(body string) string { return `{"x":{` + body + `}}` }
	for name, c := range map[string]struct {
		data []byte
		want string
	}{
		"empty":               {nil, "the file has 0 bytes"},
		"length cut":          {make([]byte, 7), "the file has 7 bytes"},
		"no header":           {make([]byte, 8), "not a safetensors file"},
		"length beyond file":  {binary.LittleEndian.AppendUint64(nil, 9), "its 9 bytes go beyond the end"},
		"length beyond limit": {binary.LittleEndian.AppendUint64(nil, 1<<63), "not a safetensors file"},
		"not JSON":            {file("{]", 0), "not valid JSON"},
		"not an object":       {file("[]", 0), "not a safetensors file"},
		"cut JSON":            {file(`{"x":{"dtype":"F32"`, 0), "EOF"},
		"text after":          {file(`{} {}`, 0), "after its closing brace"},
		"not UTF-8":           {file("{\"\xff\":{}}", 0), "UTF-8"},
		"tensor not object":   {file(`{"x":3}`, 0), "where { is expected"},
		"missing fields":      {file(one(`"dtype":"F32","shape":[1]`), 4), "lacks dtype, shape"},
		"one offset":          {file(one(`"dtype":"F32","shape":[1],"data_offsets":[0]`), 4), "lacks dtype, shape"},
		"three offsets":       {file(one(`"dtype":"F32","shape":[1],"data_offsets":[0,4,4]`), 4), "more than 2"},
		"backwards":           {file(one(`"dtype":"F32","shape":[1],"data_offsets":[4,0]`), 4), "run backwards"},
		"negative":            {file(one(`"dtype":"F32","shape":[-1],"data_offsets":[0,4]`), 4), "-1 is not an integer"},
		"fraction":            {file(one(`"dtype":"F32","shape":[1.0],"data_offsets":[0,4]`), 4), "1.0 is not an integer"},
		"beyond int":          {file(one(`"dtype":"F32","shape":[18446744073709551616],"data_offsets":[0,4]`), 4), "is not an integer"},
		"string dimension":    {file(one(`"dtype":"F32","shape":["1"],"data_offsets":[0,4]`), 4), "where a number"},
		"dtype a number":      {file(one(`"dtype":3,"shape":[1],"data_offsets":[0,4]`), 4), "where a string"},
		"dtype twice":         {file(one(`"dtype":"F32","dtype":"F32","shape":[1],"data_offsets":[0,4]`), 4), `"dtype" occurs twice`},
		"shape overflows":     {file(one(`"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,4]`), 4), "overflows"},
		"shape not bytes":     {file(one(`"dtype":"F32","shape":[2],"data_offsets":[0,4]`), 4), "takes 8 bytes, its data_offsets span 4"},
		"beyond file":         {file(one(`"dtype":"F32","shape":[2],"data_offsets":[0,8]`), 4), "beyond the end of the file"},
		"gap at start":        {file(one(`"dtype":"F32","shape":[1],"data_offsets":[4,8]`), 8), "the tensors before it end at 0"},
		"bytes at end":        {file(one(`"dtype":"F32","shape":[1],"data_offsets":[0,4]`), 5), "1 bytes at the end"},
		"overlap": {file(`{"x":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"y":{"dtype":"U8","shape":[4],"data_offsets":[2,6]}}`, 6),
			`tensor "y": its data at 2 overlaps`},
		"name twice": {file(`{"x":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"x":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}}`, 2), `"x": occurs twice`},
		"metadata":   {file(`{"__metadata__":{"a":1}}`, 0), "__metadata__: want an object of strings"},
		"metadata 2": {file(`{"__metadata__":{"a":"1","a":"2"}}`, 0), `"a" occurs twice`},
		"deep":       {file(one(`"more":`+strings.Repeat("[", 20000)), 0), "depth"},
		"many dims":  {file(one(`"dtype":"F32","shape":[`+strings.Repeat("1,", 100)+`1],"data_offsets":[0,4]`), 4), "more than 64"},
	} {
		path := filepath.Join(t.TempDir(), "bad.safetensors")
		if err := os.WriteFile(path, c.data, 0o666); err != nil {
			t.Fatal(err)
		}
		_, err := Open(path)
		var fe *tensor.FileError
		if !errors.As(err, &fe) || fe.File != path || fe.Field == "" || fe.Remedy == "" || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// Legal oddities: padding, unknown fields, tensors without elements, unknown dtypes (listed, but not loaded).
func TestOddities(t *testing.T) {
	path := filepath.Join(t.TempDir(), "odd.safetensors")
	header := `{ "f4":{"dtype":"F4","shape":[2],"data_offsets":[0,1]}, "x":{"dtype":"BF16","shape":[],"data_offsets":[1,3],"note":{"a":[1,2]}},
		"none":{"dtype":"F32","shape":[0,9223372036854775807],"data_offsets":[3,3]}, "i":{"dtype":"I64","shape":[1],"data_offsets":[3,11]}}   `
	if err := os.WriteFile(path, file(header, 11), 0o666); err != nil {
		t.Fatal(err)
	}
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if len(f.Tensors) != 4 {
		t.Errorf("tensors %v", f.Tensors)
	}
	if x := must(f.Load("x")); len(x.Data) != 2 || x.Elements() != 1 {
		t.Errorf("a scalar is %v", x)
	}
	for name, want := range map[string]string{"f4": `tensor "f4": is of dtype "F4"`, "i": `tensor "i": is of dtype "I64"`, "zz": `tensor "zz": is not in the file`} {
		if _, err := f.Load(name); err == nil || !strings.HasPrefix(err.Error(), "safetensors: "+path+": "+want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if x, ok := f.Tensor("i"); !ok || len(x.Data) != 8 {
		t.Error("the bytes of an I64 cannot be had")
	}
	f.Prefetch("i")
	f.Release("i")
	f.Release("zz")
}

func TestCutAndFlipped(t *testing.T) {
	w, b := NewWriter(), &bytes.Buffer{}
	w.SetMetadata("format", "pt")
	w.AddTensor(must(tensor.FromFloat32s("a.weight", tensor.BF16, []int{2, 3}, make([]float32, 6))))
	w.AddTensor(must(tensor.FromFloat32s("b.weight", tensor.F32, []int{5}, make([]float32, 5))))
	must(w.WriteTo(b))
	data := b.Bytes()
	for n := range data {
		if _, err := parse(data[:n:n]); err == nil {
			t.Fatalf("cut to %d of %d bytes it is read", n, len(data))
		}
	}
	for i := range data {
		for _, x := range []byte{0, 1, 0x7f, 0xff, '"', '{', '}', '9', data[i] + 1} {
			old := data[i]
			data[i] = x
			walk(data)
			data[i] = old
		}
	}
}

// walk parses and looks at all data.
func walk(data []byte) (*header, error) {
	h, err := parse(data)
	if err != nil {
		return nil, err
	}
	for _, t := range h.tensors {
		x := tensor.Tensor{Name: t.Name, Type: t.Type, Shape: t.Shape, Data: data[t.Offset : t.Offset+t.Size]}
		if x.Elements() > 0 && x.Type.Decodes() {
			must(x.Float32s())
		}
	}
	return h, nil
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

// shards writes a folder of two shards and an index.
func shards(t *testing.T, weightMap map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for i, names := range [][]string{{"a", "b"}, {"c"}} {
		w := NewWriter()
		w.SetMetadata("format", "pt")
		for _, n := range names {
			w.AddTensor(must(tensor.FromFloat32s(n, tensor.F16, []int{1}, []float32{float32(n[0])})))
		}
		if err := w.WriteFile(filepath.Join(dir, fmt.Sprintf("model-%05d-of-00002.safetensors", i+1))); err != nil {
			t.Fatal(err)
		}
	}
	index := must(json.Marshal(map[string]any{"metadata": map[string]int{"total_size": 6}, "weight_map": weightMap}))
	if err := os.WriteFile(filepath.Join(dir, singleName+indexEnd), index, 0o666); err != nil {
		t.Fatal(err)
	}
	return dir
}

const first, second = "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"

func TestShards(t *testing.T) {
	f, err := Open(shards(t, map[string]string{"a": first, "b": first, "c": second}))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if len(f.Tensors) != 3 || f.Metadata["format"] != "pt" {
		t.Errorf("%v, %v", f.Tensors, f.Metadata)
	}
	for _, n := range []string{"a", "b", "c"} {
		if x := must(must(f.Load(n)).Float32s()); x[0] != float32(n[0]) {
			t.Errorf("%s holds %v", n, x)
		}
	}
}

func TestShardsFail(t *testing.T) {
	for want, m := range map[string]map[string]string{
		`tensor "c": is not in`:      {"a": first, "b": first, "c": first},
		`tensor "d": is not in`:      {"a": first, "d": second},
		"no-file.safetensors: ":      {"a": first, "c": "no-file.safetensors"},
		`"weight_map": is missing`:   {},
		`"../x.safetensors" leaves`:  {"a": "../x.safetensors"},
		`"/x.safetensors" leaves`:    {"a": "/x.safetensors"},
		`"a/../model-0`:              {"a": "a/../" + first, "b": first},
		`".." leaves`:                {"a": ".."},
		`"" leaves`:                  {"a": ""},
		`"..\\x.safetensors" leaves`: {"a": `..\x.safetensors`},
		`"C:x.safetensors" leaves`:   {"a": `C:x.safetensors`},
	} {
		_, err := OpenFolder(shards(t, m))
		if fe := (*tensor.FileError)(nil); !errors.As(err, &fe) || fe.Remedy == "" || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	dir := shards(t, map[string]string{"a": first, "b": first, "c": second})
	if err := os.WriteFile(filepath.Join(dir, second), must(os.ReadFile(filepath.Join(dir, first))), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenFolder(dir); err == nil || !strings.Contains(err.Error(), "is also in") {
		t.Error(err)
	}
	if err := os.WriteFile(filepath.Join(dir, singleName+indexEnd), []byte("{"), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenFolder(dir); err == nil || !strings.Contains(err.Error(), "JSON") {
		t.Error(err)
	}
	if _, err := OpenFolder(t.TempDir()); err == nil || !strings.Contains(err.Error(), "holds neither model.safetensors nor") {
		t.Error(err)
	}
	if _, err := Open(filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

// A folder without safetensors is read from PyTorch's file, whose tensors are there as any others; safetensors come first.
func TestTorch(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, torchName), must(os.ReadFile("../internal/torch/testdata/protocol2.pt")), 0o666); err != nil {
		t.Fatal(err)
	}
	f, err := OpenFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	x := must(must(f.Load("layers.0.bias")).Float32s())
	if !slices.Equal(x, []float32{8, 9, 10, 11}) {
		t.Errorf("read %v", x)
	}
	if _, err := f.Load("d2t"); err == nil || !strings.Contains(err.Error(), `dtype "I64"`) {
		t.Errorf("whole numbers as weights: %v", err)
	}
	if y, ok := f.Tensor("t2d"); !ok || y.Type != tensor.Bool || string(y.Data) != "\x01\x00\x00\x01\x01" {
		t.Errorf("t2d is %v", y)
	}
	bad := filepath.Join(dir, "bad.bin")
	if err := os.WriteFile(bad, []byte("PK\x03\x04"), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(bad); err == nil || !strings.Contains(err.Error(), bad) {
		t.Errorf("a damaged file: %v", err)
	}
	w := NewWriter()
	w.AddTensor(must(tensor.FromFloat32s("other", tensor.F16, []int{1}, []float32{1})))
	if err := w.WriteFile(filepath.Join(dir, singleName)); err != nil {
		t.Fatal(err)
	}
	if g := must(OpenFolder(dir)); g.Tensors[0].Name != "other" {
		t.Errorf("reads %v", g.Tensors)
	} else {
		g.Close()
	}
}

// FuzzSafetensors: no bytes make the parser panic; what it accepts covers the data exactly.
func FuzzSafetensors(f *testing.F) {
	f.Add(file(`{"__metadata__":{"format":"pt"},"x":{"dtype":"BF16","shape":[2,3],"data_offsets":[0,12]},"y":{"dtype":"F32","shape":[],"data_offsets":[12,16]}} `, 16))
	f.Add(file(`{"x":{"dtype":"F4","shape":[2],"data_offsets":[0,1],"more":[{}]}}`, 1))
	f.Add(file(`{}`, 0))
	for _, bad := range []string{`{"x":{"dtype":"F32","shape":[18446744073709551615],"data_offsets":[0,4]}}`, `{"x":{"shape":[1],}}`, `{"a":{},"a":{}}`, `{"\ud800":{}}`} {
		f.Add(file(bad, 4))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		h, err := walk(data)
		if err != nil {
			if e := (*tensor.FileError)(nil); !errors.As(err, &e) || e.Field == "" || e.Remedy == "" {
				t.Fatalf("an error without field or remedy: %v", err)
			}
			return
		}
		at := 8 + int64(binary.LittleEndian.Uint64(data))
		for _, x := range h.tensors {
			if x.Offset != at {
				t.Fatalf("%q lies at %d, want %d", x.Name, x.Offset, at)
			}
			at += x.Size
		}
		if at != int64(len(data)) {
			t.Fatalf("the data ends at %d of %d", at, len(data))
		}
	})
}
