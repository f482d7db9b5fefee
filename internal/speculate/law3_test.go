package speculate

import (
	"maps"
	"slices"
	"testing"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/testing/cases"
	"pgregory.net/rapid"
)

// Law 3 in simulation: speculation is never much slower than plain decoding, and nearly as fast as
// the best fixed budget or faster.

// rules returns, for each acceptance rule, a drafter and options.
var rules = map[string]func(*simDrafter) (draft.Drafter, Options){
	"coupled": func(d *simDrafter) (draft.Drafter, Options) { return d, Options{} },
	"rejection": func(d *simDrafter) (draft.Drafter, Options) {
		d.drawn = evenly{}.of
		return d, Options{Accept: Rejection}
	},
}

// With a drafter that is confident nonsense, little is lost, however much it and rows cost, and
// less by a controller that already knows it.
func TestHostileDrafterCostsLittle(t *testing.T) {
	if testing.Short() {
		t.Skip("a long simulation on one goroutine")
	}
	const n = 256
	plain := plainSpeeds(t, n)
	for i, passes := range slices.Sorted(maps.Keys(passCosts)) {
		for j, drafting := range slices.Sorted(maps.Keys(draftCosts)) {
			for k, rule := range slices.Sorted(maps.Keys(rules)) {
				for l, d := range []simDrafter{
					{confidence: .9, width: 1, deepest: 100},
					{confidence: .99, width: 4, deepest: 100},
					{confidence: .5, width: 3, deepest: 6, catchUp: .003 * ms},
				} {
					for m, batch := range []int{1, 3} {
						if (i+j+k+l+m)%4 > 0 { // a quarter of all: any two of these conditions come together
							continue
						}
						c := NewController()
						for try, least := range []float64{.95, .96, .96, .96, .98} {
							target := newSim(passCosts[passes])
							d := d
							d.clock, d.draftCost = target.clock, draftCosts[drafting]
							drafter, o := rules[rule](&d)
							o.Controller = c
							speed, stats := simulate(t, target, drafter, o, batch, n)
							if passes == "noisy" { // plain decoding is noisy too, by a few more or fewer slow passes
								least -= .1
							}
							if plain := plain(passes, batch); speed < least*plain {
								t.Errorf("passes %s, drafting %s, %s, confidence %g, width %d, batch of %d: %.3f of the speed of plain decoding in try %d, want %.3f; %d of %d rounds speculated",
									passes, drafting, rule, d.confidence, d.width, batch, speed/plain, try, least,
									stats.Rounds-stats.Plain, stats.Rounds)
							}
						}
					}
				}
			}
		}
	}
}

// plainSpeeds simulates plain decoding of texts of n tokens once for each kind of passes and each batch.
func plainSpeeds(t *testing.T, n int) func(passes string, batch int) float64 {
	type key struct {
		passes string
		batch  int
	}
	known := map[key]float64{}
	return func(passes string, batch int) float64 {
		k := key{passes, batch}
		if known[k] == 0 {
			known[k], _ = simulate(t, newSim(passCosts[passes]), nil, Options{}, batch, n)
		}
		return known[k]
	}
}

// With an honest drafter, whatever the costs, the controller is nearly as fast as the best fixed
// budget, both from the start and when warm.
func TestBestBudgetIsFound(t *testing.T) {
	if testing.Short() {
		t.Skip("a long simulation on one goroutine")
	}
	worst := 2.0
	sum := 0.0
	cases := 0.0
	for i, passes := range slices.Sorted(maps.Keys(passCosts)) {
		for j, drafting := range slices.Sorted(maps.Keys(draftCosts)) {
			for k, rule := range slices.Sorted(maps.Keys(rules)) {
				for l, right := range []float64{.5, .9} {
					for m, batch := range []int{1, 4} {
						if rule == "rejection" && batch > 1 || (i+j+k+l+m)%4 > 0 { // a quarter of all, as above
							continue
						}
						const n = 800
						run := func(o Options) float64 {
							target := newSim(passCosts[passes])
							d := &simDrafter{clock: target.clock, draftCost: draftCosts[drafting], right: right, siblingRight: .5,
								confidence: right, width: 3, deepest: 12}
							drafter, p := rules[rule](d)
							o.Accept = p.Accept
							speed, _ := simulate(t, target, drafter, o, batch, n)
							return speed
						}
						best, at := 0.0, 0
						for _, budget := range []int{1, 2, 3, 6, 12, 32} {
							if v := run(Options{Uncontrolled: true, Budget: budget}); v > best {
								best, at = v, budget
							}
						}
						c := NewController()
						for try, least := range []float64{.85, .87} {
							speed := run(Options{Controller: c})
							if passes == "noisy" || passes == "drifting" || batch > 1 {
								least -= .12
							}
							if speed < least*best {
								t.Errorf("passes %s, drafting %s, %s, right %g, batch of %d: %.3f of the speed with a budget of %d in try %d, want %.2f",
									passes, drafting, rule, right, batch, speed/best, at, try, least)
							}
							worst = min(worst, speed/best)
							sum += speed / best
							cases++
						}
					}
				}
			}
		}
	}
	t.Logf("%.0f cases: %.3f of the best fixed budget's speed on average, %.3f at worst", cases, sum/cases, worst)
	if sum/cases < 1 {
		t.Errorf("%.3f of the best fixed budget's speed on average, want at least as fast", sum/cases)
	}
}

