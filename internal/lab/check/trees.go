package check

import (
	"math/rand/v2"

	"github.com/grovellm/grove/tree"
)

// randomTree draws a tree of n nodes: bushy, deep or anything between.
func randomTree(rng *rand.Rand, vocab, n int) *tree.Tree {
	t := tree.New(rng.Int32N(int32(vocab)))
	deep := rng.Float64()
	for t.Len() < n {
		parent := rng.IntN(t.Len())
		if rng.Float64() < deep {
			parent = t.Len() - 1
		}
		t.Append(parent, rng.Int32N(int32(vocab)), 0)
	}
	return t
}

// shuffled returns t with its nodes in another order, parents still before children, and the
// place of each old node in it.
func shuffled(rng *rand.Rand, t *tree.Tree) (*tree.Tree, []int32) {
	place := make([]int32, t.Len())
	s := tree.New(t.Token[0])
	ready := t.Children(0, nil)
	for len(ready) > 0 {
		i := rng.IntN(len(ready))
		v := ready[i]
		ready[i] = ready[len(ready)-1]
		ready = ready[:len(ready)-1]
		place[v] = int32(s.Append(int(place[t.Parent[v]]), t.Token[v], 0))
		ready = t.Children(int(v), ready)
	}
	return s, place
}

// withPath returns a random tree that has text as a path from its root, and that path's nodes,
// root first.
func withPath(rng *rand.Rand, vocab int, text []int32, others int) (*tree.Tree, []int32) {
	t := tree.New(text[0])
	nodes := []int32{0}
	decoy := func() { t.Append(rng.IntN(t.Len()), rng.Int32N(int32(vocab)), 0) }
	for _, token := range text[1:] {
		for others > 0 && rng.IntN(2) == 0 {
			decoy()
			others--
		}
		nodes = append(nodes, int32(t.Append(int(nodes[len(nodes)-1]), token, 0)))
	}
	for ; others > 0; others-- {
		decoy()
	}
	return t, nodes
}

func randomTokens(rng *rand.Rand, vocab, n int) []int32 {
	ids := make([]int32, n)
	for i := range ids {
		ids[i] = rng.Int32N(int32(vocab))
	}
	return ids
}

// textLength draws the length of a text for a model: mostly a few times its window, sometimes below
// most, rarely beyond two ranges of attention as they are in service.
func textLength(rng *rand.Rand, v *variant, most int) int {
	if rng.IntN(40) == 0 {
		return rng.IntN(3000)
	}
	usual := 40 + 3*min(v.shape.Config().Window, 80)
	return skewed(rng, usual, max(most, usual))
}

// skewed draws a number below n, usually a small one, sometimes any.
func skewed(rng *rand.Rand, usual, n int) int {
	if rng.IntN(8) == 0 {
		return rng.IntN(n)
	}
	return rng.IntN(usual)
}
