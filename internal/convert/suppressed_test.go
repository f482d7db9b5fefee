package convert

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/grovellm/grove/gguf"
	"github.com/grovellm/grove/internal/model/synth"
)

// Tokens that a folder excludes from sampling stay excluded in the file made from it, and in the folder made from that.
func TestSuppressedTokensBothWays(t *testing.T) {
	ctx, dir := context.Background(), t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	if err := synth.WriteHF(ctx, at("hf"), shape(t, "tiny-qwen2"), synth.Options{Seed: 1}); err != nil {
		t.Fatal(err)
	}
	settings := []byte(`{"suppress_tokens": [9, 7, 1000000, -1]}`) // the last two are not tokens
	if err := os.WriteFile(filepath.Join(at("hf"), "generation_config.json"), settings, 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := ToGGUF(ctx, at("hf"), at("a.gguf"), Options{}); err != nil {
		t.Fatal(err)
	}
	if _, err := ToHF(ctx, at("a.gguf"), at("back"), Options{Type: Keep}); err != nil {
		t.Fatal(err)
	}
	if _, err := ToGGUF(ctx, at("back"), at("b.gguf"), Options{Type: Keep}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a.gguf", "b.gguf"} {
		f, err := gguf.Open(at(name))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if ids, _ := gguf.Get[[]int64](f, "tokenizer.ggml.suppress_tokens"); len(ids) != 2 || ids[0] != 9 || ids[1] != 7 {
			t.Errorf("%s: %v", name, ids)
		}
	}
}