// Drawn trees bring what chosen ones bring, in tokens per pass or in speed, whatever the drafter. A
// drafter that is bad for a while is asked again when it is good. If passes have a knee, siblings
// that were drawn earlier take the place of deeper nodes, so only chains are compared there.
func TestBothRulesSpeculateAlike(t *testing.T) {
	for name, d := range map[string]simDrafter{
		"chain":    {right: .8, confidence: .8, width: 1, deepest: 8},
		"long":     {right: .95, confidence: .9, width: 1, deepest: 30},
		"wide":     {right: .7, siblingRight: .6, confidence: .7, width: 3, deepest: 8},
		"humble":   {right: .8, siblingRight: .5, confidence: .3, width: 2, deepest: 8},
		"boastful": {right: .6, siblingRight: .3, confidence: .98, width: 2, deepest: 12},
		"late": {confidence: .8, width: 1, deepest: 12,
			turns: func(at int) float64 { return .9 * float64(min(at/300, 1)) }},
		"turning": {confidence: .8, width: 1, deepest: 12,
			turns: func(at int) float64 { return .9 * float64(1-at/500%2) }},
	} {
		for _, passes := range []string{"flat", "cheap", "knee"} {
			if passes == "knee" && d.width > 1 {
				continue
			}
			const n = 4000
			run := func(rule string) (speed, tau float64) {
				target := newSim(passCosts[passes])
				d := d
				d.clock, d.draftCost = target.clock, draftCosts["cheap"]
				drafter, o := rules[rule](&d)
				speed, stats := simulate(t, target, drafter, o, 1, n)
				return speed, float64(stats.Committed) / float64(stats.Rounds)
			}
			speed, tau := run("coupled")
			s, got := run("rejection")
			least := .95
			if name == "turning" { // the size of drawn trees is chosen before they are drawn, so it follows later
				least = .9
			}
			if got < least*tau && s < least*speed {
				t.Errorf("%s, passes %s: %.2f tokens a pass with drawn trees, %.2f with chosen ones, and %.2f of the speed: want %.2f",
					name, passes, got, tau, s/speed, least)
			}
			if d.turns != nil && (tau < 1.3 || got < 1.3) {
				t.Errorf("%s, passes %s: %.2f tokens a pass with drawn trees, %.2f with chosen ones: want 1.3, as the drafter is good for long",
					name, passes, got, tau)
			}
		}
	}
}

// The controller follows a drafter that turns from nonsense to good and back.
func TestTurningDrafterIsFollowed(t *testing.T) {
	for _, passes := range []string{"flat", "cheap", "knee", "steps"} {
		const n = 3000
		run := func(d simDrafter, o Options) float64 {
			target := newSim(passCosts[passes])
			d.clock, d.draftCost = target.clock, draftCosts["cheap"]
			d.siblingRight = .5
			d.confidence = .8
			d.width = 2
			d.deepest = 12
			speed, _ := simulate(t, target, &d, o, 1, n)
			return speed
		}
		plain := run(simDrafter{}, Options{Uncontrolled: true, Budget: 1})
		good := run(simDrafter{right: .9}, Options{})
		got := run(simDrafter{turns: func(at int) float64 { return .9 * float64(at/500%2) }}, Options{})
		if ideal := 2 / (1/plain + 1/good); got < .85*ideal {
			t.Errorf("passes %s: %.0f tokens/s, %.0f plainly, %.0f where it is good, so that %.0f were to be had",
				passes, got, plain, good, ideal)
		}
	}
}

// Whatever drafting, reading and rows cost, and whatever a drafter that is never right promises,
// texts that follow each other lose little time to it, including prompts and the first text: what
// one text found out is not paid for again by the next.
func TestHopelessDrafterCostsLittle(t *testing.T) {
	cases.Check(t, 50, func(r *rapid.T) {
		cost := passCosts[rapid.SampledFrom([]string{"flat", "cheap", "knee", "steps", "dear", "linear"}).Draw(r,
			"passes")]
		d := &simDrafter{
			confidence: rapid.Float64Range(.3, .99).Draw(r, "confidence"), width: rapid.IntRange(1, 4).Draw(r, "width"),
			deepest: rapid.IntRange(1, 60).Draw(r, "deepest"),
			draftCost: draftCost{rapid.Float64Range(0, 3).Draw(r, "base") * ms,
				rapid.Float64Range(.02, 1).Draw(r, "level") * ms},
			catchUp: rapid.Float64Range(0, .2).Draw(r, "reading") * ms,
		}
		alone := rapid.Bool().Draw(r, "alone") // trees from the text alone are no better
		recital := draftCost{rapid.Float64Range(0, .1).Draw(r, "text") * ms, 0}
		hopelessCostsLittle(r, cost, d, alone, recital)
	})
}

