package merge

import (
	"context"
	"math"
	"slices"
	"testing"

	"github.com/grovellm/grove/tree"
	"pgregory.net/rapid"
)

// candidates are the token strings of the nodes.
func candidates(t *tree.Tree) map[string]int {
	all := map[string]int{}
	for i := range t.Token {
		var c []rune
		for _, n := range t.Path(i, nil) {
			c = append(c, rune(t.Token[n]))
		}
		all[string(c)]++
	}
	return all
}

// Both modes and every part on its own, side by side over one text with budgets that cut nothing: disjoint is
// tree.Splice of the proposals node for node; spliced has the same candidates once each; both accept as many tokens, which
// is as many as the best of the parts alone.
func TestUnion(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		g := genGame(r, Disjoint)
		var parts []*teller
		for _, p := range g.parts {
			one := *p
			parts = append(parts, &one)
		}
		h := newGame(r, Spliced, g.parts[0].vocab, 0, parts...)
		h.truth = g.truth
		for i, p := range parts {
			p.truth, p.seed = g.truth, g.parts[i].seed
		}
		var alone []*game
		for _, p := range g.parts {
			alone = append(alone, g.alone(p))
		}
		ctx := context.Background()
		all := append([]*game{g, h}, alone...)
		for _, a := range all {
			a.begin(1)
		}
		for range rapid.IntRange(1, 4).Draw(r, "rounds") {
			depth := unbounded
			for _, a := range all {
				if err := a.propose(ctx, unbounded, depth, 0); err != nil {
					r.Fatal(err)
				}
			}
			want := tree.New(0)
			want.Copy(alone[0].seqs[0].tree)
			for _, a := range alone[1:] {
				u := tree.New(0)
				if _, err := tree.Splice(u, want, a.seqs[0].tree, nil); err != nil {
					r.Fatal(err)
				}
				want = u
			}
			got, spliced := g.seqs[0].tree, h.seqs[0].tree
			if !slices.Equal(got.Token, want.Token) || !slices.Equal(got.Parent, want.Parent) || !slices.Equal(got.Depth, want.Depth) {
				r.Fatalf("disjoint:\n%swant\n%s", got, want)
			}
			for i := range got.Len() {
				for j := range got.Len() {
					if got.Sees(i, j) != want.Sees(i, j) {
						r.Fatalf("M∪[%d, %d] is %v", i, j, got.Sees(i, j))
					}
				}
			}
			once := candidates(spliced)
			for c, n := range once {
				if n != 1 {
					r.Fatalf("spliced has candidate %v %d times:\n%s", []rune(c), n, spliced)
				}
			}
			for c := range candidates(want) {
				if once[c] == 0 {
					r.Fatalf("spliced lacks candidate %v:\n%s", []rune(c), spliced)
				}
			}
			if len(once) != len(candidates(want)) {
				r.Fatalf("spliced has candidates that no part has:\n%s", spliced)
			}

			best := 0
			for i, a := range all { // the parts alone verify their own trees, then go on as far as the merge
				before := len(a.seqs[0].text)
				if i >= 2 {
					var w tree.Walk
					w.Start(a.seqs[0].tree)
					n := 0
					for w.Follow(g.seqs[0].text[before+n]) {
						n++
					}
					best = max(best, n)
					a.seqs[0].tree.Copy(want)
				}
				if err := a.commit(0); err != nil {
					r.Fatal(err)
				}
			}
			if g.seqs[0].accepted != best || h.seqs[0].accepted != best {
				r.Fatalf("accepted %d disjoint, %d spliced; the best part alone %d", g.seqs[0].accepted, h.seqs[0].accepted, best)
			}
			g.inStep()
			h.inStep()
		}
	})
}

// A part whose tree has a candidate twice gives it the larger of its claims.
func TestSpliceKeepsTheLargerClaim(t *testing.T) {
	one, two, both := tree.New(0), tree.New(0), tree.New(0)
	one.Append(one.Append(0, 1, log(.7)), 2, log(.2))
	two.Append(two.Append(0, 1, log(.3)), 2, log(.4))
	if _, err := tree.Splice(both, one, two, nil); err != nil {
		t.Fatal(err)
	}
	u := union{tree: tree.New(0)}
	u.splice([]*tree.Tree{tree.New(0), both}, nil)
	if u.tree.Len() != 3 || math.Abs(float64(u.claim(1, 1)-.7)) > 1e-6 || math.Abs(float64(u.claim(2, 1)-.4)) > 1e-6 || u.claim(1, 0) >= 0 {
		t.Errorf("claims %v of\n%s", u.claims, u.tree)
	}
}
