package specblock_test

import (
	"testing"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/draft/specblock"
	"github.com/grovellm/grove/internal/drafttest"
	"github.com/grovellm/grove/tree"
	"pgregory.net/rapid"
)

// Where a text goes round and round no head is asked: the tree, which goes on as the text does, is the same with any. The entries that
// waited meanwhile are read when the text leaves its round: the tree is then that of a drafter that was told of the text at once.
func TestSettled(t *testing.T) {
	m := drafttest.OpenTarget(t, 400)
	o := specblock.Options{Tree: specblock.Conditioned, Blocks: 3, Nodes: 60, Raw: true}
	rapid.Check(t, func(r *rapid.T) {
		first := rapid.Uint64Range(0, 40).Draw(r, "head")
		o.Cached = rapid.IntRange(0, 2).Draw(r, "cached")
		round := rapid.SliceOfNDistinct(rapid.Int32Range(0, vocab-1), 3, 8, rapid.ID).Draw(r, "round")
		rounds, stray := rapid.IntRange(1, 6).Draw(r, "rounds"), rapid.Int32Range(0, vocab-1).Draw(r, "stray")
		var settled []draft.Request
		for _, seed := range []uint64{first, first + 1} {
			n := head(r, m, seed)
			d := newDrafter(r, o, n, m)
			s := drafttest.Begin(r, d, draft.Options{}, 1)
			text := round
			for len(text) < 100 {
				text = append(text[:len(text):len(text)], round...)
			}
			s.Root = round[0]
			drafttest.Commit(r, d, s.Prompt(text, n.Hidden, true))
			for range rounds {
				q := s.Request(30, 20, nil)
				drafttest.Propose(r, d, q)
				node := 0
				for at := len(s.Text); q.Tree.Child(node, round[(at+1)%len(round)]) >= 0; at++ {
					node = q.Tree.Child(node, round[(at+1)%len(round)])
				}
				if node == 0 {
					r.Fatalf("after %v over and over: %v", round, q.Tree)
				}
				settled = append(settled, q)
				drafttest.Commit(r, d, s.Accept(q.Tree, node, round[(len(s.Text)+int(q.Tree.Depth[node])+1)%len(round)], n.Hidden))
			}
			drafttest.Commit(r, d, s.Accept(tree.New(s.Root), 0, stray, n.Hidden))
			q := s.Request(30, 20, nil)
			drafttest.Propose(r, d, q)
			other := newDrafter(r, o, n, m)
			want := s.Fresh(r, other, draft.Options{}, n.Hidden).Request(30, 20, nil)
			drafttest.Propose(r, other, want)
			if err := drafttest.Same(q.Tree, want.Tree); err != nil {
				r.Fatalf("head %d: %v", seed, err)
			}
		}
		for i := range rounds {
			if err := drafttest.Same(settled[i].Tree, settled[rounds+i].Tree); err != nil {
				r.Fatal(err)
			}
		}
	})
}
