package medusa

import (
	"github.com/grovellm/grove/internal/heads/headfile"
	"github.com/grovellm/grove/internal/model"
)

// published: see headfile.Kind.
func published(t *model.Config) []headfile.Published {
	c := Config{Config: model.Config{Vocab: t.Vocab, Hidden: t.Hidden}, Depths: 5, ResBlocks: 1}
	return []headfile.Published{{Drafter: arch, About: "5 heads of a block", Shape: &c}}
}
