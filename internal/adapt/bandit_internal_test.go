package adapt

import (
	"math"
	"math/rand/v2"
	"testing"
)

// Equation 10 with values computed by hand: α = 0.1, Δ in tokens a second over the signal that
// began the update.
func TestBanditValues(t *testing.T) {
	b := newBandit()
	serve := func(tokens int, seconds float64, rounds int) trend {
		return b.served(&query{committed: tokens, seconds: seconds, rounds: rounds}, true)
	}
	for range warmUp {
		serve(100, 2, 25) // 50 tokens a second
	}
	b.begun(Full, 20)
	if serve(100, 1, 25) != still {
		t.Fatal("the interval closed after one query: want two")
	}
	if serve(50, 1, 25) == still { // 150 tokens in 2 s: 75 a second
		t.Fatal("the interval is open after two queries")
	}
	want := .9*firstV + .1*(75-50)/20 // 0.125
	if got := b.Value[Full]; math.Abs(got-want) > 1e-12 || b.Value[Head] != firstV {
		t.Fatalf("v is %g and %g, want %g and %g", got, b.Value[Head], want, firstV)
	}
	b.begun(Full, 10) // the throughput before it: 75
	serve(60, 1, 20)
	serve(30, 1, 20)                  // 45 a second
	want = .9*want + .1*(45.-75.)/10. // −0.1875
	if got := b.Value[Full]; math.Abs(got-want) > 1e-12 {
		t.Fatalf("v is %g, want %g", got, want)
	}
	b.begun(Head, leastTrig-.1)
	serve(1000, 1, 20)
	serve(1000, 1, 20)
	if b.Value[Head] != firstV {
		t.Error("the reward of a weak signal counts")
	}
	rng := rand.New(rand.NewPCG(1, 1))
	b.Events, b.Queries = coldEvents, warmUp
	for range 100 {
		if a := b.choose(8, rng); a != Head { // equation 9: 8·1e-9 over 8·−0.1875
			t.Fatalf("%v is chosen, want head", a)
		}
	}
	b.Value[Head] = -1e-9
	if a := b.choose(8, rng); a != Skip {
		t.Errorf("%v is chosen where both predictions are negative", a)
	}
}

// The rules of Appendix A.3: no update in the warm-up, ε from 0.30 to 0.10 in the first eight
// updates, and two queries after an update that cannot begin another.
func TestBanditRules(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	b := newBandit()
	for range warmUp {
		if a := b.choose(100, rng); a != Skip {
			t.Fatalf("%v in the warm-up", a)
		}
	}
	for events, epsilon := range map[int]float64{0: .3, 7: .1, 8: 0} {
		b.Events, b.Value = events, [actions]float64{Head: -1, Full: -2}
		const n = 4000
		seen := [actions]int{}
		for range n {
			seen[b.choose(100, rng)]++
		}
		explored, spread := float64(seen[Head]+seen[Full])/n, 4*math.Sqrt(epsilon*(1-epsilon)/n)
		if math.Abs(explored-epsilon) > spread || math.Abs(float64(seen[Head]-seen[Full])) > 4*math.Sqrt(n) {
			t.Errorf("after %d updates: %v, want a share of %g explored", events, seen, epsilon)
		}
	}
	b.begun(Full, 10)
	b.Open = false
	for i, want := range []bool{false, false, true, true} {
		if b.may() != want {
			t.Errorf("query %d after an update can begin another: %v", i+1, !want)
		}
	}
}

// Three intervals in a row in which accepted length falls ask for a rollback.
func TestBanditFalls(t *testing.T) {
	for _, c := range []struct {
		tau  []int
		fall bool
	}{
		{[]int{9, 8, 7}, true}, {[]int{5, 9, 8, 7}, true}, {[]int{9, 8}, false}, {[]int{9, 7, 8}, false},
		{[]int{8, 8, 7}, false},
	} {
		b, last := newBandit(), still
		for _, tau := range c.tau {
			b.begun(Full, 10)
			for range interval {
				last = b.served(&query{committed: 10 * tau, rounds: 10, seconds: 1}, true)
			}
		}
		if (last == failed) != c.fall {
			t.Errorf("accepted lengths %v: rollback is %v", c.tau, !c.fall)
		}
	}
	b := newBandit()
	b.Value[Full], b.Windows = 3, []float64{2, 1}
	b.rolledBack()
	if b.Value != newBandit().Value || len(b.Windows) != 0 {
		t.Errorf("after a rollback: %+v", b)
	}
}
