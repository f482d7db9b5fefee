package speculate

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/grovellm/grove/draft"
)

// stumbling is a drafter that now and then takes far longer than it should.
type stumbling struct {
	*simDrafter
	stumble func() float64 // seconds
}

func (d *stumbling) Propose(ctx context.Context, requests []draft.Request) ([]draft.Proposal, error) {
	d.spend(d.stumble())
	return d.simDrafter.Propose(ctx, requests)
}

// A drafter that pays is asked in nearly every round of every text, whatever luck it has in the
// first ones: passages that it cannot foretell, a machine that changes its pace, passes and drafts
// that are held up.
func TestBadLuckIsForgotten(t *testing.T) {
	if testing.Short() {
		t.Skip("a long simulation on one goroutine")
	}
	const trials, texts, prompt, output = 100, 6, 50, 160
	// of a plain pass; how often something is held up
	for _, c := range []struct{ pass, held float64 }{{20 * ms, 0}, {20 * ms, .02}, {.15 * ms, .002}} {
		all, worst := 0.0, 0.0
		for trial := range uint64(trials) {
			rng := rand.New(rand.NewPCG(trial, 5))
			stumble := func() float64 {
				if rng.Float64() < c.held {
					return 20 * ms * rng.Float64()
				}
				return 0
			}
			pace, quality := 1.0, .8
			target := newSim(func(n int, _ float64) float64 {
				if rng.Float64() < .005 {
					pace = .7 + .8*rng.Float64()
				}
				return pace*c.pass*(1+.012*float64(n-1))*(1+.06*rng.Float64()) + stumble()
			})
			d := &stumbling{&simDrafter{
				clock: target.clock, confidence: .8, width: 1, deepest: 8, rng: 1000 * trial,
				draftCost: draftCost{.005 * c.pass, .003 * c.pass}, catchUp: .0005 * c.pass,
				turns: func(int) float64 {
					if rng.Float64() < .1 {
						quality = []float64{.2, .5, .8, .9, .97}[rng.IntN(5)]
					}
					return quality
				},
			}, stumble}
			l, err := New(target, d, Options{})
			if err != nil {
				t.Fatal(err)
			}
			l.now = target.now
			rounds, plain := 0, 0
			for range texts {
				stats := writeText(t, l, prompt, output)
				rounds, plain = rounds+stats.Rounds, plain+stats.Plain
			}
			share := float64(plain) / float64(rounds)
			all, worst = all+share/trials, max(worst, share)
		}
		t.Logf("passes of %g ms, held up %g: %.3f of the rounds plain, %.3f at worst", c.pass/ms, c.held, all,
			worst)
		if all > .05 || worst > .15 {
			t.Errorf("passes of %g ms, held up %g: %.3f of the rounds are plain, %.3f at worst, want .05 and .15",
				c.pass/ms, c.held, all, worst)
		}
	}
}
