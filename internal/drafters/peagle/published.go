package peagle

import (
	"github.com/grovellm/grove/internal/drafters/eagle"
	"github.com/grovellm/grove/internal/heads/headfile"
	"github.com/grovellm/grove/internal/model"
)

// published returns the shapes of published heads; see headfile.Kind.Published.
func published(t *model.Config) []headfile.Published {
	c := Config{Config: eagle.Config{Config: headfile.PublishedLayers(t, "llama", 2), Version: 3,
		DraftVocab: min(headfile.DraftVocab, t.Vocab)}, Depths: 8}
	return []headfile.Published{{Drafter: pEagle, About: "2 layers, 8 depths, 32,000 tokens", Shape: &c}}
}
