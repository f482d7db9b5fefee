package eagle_test

import (
	"slices"
	"testing"

	. "github.com/grovellm/grove/internal/drafters/drafttest"
	"github.com/grovellm/grove/internal/nn"
	"github.com/grovellm/grove/internal/testing/cases"
	"github.com/grovellm/grove/tree"
	"pgregory.net/rapid"
)

// The training-time test (EAGLE-3) drafts as serving does. Over a text, with one pass for each step
// and the rows of step j below those of step j−1, every row equals, to the bit, that of a head
// which read the text up to its entry and drafted j tokens.
func TestTrainingTestIsDrafting(t *testing.T) {
	m := OpenTarget(t, 400)
	cases.Check(t, 40, func(r *rapid.T) {
		n := genHead(r, m)
		s := &Sequence{ID: 1, Text: GenText(r, 3, 24)}
		steps := rapid.IntRange(1, 4).Draw(r, "steps")
		e := nn.NewExec(m.Pool())
		one := newOneByOne(n, s, 1, e)
		entries := len(s.Text) - 1 // entry i has token i+1

		// Step 0 is the text; step j of entry i has token i+1+j, below step j−1 of entry i.
		pages := n.Pages()
		cache := pages.NewCache()
		defer cache.Free()
		all := tree.Chain(s.Text[1:])
		first := make([]int, steps+1)
		states := make([]nn.Mat, steps)
		g := nn.NewMat(entries, n.Hidden)
		for i := range entries {
			copy(g.Row(i), one.g(i))
		}
		for j := range steps {
			first[j+1] = all.Len()
			count := all.Len() - first[j]
			states[j] = nn.NewMat(max(count, 1), n.Hidden)
			if count > 0 {
				var f nn.Forest
				f.Add(cache, all, first[j])
				cache.Reserve(first[j], count)
				n.Run(e, &f, all.Token[first[j]:], g.Slice(0, count), states[j], &one.bufs)
			}
			for i := 0; i+j+1 < entries; i++ { // the next step's rows; the last entries have no tokens for it
				all.AppendApart(first[j]+i, s.Text[i+j+2])
			}
			g = states[j]
		}

		for i := range entries {
			if i > 0 {
				one.row(s.Text[i], one.g(i-1))
			}
			at := one.cache.Len()
			feature := one.g(i)
			for j := 0; j < steps && i+j < entries; j++ {
				state, _ := one.row(s.Text[i+1+j], feature)
				if !slices.Equal(state, states[j].Row(i)) {
					r.Fatalf("EAGLE-%d: entry %d of %d, step %d: %v in training, %v in serving", n.Version, i,
						entries, j, states[j].Row(i), state)
				}
				feature = state
			}
			if err := one.cache.Truncate(at); err != nil {
				r.Fatal(err)
			}
		}
		one.cache.Free()
	})
}
