package speculate

import (
	"context"
	"testing"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/drafters/registry"
	"github.com/grovellm/grove/sample"
)

// still is a target that costs nothing and allocates nothing: its text runs in a circle.
type still struct{ logits [16][]float32 }

func (t *still) Vocab() int                    { return 16 }
func (t *still) Context() int                  { return 1 << 20 }
func (t *still) NewCache() Cache               { return new(stillCache) }
func (t *still) NewPass() Pass                 { return &stillPass{t: t} }
func (p *stillPass) Tap(_, _, _ int) []float32 { return nil }

type stillCache struct{ n int }

func (c *stillCache) Len() int                   { return c.n }
func (c *stillCache) Commit(nodes []int32) error { c.n += len(nodes); return nil }
func (c *stillCache) Truncate(n int) error       { c.n = n; return nil }
func (c *stillCache) Reach(n int) int            { return min(n, c.Len()) }
func (c *stillCache) KeepState()                 {}
func (c *stillCache) Free()                      {}

type stillPass struct {
	t    *still
	rows []Rows
}

func (p *stillPass) Run(_ context.Context, rows []Rows, _ []int) error { p.rows = rows; return nil }
func (p *stillPass) Logits(s, i int) []float32 {
	r := p.rows[s]
	return p.t.logits[r.Tree.Token[r.Logits[i]]]
}

func newStill() *still {
	t := new(still)
	for i := range t.logits {
		t.logits[i] = make([]float32, 16)
		t.logits[i][(i+1)%16] = 30
	}
	return t
}

func TestSteadyStateAllocatesNothing(t *testing.T) {
	for _, free := range []bool{false, true} {
		for _, name := range []string{"", "lookup"} {
			steadyState(t, name, free)
		}
	}
}

func steadyState(t *testing.T, name string, free bool) {
	var d draft.Drafter
	if name != "" {
		d, _ = registry.New(name, registry.Target{})
	}
	l, err := New(newStill(), d, Options{Budget: 8, Uncontrolled: free})
	if err != nil {
		t.Fatal(err)
	}
	var batch []*Sequence
	for i := range int32(3) {
		s, err := l.Start([]int32{i, i + 1}, Request{Sampling: sample.Params{Temperature: 1, TopP: .9,
			PresencePenalty: .1, Seed: uint64(i)}})
		if err != nil {
			t.Fatal(err)
		}
		batch = append(batch, s)
	}
	ctx := context.Background()
	step := func() {
		if err := l.Step(ctx, batch); err != nil {
			t.Fatal(err)
		}
	}
	for range 2000 {
		step()
	}
	if n := testing.AllocsPerRun(1000, step); n >= 1 { // growth of the texts shows as less than one
		t.Errorf("drafter %q: %g allocations a step", name, n)
	}
	if tau := batch[0].Stats().Tau(); name == "lookup" && free && tau < 5 {
		t.Errorf("text in a circle: τ = %g", tau)
	}
	for _, s := range batch {
		s.Close()
	}
}

// BenchmarkRound times a round without drafting and the pass, with the largest trees of the default budget.
func BenchmarkRound(b *testing.B) {
	for _, free := range []bool{true, false} {
		b.Run(map[bool]string{true: "uncontrolled", false: "controlled"}[free], func(b *testing.B) {
			target := newSim(func(n int, _ float64) float64 { return ms * (1 + .002*float64(n-1)) })
			d := &simDrafter{clock: target.clock, right: .95, siblingRight: .5, confidence: .95, width: 3, deepest: 24}
			l, err := New(target, d, Options{Uncontrolled: free})
			if err != nil {
				b.Fatal(err)
			}
			l.now = target.now
			s, err := l.Start([]int32{0}, Request{})
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if s.Finish() != Running {
					b.Skip("the context is full")
				}
				if err := l.Step(context.Background(), []*Sequence{s}); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(s.Stats().Proposed)/float64(s.Stats().Rounds), "proposed/op")
		})
	}
}
