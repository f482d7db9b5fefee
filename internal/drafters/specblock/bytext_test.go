package specblock_test

import (
	"testing"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/drafters/drafttest"
	"github.com/grovellm/grove/internal/drafters/registry"
	"github.com/grovellm/grove/internal/drafters/specblock"
)

func TestByText(t *testing.T) {
	m := drafttest.OpenTarget(t, 400)
	for seed := range uint64(4) {
		n := head(t, m, seed)
		drafttest.ByText(t, n.Hidden, func() draft.Drafter {
			return newDrafter(t, specblock.Options{Modifiers: registry.Modifiers{Text: true},
				Blocks: 3, Widths: "2/4/6/4", Nodes: 200}, n, m)
		})
	}
}
