package speculate

import (
	"math"
	"testing"
	"time"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/tree"
	"pgregory.net/rapid"
)

// Whatever is measured, a curve rises, and is a positive number everywhere once one measurement was.
func TestCurveRises(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		c := newCurve(rapid.SampledFrom([]*axis{rowAxis, levelAxis}).Draw(r, "axis"))
		for range rapid.IntRange(1, 80).Draw(r, "measurements") {
			if rapid.IntRange(0, 9).Draw(r, "later") == 0 {
				c.seen += rapid.Uint32Range(0, 2*fresh).Draw(r, "by")
			}
			n := rapid.OneOf(rapid.IntRange(0, 40), rapid.IntRange(0, 9000)).Draw(r, "n")
			c.observe(n, math.Exp(rapid.Float64Range(-14, 2).Draw(r, "log t")))
		}
		last := 0.0
		for n := range 600 {
			v := c.at(n)
			if !(v > 0) || math.IsInf(v, 0) || v < last*(1-1e-9) {
				r.Fatalf("at %d it is %g, before %g", n, v, last)
			}
			last = v
		}
		if v := c.at(10000); !(v >= last*(1-1e-9)) {
			r.Fatalf("at 10000 it is %g, at 599 %g", v, last)
		}
	})
}

// Where it was measured a few times it is what was measured, slow accidents or not, and stays so when much else is measured.
func TestCurveIsWhatWasMeasured(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		base, slope := rapid.Float64Range(.1, 2).Draw(r, "base"), rapid.Float64Range(0, .5).Draw(r, "slope")
		truth := func(n int) float64 { return base + slope*float64(n) }
		c := newCurve(rowAxis)
		counts := rapid.SliceOfN(rapid.IntRange(1, 16), 1, 6).Draw(r, "counts")
		for _, n := range counts {
			accident := rapid.IntRange(0, 4).Draw(r, "accident")
			for i := range 5 {
				v := truth(n)
				if i == accident {
					v *= 5
				}
				c.observe(n, v)
			}
		}
		for _, n := range counts {
			if v := c.at(n); math.Abs(v-truth(n)) > 1e-9 {
				r.Fatalf("at %d it is %g, measured was %g", n, v, truth(n))
			}
		}
	})
}

// When all passes take longer, all that is known moves.
func TestCurveFollowsTheMachine(t *testing.T) {
	c := newCurve(rowAxis)
	for n := 1; n <= 16; n++ {
		for range 5 {
			c.observe(n, float64(10+n))
		}
	}
	for range changeRows {
		c.observe(8, 2*18)
	}
	for n := 1; n <= 16; n++ {
		if v, want := c.at(n), 2*float64(10+n); math.Abs(v-want) > 1e-9 {
			t.Errorf("at %d it is %g, want %g", n, v, want)
		}
	}
}

// A calibration that has seen nothing changes nothing; what it saw often it knows; and it never leaves 0 to 1.
func TestCalibration(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		c := newCalibration()
		p := rapid.Float32Range(1e-4, 127./128).Draw(r, "p")
		logProb := float32(math.Log(float64(p)))
		depth := rapid.IntRange(1, 20).Draw(r, "depth")
		if v := c.chance.of(depth, logProb); math.Abs(float64(v-p)) > 1e-5 {
			r.Fatalf("of %g it makes %g", p, v)
		}
		rate := rapid.Float64Range(0, 1).Draw(r, "rate")
		sum := 0.0
		for range 1000 {
			sum += rate
			hit := sum >= 1
			if hit {
				sum--
			}
			c.learn(depth, logProb, hit)
		}
		c.fit()
		if v := c.chance.of(depth, logProb); p > .02 && math.Abs(float64(v)-rate) > .12 {
			r.Fatalf("of %g, accepted at a rate of %g, it makes %g", p, rate, v)
		}
		for range 50 {
			c.learn(rapid.IntRange(-1, 99).Draw(r, "any depth"), float32(rapid.Float64().Draw(r, "any")), rapid.Bool().Draw(r, "accepted"))
		}
		for _, odd := range []float32{0, 5, -1e30, float32(math.Inf(-1)), float32(math.NaN()), float32(rapid.Float64().Draw(r, "odd"))} {
			c.learn(depth, odd, true)
			c.fit()
			if v := c.chance.of(depth, odd); !(v >= 0 && v <= 1) {
				r.Fatalf("of exp(%g) it makes %g", odd, v)
			}
		}
	})
}

// A drafter that always loses, whatever is predicted of it, loses little: about the gift, a few rounds, and the allowance.
func TestGuardBoundsLosses(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		loss := rapid.Float32Range(.02, 5).Draw(r, "loss")
		promise := rapid.Float32Range(-1, 2).Draw(r, "promise")
		catchUp := rapid.Float32Range(0, .01).Draw(r, "catch-up") // tokens for each round not asked
		g := guard{balance: gift, record: fairRecord, interval: firstInterval}
		const rounds = 2000
		var lost, behind float32
		for range rounds {
			if g.off && !g.due() {
				g.rest()
				behind += catchUp
				continue
			}
			g.judge(verdict{cost: loss, said: max(promise+loss, 0), foreseen: loss, extra: behind, verified: true, try: g.off})
			lost += loss + behind
			behind = 0
		}
		if most := 2*gift + 12*loss + .03*rounds; lost > most {
			r.Fatalf("a drafter that loses %g tokens a round and promises %g cost %g tokens in %d rounds, want at most %g", loss, promise, lost, rounds, most)
		}
	})
}

