package speculate

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/grovellm/grove/draft"
)

// stumbling is a drafter that occasionally takes far longer than it should.
type stumbling struct {
	*simDrafter
	stumble func() float64 // seconds
}

func (d *stumbling) Propose(ctx context.Context, requests []draft.Request) ([]draft.Proposal, error) {
	d.spend(d.stumble())
	return d.simDrafter.Propose(ctx, requests)
}

// A drafter that pays off is asked in nearly every round of every text, whatever luck it has in the
// first ones: passages that it cannot predict, a machine that changes its speed, passes and drafts
// that are delayed.
func TestBadLuckIsForgotten(t *testing.T) {
	if testing.Short() {
		t.Skip("a long simulation on one goroutine")
	}
	const trials, texts, prompt, output = 100, 6, 50, 160
	// of a plain pass; how often something is delayed
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

// wavering is a drafter that reports before each draft how confident it is, and is right equally often.
type wavering struct {
	*simWithText
	sure func() float64
}

func (d *wavering) Propose(ctx context.Context, requests []draft.Request) ([]draft.Proposal, error) {
	d.right = d.sure()
	d.confidence = d.right
	return d.simWithText.Propose(ctx, requests)
}

// A drafter that gains a seventh or a twelfth is not given up because of a run of bad luck, on a
// machine whose passes differ by more than that.
func TestSmallGainsAreKept(t *testing.T) {
	if testing.Short() {
		t.Skip("a long simulation on one goroutine")
	}
	const trials, texts, prompt, output = 150, 4, 40, 128
	const pass = 2 * ms
	for _, c := range []struct{ level, sure, most float64 }{{.11, 1, .05}, {.12, .9, .15}} {
		plainly := 0.0 // share of rounds
		for trial := range uint64(trials) {
			machine, drafts := rand.New(rand.NewPCG(trial, 5)), rand.New(rand.NewPCG(trial, 7))
			pace := 1.0
			target := newSim(func(n int, _ float64) float64 {
				if machine.Float64() < .004 {
					pace = .9 + .25*machine.Float64()
				}
				seconds := pace * pass * (1 + .08*float64(n-1)) * (1 + .04*machine.NormFloat64())
				if machine.Float64() < .01 {
					seconds *= 1 + 2*machine.Float64()
				}
				return seconds
			})
			d := &wavering{
				&simWithText{&simDrafter{clock: target.clock, siblingRight: .15, width: 2, deepest: 8, rng: 1000 * trial,
					draftCost: draftCost{.02 * pass, c.level * pass}, catchUp: .001 * pass}, simDrafter{clock: target.clock}},
				func() float64 { return c.sure * []float64{.1, .2, .3, .5, .65}[drafts.IntN(5)] },
			}
			l, err := New(target, d, Options{})
			if err != nil {
				t.Fatal(err)
			}
			l.now = target.now
			for range texts {
				stats := writeText(t, l, prompt, output)
				plainly += float64(stats.Plain) / float64(stats.Rounds) / trials / texts
			}
		}
		t.Logf("a level of %.2f, sure by %.1f: %.3f of the rounds are plain", c.level, c.sure, plainly)
		if plainly > c.most {
			t.Errorf("a level of %.2f, sure by %.1f: %.3f of the rounds are plain, want %.2f", c.level, c.sure, plainly, c.most)
		}
	}
}

// A drafter that gains when a text is decoded alone is asked then, even though drafting repeatedly
// did not pay for many texts at the same time, whose passes have no room for further rows.
func TestManyTextsDoNotSpoilADrafter(t *testing.T) {
	const many, texts, prompt, output = 8, 4, 30, 200
	for _, right := range []float64{.5, .7} {
		target := newSim(func(n int, _ float64) float64 { return 2 * ms * max(1, .4+.12*float64(n)) })
		d := &simDrafter{clock: target.clock, right: right, siblingRight: .2, confidence: right, width: 2, deepest: 4,
			draftCost: draftCost{.02 * ms, .3 * ms}, catchUp: .02 * ms}
		l, err := New(target, d, Options{})
		if err != nil {
			t.Fatal(err)
		}
		l.now = target.now
		for range texts {
			var all []*Sequence
			for range many {
				s, err := l.Start(make([]int32, prompt), Request{MaxTokens: output})
				if err != nil {
					t.Fatal(err)
				}
				all = append(all, s)
			}
			for all[0].Finish() == Running {
				if err := l.Step(context.Background(), all); err != nil {
					t.Fatal(err)
				}
			}
			for _, s := range all {
				s.Close()
			}
			alone := writeText(t, l, prompt, output)
			if share := float64(alone.Plain) / float64(alone.Rounds); share > .1 {
				t.Errorf("right %g: %.2f of the rounds of a text alone are plain after %d at the same time", right, share, many)
			}
		}
	}
}
