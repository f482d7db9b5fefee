package merge

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/grovellm/grove/tree"
)

// genTree draws a tree over a small alphabet, so that siblings collide often.
func genTree(root int32, maxNodes int) *rapid.Generator[*tree.Tree] {
	return rapid.Custom(func(r *rapid.T) *tree.Tree {
		t := tree.New(root)
		for range rapid.IntRange(0, maxNodes-1).Draw(r, "appends") {
			parent := rapid.IntRange(0, t.Len()-1).Draw(r, "parent")
			t.Append(parent, rapid.Int32Range(0, 5).Draw(r, "token"), -rapid.Float32Range(0, 4).Draw(r, "nll"))
		}
		return t
	})
}

// The formulas of Merged-Tree Dual Drafting, sections 4.1 to 4.4, on generated pairs of trees.
func TestSplice(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		a, b := genTree(4, 40).Draw(r, "a"), genTree(4, 40).Draw(r, "b")
		u := tree.New(0)
		phi := splice(u, a, b, nil)
		n1, n2 := a.Len()-1, b.Len()-1
		if u.Len() != 1+n1+n2 {
			r.Fatalf("N = %d, want 1 + %d + %d", u.Len(), n1, n2)
		}
		if err := u.Check(6); err != nil {
			r.Fatal(err)
		}

		// §4.1: φ and π∪, and the data of the nodes.
		for i := range b.Len() {
			if want := n1 + i; i > 0 && int(phi[i]) != want || i == 0 && phi[0] != 0 {
				r.Fatalf("φ(%d) = %d", i, phi[i])
			}
			if i > 0 && (u.Token[phi[i]] != b.Token[i] || u.LogProb[phi[i]] != b.LogProb[i]) {
				r.Fatalf("node %d of b changed on its way", i)
			}
		}
		for j := 1; j < u.Len(); j++ {
			want := int32(0)
			if j <= n1 {
				want = a.Parent[j]
			} else {
				want = phi[b.Parent[j-n1]]
			}
			if u.Parent[j] != want {
				r.Fatalf("π∪(%d) = %d, want %d", j, u.Parent[j], want)
			}
		}

		// §4.2: the mask is (1 0 0 / 1 M₁ 0 / 1 0 M₂).
		for i := range u.Len() {
			for j := range u.Len() {
				var want bool
				switch {
				case i <= n1 && j <= n1 && (i > 0 || j > 0):
					want = a.Sees(i, j)
				case i == 0 && j > n1:
					want = b.Sees(0, j-n1)
				case i > n1 && j > n1:
					want = b.Sees(i-n1, j-n1)
				case j == 0:
					want = true
				}
				if u.Sees(i, j) != want {
					r.Fatalf("M∪[%d, %d] = %v (n₁ = %d)", i, j, u.Sees(i, j), n1)
				}
			}
		}

		// §4.3: depths agree with those of each half.
		for i := range a.Len() {
			if u.Depth[i] != a.Depth[i] {
				r.Fatal("a depth of a changed")
			}
		}
		for i := range b.Len() {
			if u.Depth[phi[i]] != b.Depth[i] {
				r.Fatal("a depth of b changed")
			}
		}

		// §3, §4.4: the candidates are the union of both candidate sets.
		got, want := listCandidates(u), append(listCandidates(a), listCandidates(b)...)
		if n1 == 0 || n2 == 0 { // a lone root is a candidate of its own half, but a leaf of the union only if both are
			drop := func(c []int32) bool { return len(c) == 1 }
			got, want = slices.DeleteFunc(got, drop), slices.DeleteFunc(want, drop)
		}
		if !slices.EqualFunc(got, want, slices.Equal[[]int32]) {
			r.Fatalf("C∪ = %v, want %v", got, want)
		}
	})
}

// listCandidates lists the token strings of the paths to the leaves.
func listCandidates(t *tree.Tree) (all [][]int32) {
	for leaf := range t.Token {
		if slices.Contains(t.Parent, int32(leaf)) {
			continue
		}
		var c []int32
		for _, i := range t.Path(leaf, nil) {
			c = append(c, t.Token[i])
		}
		all = append(all, c)
	}
	return all
}