// In the long run it loses no more than half of what a new drafter is allowed, and a win gives it that allowance back.
func TestGuardLosesPatience(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		loss := rapid.Float32Range(.02, 10).Draw(r, "loss")
		promise := rapid.Float32Range(-1, 2).Draw(r, "promise")
		g := guard{balance: gift, record: fairRecord, interval: firstInterval}
		ask := func(rounds int) (lost float32) {
			for range rounds {
				if g.off && !g.due() {
					g.rest()
					continue
				}
				g.judge(verdict{cost: loss, said: max(promise+loss, 0), foreseen: loss, verified: true, try: g.off})
				lost += loss
			}
			return lost
		}
		ask(20000)
		const rounds = 50000
		if lost, most := ask(rounds), float32(1.1*allowance/2*rounds)+loss; lost > most {
			r.Fatalf("a drafter that loses %g tokens a round and promises %g cost %g tokens in %d rounds, want at most %g", loss, promise, lost, rounds, most)
		}
		if g.judge(verdict{came: 1, said: 1, verified: true, try: true}); g.lost != 0 || g.off {
			r.Fatalf("a try that won leaves %d lost ones, off %t", g.lost, g.off)
		}
	})
}

// A drafter that wins every round is asked every round, although it hoped once for a text of dozens of tokens and got a few of them.
func TestGuardForgivesALostBet(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		g := guard{balance: gift, record: fairRecord, interval: firstInterval}
		win := func(name string, rounds int) {
			for range rounds {
				gain := rapid.Float32Range(.5, 2.4).Draw(r, "gain")
				hope := gain + rapid.Float32Range(-.2, .2).Draw(r, "missed by")
				if g.judge(verdict{came: gain + .05, said: hope + .05, cost: .05, foreseen: .05, verified: true}); g.off {
					r.Fatalf("silenced %s", name)
				}
			}
		}
		win("before the bet", rapid.IntRange(0, 20).Draw(r, "before"))
		g.judge(verdict{came: 5, said: rapid.Float32Range(27, 60).Draw(r, "bet"), cost: .05, foreseen: .05, verified: true})
		win("after it", 40)
	})
}

// Large trees that are dear and known to pay are asked for in most rounds, although up to a third of them bring nothing.
func TestGuardKeepsDearWins(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		tokens := rapid.Float32Range(8, 20).Draw(r, "tokens")
		luck := rapid.Float32Range(.65, .9).Draw(r, "luck")
		cost := rapid.Float32Range(.1, .25).Draw(r, "cost") * tokens
		g := guard{balance: gift, record: record{came: 60, said: 60}, interval: firstInterval}
		seed := rapid.Uint64().Draw(r, "seed")
		const rounds = 2000
		asked := 0
		for i := range uint64(rounds) {
			if g.off && !g.due() {
				g.rest()
				continue
			}
			v := verdict{said: luck * tokens, cost: cost, foreseen: cost, verified: true, try: g.off}
			if unit(hash(5, hash(i, seed))) < luck {
				v.came = tokens
			}
			g.judge(v)
			asked++
		}
		if asked < rounds/2 {
			r.Fatalf("asked in %d of %d rounds", asked, rounds)
		}
	})
}

// A proposal that took no pass of a network says nothing of what levels take, however often it comes: its time is not taken for theirs.
func TestPasslessProposalsTeachNoLevels(t *testing.T) {
	target := newSim(passCosts["flat"])
	l, err := New(target, nil, Options{})
	if err != nil {
		t.Fatal(err)
	}
	c := NewController()
	l.control = c
	s := &Sequence{loop: l, request: 0}
	l.live, l.requests = []*Sequence{s}, make([]draft.Request, 1)
	p := &l.plan
	p.rounds = 1
	tr := tree.New(0)
	tr.Reset(1)
	s.tree, s.fresh = tr, 1
	for range 20 {
		c.verify.observe(1, .01)
		c.draft.observe(1, .001)
	}
	p.levels = 1
	want := c.draft.at(1)
	l.requests[0].Alone = true
	if p.levels = s.drafted(); p.levels != 0 {
		t.Errorf("%d levels", p.levels)
	}
	for range 50 {
		p.learn(l, 20*time.Microsecond, 10*time.Millisecond, 0, 0)
	}
	if got := c.draft.at(1); got != want {
		t.Errorf("a level takes %g s after proposals without a pass, %g before", got, want)
	}
	l.requests[0].Alone = false
	p.levels = 1
	for range 50 {
		p.learn(l, 20*time.Microsecond, 10*time.Millisecond, 0, 0)
	}
	if got := c.draft.at(1); got == want {
		t.Error("proposals with a pass teach nothing either")
	}
}
