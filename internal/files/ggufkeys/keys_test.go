package ggufkeys

import (
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/grovellm/grove/gguf"
)

func openWith(t *testing.T, meta map[string]any) *gguf.File {
	t.Helper()
	w, path := new(gguf.Writer), filepath.Join(t.TempDir(), "k.gguf")
	for k, v := range meta {
		w.Set(k, v)
	}
	if err := w.WriteFile(path); err != nil {
		t.Fatal(err)
	}
	f, err := gguf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// Keys keeps the first error, gives defaults only for missing keys, and names file and key.
func TestKeys(t *testing.T) {
	f := openWith(t, map[string]any{"n": uint32(3), "neg": int32(-1), "s": "x", "inf": float32(math.Inf(1)),
		"ss": []string{"a"}})
	k := Of(f)
	if k.Int("n") != 3 || k.Int("m", 5) != 5 || k.String("s") != "x" || k.Float("n") != 3 || !k.Bool("b", true) ||
		len(k.Strings("ss")) != 1 ||
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
		k := Of(f)
		read(k)
		if k.Err() == nil || !strings.HasPrefix(k.Err().Error(), "gguf: "+f.Path+": "+want) {
			t.Errorf("%v, want %s", k.Err(), want)
		}
	}
}

// Check allows keys that are obeyed, ignored or neutral, in arrays too, and names the first key
// that is none of these.
func TestCheck(t *testing.T) {
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
		if err := Check(openWith(t, good), "m.", rules...); err != nil {
			t.Errorf("%v: %v", good, err)
		}
	}
	for key, v := range map[string]any{
		"scale": float32(0.5), "act": "relu", "list": []int32{1}, "unknown": true, "scale.x": uint32(0),
	} {
		f := openWith(t, map[string]any{"m." + key: v})
		if err := Check(f, "m.", rules...); err == nil ||
			!strings.HasPrefix(err.Error(), "gguf: "+f.Path+`: key "m.`+key+`"`) {
			t.Errorf("%s = %v: %v", key, v, err)
		}
	}
	if err := Check(openWith(t, map[string]any{"m.scale": []bool{true}}), "m.", rules...); err == nil {
		t.Error("a truth value for a number is neutral")
	}
	if err := Check(openWith(t, map[string]any{"m.scale": make([]uint8, maxNeutral+1)}), "m.", rules...); err == nil {
		t.Error("a long array is looked through")
	}
}
