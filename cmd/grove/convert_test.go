package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/grovellm/grove/internal/model/synth"
	"github.com/grovellm/grove/tensor"
)

// A model that goes to a folder and back continues a prompt as before, and evaluates alike.
func TestConvertQuantizeEval(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	s, err := synth.Lookup("tiny-qwen3")
	if err == nil {
		err = synth.Write(t.Context(), path("a.gguf"), s, synth.Options{Type: tensor.F32})
	}
	if err != nil {
		t.Fatal(err)
	}
	must(t, "", "convert", path("a.gguf"), path("folder"))
	must(t, "", "convert", path("folder"), path("b.gguf"))
	must(t, "", "quantize", path("b.gguf"), path("q.gguf"))
	want := must(t, "", "run", "-m", path("a.gguf"), "-n", "20", "some words")
	for _, m := range []string{"folder", "b.gguf"} {
		if got := must(t, "", "run", "-m", path(m), "-n", "20", "some words"); got != want {
			t.Errorf("%s continues %q, the original %q", m, got, want)
		}
	}
	if a, q := fileSize(t, path("a.gguf")), fileSize(t, path("q.gguf")); q > a/2 {
		t.Errorf("q8_0 takes %d bytes, f32 %d", q, a)
	}
	if err := os.WriteFile(path("text.txt"), []byte(strings.Repeat("one line of text\n", 9)), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path("lines.jsonl"), []byte(`{"q":"one","a":"line"}`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := lines(t, must(t, "", "eval", "-m", path("a.gguf"), "--text", path("text.txt"), "--json"))[0]
	if r["bytes"] != 153.0 || r["bits_per_byte"].(float64) <= 0 {
		t.Errorf("eval of 153 bytes: %v", r)
	}
	must(t, "", "eval", "-m", path("q.gguf"), "--source", path("lines.jsonl")+`,template={q}\, {a}`)

	for want, args := range map[string][]string{
		"already exists":        {"convert", path("folder"), path("b.gguf")},
		"not empty":             {"convert", path("a.gguf"), path("folder")},
		"give the folder":       {"convert", path("folder/model.safetensors"), path("y.gguf")},
		"--type":                {"quantize", path("a.gguf"), path("x.gguf"), "--type", "q3"},
		"which text":            {"eval", "-m", path("a.gguf")},
		"template":              {"eval", "-m", path("a.gguf"), "--source", path("lines.jsonl")},
		"no such file":          {"eval", "-m", path("a.gguf"), "--text", path("none.txt")},
		"not-a-model: no such ": {"convert", path("not-a-model"), path("y.gguf")},
	} {
		if code, _, err := runGrove("", args...); code == 0 || !strings.Contains(err, want) {
			t.Errorf("grove %q: status %d, %q; want an error with %q", args, code, err, want)
		}
	}
}

func fileSize(t *testing.T, path string) int64 {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}

// JSON says the type that is written for a mixture of llama.cpp's.
func TestQuantizeSaysType(t *testing.T) {
	for typ, want := range map[string]string{"Q4_K_M": "q4_k", "q5_k_s": "q5_k", "IQ4_NL": "iq4_nl"} {
		out := must(t, "", "quantize", tiny(t), filepath.Join(t.TempDir(), "to.gguf"), "--type", typ, "--json")
		if !strings.Contains(out, `"type":"`+want+`"`) {
			t.Errorf("%s: %s, want %s", typ, out, want)
		}
	}
}
