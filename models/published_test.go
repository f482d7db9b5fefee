package models_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/grovellm/grove/internal/drafters/option"
	"github.com/grovellm/grove/internal/drafters/registry"
	"github.com/grovellm/grove/internal/heads"
	"github.com/grovellm/grove/internal/inside"
	"github.com/grovellm/grove/models"
)

// A head for a published model is small, names the weights that it was made for, and can be read.
func TestPublishedHeads(t *testing.T) {
	const most = 12_000_000
	for i, data := range models.PublishedHeads() {
		if len(data) > most {
			t.Errorf("head %d has %d bytes: want at most %d", i, len(data), most)
		}
		h := registry.Head{Name: "head", Data: data}
		if made, err := heads.MadeFor(h); err != nil || made == "" {
			t.Errorf("head %d was made for weights %q, %v: no model takes it", i, made, err)
		}
		if text, err := heads.Describe(h); err != nil {
			t.Errorf("head %d: %s, %v", i, text, err)
		}
	}
}

// Each file of a model is named by a card that lies beside it.
func TestCardsNameTheirFiles(t *testing.T) {
	files, err := filepath.Glob("*.gguf")
	cards, cardsErr := filepath.Glob("*.md")
	if err != nil || cardsErr != nil || len(files) == 0 {
		t.Fatal(err, cardsErr, len(files))
	}
	text := ""
	for _, card := range cards {
		data, err := os.ReadFile(card)
		if err != nil {
			t.Fatal(err)
		}
		text += string(data)
	}
	for _, file := range files {
		if !strings.Contains(text, file) {
			t.Errorf("no card names %s", file)
		}
	}
}

// The options of a method as it was published are options of its family, and make a drafter wherever the family's
// own make one.
func TestPaperOptions(t *testing.T) {
	target := inside.Target(openAll(t, 512))
	made := 0
	for _, f := range registry.Families() {
		if _, err := registry.New(f.Name, target); err == nil {
			if text := registry.AsPaper(f.Name); text != f.Name {
				made++
				if _, err := registry.New(text, target); err != nil {
					t.Errorf("%s as published, %s: %v", f.Name, text, err)
				}
			}
		}
		for o := range strings.SplitSeq(f.PaperOptions, ",") {
			key, _, _ := strings.Cut(o, "=")
			if o != "" && !slices.ContainsFunc(f.Listed(), func(l option.Option) bool { return l.Key == key }) {
				t.Errorf("%s has no option %s, which its paper is said to use", f.Name, key)
			}
		}
	}
	if _, err := registry.New(registry.AsPaper("eagle3+dynaspec"), target); err != nil {
		t.Error(err)
	}
	if made < 4 {
		t.Errorf("%d families differ from what was published: want several", made)
	}
}
