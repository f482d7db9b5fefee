package treebuild_test

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/grovellm/grove/internal/drafters/treebuild"
	"github.com/grovellm/grove/sample"
	"github.com/grovellm/grove/tree"
	"pgregory.net/rapid"
)

// byPath gives every path its own candidates: random numbers determined by its tokens.
type byPath struct {
	seed   uint64
	deep   int
	called []int
}

func (b *byPath) of(path []int32) (list []sample.Candidate) {
	if len(path) > b.deep {
		return nil
	}
	h := b.seed
	for _, token := range path {
		h = h*31 + uint64(token)
	}
	rng := rand.New(rand.NewPCG(h, 0))
	for token := range int32(rng.IntN(5)) {
		logProb := -float32(rng.IntN(40)) / 8 // often equal
		list = append(list, sample.Candidate{Token: token, LogProb: logProb,
			Score: math.Log(float64(float32(math.Exp(float64(logProb)))))})
	}
	slices.SortFunc(list, func(a, b sample.Candidate) int { return cmp.Compare(b.Score, a.Score) })
	return list
}

func (b *byPath) Below(t *tree.Tree, node int) []sample.Candidate {
	b.called = append(b.called, node)
	var path []int32
	for _, n := range t.Path(node, nil) {
		path = append(path, t.Token[n])
	}
	return b.of(path)
}

// rowCost is a guide that believes probabilities. A row costs that many tokens.
type rowCost float32

func (rowCost) Chance(_ int, logProb float32) float32 { return float32(math.Exp(float64(logProb))) }
func (c rowCost) Value(chance float32) float32        { return max(chance-float32(c), 0) }
func (rowCost) Deeper(_, _ float32) bool              { return true }

// Trees are built best first whatever candidates a node has: they have the likeliest of all paths,
// in order, and with a guide none that is worth less than half a row. Every node is asked for its
// candidates once.
func TestBestFirst(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		from := &byPath{seed: rapid.Uint64().Draw(r, "seed"), deep: rapid.IntRange(1, 4).Draw(r, "deep")}
		budget := rapid.IntRange(1, 60).Draw(r, "budget")
		cost := rowCost(rapid.IntRange(0, 16).Draw(r, "row")) / 16
		tr := tree.New(9)
		var b treebuild.Builder
		if cost > 0 {
			b.Guide = cost
		}
		b.Build(tr, from, budget)

		var want []float64
		var walk func(path []int32, sum float64)
		walk = func(path []int32, sum float64) {
			for _, c := range from.of(path) {
				if sum+c.Score < math.Log(float64(cost)/2) {
					continue
				}
				want = append(want, sum+c.Score)
				walk(append(slices.Clone(path), c.Token), sum+c.Score)
			}
		}
		walk([]int32{9}, 0)
		slices.SortFunc(want, func(a, b float64) int { return cmp.Compare(b, a) })
		want = want[:min(len(want), budget-1)]
		if tr.Len()-1 != len(want) {
			r.Fatalf("%d nodes below the root, want %d", tr.Len()-1, len(want))
		}
		sums := []float64{0}
		for i := 1; i < tr.Len(); i++ {
			sums = append(sums, sums[tr.Parent[i]]+math.Log(float64(float32(math.Exp(float64(tr.LogProb[i]))))))
			if sums[i] != want[i-1] {
				r.Fatalf("node %d has %g, the path of that place %g", i, sums[i], want[i-1])
			}
		}
		for i, node := range from.called {
			if i != node || len(from.called) != tr.Len() {
				r.Fatalf("nodes were asked for in the order %v", from.called)
			}
		}
	})
}

// A static tree has those nodes of its template whose ranks exist, in the template's order, up to the budget.
func TestTemplate(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		from := &byPath{seed: rapid.Uint64().Draw(r, "seed"), deep: rapid.IntRange(1, 4).Draw(r, "deep")}
		budget := rapid.IntRange(1, 20).Draw(r, "budget")
		var template []int32
		for i := range rapid.IntRange(0, 30).Draw(r, "nodes") {
			template = append(template, rapid.Int32Range(0, int32(i)).Draw(r, "parent"))
		}
		tr := tree.New(9)
		(&treebuild.Builder{Template: append([]int32{}, template...)}).Build(tr, from, budget)

		paths, ranks := [][]int32{{9}}, make([]int, len(template)+1) // a missing node has no path
		want := [][]int32{{9}}
		for _, parent := range template {
			var path []int32
			if above := paths[parent]; above != nil && len(want) < budget {
				if list := from.of(above); ranks[parent] < len(list) {
					path = append(slices.Clone(above), list[ranks[parent]].Token)
					want = append(want, path)
				}
			}
			ranks[parent]++
			paths = append(paths, path)
		}
		if tr.Len() != len(want) {
			r.Fatalf("%d nodes, want %d", tr.Len(), len(want))
		}
		for i, path := range want {
			var got []int32
			for _, n := range tr.Path(i, nil) {
				got = append(got, tr.Token[n])
			}
			if !slices.Equal(got, path) {
				r.Fatalf("node %d is at the path %v, want %v", i, got, path)
			}
			if from.called[i] != i || len(from.called) != tr.Len() {
				r.Fatalf("nodes were asked for in the order %v", from.called)
			}
		}
	})
}
