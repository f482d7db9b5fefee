package merge

import (
	"context"
	"math"
	"slices"
	"testing"

	"github.com/grovellm/grove/internal/drafters/calibrate"
	"github.com/grovellm/grove/tree"
	"pgregory.net/rapid"
)

func genTeller(r *rapid.T) *teller {
	return &teller{
		luck:  rapid.SampledFrom([]float64{0, .3, .7, 1}).Draw(r, "luck"),
		width: rapid.SampledFrom([]int{0, 1, 6, 25}).Draw(r, "width"),
		quiet: rapid.SampledFrom([]float64{0, 0, .5}).Draw(r, "quiet"),
		rank:  rapid.Bool().Draw(r, "chain"),
		over:  rapid.IntRange(0, 3).Draw(r, "over") == 0,
		taps:  rapid.SampledFrom([][]int{nil, {3}, {0, 7, 2}, {2, 3}}).Draw(r, "taps"),
	}
}

func genGame(r *rapid.T, mode string) *game {
	var parts []*teller
	for range rapid.IntRange(2, 4).Draw(r, "parts") {
		parts = append(parts, genTeller(r))
	}
	return newGame(r, mode, rapid.SampledFrom([]int{2, 5, 40}).Draw(r, "vocab"), rapid.Uint64().Draw(r, "seed"),
		parts...)
}

const unbounded = 1 << 20

func modes(t *testing.T, law func(r *rapid.T, mode string)) {
	for _, mode := range []string{Spliced, Disjoint, Routed} {
		t.Run(mode, rapid.MakeCheck(func(r *rapid.T) { law(r, mode) }))
	}
}

// checkRouted checks that the tree is that of the part with the highest expectation, and returns its number of nodes.
func checkRouted(t *rapid.T, kept *tree.Tree, parts []*tree.Tree) int {
	expected := func(of *tree.Tree) (sum float64) {
		for i := 1; i < of.Len(); i++ {
			p := 1.0
			for _, node := range of.Path(i, nil)[1:] {
				p *= math.Exp(float64(of.LogProb[node]))
			}
			sum += p
		}
		return sum
	}
	for _, part := range parts {
		if expected(part) > expected(kept)*(1+1e-5)+1e-6 {
			t.Fatalf("another part's tree is expected to bring more:\n%sthan\n%s", part, kept)
		}
	}
	for _, part := range parts {
		if part.String() == kept.String() {
			return part.Len()
		}
	}
	t.Fatalf("the tree is no part's:\n%s", kept)
	return 0
}

// Budget and depth are kept whatever the parts propose. Disjoint, the tree has what the parts proposed
// within their shares; spliced, the budget is used up if there are enough nodes, and the kept nodes
// have the most probable paths; routed, it is the tree of the part with the highest expectation.
func TestBudget(t *testing.T) {
	modes(t, func(r *rapid.T, mode string) {
		g := genGame(r, mode)
		if rapid.Bool().Draw(r, "guided") {
			g.guide = &fakeGuide{chance: func(depth int, p float32) float32 { return p*p + .1/float32(depth) }}
		}
		g.begin(2)
		ctx := context.Background()
		for range rapid.IntRange(1, 6).Draw(r, "rounds") {
			budget, depth := rapid.SampledFrom([]int{1, 2, 3, 8, 30}).Draw(r, "budget"),
				rapid.IntRange(1, 9).Draw(r, "depth")
			if err := g.propose(ctx, budget, depth, 0, 1); err != nil {
				r.Fatal(err)
			}
			for _, s := range g.seqs {
				kept := s.tree
				if err := kept.Check(g.parts[0].vocab); err != nil {
					r.Fatal(err)
				}
				u, offered := tree.New(kept.Token[0]), 1
				for _, part := range s.state.(*state).trees {
					offered += part.Len() - 1
					node := []int{0}
					for i := 1; i < part.Len(); i++ {
						node = append(node, u.Append(node[part.Parent[i]], part.Token[i], part.LogProb[i]))
					}
				}
				if mode == Spliced {
					offered = u.Len()
				} else if mode == Routed {
					offered = checkRouted(r, kept, s.state.(*state).trees)
				} else if offered > budget {
					r.Fatalf("the parts proposed %d nodes for %d", offered, budget)
				}
				if kept.Len() != min(budget, offered) || kept.MaxDepth() > depth {
					r.Fatalf("%d nodes and depth %d for %d and %d, of %d that fit", kept.Len(), kept.MaxDepth(),
						budget, depth, offered)
				}
				if mode == Spliced {
					checkBest(r, kept, u)
				}
			}
			before := []string{g.seqs[0].tree.String(), g.seqs[1].tree.String()}
			if rapid.Bool().Draw(r, "again") { // in another order, in two calls: the same trees
				for _, i := range []int{1, 0} {
					if err := g.propose(ctx, budget, depth, i); err != nil {
						r.Fatal(err)
					}
				}
				if before[0] != g.seqs[0].tree.String() || before[1] != g.seqs[1].tree.String() {
					r.Fatalf("proposed again:\n%s%swas\n%s%s", g.seqs[0].tree, g.seqs[1].tree, before[0], before[1])
				}
			}
			if err := g.commit(0, 1); err != nil {
				r.Fatal(err)
			}
		}
		g.inStep()
	})
}

