package tree

import (
	"math"
	"math/bits"
	"testing"

	"pgregory.net/rapid"
)

// Sub against every connected sub-tree of a small tree: none of its size has a larger sum of path probabilities.
func TestSubIsTheBest(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		tr := genTree(1, 12).Draw(r, "tree")
		budget := rapid.IntRange(0, 13).Draw(r, "budget")
		depth := rapid.IntRange(0, 12).Draw(r, "depth")
		sub := New(0)
		index := tr.Sub(sub, nil, budget, depth, nil)

		gain := func(mask int) (sum float64) {
			for i := range tr.Token {
				if mask>>i&1 == 1 {
					sum += math.Exp(float64(tr.PathLogProb(i)))
				}
			}
			return sum
		}
		best, fit := 0.0, 0
		for mask := 1; mask < 1<<tr.Len(); mask += 2 {
			n, ok := bits.OnesCount(uint(mask)), true
			for i := 1; i < tr.Len() && ok; i++ {
				ok = mask>>i&1 == 0 || mask>>tr.Parent[i]&1 == 1 && int(tr.Depth[i]) <= depth
			}
			if ok && n <= max(budget, 1) {
				best, fit = max(best, gain(mask)), max(fit, n)
			}
		}
		mask := 0
		for i, j := range index {
			if j >= 0 {
				mask |= 1 << i
			}
		}
		if sub.Len() != fit {
			r.Fatalf("%d nodes where %d fit", sub.Len(), fit)
		}
		if g := gain(mask); g < best-1e-5 {
			r.Fatalf("kept %b worth %g, the best is worth %g", mask, g, best)
		}
	})
}

// What is kept is kept as it was: tokens, order, parents, visibility.
func TestSubKeepsStructure(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		tr := genTree(1, 80).Draw(r, "tree")
		if rapid.Bool().Draw(r, "sideways") {
			for range 5 {
				tr.SetSees(rapid.IntRange(0, tr.Len()-1).Draw(r, "i"), rapid.IntRange(0, tr.Len()-1).Draw(r, "j"),
					rapid.Bool().Draw(r, "on"))
			}
		}
		for i := range tr.LogProb { // a calibration may leave anything here
			if rapid.IntRange(0, 9).Draw(r, "odd") == 0 {
				tr.LogProb[i] = rapid.SampledFrom([]float32{float32(math.NaN()), float32(math.Inf(-1)), 2}).Draw(r, "value")
			}
		}
		budget := rapid.IntRange(1, 90).Draw(r, "budget")
		sub := New(0)
		index := tr.Sub(sub, nil, budget, tr.MaxDepth(), nil)
		if err := sub.Check(6); (err != nil) != (sub.stride > 0) {
			r.Fatal(err)
		}
		if sub.Len() != min(budget, tr.Len()) {
			r.Fatalf("%d nodes of %d for a budget of %d", sub.Len(), tr.Len(), budget)
		}
		next := int32(0)
		for i, ni := range index {
			if ni < 0 {
				continue
			}
			if ni != next || sub.Token[ni] != tr.Token[i] || i > 0 && sub.Parent[ni] != index[tr.Parent[i]] {
				r.Fatalf("node %d arrived changed as %d", i, ni)
			}
			next++
			for j, nj := range index {
				if nj >= 0 && sub.Sees(int(ni), int(nj)) != tr.Sees(i, j) {
					r.Fatalf("Sees(%d, %d) changed", i, j)
				}
			}
		}
	})
}

// Pick of any set of nodes closed under parents keeps them as they were; of the set that Sub keeps, it is Sub.
func TestPick(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		tr := genTree(1, 40).Draw(r, "tree")
		if rapid.Bool().Draw(r, "sideways") {
			tr.SetSees(rapid.IntRange(0, tr.Len()-1).Draw(r, "i"), rapid.IntRange(0, tr.Len()-1).Draw(r, "j"), true)
		}
		kept := map[int32]bool{-1: true}
		var nodes []int32
		for i, p := range tr.Parent {
			if kept[p] && (i == 0 || rapid.IntRange(0, 3).Draw(r, "keep") > 0) {
				kept[int32(i)] = true
				nodes = append(nodes, int32(i))
			}
		}
		picked := New(0)
		index := tr.Pick(picked, nodes, nil)
		if err := picked.Check(6); (err != nil) != (picked.stride > 0) {
			r.Fatal(err)
		}
		if picked.Len() != len(nodes) || len(index) != tr.Len() {
			r.Fatalf("%d nodes of %d, %d numbers for %d", picked.Len(), len(nodes), len(index), tr.Len())
		}
		for i, n := range index {
			if (n >= 0) != kept[int32(i)] {
				r.Fatalf("node %d became %d", i, n)
			}
		}
		for n, i := range nodes {
			p := tr.Parent[i]
			if i > 0 {
				p = index[p]
			}
			if index[i] != int32(n) || picked.Token[n] != tr.Token[i] || picked.LogProb[n] != tr.LogProb[i] ||
				picked.Parent[n] != p {
				r.Fatalf("node %d arrived changed", i)
			}
			for m, j := range nodes {
				if picked.Sees(n, m) != tr.Sees(int(i), int(j)) {
					r.Fatalf("Sees(%d, %d) changed", i, j)
				}
			}
		}

		sub := New(0)
		nodes = nodes[:0]
		for i, n := range tr.Sub(sub, nil, rapid.IntRange(1, 40).Draw(r, "budget"), 9, nil) {
			if n >= 0 {
				nodes = append(nodes, int32(i))
			}
		}
		tr.Pick(picked, nodes, index)
		if picked.String() != sub.String() {
			r.Fatalf("picked\n%sand Sub made\n%s", picked, sub)
		}
	})
}
