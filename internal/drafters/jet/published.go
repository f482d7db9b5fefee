package jet

import (
	"github.com/grovellm/grove/internal/heads/headfile"
	"github.com/grovellm/grove/internal/model"
)

// published: see headfile.Kind.
func published(t *model.Config) []headfile.Published {
	c := Config{Config: headfile.PublishedLayers(t, "qwen3", 5), Block: 16}
	causal := c
	causal.Causal = true
	return []headfile.Published{
		{Drafter: "ddtree", About: "DFlash: 5 layers, blocks of 16", Shape: &c},
		{Drafter: "jetspec", About: "5 layers, blocks of 16", Shape: &causal},
	}
}
