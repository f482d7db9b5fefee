package shortlist

import (
	"errors"
	"strings"
	"testing"

	"github.com/grovellm/grove/gguf"
	"github.com/grovellm/grove/models"
)

// The embedded router is for the embedded models' vocabulary. A router that names another
// vocabulary is refused, and one that names none is accepted.
func TestRouterReadsItsVocabulary(t *testing.T) {
	var r *RouterFile
	for _, head := range models.Heads() {
		f, err := gguf.Parse("head", head)
		if err != nil {
			t.Fatal(err)
		}
		if r, err = ReadRouter(f); err == nil {
			break
		} else if !errors.Is(err, ErrNoRouter) {
			t.Fatal(err)
		}
	}
	tok := embedded(t)
	if r == nil || r.Vocabulary == "" {
		t.Fatal("there is no embedded router, or it does not say which vocabulary it is of")
	}
	if err := r.Reads(tok); err != nil {
		t.Errorf("the embedded router: %v", err)
	}
	r.Vocabulary = strings.Repeat("0", len(r.Vocabulary))
	if err := r.Reads(tok); err == nil || !strings.Contains(err.Error(), keyVocabulary) ||
		!strings.Contains(err.Error(), "want a router") {
		t.Errorf("another vocabulary's: %v", err)
	}
	if err := r.Reads(nil); err != nil {
		t.Errorf("a target without a vocabulary: %v", err)
	}
	r.Vocabulary = ""
	if err := r.Reads(tok); err != nil {
		t.Errorf("a router that does not say: %v", err)
	}
}
