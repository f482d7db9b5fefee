package control

import (
	"testing"

	"pgregory.net/rapid"
)

// A drafter that always loses, whatever is predicted of it, loses about the first credit, a few
// proposals while it is trusted, and the rate.
func TestAllowanceBoundsLosses(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		loss := rapid.Float64Range(.02, 10).Draw(r, "loss")
		promise := rapid.Float64Range(-1, 2).Draw(r, "promise")
		reading := rapid.Float64Range(0, allowanceRate).Draw(r, "reading") // tokens for each round in which it is not asked
		a := newAllowance()
		const rounds = 5000
		var lost, behind float64
		for range rounds {
			if !a.open() {
				a.skip(1)
				behind += reading
				continue
			}
			a.book(&outcome{cost: loss, predicted: max(promise+loss, 0), foreseen: loss, extra: behind, certain: true})
			lost += loss + behind
			behind = 0
		}
		if most := 2 + .75*firstTrust + 8*loss + 1.3*allowanceRate*rounds; lost > most {
			r.Fatalf("a drafter that loses %g tokens a round and promises %g cost %g tokens in %d rounds, want at most %g", loss, promise, lost, rounds, most)
		}
	})
}

// A drafter that gains in every round is asked in every round, although it promised dozens of
// tokens once and few came.
func TestAllowanceForgivesALostPromise(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		a := newAllowance()
		gain := func(name string, rounds int) {
			for range rounds {
				gain := rapid.Float64Range(.5, 2.4).Draw(r, "gain")
				hope := gain + rapid.Float64Range(-.2, .2).Draw(r, "missed by")
				a.book(&outcome{accepted: gain + .05, predicted: hope + .05, cost: .05, foreseen: .05,
					certain: true})
				if !a.open() {
					r.Fatalf("closed %s", name)
				}
			}
		}
		gain("before the promise", rapid.IntRange(0, 20).Draw(r, "before"))
		a.book(&outcome{accepted: 5, predicted: rapid.Float64Range(27, 60).Draw(r, "promise"), cost: .05,
			foreseen: .05, certain: true})
		gain("after it", 40)
	})
}

// Costly proposals that are known to pay off are requested in most rounds, although up to a third
// of them bring nothing.
func TestAllowanceKeepsCostlyGains(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		tokens := rapid.Float64Range(8, 20).Draw(r, "tokens")
		luck := rapid.Float64Range(.65, .9).Draw(r, "luck")
		cost := rapid.Float64Range(.1, .25).Draw(r, "cost") * tokens
		a := newAllowance()
		a.accepted, a.predicted = 60, 60
		seed := rapid.Uint64().Draw(r, "seed")
		const rounds = 2000
		asked := 0
		for i := range uint64(rounds) {
			if !a.open() {
				a.skip(1)
				continue
			}
			o := outcome{predicted: luck * tokens, cost: cost, foreseen: cost, certain: true}
			if float64(unit(hash(5, hash(i, seed)))) < luck {
				o.accepted = tokens
			}
			a.book(&o)
			asked++
		}
		if asked < rounds/2 {
			r.Fatalf("asked in %d of %d rounds", asked, rounds)
		}
	})
}

// hash mixes numbers, and unit turns a hash into a number from 0 to 1.
func hash(h uint64, v ...uint64) uint64 {
	for _, x := range v {
		h = (h ^ x) * 0x9e3779b97f4a7c15
		h ^= h >> 29
	}
	return h
}

func unit(h uint64) float32 { return float32(h>>40) / (1 << 24) }
