package gguf

import (
	"bytes"
	"errors"
	"fmt"
	"io"
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

// drawValue draws a Go value that ValueOf takes, arrays nested up to depth.
func drawValue(t *rapid.T, depth int) any {
	n := 14
	if depth > 0 {
		n = 15
	}
	text := rapid.OneOf(rapid.String(), rapid.Just("\xff\x00 not UTF-8"))
	switch rapid.IntRange(0, n).Draw(t, "kind") {
	case 0:
		return rapid.Uint8().Draw(t, "u8")
	case 1:
		return rapid.Int8().Draw(t, "i8")
	case 2:
		return rapid.Uint16().Draw(t, "u16")
	case 3:
		return rapid.Int16().Draw(t, "i16")
	case 4:
		return rapid.Uint32().Draw(t, "u32")
	case 5:
		return rapid.Int32().Draw(t, "i32")
	case 6:
		return rapid.Uint64().Draw(t, "u64")
	case 7:
		return rapid.Int64().Draw(t, "i64")
	case 8:
		return rapid.Float32().Draw(t, "f32")
	case 9:
		return rapid.Float64().Draw(t, "f64")
	case 10:
		return rapid.Bool().Draw(t, "bool")
	case 11:
		return text.Draw(t, "string")
	case 12:
		return rapid.SliceOf(text).Draw(t, "strings")
	case 13:
		return rapid.SliceOf(rapid.Int32()).Draw(t, "i32s")
	case 14:
		return rapid.SliceOf(rapid.Bool()).Draw(t, "bools")
	}
	elem := rapid.Custom(func(t *rapid.T) Value { return must(valueOf(drawValue(t, depth-1))) })
	first := elem.Draw(t, "first")
	out := []Value{first}
	for range rapid.IntRange(0, 3).Draw(t, "more") {
		if v := elem.Draw(t, "next"); v.Type() == first.Type() {
			out = append(out, v)
		}
	}
	return out
}

// goValue is the inverse of ValueOf.
func goValue(v Value) any {
	pick := func(x any, ok bool) any {
		if !ok {
			return nil
		}
		return x
	}
	n, _ := As[int64](v)
	x, _ := As[float64](v)
	u, _ := As[uint64](v)
	switch v.typ {
	case typeUint8:
		return uint8(n)
	case typeInt8:
		return int8(n)
	case typeUint16:
		return uint16(n)
	case typeInt16:
		return int16(n)
	case typeUint32:
		return uint32(n)
	case typeInt32:
		return int32(n)
	case typeUint64:
		return u
	case typeInt64:
		return n
	case typeFloat32:
		return float32(x)
	case typeFloat64:
		return x
	case typeBool:
		b, ok := As[bool](v)
		return pick(b, ok)
	case typeString:
		s, ok := As[string](v)
		return pick(s, ok)
	}
	switch v.elem() {
	case typeString:
		s, ok := As[[]string](v)
		return pick(s, ok)
	case typeBool:
		b, ok := As[[]bool](v)
		return pick(b, ok)
	case typeInt32:
		ns, ok := As[[]int64](v)
		out := make([]int32, len(ns))
		for i, n := range ns {
			out[i] = int32(n)
		}
		return pick(out, ok)
	}
	vs, ok := As[[]Value](v)
	return pick(vs, ok)
}

func drawTensor(t *rapid.T, i int) tensor.Tensor {
	typ := rapid.SampledFrom([]tensor.Type{tensor.F32, tensor.F16, tensor.BF16, tensor.Q8_0, tensor.Q4_K, numtype.Q2_K,
		numtype.I8, numtype.I64}).Draw(t, "type")
	n, _ := typ.Block()
	shape := rapid.SliceOfN(rapid.IntRange(1, 3), 0, 3).Draw(t, "shape")
	shape = append(shape, n*rapid.IntRange(1, 3).Draw(t, "blocks"))
	size := must(typ.Size(must(numtype.CountElements(shape))))
	return tensor.Tensor{Name: fmt.Sprintf("t%d.weight", i), Type: typ, Shape: shape,
		Data: bytes.Repeat([]byte{byte(i), 7, 9}, size)[:size]}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// What is written is what is read: keys in order with their types, tensors to the byte, at any alignment.
func TestRoundTrip(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		w, path := new(Writer), filepath.Join(dir, "a.gguf")
		keys := rapid.SliceOfNDistinct(rapid.StringN(1, 20, -1), 0, 8, rapid.ID).Draw(t, "keys")
		values := make([]any, len(keys))
		for i, k := range keys {
			values[i] = drawValue(t, 3)
			w.Set(k, values[i])
		}
		if rapid.Bool().Draw(t, "aligned otherwise") {
			keys, values = append(keys, alignmentKey), append(values, uint32(1)<<rapid.IntRange(0, 9).Draw(t, "alignment"))
			w.Set(alignmentKey, values[len(values)-1])
		}
		tensors := make([]tensor.Tensor, rapid.IntRange(0, 6).Draw(t, "tensors"))
		for i := range tensors {
			tensors[i] = drawTensor(t, i)
			w.AddTensor(tensors[i])
		}
		written := &bytes.Buffer{}
		if _, err := w.WriteTo(written); err != nil {
			t.Fatal(err)
		}
		testfile.Write(t, path, written.Bytes())
		f, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if f.Version != 3 || len(f.list) != len(keys) || len(f.Tensors) != len(tensors) {
			t.Fatalf("version %d, %d keys, %d tensors", f.Version, len(f.list), len(f.Tensors))
		}
		for i, kv := range f.list {
			got := goValue(kv.value)
			if _, nested := values[i].([]Value); nested {
				got, _ = As[[]Value](kv.value)
			}
			if kv.key != keys[i] || !cmp.Equal(got, values[i], cmp.Comparer(func(a, b Value) bool { return a == b })) {
				t.Fatalf("%q = %v, want %q = %v", kv.key, got, keys[i], values[i])
			}
			_ = kv.value.String()
		}
		for i, want := range tensors {
			got, ok := f.Tensor(want.Name)
			if !ok || f.Tensors[i].Name != want.Name {
				t.Fatalf("no tensor %q", want.Name)
			}
			if diff := cmp.Diff(want, must(got.ReadAll())); diff != "" {
				t.Fatal(diff)
			}
		}

		again, b := new(Writer), &bytes.Buffer{}
		copyMeta(again, f)
		for _, x := range tensors {
			again.AddTensor(x)
		}
		split := slices.ContainsFunc(keys, func(k string) bool { return strings.HasPrefix(k, "split.") })
		if n, err := again.WriteTo(b); err != nil || n != int64(b.Len()) || !split && !bytes.Equal(b.Bytes(), written.Bytes()) {
			t.Fatalf("a copy differs: %d bytes, %v", n, err)
		}
	})
}

