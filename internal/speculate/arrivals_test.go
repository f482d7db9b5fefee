package speculate

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/grovellm/grove/draft"
)

// Law 3 holds when texts end and others begin whose prompts are read alongside rounds.
func TestDraftingAmongPromptsCostsLittle(t *testing.T) {
	for _, row := range []float64{.04, .08, .12} {
		target := func() *simTarget {
			s := newSim(func(n int, _ float64) float64 { return ms * (1 + row*float64(n-1)) })
			s.output = .3
			return s
		}
		for _, prompt := range []int{60, 200} {
			plain := streamTexts(t, target(), nil, prompt)
			for _, right := range []float64{0, .1, .2, .3, .4} {
				for _, withText := range []bool{false, true} {
					s := target()
					d := &simDrafter{clock: s.clock, draftCost: draftCosts["cheap"], right: right, confidence: .5, width: 1, deepest: 4}
					var drafter draft.Drafter = d
					if withText {
						text := *d
						text.draftCost = draftCosts["free"]
						drafter = &simWithText{d, text}
					}
					if speed := streamTexts(t, s, drafter, prompt); speed < .97*plain {
						t.Errorf("rows of %g, prompts of %d, right %g, by text %v: %.3f of the speed of plain decoding", row, prompt, right,
							withText, speed/plain)
					}
				}
			}
		}
	}
}

// streamTexts decodes four texts at a time, of 60 to 139 tokens after prompts of the given length,
// and returns tokens per second. A step that reads prompts takes about twice as long as a plain one.
func streamTexts(t *testing.T, target *simTarget, d draft.Drafter, prompt int) float64 {
	l, err := New(target, d, Options{})
	if err != nil {
		t.Fatal(err)
	}
	l.now = target.now
	const texts = 80
	var live []*Sequence
	tokens := 0
	for begun := 0; begun < texts || len(live) > 0; {
		for len(live) < 4 && begun < texts {
			s, err := l.Start(make([]int32, prompt), Request{MaxTokens: 60 + begun})
			if err != nil {
				t.Fatal(err)
			}
			live = append(live, s)
			begun++
		}
		limit := time.Duration(2 * target.cost(len(live), target.seconds()) * 1e9)
		if err := l.StepWithin(context.Background(), live, Limits{Time: limit}); err != nil {
			t.Fatal(err)
		}
		live = slices.DeleteFunc(live, func(s *Sequence) bool {
			if s.Finish() == Running {
				return false
			}
			tokens += len(s.Output())
			s.Close()
			return true
		})
	}
	return float64(tokens) / target.seconds()
}
