package tree

import (
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// genTree draws a tree over a small alphabet, so that siblings collide often.
func genTree(root int32, maxNodes int) *rapid.Generator[*Tree] {
	return rapid.Custom(func(r *rapid.T) *Tree {
		t := New(root)
		for range rapid.IntRange(0, maxNodes-1).Draw(r, "appends") {
			parent := rapid.IntRange(0, t.Len()-1).Draw(r, "parent")
			t.Append(parent, rapid.Int32Range(0, 5).Draw(r, "token"), -rapid.Float32Range(0, 4).Draw(r, "nll"))
		}
		return t
	})
}

// anc is Anc(i) of Merged-Tree Dual Drafting §4.2 by its own definition.
func anc(t *Tree, i int) map[int]bool {
	set := map[int]bool{i: true}
	for i != 0 {
		i = int(t.Parent[i])
		set[i] = true
	}
	return set
}

func TestTreeInvariants(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		tr := genTree(7, 90).Draw(r, "tree")
		if err := tr.Check(8); err != nil {
			r.Fatal(err)
		}
		for i := range tr.Token {
			seen := map[int32]bool{}
			for _, c := range tr.Children(i, nil) {
				if int(tr.Parent[c]) != i || seen[tr.Token[c]] {
					r.Fatalf("node %d: child %d has parent %d, or is a second child with token %d", i, c, tr.Parent[c], tr.Token[c])
				}
				seen[tr.Token[c]] = true
				if tr.Child(i, tr.Token[c]) != int(c) {
					r.Fatalf("Child(%d, %d) is not %d", i, tr.Token[c], c)
				}
			}
			if tr.Child(i, 99) != -1 {
				r.Fatal("found a child that is not there")
			}
		}
	})
}

// pos(0) = 0, pos(i) = pos(π(i)) + 1 (Merged-Tree Dual Drafting §4.3).
func TestDepths(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		tr := genTree(1, 60).Draw(r, "tree")
		if tr.Depth[0] != 0 {
			r.Fatal("the root has a depth")
		}
		for i := 1; i < tr.Len(); i++ {
			if tr.Depth[i] != tr.Depth[tr.Parent[i]]+1 {
				r.Fatalf("node %d is not one after its parent", i)
			}
		}
	})
}

// M[i, j] = 1 exactly when j ∈ Anc(i) (Merged-Tree Dual Drafting §4.2), in each of its readings.
func TestAncestorsAndMask(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		tr := genTree(1, 150).Draw(r, "tree")
		var row []int32
		for i := range tr.Token {
			want := anc(tr, i)
			row = tr.Visible(i, row[:0])
			if len(row) != len(want) || int(row[len(row)-1]) != i || row[0] != 0 {
				r.Fatalf("node %d: row %v, want %v", i, row, want)
			}
			for k, j := range row {
				if int(tr.Depth[j]) != k {
					r.Fatalf("node %d: row %v is not from the root down", i, row)
				}
			}
			for j := range tr.Token {
				if tr.Sees(i, j) != want[j] || slices.Contains(row, int32(j)) != want[j] {
					r.Fatalf("M[%d, %d] should be %v", i, j, want[j])
				}
			}
		}
	})
}

// Visibility that is set directly is what rows see afterwards, whatever is appended between.
func TestSetSees(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		tr := New(3)
		want := [][]bool{{true}}
		for range rapid.IntRange(1, 200).Draw(r, "steps") {
			n := tr.Len()
			if rapid.IntRange(0, 2).Draw(r, "kind") > 0 {
				p := rapid.IntRange(0, n-1).Draw(r, "parent")
				tr.Append(p, int32(n), 0)
				for i := range want {
					want[i] = append(want[i], false)
				}
				want = append(want, make([]bool, n+1))
				for j := range anc(tr, n) {
					want[n][j] = true
				}
				continue
			}
			i, j := rapid.IntRange(0, n-1).Draw(r, "i"), rapid.IntRange(0, n-1).Draw(r, "j")
			on := rapid.Bool().Draw(r, "on")
			tr.SetSees(i, j, on)
			want[i][j] = on || i == j
		}
		var cp Tree
		cp.Copy(tr)
		for i := range want {
			var row []int32
			for j, on := range want[i] {
				if tr.Sees(i, j) != on || cp.Sees(i, j) != on {
					r.Fatalf("Sees(%d, %d) = %v, want %v", i, j, tr.Sees(i, j), on)
				}
				if on {
					row = append(row, int32(j))
				}
			}
			slices.SortStableFunc(row, func(a, b int32) int { return int(tr.Depth[a] - tr.Depth[b]) })
			if d := cmp.Diff(row, tr.Visible(i, nil)); d != "" {
				r.Fatalf("Visible(%d): %s", i, d)
			}
		}
	})
}

func TestAppendMergesSiblings(t *testing.T) {
	tr := New(1)
	a := tr.Append(0, 5, -2)
	if b := tr.Append(0, 5, -1); b != a || tr.Len() != 2 || tr.LogProb[a] != -1 {
		t.Fatalf("second child with token 5: node %d of %d, log-prob %g", b, tr.Len(), tr.LogProb[a])
	}
	if i := tr.Append(a, 6, 3); tr.LogProb[i] != 0 {
		t.Errorf("log-prob 3 became %g, want 0", tr.LogProb[i])
	}
	if i := tr.Append(a, 7, float32(math.NaN())); !math.IsInf(float64(tr.LogProb[i]), -1) {
		t.Errorf("log-prob NaN became %g, want -Inf", tr.LogProb[i])
	}
}

func TestChain(t *testing.T) {
	tokens := []int32{9, 8, 8, 7}
	want := New(9)
	for i, tok := range tokens[1:] {
		want.Append(i, tok, 0)
	}
	if d := cmp.Diff(want.String(), Chain(tokens).String()); d != "" {
		t.Error(d)
	}
	if n := Chain(nil).Len(); n != 0 {
		t.Errorf("a chain of nothing has %d nodes", n)
	}
}

func TestCheckNamesTheFault(t *testing.T) {
	for name, spoil := range map[string]func(*Tree){
		"token too large":  func(tr *Tree) { tr.Token[2] = 10 },
		"token negative":   func(tr *Tree) { tr.Token[1] = -1 },
		"parent after":     func(tr *Tree) { tr.Parent[1] = 2 },
		"root with parent": func(tr *Tree) { tr.Parent[0] = 0 },
		"second root":      func(tr *Tree) { tr.Parent[2] = -1 },
		"wrong depth":      func(tr *Tree) { tr.Depth[2] = 7 },
		"ragged":           func(tr *Tree) { tr.Token = append(tr.Token, 1) },
		"empty":            func(tr *Tree) { *tr = Tree{} },
	} {
		tr := Chain([]int32{1, 2, 3})
		spoil(tr)
		if tr.Check(10) == nil {
			t.Errorf("%s: not noticed", name)
		}
	}
}

func TestSteadyStateAllocatesNothing(t *testing.T) {
	a := New(1)
	d := New(1)
	var index, row []int32
	build := func() {
		a.Reset(1)
		for i := range int32(40) {
			a.Append(int(i/2), i, -float32(i))
		}
		a.SetSees(0, 3, true)
		index = a.Sub(d, nil, 30, 8, index)
		for i := range d.Token {
			row = d.Visible(i, row[:0])
		}
		d.ResetChain(row)
	}
	build()
	if n := testing.AllocsPerRun(20, build); n != 0 {
		t.Errorf("%g allocations a round, want 0", n)
	}
}
