package adapt

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/testing/cases"
	"github.com/grovellm/grove/tree"
)

// Rounds that are slower beside an update by some share of their time, whatever their rows: that
// share is found; before any was seen it is what was taken for it.
func TestSlowdownIsMeasured(t *testing.T) {
	cases.Check(t, 30, func(r *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(r, "seed"), 1))
		share, noise := rapid.Float64Range(0, .5).Draw(r, "share"), rapid.Float64Range(0, .05).Draw(r, "noise")
		pass := rapid.Float64Range(.001, .1).Draw(r, "seconds")
		var s slowdown
		if got := s.share(.25); got != .25 {
			r.Fatalf("with nothing measured the share is %g, want .25", got)
		}
		var learningTime float64
		for i := 0; learningTime < 200; i++ {
			rows := 1 << rng.IntN(7)
			seconds := pass * (1 + float64(rows)/32) * (1 + noise*rng.NormFloat64())
			learning := i > 400 && i%3 == 0
			if learning {
				seconds /= 1 - share
				learningTime += seconds
			}
			s.round(rows, seconds, learning)
		}
		// What stands at first is worth a second of four to eight, or more.
		most := .03 + math.Abs(.25-share)*priorSeconds/(learningMemory/2)
		if got := s.share(.25); math.Abs(got-share) > most {
			r.Fatalf("the share is %.3f, want %.3f", got, share)
		}
	})
}

// The share follows a load that changes: whatever rounds took before, whatever share they lost, and
// whatever holds up single rounds with an update and without.
func TestSlowdownFollowsTheLoad(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(r, "seed"), 1))
		stalls := rapid.Float64Range(0, .01).Draw(r, "stalls")
		var s slowdown
		for regime := range rapid.IntRange(1, 4).Draw(r, "regimes") {
			share := rapid.Float64Range(0, .7).Draw(r, "share")
			pass := math.Pow(10, rapid.Float64Range(-2, -.8).Draw(r, "seconds"))
			rows := 1 << rapid.IntRange(0, 6).Draw(r, "rows")
			var learningTime float64
			for i := 0; learningTime < 60; i++ {
				seconds := pass * (1 + .02*rng.NormFloat64())
				if rng.Float64() < stalls {
					seconds *= 5 + 100*rng.Float64()
				}
				learning := i%60 >= 40
				if learning {
					seconds /= 1 - share
					learningTime += min(seconds, pass*stalled)
				}
				s.round(rows, seconds, learning)
			}
			most := .08 + 12*stalls + math.Abs(.25-share)*priorSeconds/(learningMemory/2)
			if got := s.share(.25); math.Abs(got-share) > most {
				r.Fatalf("regime %d: the share is %.3f, want %.3f", regime, got, share)
			}
		}
	})
}

// A round counts from its proposal to its commit; one with a prompt beside it, or in which an
// update began or ended, does not.
func TestRoundsThatAreTimed(t *testing.T) {
	now := time.Unix(0, 0)
	a := &Adapter{slow: slowdown{now: func() time.Time { return now }}}
	tr := tree.New(0)
	tr.Reset(1)
	round, prompt := draft.Rows{Tree: tr, Next: 2}, draft.Rows{Tree: tr, Next: -1}
	var w timer
	seen := func() bool {
		defer func() { a.slow.usual[1] = times{} }()
		return a.slow.usual[1].n > 0
	}
	step := func(during func(), rows ...draft.Rows) bool {
		w.begin(a)
		now = now.Add(time.Second)
		during()
		w.end(a, rows)
		return seen()
	}
	nothing := func() {}
	if !step(nothing, round) {
		t.Error("a round was not timed")
	}
	if step(nothing, round, prompt) {
		t.Error("a round beside a prompt was timed")
	}
	if step(func() { a.running.Store(true) }, round) {
		t.Error("a round in which an update began was timed")
	}
	a.running.Store(false)
	w.end(a, []draft.Rows{round})
	if seen() {
		t.Error("a round without a proposal was timed")
	}
}
