package speculate

import (
	"context"
	"testing"

	"pgregory.net/rapid"
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
