package merge_test

import (
	"math/rand/v2"
	"testing"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/drafters/drafttest"
	"github.com/grovellm/grove/internal/drafters/jet"
	"github.com/grovellm/grove/internal/drafters/lookup"
	"github.com/grovellm/grove/internal/drafters/merge"
	"github.com/grovellm/grove/internal/drafters/onepass"
	"github.com/grovellm/grove/internal/drafters/synthetic"
	"github.com/grovellm/grove/internal/testing/cases"
	"github.com/grovellm/grove/tensor"
	"pgregory.net/rapid"
)

// See drafttest.Resumes: every part of a merge takes over its own.
func TestResume(t *testing.T) {
	m := drafttest.OpenTarget(t, 400)
	cases.Check(t, 40, func(r *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64Range(0, 20).Draw(r, "head"), 1))
		c := synthetic.Config[jet.Config](rng, "", m.Config, tensor.F32)
		n := drafttest.Must(jet.NewNetwork(c, synthetic.Head(&c, tensor.F32, 1), nil, &m.Network))(r)
		n.Config.Context = drafttest.GenWindow(r)
		d := drafttest.Must(merge.New(merge.Default(), drafttest.Vocab,
			merge.Part{Name: "lookup", Drafter: drafttest.Must(lookup.New(lookup.Default()))(r)},
			merge.Part{Name: "head", Drafter: drafttest.Must(jet.New(jet.Options{Tree: onepass.DDTree}, n,
				drafttest.As(m)))(r)}))(r)
		o := draft.Options{Sampling: drafttest.GenParams(r)}
		// a single drafter: trees are ranked by what it has learned
		drafttest.Resumes(r, d, d, o, n.Hidden, n.Config.Context)
	})
}
