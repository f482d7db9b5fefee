package eagle_test

import (
	"testing"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/drafters/drafttest"
	"github.com/grovellm/grove/internal/drafters/grow"
	"github.com/grovellm/grove/internal/drafters/shortlist"
)

func TestByText(t *testing.T) {
	m := drafttest.OpenTarget(t, 400)
	for seed := range uint64(4) {
		n := head(t, m, 3, seed)
		drafttest.ByText(t, n.Hidden, func() draft.Drafter {
			return newDrafter(t, n, withText{&grow.BestFirst{Width: 4, Branch: 8, Depth: 6}}, shortlist.Options{}, m)
		})
	}
}