// checkBest checks that no omitted path of the whole tree is more probable than one that was kept.
func checkBest(r *rapid.T, kept, whole *tree.Tree) {
	in, least := candidates(kept), float32(0)
	for i := range kept.Token {
		least = min(least, kept.PathLogProb(i))
	}
	for i := range whole.Token {
		if in[candidate(whole, i)] == 0 && whole.PathLogProb(i) > least+1e-4 {
			r.Fatalf("kept\n%sof\n%swithout node %d", kept, whole, i)
		}
	}
}

// Rounds may have any batch in any order, be proposed for once, twice or not at all, and be
// verified whole, in part or not at all: every part receives the text with its own taps (the
// tellers check that), whichever part proposed it.
func TestPartsKeepInStep(t *testing.T) {
	modes(t, func(r *rapid.T, mode string) {
		g := genGame(r, mode)
		g.begin(3)
		ctx := context.Background()
		for range rapid.IntRange(1, 12).Draw(r, "rounds") {
			which := rapid.Permutation([]int{0, 1, 2}).Draw(r, "order")[:rapid.IntRange(1, 3).Draw(r, "batch")]
			for range rapid.IntRange(0, 2).Draw(r, "proposals") {
				if err := g.propose(ctx, rapid.IntRange(1, 20).Draw(r, "budget"),
					rapid.IntRange(1, 8).Draw(r, "depth"), which...); err != nil {
					r.Fatal(err)
				}
			}
			for _, i := range which { // the loop cuts trees, or decodes plainly for a while
				s := g.seqs[i]
				if s.tree.Len() == 0 || s.tree.Token[0] != s.root() || rapid.IntRange(0, 3).Draw(r, "plainly") == 0 {
					s.tree.Reset(s.root())
				}
				cut := tree.New(0)
				s.tree.Sub(cut, nil, rapid.IntRange(1, 20).Draw(r, "cut"), unbounded, nil)
				s.tree = cut
			}
			if err := g.commit(which...); err != nil {
				r.Fatal(err)
			}
			g.inStep()
		}
	})
}

// Every layer is requested once, and a part that requests none receives none.
func TestTapsAreAUnion(t *testing.T) {
	g := newGame(t, Spliced, 9, 1, &teller{taps: []int{4, 1}}, &teller{}, &teller{taps: []int{0, 4, 7}})
	if got, want := g.d.Taps(), []int{4, 1, 0, 7}; !slices.Equal(got, want) {
		t.Errorf("taps %v, want %v", got, want)
	}
}

// While a part is silent, the merge drafts what the other part would.
func TestSilentPart(t *testing.T) {
	modes(t, func(r *rapid.T, mode string) {
		p := genTeller(r)
		p.over = false
		parts := []*teller{{}, p}
		// disjoint, the silent part would keep its share of the budget
		if mode == Spliced && rapid.Bool().Draw(r, "first") {
			parts = []*teller{p, {}}
		}
		g := newGame(r, mode, 7, rapid.Uint64().Draw(r, "seed"), parts...)
		alone := g.alone(p)
		g.begin(1)
		alone.begin(1)
		for range 3 {
			budget, depth := rapid.IntRange(2, 12).Draw(r, "budget"), rapid.IntRange(1, 6).Draw(r, "depth")
			for _, a := range []*game{g, alone} {
				if err := a.propose(context.Background(), budget, depth, 0); err != nil {
					r.Fatal(err)
				}
			}
			a, b := g.seqs[0].tree, alone.seqs[0].tree
			if !slices.Equal(a.Token, b.Token) || !slices.Equal(a.Parent, b.Parent) {
				r.Fatalf("merged\n%salone\n%s", a, b)
			}
			for _, a := range []*game{g, alone} {
				if err := a.commit(0); err != nil {
					r.Fatal(err)
				}
			}
		}
	})
}

// A round without a proposal, or after one that was already used, teaches nothing.
func TestLearnsFromProposalsOnly(t *testing.T) {
	modes(t, func(r *rapid.T, mode string) {
		g := genGame(r, mode)
		g.begin(1)
		ctx := context.Background()
		g.round(ctx, 9, 9)
		d, s := g.d.(*drafter), g.seqs[0]
		known := func() []calibrate.Table { return slices.Clone(d.tables[greedy]) }
		before := known()
		for range 4 {
			s.tree.Reset(s.root())
			if err := g.commit(0); err != nil {
				r.Fatal(err)
			}
		}
		if !slices.Equal(before, known()) {
			r.Fatal("a round of plain decoding taught something")
		}
		if err := g.propose(ctx, 9, 9, 0); err != nil {
			r.Fatal(err)
		}
		proposed := slices.ContainsFunc(s.state.(*state).trees, func(t *tree.Tree) bool { return t.Len() > 1 })
		s.tree.Reset(s.root()) // proposed, but the loop verified none of it: the token that came still teaches
		if err := g.commit(0); err != nil {
			r.Fatal(err)
		}
		if slices.Equal(before, known()) == proposed {
			r.Fatalf("something was proposed: %v; learned from it: %v", proposed, !proposed)
		}
	})
}

// A sequence at temperature 0 learns nothing from sequences above it.
func TestWaysOfChoosingAreApart(t *testing.T) {
	g := newGame(t, Spliced, 9, 1, &teller{luck: 1, width: 4}, &teller{luck: 0, width: 4})
	g.sampling.Temperature = .5
	g.begin(1)
	g.round(context.Background(), 9, 9)
	d := g.d.(*drafter)
	if d.tables[sampled][0] == calibrate.New() || d.tables[greedy][0] != calibrate.New() {
		t.Error("what was learned is in the wrong place")
	}
}
