package mtp

import (
	"github.com/grovellm/grove/internal/heads/headfile"
	"github.com/grovellm/grove/internal/model"
)

// published returns the shapes of published heads; see headfile.Kind.Published.
func published(t *model.Config) []headfile.Published {
	if t.Ahead == 0 {
		return nil
	}
	return []headfile.Published{{Drafter: arch, About: "the target's own layer"}}
}
