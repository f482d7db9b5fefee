package gguf

import (
	"math"
	"path/filepath"
	"slices"
	"testing"
)

func openWith(t *testing.T, meta map[string]any) *File {
	t.Helper()
	w, path := new(Writer), filepath.Join(t.TempDir(), "k.gguf")
	for k, v := range meta {
		w.Set(k, v)
	}
	if err := w.WriteFile(path); err != nil {
		t.Fatal(err)
	}
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// Integers of every width are integers; a negative one is no Uint, a large one no Int; a float is no integer.
func TestGetters(t *testing.T) {
	f := openWith(t, map[string]any{
		"u8": uint8(7), "i16": int16(-7), "u64": uint64(math.MaxUint64), "f32": float32(0.5), "f64": 2.5, "s": "x", "b": true,
		"u32s": []uint32{1, 2}, "u64s": []uint64{math.MaxUint64}, "f64s": []float64{1.5}, "bs": []bool{true, false},
		"ss": []string{"a", ""}, "none": []uint8{},
	})
	if n, ok := Get[uint64](f, "u8"); n != 7 || !ok {
		t.Error(n, ok)
	}
	if n, ok := As[int64](value(t, f, "i16")); n != -7 || !ok {
		t.Error(n, ok)
	}
	if n, ok := Get[uint64](f, "u64"); n != math.MaxUint64 || !ok {
		t.Error(n, ok)
	}
	if x, ok := As[float64](value(t, f, "f32")); x != 0.5 || !ok {
		t.Error(x, ok)
	}
	if x, ok := As[float64](value(t, f, "u8")); x != 7 || !ok {
		t.Error(x, ok)
	}
	if x, ok := As[[]float32](value(t, f, "f64s")); !ok || !slices.Equal(x, []float32{1.5}) {
		t.Error(x, ok)
	}
	if x, ok := As[[]int64](value(t, f, "u32s")); !ok || !slices.Equal(x, []int64{1, 2}) {
		t.Error(x, ok)
	}
	if x, ok := As[[]bool](value(t, f, "bs")); !ok || !slices.Equal(x, []bool{true, false}) {
		t.Error(x, ok)
	}
	if x, ok := As[[]int64](value(t, f, "none")); !ok || len(x) != 0 {
		t.Error(x, ok)
	}
	refused := map[string]bool{}
	_, refused["negative uint"] = Get[uint64](f, "i16")
	_, refused["large int"] = As[int64](value(t, f, "u64"))
	_, refused["large ints"] = As[[]int64](value(t, f, "u64s"))
	_, refused["large float"] = As[float64](value(t, f, "u64"))
	_, refused["float as int"] = As[int64](value(t, f, "f64"))
	_, refused["string as bool"] = As[bool](value(t, f, "s"))
	_, refused["bool as int"] = As[int64](value(t, f, "b"))
	_, refused["bools as ints"] = As[[]int64](value(t, f, "bs"))
	_, refused["strings as floats"] = As[[]float32](value(t, f, "ss"))
	_, refused["scalar as array"] = Get[[]string](f, "s")
	_, refused["array as scalar"] = Get[string](f, "ss")
	_, refused["missing"] = Get[string](f, "missing")
	for name, ok := range refused {
		if ok {
			t.Errorf("%s is taken", name)
		}
	}
	for _, v := range []Value{{}, {typ: typeArray}} {
		_ = v.Len()
		As[[]string](v)
		As[[]Value](v)
		_ = v.String()
	}
}

func value(t *testing.T, f *File, key string) Value {
	t.Helper()
	v, ok := f.Lookup(key)
	if !ok {
		t.Fatalf("no key %s", key)
	}
	return v
}
