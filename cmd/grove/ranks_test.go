package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Ranks of text and of generated text are files that a drafter takes, and they do not change the text.
func TestRanks(t *testing.T) {
	dir := t.TempDir()
	text := filepath.Join(dir, "a.txt")
	counted := filepath.Join(dir, "a.gguf")
	own := filepath.Join(dir, "own.gguf")
	if err := os.WriteFile(text, []byte(strings.Repeat("func main() { return }\n", 20)), 0o644); err != nil {
		t.Fatal(err)
	}
	if out := must(t, "", "ranks", counted, "--text", text); !strings.Contains(out, "16384 tokens") {
		t.Errorf("grove ranks says %q", out)
	}
	out := lines(t, must(t, "", "ranks", own, "--text", text, "--generate", "40", "--prompt", "10", "--json"))
	if len(out) != 1 || out[0]["counted"] != 40.0 || out[0]["vocab"] != 16384.0 {
		t.Errorf("grove ranks --generate --json says %v", out)
	}
	run := func(drafter string) string {
		return must(t, "", "run", "-n", "20", "-t", "1", "--seed", "2", "-d", drafter, "func main() {")
	}
	want := run("plain")
	for _, file := range []string{counted, own} {
		if got := run("best-first+freq:size=512,ranks=" + file); got != want {
			t.Errorf("with %s: %q, want %q", filepath.Base(file), got, want)
		}
	}
	for say, args := range map[string][]string{
		"already exists": {"ranks", counted, "--text", text},
		"which text":     {"ranks", filepath.Join(dir, "b.gguf")},
		"want 0 or more": {"ranks", filepath.Join(dir, "b.gguf"), "--text", text, "--prompt", "0"},
	} {
		if code, _, err := runGrove("", args...); code == 0 || !strings.Contains(err, say) {
			t.Errorf("grove %s: status %d, %q, want %q", strings.Join(args, " "), code, err, say)
		}
	}
}
