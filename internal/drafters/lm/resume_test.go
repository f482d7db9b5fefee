package lm_test

import (
	"testing"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/drafters/drafttest"
	"github.com/grovellm/grove/internal/drafters/grow"
	"github.com/grovellm/grove/internal/drafters/lm"
	"github.com/grovellm/grove/internal/drafters/registry"
	"github.com/grovellm/grove/internal/testing/cases"
	"pgregory.net/rapid"
)

// See drafttest.Resumes. A draft model keeps drafted rows that were accepted, whatever window they
// were computed with.
func TestResume(t *testing.T) {
	target := drafttest.OpenTarget(t, 4000)
	for _, context := range []int{40, 350, 4000} {
		m := drafttest.OpenTarget(t, context)
		cases.Check(t, 40, func(r *rapid.T) {
			shape := &grow.Dynamic{N: 20}
			shape.K, shape.Depth = rapid.IntRange(1, 5).Draw(r, "k"), rapid.IntRange(0, 5).Draw(r, "depth")
			drafter := func() draft.Drafter {
				return drafttest.Must(lm.New(shape, registry.Modifiers{}, m, drafttest.As(target)))(r)
			}
			o := draft.Options{Sampling: drafttest.GenParams(r)}
			drafttest.Resumes(r, drafter(), drafter(), o, 0, context-min(64, context/4))
		})
	}
}
