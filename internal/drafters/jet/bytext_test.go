package jet_test

import (
	"testing"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/drafters/drafttest"
	"github.com/grovellm/grove/internal/drafters/jet"
)

func TestByText(t *testing.T) {
	m := drafttest.OpenTarget(t, 400)
	for seed := range uint64(4) {
		n := head(t, m, seed)
		drafttest.ByText(t, n.Hidden, func() draft.Drafter { return newDrafter(t, jet.Options{Tree: withText}, n, m) })
	}
}
