package tree

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// The formulas of Merged-Tree Dual Drafting, sections 4.1 to 4.4, on generated pairs of trees.
func TestSplice(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		a, b := genTree(4, 40).Draw(r, "a"), genTree(4, 40).Draw(r, "b")
		if rapid.Bool().Draw(r, "sideways") { // a visibility that was set travels along in its block
			i, j := rapid.IntRange(0, b.Len()-1).Draw(r, "i"), rapid.IntRange(0, b.Len()-1).Draw(r, "j")
			b.SetSees(i, j, true)
		}
		u := New(0)
		phi, err := Splice(u, a, b, nil)
		if err != nil {
			r.Fatal(err)
		}
		n1, n2 := a.Len()-1, b.Len()-1
		if u.Len() != 1+n1+n2 {
			r.Fatalf("N = %d, want 1 + %d + %d", u.Len(), n1, n2)
		}
		if err := u.Check(6); err != nil {
			r.Fatal(err)
		}

		// §4.1: φ and π∪, and what the nodes carry.
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

		// §3, §4.4: the candidates are the union of both sets of candidates.
		got, want := candidates(u), append(candidates(a), candidates(b)...)
		if n1 == 0 || n2 == 0 { // a lone root is a candidate of its own half, but a leaf of the union only if both are
			drop := func(c []int32) bool { return len(c) == 1 }
			got, want = slices.DeleteFunc(got, drop), slices.DeleteFunc(want, drop)
		}
		if !slices.EqualFunc(got, want, slices.Equal[[]int32]) {
			r.Fatalf("C∪ = %v, want %v", got, want)
		}
	})
}

// candidates are the token strings of the paths to the leaves.
func candidates(t *Tree) (all [][]int32) {
	for leaf := range t.Token {
		if !t.Leaf(leaf) {
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

func TestSpliceRefuses(t *testing.T) {
	a, b := New(1), New(2)
	if _, err := Splice(New(0), a, b, nil); err == nil {
		t.Error("different roots were spliced")
	}
	if _, err := Splice(a, a, New(1), nil); err == nil {
		t.Error("a tree was spliced into itself")
	}
	if _, err := Splice(New(0), a, Chain(nil), nil); err == nil {
		t.Error("a tree without a root was spliced")
	}
}
