package grow

import (
	"cmp"
	"math"
	"slices"
	"testing"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/testing/cases"
	"github.com/grovellm/grove/tree"
	"pgregory.net/rapid"
)

// dynamic is EAGLE-2's loop to the letter: k candidates below the root; depth times, k of each of
// the k likeliest of the last level; of all these, the likeliest n−1 by score, then in order of
// creation.
func (o *oracle) dynamic(t fataler, s *Dynamic, text []int32, budget, depth int) *tree.Tree {
	t.Helper()
	all := tree.New(text[len(text)-1])
	score := []float32{1}
	frontier := []int{0}
	for d := 0; d <= s.Depth && d < depth; d++ {
		first := all.Len()
		for _, u := range frontier {
			own := slices.Clone(text)
			for _, v := range all.Path(u, nil)[1:] {
				own = append(own, all.Token[v])
			}
			cands, _ := o.below(t, own)
			for _, x := range cands[:min(s.K, len(cands))] {
				all.Append(u, x.Token, x.LogProb)
				score = append(score, score[u]*min(float32(math.Exp(float64(x.LogProb))), 1))
			}
		}
		frontier = frontier[:0]
		for v := first; v < all.Len(); v++ {
			frontier = append(frontier, v)
		}
		slices.SortStableFunc(frontier, func(a, b int) int { return cmp.Compare(score[b], score[a]) })
		frontier = frontier[:min(s.K, len(frontier))]
	}
	order := make([]int, 0, all.Len())
	for v := 1; v < all.Len(); v++ {
		order = append(order, v)
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(score[b], score[a]) })
	order = order[:min(len(order), s.N-1, budget-1)]
	slices.Sort(order)
	best, at := tree.New(all.Token[0]), map[int32]int{0: 0}
	for _, v := range order {
		at[int32(v)] = best.Append(at[all.Parent[v]], all.Token[v], all.LogProb[v])
	}
	return best
}

// The dynamic tree, although it does not compute what cannot be kept, equals that of EAGLE-2's loop.
func TestDynamicIsTheLoop(t *testing.T) {
	m := openModels(t)
	cases.Check(t, 40, func(r *rapid.T) {
		shape := &Dynamic{K: rapid.IntRange(1, 7).Draw(r, "k"), Depth: rapid.IntRange(0, 7).Draw(r, "depth"),
			N: rapid.IntRange(2, 70).Draw(r, "n")}
		dm := m.draws(r)
		text := genText(r, "text", 1, 30)
		o := oracle{*newOne(dm), genParams(r), max(shape.K, rankedLeast)}
		budget, depth := rapid.IntRange(2, 80).Draw(r, "budget"), rapid.IntRange(1, 10).Draw(r, "depth")
		d := must(ofModel(shape, dm, m.as()))(r)
		s := prompted(r, d, draft.Options{Sampling: o.p}, text[:len(text)-1])
		defer s.Close()
		got := propose(r, d, s, text[len(text)-1], budget, depth, nil)
		if want := o.dynamic(r, shape, text, budget, depth); !sameTree(got, want) {
			r.Fatalf("%+v, %+v, budget %d, depth %d: drafted\n%swant\n%s", shape, o.p, budget, depth, got, want)
		}
	})
}
