package grove_test

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/grovellm/grove"
	"github.com/grovellm/grove/internal/drafters/jet"
	"github.com/grovellm/grove/models"
)

// Drafters continue from their own rows of the prompt: they draft as they did before the model was closed.
func TestCacheDirOfDrafters(t *testing.T) {
	text, err := os.ReadFile("cachedir.go")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	run := func(drafter, tenant string) *grove.Result {
		o := grove.Options{Threads: 1, CacheDir: dir, HeadGGUF: models.Heads(), DraftGGUF: models.Draft()}
		m, err := grove.OpenGGUF("target", models.Target(), o)
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		r := grove.Request{MaxTokens: 30, IgnoreEnd: true, Uncontrolled: true, Drafter: drafter, Tenant: tenant}
		return collect(t, m, string(text[:1400]), r)
	}
	for _, drafter := range []string{"eagle3", "dynatree"} {
		first := run(drafter, drafter)
		other := run(drafter, "")
		again := run(drafter, drafter)
		if a, b := &first.Stats, &again.Stats; a.Prompt < 300 || b.Reused < a.Prompt/128*128-1 || a.Rounds != b.Rounds ||
			a.Drafted != b.Drafted || again.Text != first.Text || other.Text != first.Text {
			t.Errorf("%s: %+v and then %+v", drafter, *a, *b)
		}
		if other.Stats.Reused != 0 && drafter == "eagle3" {
			t.Errorf("%s: another tenant has %d rows", drafter, other.Stats.Reused)
		}
	}
}

// A model that is opened again continues from prompts in its folder, with the same text for every
// drafter; another file does not.
func TestCacheDir(t *testing.T) {
	path, dir := tinyFile(t, "tiny-qwen3"), t.TempDir()
	heads := []string{headFile(t, path, func(*jet.Config) {})}
	opened := func(path string) *grove.Model {
		t.Helper()
		m, err := grove.Open(path, grove.Options{Threads: 1, CacheDir: dir, Heads: heads})
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	prompt := strings.Repeat("more of the same and ", 25)
	r := grove.Request{MaxTokens: 20, IgnoreEnd: true, Uncontrolled: true}
	m := opened(path)
	want := collect(t, m, prompt, r)
	var option *grove.OptionError
	if _, err := grove.Open(path, grove.Options{Threads: 1, CacheDir: dir}); !errors.As(err, &option) ||
		option.Field != "CacheDir" {
		t.Errorf("a second model with the folder: %v", err)
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	drafted := 0
	for _, drafter := range []string{"", "lookup", "jetspec"} { // the last one reads the target's last rows again
		r.Drafter = drafter
		m = opened(path)
		got := collect(t, m, prompt, r)
		if got.Text != want.Text || got.Stats.Reused < 128 {
			t.Errorf("%q: text %q of %d rows that were kept, want %q", drafter, got.Text, got.Stats.Reused, want.Text)
		}
		drafted = got.Stats.Drafted
		if err := m.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if drafted == 0 {
		t.Error("the head drafts nothing after a prefix from files")
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b, 0o644); err != nil { // at another time
		t.Fatal(err)
	}
	m = opened(path)
	if got := collect(t, m, prompt, r); got.Text != want.Text || got.Stats.Reused != 0 {
		t.Errorf("another file's text %q of %d rows that were kept, want %q", got.Text, got.Stats.Reused, want.Text)
	}
	for range 2 { // as if a program closes it, and also defers that
		if err := m.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
