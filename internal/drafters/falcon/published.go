package falcon

import (
	"github.com/grovellm/grove/internal/heads/headfile"
	"github.com/grovellm/grove/internal/model"
)

// published returns the shapes of published heads; see headfile.Kind.Published.
func published(t *model.Config) []headfile.Published {
	c := Config{Config: headfile.PublishedLayers(t, "llama", 1), Block: 2}
	return []headfile.Published{{Drafter: "falcon", About: "an LSTM of 2 layers and a layer, 2 tokens a pass", Shape: &c}}
}
