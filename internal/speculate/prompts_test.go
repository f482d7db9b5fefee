package speculate

import (
	"context"
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/grovellm/grove/internal/speculate/control"
)

// A short prompt does not wait for long ones, the first one is read at no less than half the speed
// of all prompts together, and no step has more rows than allowed.
func TestPromptsShareRows(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		target := &toy{vocab: 40, context: 4096, salt: rapid.Uint64().Draw(r, "salt")}
		l, err := New(target, nil, Options{})
		if err != nil {
			r.Fatal(err)
		}
		rows := rapid.IntRange(1, 30).Draw(r, "rows")
		short := rapid.IntRange(1, 60).Draw(r, "short")
		var all []*Sequence
		for range rapid.IntRange(1, 4).Draw(r, "long prompts") {
			all = append(all, start(r, l, rapid.IntRange(100+2*short, 500).Draw(r, "long")))
		}
		first, last := all[0], start(r, l, short)
		all = append(all, last)
		steps := 0
		for ; len(last.Output()) == 0; steps++ {
			before, firstBefore := cached(all), first.cache.Len()
			if err := l.StepWithin(context.Background(), all, Limits{Rows: rows}); err != nil {
				r.Fatal(err)
			}
			if n := cached(all) - before; n > rows {
				r.Fatalf("a step of %d rows, want at most %d", n, rows)
			}
			if n := first.cache.Len() - firstBefore; n < rows/2 {
				r.Fatalf("%d rows of the first prompt in a step of %d", n, rows)
			}
		}
		if most := 2*short/rows + 3; steps > most {
			r.Fatalf("%d steps of %d rows for a prompt of %d, want at most %d", steps, rows, short, most)
		}
	})
}

// readingExperts is a simulated target whose passes of many rows read nearly all of its experts.
type readingExperts struct{ *simTarget }

func (readingExperts) Experts() control.Experts {
	return control.Experts{Layers: 1, Count: 128, Used: 8, Bytes: 10, Dense: 80}
}

// Steps that only read prompts keep to a limit of time once a row's time is known, as far as they do not mostly read
// weights, and read a long prompt nearly as fast as steps of whole chunks.
func TestPromptsWithinTime(t *testing.T) {
	for name, c := range map[string]struct {
		read, row float64 // seconds to read weights, and for each row
		experts   bool    // then many rows read 8.5 times as much
		longest   float64
	}{
		"fast":    {.01, .001, false, .53},
		"slow":    {.1, .02, false, 1.1},
		"slowest": {1, .2, false, 10},
		"experts": {.1, .012, true, 7.1},
	} {
		read := func(limits Limits) (longest, total float64) {
			target := newSim(func(n int, _ float64) float64 {
				read := c.read
				if c.experts {
					read *= (80 + 1280*(1-math.Pow(1-1./16, float64(n)))) / 160
				}
				return read + c.row*float64(n)
			})
			var model Target = target
			if c.experts {
				model = readingExperts{target}
			}
			l, err := New(model, nil, Options{})
			if err != nil {
				t.Fatal(err)
			}
			l.now = target.now
			short, err := l.Start(make([]int32, 40), Request{MaxTokens: 5})
			if err != nil {
				t.Fatal(err)
			}
			step := func(s *Sequence) float64 {
				before := target.seconds()
				if err := l.StepWithin(context.Background(), []*Sequence{s}, limits); err != nil {
					t.Fatal(err)
				}
				return target.seconds() - before
			}
			for short.Finish() == Running {
				step(short)
			}
			began := target.seconds()
			for s := start(t, l, 6000); s.Finish() == Running; {
				longest = max(longest, step(s))
			}
			return longest, target.seconds() - began
		}
		longest, total := read(Limits{Time: time.Second})
		_, whole := read(Limits{})
		if longest > c.longest {
			t.Errorf("%s: a step of %.2f s, want at most %.2f s", name, longest, c.longest)
		}
		if total > 1.15*whole {
			t.Errorf("%s: %.3f of the time that steps of whole chunks take", name, total/whole)
		}
	}
}

// Without limits every prompt gets a chunk in every step.
func TestPromptsWithoutLimits(t *testing.T) {
	l, err := New(&toy{vocab: 40, context: 4096}, nil, Options{Chunk: 10})
	if err != nil {
		t.Fatal(err)
	}
	all := []*Sequence{start(t, l, 300), start(t, l, 100), start(t, l, 200)}
	for step := 1; step <= 8; step++ {
		if err := l.Step(context.Background(), all); err != nil {
			t.Fatal(err)
		}
		for i, s := range all {
			if s.cache.Len() != 10*step {
				t.Fatalf("%d rows of prompt %d after %d steps of 10 each", s.cache.Len(), i, step)
			}
		}
	}
}

func start(t interface {
	Fatal(...any)
}, l *Loop, prompt int) *Sequence {
	s, err := l.Start(make([]int32, prompt), Request{MaxTokens: 1})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func cached(sequences []*Sequence) (n int) {
	for _, s := range sequences {
		n += s.cache.Len()
	}
	return n
}
