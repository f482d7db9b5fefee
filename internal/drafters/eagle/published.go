package eagle

import (
	"github.com/grovellm/grove/internal/heads/headfile"
	"github.com/grovellm/grove/internal/model"
)

// published: see headfile.Kind.
func published(t *model.Config) []headfile.Published {
	three := Config{Config: headfile.PublishedLayers(t, "llama", 1), Version: 3,
		DraftVocab: min(headfile.DraftVocab, t.Vocab)}
	two := Config{Config: three.Config, Version: 2, DraftVocab: t.Vocab}
	return []headfile.Published{
		{Drafter: "eagle3", About: "a layer, 32,000 tokens", Shape: &three},
		{Drafter: "eagle2", About: "a layer", Shape: &two},
	}
}
