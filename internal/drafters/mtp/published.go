package mtp

import (
	"github.com/grovellm/grove/internal/heads/headfile"
	"github.com/grovellm/grove/internal/model"
)

// published: see headfile.Kind.
func published(t *model.Config) []headfile.Published {
	if t.Ahead == 0 {
		return nil
	}
	return []headfile.Published{{Drafter: arch, About: "the target's own layer"}}
}
