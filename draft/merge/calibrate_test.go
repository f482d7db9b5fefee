package merge

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// What was never contradicted stands, and nothing ever counts as certain.
func TestCalibrationOfNothing(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		p := rapid.Float32Range(0, 1).Draw(r, "p")
		if got := new(calibration).of(rapid.IntRange(1, 40).Draw(r, "depth"), p); math.Abs(float64(got-within(p))) > 1e-5 {
			r.Fatalf("%g became %g", p, got)
		}
	})
}

// Whatever is learned chances stay between 0 and 1, in the order claimed within a bin, above what they would be with fewer
// claims come true.
func TestCalibrationIsSane(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		var c, worse calibration
		depth := rapid.IntRange(0, 20)
		claim := rapid.OneOf(rapid.Float32Range(0, 1), rapid.SampledFrom([]float32{0, 1, .5, -1, 2, float32(math.NaN()), float32(math.Inf(1)), 1e-30}))
		for range rapid.IntRange(0, 300).Draw(r, "claims") {
			d, p, came := depth.Draw(r, "depth"), claim.Draw(r, "p"), rapid.Bool().Draw(r, "came")
			c.learn(d, p, came)
			worse.learn(d, p, came && rapid.Bool().Draw(r, "less"))
		}
		for range 20 {
			d, p, q := depth.Draw(r, "depth"), within(claim.Draw(r, "p")), within(claim.Draw(r, "q"))
			a, b := c.of(d, p), c.of(d, q)
			if !(a > 0 && a < 1) {
				r.Fatalf("a chance of %g", a)
			}
			if bin(p) == bin(q) && p < q && a > b*(1+1e-4) {
				r.Fatalf("%g became %g, %g became %g", p, a, q, b)
			}
			if w := worse.of(d, p); w > a*(1+1e-4) {
				r.Fatalf("with fewer claims come true the chance is %g, not %g", w, a)
			}
		}
	})
}

// Claims of one kind end up at what they are worth, depth by depth, and follow when that changes.
func TestCalibrationLearns(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		var c calibration
		p := rapid.SampledFrom([]float32{0, .01, .1, .5, .8, .99, 1}).Draw(r, "claim")
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(r, "seed"), 0))
		for range 2 {
			truth := rapid.SampledFrom([]float64{.05, .3, .7, .95}).Draw(r, "truth")
			for range 600 {
				c.learn(2, p, rng.Float64() < truth)
				c.learn(6, p, rng.Float64() < truth/3)
			}
			if got := float64(c.of(2, p)); math.Abs(got-truth) > .2 {
				r.Fatalf("a claim of %g that comes true %g of the time counts as %g", p, truth, got)
			}
			if got := float64(c.of(7, p)); math.Abs(got-truth/3) > .2 {
				r.Fatalf("deeper down a claim of %g that comes true %g of the time counts as %g", p, truth/3, got)
			}
		}
	})
}

// Two parts that are right as often, in one of which every node is nearly certain whatever it is worth, and which beside the
// true nodes drafts many more: the budget goes to the other one after a few rounds.
func TestLiarIsFoundOut(t *testing.T) {
	for _, mode := range []string{Spliced, Disjoint} {
		honest := &teller{luck: .85, width: 8, rank: true, claim: func(*rand.Rand, bool) float64 { return .6 }}
		liar := &teller{luck: .02, width: 60, claim: func(*rand.Rand, bool) float64 { return .97 }}
		g := newGame(t, mode, 30, 5, liar, honest)
		alone := g.alone(honest)
		g.begin(1)
		alone.begin(1)
		lies := func() (share float64) { // of the liar's nodes in the trees of some rounds
			kept, mine := 0, 0
			for range 20 {
				if err := g.propose(context.Background(), 9, 9, 0); err != nil {
					t.Fatal(err)
				}
				s := g.seqs[0]
				in := candidates(s.state.(*state).trees[1])
				for c := range candidates(s.tree) {
					kept++
					if in[c] > 0 {
						mine++
					}
				}
				if err := g.commit(0); err != nil {
					t.Fatal(err)
				}
			}
			return 1 - float64(mine)/float64(kept)
		}
		early := lies()
		for range 10 {
			lies()
		}
		late := lies()
		if early < .3 || late > .6 {
			t.Errorf("%s: the liar's share of the trees was %.2f and is %.2f", mode, early, late)
		}
		w := &g.d.(*drafter).worlds[0]
		if l, h := w.parts[0].of(1, .97), w.parts[1].of(1, .6); l > .2 || h < .7 {
			t.Errorf("%s: the liar's .97 counts as %.2f, the honest part's .6 as %.2f", mode, l, h)
		}
		merged, one := 0, 0
		for range 60 {
			merged += g.round(context.Background(), 9, 9)
			one += alone.round(context.Background(), 9, 9)
		}
		if float64(merged) < .9*float64(one) {
			t.Errorf("%s: with the liar %d tokens are accepted, without %d", mode, merged, one)
		}
	}
}

// Of drafters that are right at random a node that both propose is nearly surely right, one that is contradicted less
// often than one that is not.
func TestAgreementCounts(t *testing.T) {
	claim := func(*rand.Rand, bool) float64 { return .6 }
	a := &teller{luck: .6, width: 1, rank: true, claim: claim}
	b := &teller{luck: .6, width: 1, rank: true, claim: claim, quiet: .5}
	g := newGame(t, Spliced, 50, 8, a, b)
	g.begin(1)
	for range 400 {
		g.round(context.Background(), 9, 9)
	}
	var chance [kinds]float64
	for range 60 {
		if err := g.propose(context.Background(), 9, 9, 0); err != nil {
			t.Fatal(err)
		}
		u := &g.seqs[0].state.(*state).union
		for i := 1; i < u.tree.Len(); i++ {
			chance[u.kind(i)] = math.Exp(float64(u.tree.LogProb[i]))
		}
		if err := g.commit(0); err != nil {
			t.Fatal(err)
		}
	}
	// Right together .36, both wrong in the same way hardly ever; one right against the other .24 of .64.
	for kind, want := range [kinds]float64{alone: .6, contested: .375, agreed: .98} {
		if math.Abs(chance[kind]-want) > .15 {
			t.Errorf("kind %d has a chance of %.2f, want about %.2f", kind, chance[kind], want)
		}
	}
}
