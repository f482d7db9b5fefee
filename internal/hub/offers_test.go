package hub

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/grovellm/grove/internal/testing/testfile"
)

// A manifest that is a pipe is an error, and not waited for.
func TestOffersPipe(t *testing.T) {
	dir := t.TempDir()
	if !testfile.Pipe(filepath.Join(dir, Manifest)) {
		t.Skip("no named pipe can be made here")
	}
	if _, err := OffersFor("org/qwen3-8b", dir); err == nil || !strings.Contains(err.Error(), "regular") {
		t.Error(err)
	}
}

// Every model of grove's own list is found under the names that publishers give it, as folder and
// as GGUF, and its heads and draft models can be pulled by name.
func TestKnownOffers(t *testing.T) {
	for _, k := range known {
		for _, fork := range forks {
			for _, repo := range []string{"org/" + fork + k.target, "Org/" + strings.ToUpper(fork+k.target) + "-GGUF"} {
				got := knownOffers(repo)
				if !slices.Equal(got.Heads, k.Heads) || !slices.Equal(got.Drafts, k.Drafts) {
					t.Errorf("%s has %v, want %v", repo, got, k.Offers)
				}
			}
		}
		names := slices.Concat(k.Heads, k.Drafts)
		if len(names) == 0 || k.target != strings.ToLower(k.target) {
			t.Errorf("%s has %q", k.target, names)
		}
		for _, name := range names {
			if n, ok := ParseName(name); !ok || n.What != "" {
				t.Errorf("%s: %q is no name of a repository", k.target, name)
			}
		}
	}
	for _, repo := range []string{"org/other", "org/qwen3-8b-base", "org/xqwen3-8b"} {
		if got := knownOffers(repo); len(got.Heads)+len(got.Drafts) > 0 {
			t.Errorf("%s has %v, want none", repo, got)
		}
	}
}