// A proposal with more levels than any before is no measure of what levels cost. But what the
// drafter read before it is known and counts.
func TestReadingForRareProposalsCounts(t *testing.T) {
	for _, reading := range []float64{.05, .1, .15, .2} {
		d := &simDrafter{confidence: .99, width: 3, deepest: 60, draftCost: draftCost{.25 * ms, 1 * ms}, catchUp: reading * ms}
		hopelessCostsLittle(t, passCosts["flat"], d, false, draftCost{})
	}
}

// Drafts that cost a hundredth of a pass and promise much are given up before they add up.
func TestCheapHopelessDrafts(t *testing.T) {
	d := &simDrafter{confidence: .99, width: 1, deepest: 1, draftCost: draftCost{.0156 * ms, .0312 * ms},
		catchUp: .0005 * ms}
	hopelessCostsLittle(t, passCosts["flat"], d, true, draftCost{.0312 * ms, 0})
}

// If a drafter is asked only for levels, because trees from the text did not pay, and then drafts
// none, it is charged what the text takes. Otherwise it would be asked in every round.
func TestRefusedLevelsPayForTheText(t *testing.T) {
	for _, text := range []float64{.03, .04, .05, .06, .08} {
		d := &simDrafter{confidence: .99, width: 1, deepest: 1, draftCost: draftCost{.008 * ms, .02 * ms}, catchUp: .0001 * ms}
		hopelessCostsLittle(t, passCosts["flat"], d, true, draftCost{text * ms, 0})
	}
}

// hopelessCostsLittle runs texts with a drafter that is never right, and without it. If alone is
// set, the drafter may also build trees from the text alone, which cost recital.
func hopelessCostsLittle(t interface {
	Fatal(...any)
	Errorf(string, ...any)
}, cost func(rows int, at float64) float64, d *simDrafter, alone bool, recital draftCost) {
	const texts, prompt, output = 8, 300, 256
	run := func(d *simDrafter) float64 {
		target := newSim(cost)
		var drafter draft.Drafter
		if d != nil {
			d.clock = target.clock
			drafter = d
			if alone {
				drafter = &simWithText{d, simDrafter{clock: d.clock, confidence: d.confidence, width: 1,
					deepest: 20, draftCost: recital}}
			}
		}
		l, err := New(target, drafter, Options{})
		if err != nil {
			t.Fatal(err)
		}
		l.now = target.now
		for range texts {
			writeText(t, l, prompt, output)
		}
		return target.seconds()
	}
	plain := run(nil)
	// Unknown costs are paid for once: reading the first prompt, and drafts of the first text.
	first := prompt*d.catchUp + 3*(d.base+12*d.level) + 30*ms
	if lost := run(d) - plain - first; lost > .02*plain {
		t.Errorf("%d texts took %.1f%% longer than plainly", texts, 100*lost/plain)
	}
}

// Of a drafter and the text alone, the better one is asked, whichever it is, and whatever reading
// and drafting cost. A drafter that knows anything also knows what the text does.
func TestTheBetterIsAsked(t *testing.T) {
	if testing.Short() {
		t.Skip("a long simulation on one goroutine")
	}
	for passes, cost := range passCosts {
		for drafting, price := range draftCosts {
			type share struct{ drafter, text float64 }
			known := map[share]float64{}
			for _, right := range []share{{.9, 0}, {0, .9}, {.9, .5}, {.9, .9}} {
				const n = 2000
				run := func(drafter, text float64) float64 {
					if speed, ok := known[share{drafter, text}]; ok {
						return speed
					}
					target := newSim(cost)
					of := func(right float64) simDrafter {
						return simDrafter{clock: target.clock, right: right, siblingRight: .5, confidence: max(right, .5),
							width: 2, deepest: 12}
					}
					one, two := of(drafter), of(text)
					two.rng = 12345
					one.draftCost, one.catchUp = price, price.level/10
					speed, _ := simulate(t, target, &simWithText{&one, two}, Options{}, 1, n)
					known[share{drafter, text}] = speed
					return speed
				}
				best := max(run(right.drafter, 0), run(0, right.text))
				least := .85
				if passes == "noisy" || passes == "drifting" {
					least -= .12
				}
				if speed := run(right.drafter, right.text); speed < least*best {
					t.Errorf("passes %s, drafting %s, drafter right %g, text %g: %.3f of the speed with the better alone", passes, drafting, right.drafter,
						right.text, speed/best)
				}
			}
		}
	}
}
