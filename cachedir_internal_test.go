package grove

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/grovellm/grove/internal/drafters/registry"
)

// A model's description changes with each of its files, and with no other.
func TestDescribeFile(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"m-00001-of-00002.gguf", "m-00002-of-00002.gguf", "m.gguf", "other.gguf"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(name), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	describe := func(name string) string {
		t.Helper()
		text, err := describeFile(registry.Head{Name: filepath.Join(dir, name)})
		if err != nil || text == "" {
			t.Fatalf("%q, %v", text, err)
		}
		return text
	}
	touched := time.Unix(1, 0)
	for name, parts := range map[string]map[string]bool{
		"m.gguf":                {"m.gguf": true},
		"m-00001-of-00002.gguf": {"m-00001-of-00002.gguf": true, "m-00002-of-00002.gguf": true},
		"":                      {"m.gguf": true, "m-00001-of-00002.gguf": true, "m-00002-of-00002.gguf": true, "other.gguf": true},
	} {
		for _, changed := range []string{"m-00001-of-00002.gguf", "m-00002-of-00002.gguf", "m.gguf", "other.gguf"} {
			before := describe(name)
			touched = touched.Add(time.Second)
			if err := os.Chtimes(filepath.Join(dir, changed), touched, touched); err != nil {
				t.Fatal(err)
			}
			if after := describe(name); (after != before) != parts[changed] {
				t.Errorf("%q: %s was changed: before %q, after %q", name, changed, before, after)
			}
		}
	}
	if a, err := describeFile(registry.Head{Name: "x", Data: []byte("a")}); err != nil || a == "" {
		t.Error(a, err)
	}
}
