package adapt

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/grovellm/grove/internal/drafters/learn"
	"github.com/grovellm/grove/internal/testing/cases"
	"pgregory.net/rapid"
)

// drafts is the expected accepted lengths of a query's rounds with two heads. How much better the
// first is differs between queries.
func drafts(rng *rand.Rand, gain, spread float64) (one, other []float64) {
	length, better := 2+2*rng.Float64(), gain+spread*rng.NormFloat64()
	for range 5 + rng.IntN(20) {
		x := length * (1 + .3*rng.NormFloat64())
		other, one = append(other, x), append(one, x*(1+better+.05*rng.NormFloat64()))
	}
	return one, other
}

// The standard error of a comparison is that of its gain over many streams. Nothing is certain
// from fewer than three queries.
func TestComparison(t *testing.T) {
	cases.Check(t, 30, func(t *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		gain, spread := rapid.Float64Range(-.2, .3).Draw(t, "gain"), rapid.Float64Range(.01, .1).Draw(t, "spread")
		var sum, squares, errors float64
		const streams = 400
		for range streams {
			var c comparison
			for n := range 30 {
				if n < fewest && (c.better() || c.worse() || c.least() != 0) {
					t.Fatalf("certain after %d queries", n)
				}
				c.add(drafts(rng, gain, spread))
			}
			g, e := c.gain()
			sum = sum + g/streams
			squares = squares + g*g/streams
			errors = errors + e/streams
		}
		deviation := math.Sqrt(squares - sum*sum)
		if math.Abs(sum-gain) > .02 || errors < .75*deviation || errors > 1.3*deviation {
			t.Fatalf("gain %.4f, want %.4f; standard error %.4f, deviation %.4f", sum, gain, errors, deviation)
		}
	})
}

// Recent queries count more: a comparison that changes sign is followed.
func TestComparisonForgets(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	var c comparison
	for range 200 {
		c.add(drafts(rng, .1, .02))
	}
	if !c.better() || c.worse() {
		t.Fatalf("ten percent better: %+v", c)
	}
	for range 40 {
		c.add(drafts(rng, -.1, .02))
	}
	if c.better() || !c.worse() {
		t.Fatalf("ten percent worse by now: %+v", c)
	}
}

// Whatever queries and tasks take: what is lost exceeds what is allowed by one task at most, and
// what is allowed is the share of decoding time and the part of the gain.
func TestAccount(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := Tuning{Share: rapid.Float64Range(0, .1).Draw(t, "share"),
			Reinvest: rapid.Float64Range(0, 1).Draw(t, "part")}
		a := &Adapter{o: Options{Policy: Judged, Memory: 1 << 20, Tuning: o}}
		var want, most float64
		for range rapid.IntRange(1, 200).Draw(t, "queries") {
			seconds := rapid.Float64Range(0, 2).Draw(t, "seconds")
			gain := rapid.Float64Range(-.5, .5).Draw(t, "gain")
			a.account.decoded(seconds, gain, &a.o.Tuning)
			want += seconds * (o.Share + o.Reinvest*max(gain, 0))
			if math.Abs(a.account.Allowed-want) > 1e-9 {
				t.Fatalf("%g s are allowed, want %g", a.account.Allowed, want)
			}
			was, price := a.account.left(), a.account.Price
			a.judging = rapid.Bool().Draw(t, "judging")
			task := a.push(Skip, &query{texts: []*learn.Example{{}}}, 1)
			if !task.empty() {
				if was <= 0 || task.learn != (was > price) || !task.learn && !a.judging {
					t.Fatalf("a task begins with %g s left, the last update cost %g: %+v", was, price, task)
				}
				cost := rapid.Float64Range(0, 5).Draw(t, "cost")
				a.account.Lost += cost
				most = max(most, cost)
				if task.learn {
					a.account.Price = cost
				}
			}
			if a.account.Lost > a.account.Allowed+most {
				t.Fatalf("%g s are lost, %g allowed, no task took more than %g", a.account.Lost, a.account.Allowed,
					most)
			}
		}
	})
}
