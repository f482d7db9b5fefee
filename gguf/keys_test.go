package gguf

import (
	"math"
	"path/filepath"
	"slices"
	"testing"
)

func openWith(t *testing.T, meta map[string]any) *File {
	t.Helper()
	w, path := NewWriter(), filepath.Join(t.TempDir(), "k.gguf")
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
	if n, ok := f.Uint("u8"); n != 7 || !ok {
		t.Error(n, ok)
	}
	if n, ok := value(t, f, "i16").Int(); n != -7 || !ok {
		t.Error(n, ok)
	}
	if n, ok := f.Uint("u64"); n != math.MaxUint64 || !ok {
		t.Error(n, ok)
	}
	if x, ok := value(t, f, "f32").Float(); x != 0.5 || !ok {
		t.Error(x, ok)
	}
	if x, ok := value(t, f, "u8").Float(); x != 7 || !ok {
		t.Error(x, ok)
	}
	if x, ok := value(t, f, "f64s").Floats(); !ok || !slices.Equal(x, []float32{1.5}) {
		t.Error(x, ok)
	}
	if x, ok := value(t, f, "u32s").Ints(); !ok || !slices.Equal(x, []int64{1, 2}) {
		t.Error(x, ok)
	}
	if x, ok := value(t, f, "bs").Bools(); !ok || !slices.Equal(x, []bool{true, false}) {
		t.Error(x, ok)
	}
	if x, ok := value(t, f, "none").Ints(); !ok || len(x) != 0 {
		t.Error(x, ok)
	}
	refused := map[string]bool{}
	_, refused["negative uint"] = f.Uint("i16")
	_, refused["large int"] = value(t, f, "u64").Int()
	_, refused["large ints"] = value(t, f, "u64s").Ints()
	_, refused["large float"] = value(t, f, "u64").Float()
	_, refused["float as int"] = value(t, f, "f64").Int()
	_, refused["string as bool"] = value(t, f, "s").Bool()
	_, refused["bool as int"] = value(t, f, "b").Int()
	_, refused["bools as ints"] = value(t, f, "bs").Ints()
	_, refused["strings as floats"] = value(t, f, "ss").Floats()
	_, refused["scalar as array"] = f.Strings("s")
	_, refused["array as scalar"] = f.String("ss")
	_, refused["missing"] = f.String("missing")
	for name, ok := range refused {
		if ok {
			t.Errorf("%s is taken", name)
		}
	}
	for _, v := range []Value{{}, {typ: Array}} {
		_ = v.Len()
		v.Strings()
		v.Values()
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
