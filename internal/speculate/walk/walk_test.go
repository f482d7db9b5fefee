package walk_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/grovellm/grove/internal/speculate/walk"
	"github.com/grovellm/grove/tree"
)

// genTree draws a tree over a small alphabet, in which children of a node may have the same token.
func genTree(root int32, maxNodes int) *rapid.Generator[*tree.Tree] {
	return rapid.Custom(func(r *rapid.T) *tree.Tree {
		t := tree.New(root)
		for range rapid.IntRange(0, maxNodes-1).Draw(r, "appends") {
			parent := rapid.IntRange(0, t.Len()-1).Draw(r, "parent")
			t.AppendApart(parent, rapid.Int32Range(0, 5).Draw(r, "token"))
		}
		return t
	})
}

// The walk accepts a = max over candidates of the longest prefix with c_j = ẑ_{t+j−1} (Merged-Tree Dual Drafting §6.1),
// computed here by brute force over R. ẑ depends on the whole path, as a verifier's argmax does.
func TestAcceptanceLength(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		u := genTree(4, 60).Draw(r, "tree")
		salt := rapid.Uint32().Draw(r, "salt")
		argmax := func(path []int32) int32 { // the verifier's choice after a string of tokens
			h := salt
			for _, tok := range path {
				h = (h ^ uint32(tok)) * 0x9e3779b1
				h ^= h >> 15
			}
			return int32(h % 6)
		}
		best := 0
		for i := range u.Token { // prefixes of candidates never count for more than the candidates
			var c []int32
			for _, node := range u.Path(i, nil) {
				c = append(c, u.Token[node])
			}
			a := 0
			for a+1 < len(c) && c[a+1] == argmax(c[:a+1]) {
				a++
			}
			best = max(best, a)
		}

		var w walk.Walk
		w.Start(u)
		tokens := []int32{4}
		for w.Follow(argmax(tokens)) {
			tokens = append(tokens, argmax(tokens))
		}
		path := u.Path(w.Node(), nil)
		if len(path)-1 != best {
			r.Fatalf("accepted %d, brute force %d", len(path)-1, best)
		}
		for k, i := range path {
			if u.Token[i] != tokens[k] {
				r.Fatalf("the path %v does not spell %v", path, tokens)
			}
		}
	})
}

// A walk over trees like those before allocates nothing.
func TestFollowAllocatesNothing(t *testing.T) {
	tr := tree.New(1)
	for i := range int32(40) {
		tr.Append(int(i/2), i, -float32(i))
	}
	var w walk.Walk
	follow := func() {
		w.Start(tr)
		w.Follow(0)
		w.Follow(2)
	}
	follow()
	if n := testing.AllocsPerRun(20, follow); n != 0 {
		t.Errorf("%g allocations, want 0", n)
	}
}
