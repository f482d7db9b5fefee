package control

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// Whatever is measured, a curve rises, and is a positive number everywhere after one measurement.
func TestCurveRises(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		c := newCostCurve(rapid.SampledFrom([]*axis{rowAxis, levelAxis}).Draw(r, "axis"))
		for range rapid.IntRange(1, 80).Draw(r, "measurements") {
			if rapid.IntRange(0, 9).Draw(r, "later") == 0 {
				c.seen += rapid.Uint32Range(0, 2*freshFor).Draw(r, "by")
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

// Where a curve was measured a few times, it equals the measurements, with or without slow
// outliers, and stays so when many other counts are measured.
func TestCurveIsWhatWasMeasured(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		base, slope := rapid.Float64Range(.1, 2).Draw(r, "base"), rapid.Float64Range(0, .5).Draw(r, "slope")
		truth := func(n int) float64 { return base + slope*float64(n) }
		c := newCostCurve(rowAxis)
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

// When all passes take longer, everything that is known moves.
func TestCurveFollowsTheMachine(t *testing.T) {
	c := newCostCurve(rowAxis)
	for n := 1; n <= 16; n++ {
		for range 5 {
			c.observe(n, float64(10+n))
		}
	}
	for range majority {
		c.observe(8, 2*18)
	}
	for n := 1; n <= 16; n++ {
		if v, want := c.at(n), 2*float64(10+n); math.Abs(v-want) > 1e-9 {
			t.Errorf("at %d it is %g, want %g", n, v, want)
		}
	}
}

// A machine that becomes slower and faster, at once or step by step, leaves no trace in the
// relative costs of counts: a count that was not measured for hundreds of passes is still in
// proportion to those that were.
func TestSpeedLeavesNoTrace(t *testing.T) {
	const often, seldom = 9, 16
	for _, passes := range []int{1, 4, 10, 25} { // that a change of the machine takes
		for seed := range uint64(20) {
			r := rand.New(rand.NewPCG(seed, 0))
			c := newCostCurve(rowAxis)
			shape := func(n int) float64 { return math.Hypot(1, .1*float64(n)) }
			slow, goal := 1.0, 1.0 // the machine's state, and the one to which it changes
			measure := func(n int) {
				if r.IntN(90) == 0 {
					goal = .75 + .7*r.Float64()
				}
				slow *= math.Pow(goal/slow, 1/float64(passes))
				v := slow * shape(n) * math.Exp(.03*math.Abs(r.NormFloat64()))
				if r.IntN(40) == 0 { // an outlier
					v *= 1 + r.Float64()
				}
				c.observe(n, v)
			}
			for range 4 {
				for _, n := range []int{1, 4, often, seldom} {
					measure(n)
				}
			}
			for i := range 400 {
				if i%17 == 0 {
					measure(1)
				} else {
					measure(often)
				}
				if e := c.at(seldom) / c.at(often) / shape(seldom) * shape(often); e > 1.2 || e < 1/1.2 {
					t.Fatalf("changes of %d passes, seed %d: after %d passes %d rows over %d are %.2f times what they are",
						passes, seed, i, seldom, often, e)
				}
			}
		}
	}
}

// The cost of a level is learned from rounds that drafted often, not from those that first had to read long
// texts, whose time is a guess: a drafter that is tried now and then does not seem more expensive for it.
func TestTriesLeaveTheLevelsCost(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		const level, row = 1e-3, 1e-4
		d, g := New().drafter(""), &Group{}
		d.read.add(row)
		for range majority {
			d.learnLevels(g, 1, 1, level+row, 1)
		}
		before := d.parts[0].at(1)
		for range rapid.IntRange(1, 40).Draw(r, "tries") {
			behind := rapid.IntRange(50, 300).Draw(r, "behind")
			slower := rapid.Float64Range(1, 2).Draw(r, "slower") // reading few rows costs more per row than reading many
			d.learnLevels(g, 1, 1, level+slower*row*float64(behind), behind)
		}
		if after := d.parts[0].at(1); after != before {
			r.Fatalf("a level took %g s, and after the tries %g s", before, after)
		}
	})
}

// A node is worth its chance minus what a row adds to a pass, whatever passes cost, and never less
// than zero. A level of nodes that are not worth their rows is refused, however many they are.
func TestNodesAreWorthTheirRows(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		c := New()
		pass, row := rapid.Float64Range(1e-3, 1).Draw(r, "pass"), rapid.Float64Range(0, .5).Draw(r, "row")
		for _, n := range rowAxis.knots {
			for range majority {
				c.verify.observe(int(n), pass*(1+row*float64(n-1)))
			}
		}
		d := c.drafter("")
		for range majority {
			d.parts[0].observe(1, pass*rapid.Float64Range(0, .1).Draw(r, "level"))
		}
		var know knowledge
		rounds := rapid.IntRange(1, 4).Draw(r, "sequences")
		know.read(c, d, rounds, rounds, rounds+rapid.IntRange(0, 6).Draw(r, "nodes"))
		want := row * float64(rounds) / (1 + row*float64(rounds-1)) // in tokens; a pass brings one for each sequence
		var g guide
		g.begin(&know, Greedy, true, false, 0, 0)
		chance := rapid.Float64Range(0, 1).Draw(r, "chance")
		if got, want := float64(g.Value(float32(chance))), max(chance-want, 0); math.Abs(got-want) > 1e-5 {
			r.Fatalf("a chance of %g is worth %g tokens, want %g", chance, got, want)
		}
		if unlikely := g.Value(float32(want) * .99); g.Deeper(0, 100*unlikely) {
			r.Fatalf("a level of nodes that are worth %g is drafted", unlikely)
		}
	})
}

// Rows are computed again for a drafter to read if that takes less time than it saves: the more tokens follow, and
// the less a row costs, the sooner; but not if many sequences share a pass, since each of them pays for the row.
func TestRecallPays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		row := rapid.Float64Range(0, .3).Draw(t, "cost of a row, in passes")
		rows, tokens := rapid.IntRange(1, 64).Draw(t, "rows"), rapid.IntRange(1, 1000).Draw(t, "tokens")
		sequences := rapid.IntRange(1, 16).Draw(t, "sequences")
		c := New()
		turn := &Turn{Group: c.Join("drafter")}
		if got := turn.Recalls(c, rows, tokens, sequences); got != (rows <= tokens) {
			t.Fatalf("before a pass was measured %d rows for %d tokens: %v", rows, tokens, got)
		}
		for range 2 * majority {
			for _, n := range rowAxis.knots {
				c.passed(int(n), 1+row*float64(n-1), false)
			}
		}
		cost := float64(rows) * row * float64(sequences) / (1 + row*float64(sequences-1))
		gain := recallGain * float64(min(tokens, recallTokens))
		if got := turn.Recalls(c, rows, tokens, sequences); got != (cost <= gain) && math.Abs(cost-gain) > .01*gain {
			t.Fatalf("%d rows for %d tokens, %d sequences, a row of %.3f passes: %v, at a cost of %.2f tokens", rows,
				tokens, sequences, row, got, cost)
		}
		uncontrolled := &Turn{Group: c.Join("drafter"), Uncontrolled: true}
		if got := uncontrolled.Recalls(c, rows, tokens, sequences); got != (rows <= tokens) {
			t.Fatalf("without a controller %d rows for %d tokens: %v", rows, tokens, got)
		}
	})
}
