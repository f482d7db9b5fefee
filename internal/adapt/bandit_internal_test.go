package adapt

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// live runs queries of a signal through the bandit, with updates that bring a mean gain, as it is measured with an error, and says how many
// there were of each, in all and among the last hundred.
func live(rng *rand.Rand, queries int, signal float64, gain [actions]float64, spread float64) (all, late [actions]int) {
	b := newBandit(10)
	buffer, open, since := 0, Skip, 0
	for i := range queries {
		a := b.choose(signal, true, rng)
		may := b.may()
		if open != Skip {
			if since++; since == 2 {
				b.reward(open, gain[open]+spread*rng.NormFloat64(), spread, signal)
				open = Skip
			}
		}
		if a == Skip {
			continue
		}
		if buffer++; buffer >= 2 && may && open == Skip {
			buffer, open, since = 0, a, 0
			b.begun()
			all[a]++
			if i >= queries-100 {
				late[a]++
			}
		}
	}
	return all, late
}

// With no gain to be had the bandit settles at skip; with one it goes on, with the action that brings more.
func TestBanditSettles(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(r, "seed"), 1))
		signal := rapid.Float64Range(8, 40).Draw(r, "signal")
		if all, late := live(rng, 1000, signal, [actions]float64{Head: -.003, Full: -.006}, .002); late[Head]+late[Full] > 4 {
			r.Fatalf("nothing to gain: %v updates, %v among the last hundred queries", all, late)
		}
		if all, late := live(rng, 1000, signal, [actions]float64{Head: .01, Full: .012}, .005); late[Head]+late[Full] < 15 {
			r.Fatalf("something to gain: %v updates, %v among the last hundred queries", all, late)
		}
		all, late := live(rng, 1000, signal, [actions]float64{Head: .02, Full: -.01}, .002)
		if late[Head] < 15 || late[Full] > 1 {
			r.Fatalf("the last part alone brings something: %v updates, %v among the last hundred queries", all, late)
		}
	})
}

// The rules of Appendix A.3: no update in the warm-up, two queries after one cannot begin another, weak signals teach nothing, and the cold
// start tries both actions, whatever the first rewards are.
func TestBanditRules(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	b := newBandit(10)
	for range 10 {
		if a := b.choose(100, true, rng); a != Skip {
			t.Fatalf("%v in the warm-up", a)
		}
	}
	seen := [actions]int{}
	for range 2000 {
		c := b
		c.Events = 0
		c.Value = [actions]float64{Head: -1, Full: -2}
		seen[c.choose(100, true, rng)]++
	}
	if explored := float64(2*seen[Full]) / 2000; explored < coldFirst-.05 || explored > coldFirst+.05 || seen[Skip] != 0 {
		t.Errorf("in the cold start, where no action pays and the last part costs less: %v", seen)
	}
	for range 100 {
		c := b
		c.Events, c.Idle = coldEvents, 0
		c.Value = [actions]float64{Head: -1, Full: -2}
		if a := c.choose(100, true, rng); a != Skip {
			t.Fatalf("%v after the cold start, where no action pays", a)
		}
	}
	b.begun()
	for i, want := range []bool{false, false, true, true} {
		if b.may() != want {
			t.Errorf("query %d after an update can begin another: %v", i+1, !want)
		}
	}
	was := b.Value
	if b.reward(Full, 5, 0, leastTrig-.1); b.Value != was {
		t.Error("a weak signal taught a value")
	}
	for range 100 {
		b.reward(Full, 2, 0, 10)
	}
	if v := b.Value[Full]; v < .19 || v > .2 {
		t.Errorf("rewards of 2 for a signal of 10: v is %g, want .2", v)
	}
	before := b.Value[Full]
	if b.reward(Full, 0, 0, 10); math.Abs(b.Value[Full]-before*(1-memory)) > 1e-12 {
		t.Errorf("a reward of 0 makes %g of %g, want (1 − α) of it", b.Value[Full], before)
	}
	for range 50 {
		if c := b; c.choose(100, false, rng) == Head {
			t.Fatal("the last part alone, where it was not to be trained")
		}
	}
}

// Where nothing pays an update is tried again after a while, each time after a longer one.
func TestBanditProbes(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	b := newBandit(0)
	b.Events, b.Value = coldEvents, [actions]float64{Head: -1, Full: -1}
	var at []int
	for i := range 2000 {
		if b.choose(20, true, rng) != Skip {
			b.begun()
			at = append(at, i)
		}
	}
	for i := 2; i < len(at); i++ {
		if a, b := at[i-1]-at[i-2], at[i]-at[i-1]; b < a || b > 2*a+1 {
			t.Fatalf("probes after %v queries", at)
		}
	}
	if len(at) < 4 {
		t.Errorf("probes after %v queries", at)
	}
}

func TestRollbackFalls(t *testing.T) {
	for _, c := range []struct {
		gains []float64
		error float64
		falls bool
	}{
		{[]float64{.2, .17, .14, .11}, .01, true},
		{[]float64{.2, .17, .14, .11}, .05, false}, // by chance
		{[]float64{.2, .15, .16, .05}, .01, false},
		{[]float64{.2, .15, .1}, .01, false},
		{[]float64{.2, .18, .17, .16}, .001, false},
	} {
		var g rollback
		for _, gain := range c.gains {
			g.gains = append(g.gains, comparison{gain, c.error})
		}
		if g.falling() != c.falls {
			t.Errorf("%v, each with an error of %g: falling is %v", c.gains, c.error, !c.falls)
		}
	}
}