// A failed write leaves what was there, and nothing else.
func TestWriteFails(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.gguf")
	testfile.Write(t, path, []byte("old"))
	boom := errors.New("boom")
	bytesOf := func(n int) func(io.Writer) error {
		return func(w io.Writer) error { _, err := w.Write(make([]byte, n)); return err }
	}
	f32 := tensor.F32
	for name, c := range map[string]struct {
		want string
		do   func(*Writer)
	}{
		"fill fails":     {`tensor "x": boom`, func(w *Writer) { w.Add("x", f32, []int{4}, func(io.Writer) error { return boom }) }},
		"too few bytes":  {`tensor "x": 15 bytes`, func(w *Writer) { w.Add("x", f32, []int{4}, bytesOf(15)) }},
		"too many bytes": {`tensor "x": 1 more bytes`, func(w *Writer) { w.Add("x", f32, []int{4}, bytesOf(17)) }},
		"twice":          {`added twice`, func(w *Writer) { w.Add("x", f32, []int{1}, bytesOf(4)); w.Add("x", f32, []int{1}, bytesOf(4)) }},
		"long name":      {`63 bytes`, func(w *Writer) { w.Add(strings.Repeat("x", 64), f32, []int{1}, bytesOf(4)) }},
		"part block":     {`whole blocks`, func(w *Writer) { w.Add("x", tensor.Q8_0, []int{32, 2}, bytesOf(68)) }},
		"no dimension":   {`below 1`, func(w *Writer) { w.Add("x", f32, []int{0}, bytesOf(0)) }},
		"5 dimensions":   {`more than 4`, func(w *Writer) { w.Add("x", f32, []int{1, 1, 1, 1, 1}, bytesOf(4)) }},
		"no ggml type":   {`no type for BOOL`, func(w *Writer) { w.Add("x", numtype.Bool, []int{1}, bytesOf(1)) }},
		"int":            {`uint32`, func(w *Writer) { w.Set("k", 3) }},
		"no key":         {`65535`, func(w *Writer) { w.Set("", true) }},
		"mixed array":    {`one type`, func(w *Writer) { w.Set("k", []Value{must(valueOf(true)), must(valueOf("x"))}) }},
		"alignment":      {`power of two`, func(w *Writer) { w.Set(alignmentKey, uint32(24)) }},
	} {
		w := new(Writer)
		c.do(w)
		err := w.WriteFile(path)
		if err == nil || !strings.HasPrefix(err.Error(), "gguf: "+path+": ") || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
		if name == "fill fails" && !errors.Is(err, boom) {
			t.Errorf("%v does not wrap its cause", err)
		}
		if left := must(os.ReadDir(dir)); len(left) != 1 || string(must(os.ReadFile(path))) != "old" {
			t.Fatalf("%s: the folder now has %v", name, left)
		}
	}
	if err := new(Writer).WriteFile(dir); err == nil {
		t.Error("a folder is overwritten")
	}
	if err := new(Writer).WriteFile(filepath.Join(dir, "none", "a.gguf")); err == nil {
		t.Error("a file is written into a folder that is not there")
	}
}

// copyMeta copies the metadata of an open file but for what says how it was split.
func copyMeta(w *Writer, f *File) {
	for _, kv := range f.list {
		if !strings.HasPrefix(kv.key, "split.") {
			w.Set(kv.key, kv.value)
		}
	}
}
