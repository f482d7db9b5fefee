package gguf

import (
	"math"
	"path/filepath"
	"slices"
	"strings"
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
		"u32s": []uint32{1, 2}, "u64s": []uint64{math.MaxUint64}, "f64s": []float64{1.5}, "bs": []bool{true, false}, "ss": []string{"a", ""}, "none": []uint8{},
	})
	if n, ok := f.Uint("u8"); n != 7 || !ok {
		t.Error(n, ok)
	}
	if n, ok := f.Int("i16"); n != -7 || !ok {
		t.Error(n, ok)
	}
	if n, ok := f.Uint("u64"); n != math.MaxUint64 || !ok {
		t.Error(n, ok)
	}
	if x, ok := f.Float("f32"); x != 0.5 || !ok {
		t.Error(x, ok)
	}
	if x, ok := f.Float("u8"); x != 7 || !ok {
		t.Error(x, ok)
	}
	if x, ok := f.Floats("f64s"); !ok || !slices.Equal(x, []float32{1.5}) {
		t.Error(x, ok)
	}
	if x, ok := f.Ints("u32s"); !ok || !slices.Equal(x, []int64{1, 2}) {
		t.Error(x, ok)
	}
	if x, ok := f.Bools("bs"); !ok || !slices.Equal(x, []bool{true, false}) {
		t.Error(x, ok)
	}
	if x, ok := f.Ints("none"); !ok || len(x) != 0 {
		t.Error(x, ok)
	}
	refused := map[string]bool{}
	_, refused["negative uint"] = f.Uint("i16")
	_, refused["large int"] = f.Int("u64")
	_, refused["large ints"] = f.Ints("u64s")
	_, refused["large float"] = f.Float("u64")
	_, refused["float as int"] = f.Int("f64")
	_, refused["string as bool"] = f.Bool("s")
	_, refused["bool as int"] = f.Int("b")
	_, refused["bools as ints"] = f.Ints("bs")
	_, refused["strings as floats"] = f.Floats("ss")
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

// Keys keeps the first error, gives defaults for what is missing only, and names file and key.
func TestKeys(t *testing.T) {
	f := openWith(t, map[string]any{"n": uint32(3), "neg": int32(-1), "s": "x", "inf": float32(math.Inf(1)), "ss": []string{"a"}})
	k := f.Keys()
	if k.Int("n") != 3 || k.Int("m", 5) != 5 || k.String("s") != "x" || k.Float("n") != 3 || !k.Bool("b", true) || len(k.Strings("ss")) != 1 ||
		k.Ints("is", nil) != nil || k.Floats("fs", nil) != nil || !k.Has("n") || k.Has("m") || k.Err() != nil {
		t.Error(k.Err())
	}
	for want, read := range map[string]func(*Keys){
		`key "m": is missing`:                       func(k *Keys) { k.Int("m"); k.Int("s") },
		`key "s": is "x" (str), want an integer`:    func(k *Keys) { k.Int("s", 4); k.Int("m") },
		`key "neg": is -1 (i32), want an integer`:   func(k *Keys) { k.Int("neg") },
		`key "inf": is +Inf (f32), want a finite`:   func(k *Keys) { k.Float("inf") },
		`key "n": is 3 (u32), want an array of str`: func(k *Keys) { k.Strings("n") },
	} {
		k := f.Keys()
		read(k)
		if k.Err() == nil || !strings.HasPrefix(k.Err().Error(), "gguf: "+f.Path+": "+want) {
			t.Errorf("%v, want %s", k.Err(), want)
		}
	}
}

// CheckKeys takes what is obeyed, ignored or neutral, in arrays too, and names the first key that
// is none of them.
func TestCheckKeys(t *testing.T) {
	rules := []Rules{
		{Obeyed: []string{"size"}, Ignored: []string{"note"},
			Neutral: map[string][]any{"scale": {0, 1}, "causal": {true}, "act": {"silu"}, "list": {}}},
		{Obeyed: []string{"causal"}}, // another reader's
	}
	for _, good := range []map[string]any{
		{"m.size": uint32(7), "m.note": "x", "other.scale": float32(3), "mm": true},
		{"m.scale": float32(1)}, {"m.scale": uint8(0)}, {"m.scale": []int32{0, 1, 1}}, {"m.act": "silu"},
		{"m.list": []int32{}}, {"m.causal": false},
	} {
		if err := openWith(t, good).CheckKeys("m.", rules...); err != nil {
			t.Errorf("%v: %v", good, err)
		}
	}
	for key, v := range map[string]any{
		"scale": float32(0.5), "act": "relu", "list": []int32{1}, "unknown": true, "scale.x": uint32(0),
	} {
		f := openWith(t, map[string]any{"m." + key: v})
		if err := f.CheckKeys("m.", rules...); err == nil ||
			!strings.HasPrefix(err.Error(), "gguf: "+f.Path+`: key "m.`+key+`"`) {
			t.Errorf("%s = %v: %v", key, v, err)
		}
	}
	if err := openWith(t, map[string]any{"m.scale": []bool{true}}).CheckKeys("m.", rules...); err == nil {
		t.Error("a truth value for a number is neutral")
	}
	if err := openWith(t, map[string]any{"m.scale": make([]uint8, maxNeutral+1)}).CheckKeys("m.",
		rules...); err == nil {
		t.Error("a long array is looked through")
	}
}
