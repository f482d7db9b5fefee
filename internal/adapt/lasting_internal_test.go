package adapt

import (
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// Where a share of what updates bring at once lasts, that share is found, in spite of the noise of both measures, and within the memory
// of the last judgements where it changes.
func TestLasting(t *testing.T) {
	if s := new(lasting).share(); s != 1 {
		t.Fatalf("before anything is judged %.2f lasts", s)
	}
	rapid.Check(t, func(t *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 2))
		first, then := rapid.Float64Range(.3, 1).Draw(t, "share"), rapid.Float64Range(0, .2).Draw(t, "later")
		var l lasting
		over := 0.0
		run := func(share float64, judged int) (mean float64) {
			for i := range judged {
				gain := .012 + .004*rng.NormFloat64()
				over += share * gain
				l.judged(gain, over+.01*rng.NormFloat64())
				if s := l.share(); s < 0 || s > 1 {
					t.Fatalf("a share of %v", s)
				}
				if i >= judged-10 {
					mean += l.share() / 10
				}
			}
			return mean
		}
		if got := run(first, 40); got < first-.25 || got > first+.25 {
			t.Fatalf("%.2f lasts where %.2f does", got, first)
		}
		if got := run(then, 40); got > then+.25 {
			t.Fatalf("%.2f lasts where %.2f does by now", got, then)
		}
		if len(l.At) > lastingMemory || len(l.Over) != len(l.At) {
			t.Fatalf("%d and %d judgements are kept", len(l.At), len(l.Over))
		}
	})
}
