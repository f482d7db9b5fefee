package bpe

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/grovellm/grove/gguf"
	"github.com/grovellm/grove/internal/files/ggufkeys"
)

// A vocabulary's file passes its keys on bit for bit; a file without any causes an error that says so.
func TestSetTokenizer(t *testing.T) {
	v := learn(t, []string{strings.Repeat("some words and more words\n", 5)}, Options{Size: 270})
	dir := t.TempDir()
	from, to := filepath.Join(dir, "a.gguf"), filepath.Join(dir, "b.gguf")
	if err := v.WriteGGUF(from); err != nil {
		t.Fatal(err)
	}
	f, err := gguf.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w := new(gguf.Writer)
	w.Set("general.architecture", "qwen3")
	if err := ggufkeys.SetTokenizer(w, f); err != nil {
		t.Fatal(err)
	}
	if err := w.WriteFile(to); err != nil {
		t.Fatal(err)
	}
	g, err := gguf.Open(to)
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	for key, want := range f.Meta() {
		if got, ok := g.Lookup(key); strings.HasPrefix(key, "tokenizer.") &&
			(!ok || got.String() != want.String()) {
			t.Errorf("key %s is %v, want %v", key, got, want)
		}
	}
	if id, ok := gguf.Get[uint64](g, "tokenizer.ggml.mask_token_id"); !ok || id != uint64(v.SpecialID(Mask)) {
		t.Errorf("mask token %d, want %d", id, v.SpecialID(Mask))
	}
	empty := filepath.Join(dir, "c.gguf")
	e := new(gguf.Writer)
	e.Set("general.architecture", "qwen3")
	if err := e.WriteFile(empty); err != nil {
		t.Fatal(err)
	}
	h, err := gguf.Open(empty)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	if err := ggufkeys.SetTokenizer(new(gguf.Writer), h); err == nil || !strings.Contains(err.Error(), empty) {
		t.Errorf("a file without a vocabulary: %v", err)
	}
}
