package merge

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/grovellm/grove/internal/speculate/walk"
	"github.com/grovellm/grove/internal/testing/cases"
	"github.com/grovellm/grove/tree"
	"pgregory.net/rapid"
)

// candidates returns the token strings of the nodes.
func candidates(t *tree.Tree) map[string]int {
	all := map[string]int{}
	for i := range t.Token {
		all[candidate(t, i)]++
	}
	return all
}

func candidate(t *tree.Tree, node int) string {
	var c []rune
	for _, n := range t.Path(node, nil) {
		c = append(c, rune(t.Token[n]))
	}
	return string(c)
}

// Both modes and every part alone, in parallel over one text with budgets that cut nothing:
// disjoint is tree.Splice of the proposals node by node; spliced has the same candidates once each;
// both accept as many tokens as the best part alone.
func TestUnion(t *testing.T) {
	cases.Check(t, 40, func(r *rapid.T) {
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
				splice(u, want, a.seqs[0].tree, nil)
				want = u
			}
			got, spliced := g.seqs[0].tree, h.seqs[0].tree
			if !slices.Equal(got.Token, want.Token) || !slices.Equal(got.Parent, want.Parent) ||
				!slices.Equal(got.Depth, want.Depth) {
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
			for i, a := range all { // the parts alone verify their own trees, then continue as far as the merge
				before := len(a.seqs[0].text)
				if i >= 2 {
					var w walk.Walk
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
				r.Fatalf("accepted %d disjoint, %d spliced; the best part alone %d", g.seqs[0].accepted,
					h.seqs[0].accepted, best)
			}
			g.inStep()
			h.inStep()
		}
	})
}

// A candidate that several parts have, or that one part has twice, gets the largest of its chances.
func TestSpliceKeepsTheLargerChance(t *testing.T) {
	one := tree.New(0)
	two := tree.New(0)
	both := tree.New(0)
	one.Append(one.Append(0, 1, log(.7)), 2, log(.2))
	two.Append(two.Append(0, 1, log(.3)), 2, log(.4))
	splice(both, one, two, nil)
	for _, trees := range [][]*tree.Tree{{one, two}, {tree.New(0), both}} {
		d := drafter{o: Options{Mode: Spliced}, union: tree.New(0), spare: tree.New(0)}
		d.merge(trees)
		if u := d.union; u.Len() != 3 || u.LogProb[1] != log(.7) || u.LogProb[2] != log(.4) {
			t.Errorf("the union is\n%s", d.union)
		}
	}
}

// Two parts are right equally often, but one gives every node almost certainty and drafts many
// other nodes besides the true ones. After a few rounds the budget goes to the other one.
func TestOverConfidentPartIsFoundOut(t *testing.T) {
	honest := &teller{luck: .85, width: 8, rank: true, claim: func(*rand.Rand, bool) float64 { return .6 }}
	sure := &teller{luck: .02, width: 60, claim: func(*rand.Rand, bool) float64 { return .97 }}
	g := newGame(t, Spliced, 30, 5, sure, honest)
	alone := g.alone(honest)
	g.begin(1)
	alone.begin(1)
	for range 200 {
		g.round(context.Background(), 9, 9)
	}
	tables := g.d.(*drafter).tables[greedy]
	if p, q := tables[0].Chances().Of(1, log(.97)), tables[1].Chances().Of(1, log(.6)); p > .2 || q < .7 {
		t.Errorf("the over-confident part's .97 counts as %.2f, the honest one's .6 as %.2f", p, q)
	}
	merged, one := 0, 0
	for range 60 {
		merged += g.round(context.Background(), 9, 9)
		one += alone.round(context.Background(), 9, 9)
	}
	if float64(merged) < .9*float64(one) {
		t.Errorf("with the over-confident part %d tokens are accepted, without %d", merged, one)
	}
}
