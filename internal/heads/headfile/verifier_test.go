package headfile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/grovellm/grove/gguf"
)

// The verifier is a repository or a folder: the one named, the folder itself, or the one from which
// the file says it was made. Titles do not count, nor does the base of a fine-tuned model.
func TestVerifier(t *testing.T) {
	dir := t.TempDir()
	cached := filepath.Join(dir, "models--Qwen--Qwen3-8B", "snapshots", "0123")
	if err := os.MkdirAll(cached, 0o777); err != nil {
		t.Fatal(err)
	}
	base := map[string]any{"general.name": "Qwen3 8B", "general.base_model.count": uint32(1),
		"general.base_model.0.repo_url": "https://huggingface.co/Qwen/Qwen3-8B"}
	tuned := map[string]any{"general.name": "Mine 8B", "general.base_model.count": uint32(1),
		"general.base_model.0.repo_url": "https://huggingface.co/Qwen/Qwen3-8B"}
	two := map[string]any{"general.name": "Qwen3 8B", "general.base_model.count": uint32(2),
		"general.base_model.0.repo_url": "https://huggingface.co/Qwen/Qwen3-8B"}
	for _, c := range []struct {
		named string
		keys  map[string]any // of a GGUF file; nil: a folder
		want  string         // empty: an error
	}{
		{"org/target", nil, "org/target"}, {dir, nil, dir}, {"Smollm2 135M 8k", nil, ""}, {"gpt2", nil, ""},
		{"", nil, "Qwen/Qwen3-8B"},
		{"", map[string]any{"general.name": "org/title"}, ""},
		{"", map[string]any{"general.source.huggingface.repository": "org/one"}, "org/one"},
		{"", map[string]any{"general.source.url": "https://huggingface.co/org/two"}, "org/two"},
		{"", map[string]any{"general.repo_url": "https://example.com/org/two"}, ""},
		{"", base, "Qwen/Qwen3-8B"}, {"", tuned, ""}, {"", two, ""},
	} {
		path := cached
		if c.keys != nil {
			path = filepath.Join(t.TempDir(), "m.gguf")
			w := new(gguf.Writer)
			w.Set("general.architecture", "llama")
			for key, v := range c.keys {
				w.Set(key, v)
			}
			if err := w.WriteFile(path); err != nil {
				t.Fatal(err)
			}
		}
		got, err := Verifier(c.named, path)
		if got != c.want || (err != nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), "--verifier") {
			t.Errorf("named %q, keys %v: %q, %v, want %q", c.named, c.keys, got, err, c.want)
		}
	}
	plain := filepath.Join(dir, "plain")
	if err := os.Mkdir(plain, 0o777); err != nil {
		t.Fatal(err)
	}
	if got, err := Verifier("", plain); err != nil || got != plain {
		t.Errorf("a folder: %q, %v", got, err)
	}
}
