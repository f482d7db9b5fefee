package hostile_test

import (
	"context"
	"math"
	"testing"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/drafters/drafttest/hostile"
	"github.com/grovellm/grove/internal/drafters/registry"
	"github.com/grovellm/grove/tree"
	"pgregory.net/rapid"
)

// A proposal is within its bounds, fills the budget, and is the same for the same place.
func TestProposals(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		vocab := rapid.SampledFrom([]int{1, 2, 50, 1 << 30}).Draw(r, "vocab")
		d, err := hostile.New(hostile.Options{Seed: rapid.Int().Draw(r, "seed"), Confidence: .75}, vocab)
		if err != nil {
			r.Fatal(err)
		}
		budget, depth := rapid.IntRange(2, 80).Draw(r, "budget"), rapid.IntRange(1, 12).Draw(r, "depth")
		propose := func(s draft.State) *tree.Tree {
			tr := tree.New(0)
			if _, err := d.Propose(context.Background(), []draft.Request{
				{State: s, Tree: tr, Budget: budget, Depth: depth}}); err != nil {
				r.Fatal(err)
			}
			return tr
		}
		var states []draft.State
		for range 2 {
			s, err := d.Begin(draft.Options{})
			if err != nil {
				r.Fatal(err)
			}
			if err := d.Commit([]draft.Rows{{State: s, Tokens: []int32{0, 0, 0}, Next: -1}}); err != nil {
				r.Fatal(err)
			}
			states = append(states, s)
		}
		tr := propose(states[0])
		if err := tr.Check(vocab); err != nil {
			r.Fatal(err)
		}
		if tr.Len() > budget || tr.MaxDepth() > depth || vocab > 1000 && tr.Len() < budget {
			r.Fatalf("%d nodes and depth %d for a budget of %d and %d", tr.Len(), tr.MaxDepth(), budget, depth)
		}
		for _, p := range tr.LogProb[1:] {
			if math.Abs(math.Exp(float64(p))-.75) > 1e-6 {
				r.Fatalf("a confidence of %g", math.Exp(float64(p)))
			}
		}
		if again := propose(states[1]); again.String() != tr.String() {
			r.Fatalf("two proposals for the same place differ:\n%s%s", tr, again)
		}
	})
}

func TestOptionsAreChecked(t *testing.T) {
	for _, text := range []string{"hostile:confidence=0", "hostile:confidence=2",
		"hostile:confidence=NaN", "hostile:depth=3"} {
		if _, err := registry.New(text, registry.Target{Vocab: 10}); err == nil {
			t.Errorf("%s was accepted", text)
		}
	}
	if _, err := registry.New("hostile", registry.Target{}); err == nil {
		t.Error("a target without tokens was accepted")
	}
	if _, err := registry.New("hostile:seed=7,confidence=0.5", registry.Target{Vocab: 10}); err != nil {
		t.Error(err)
	}
}

func TestSteadyStateAllocatesNothing(t *testing.T) {
	d, err := hostile.New(hostile.Default(), 1000)
	if err != nil {
		t.Fatal(err)
	}
	s, err := d.Begin(draft.Options{})
	if err != nil {
		t.Fatal(err)
	}
	tr := tree.New(0)
	requests := []draft.Request{{State: s, Tree: tr, Budget: 64, Depth: 20}}
	rows := []draft.Rows{{State: s, Tokens: []int32{1}}}
	round := func() {
		tr.Reset(1)
		if _, err := d.Propose(context.Background(), requests); err != nil {
			t.Fatal(err)
		}
		if err := d.Commit(rows); err != nil {
			t.Fatal(err)
		}
	}
	round()
	if n := testing.AllocsPerRun(100, round); n != 0 {
		t.Errorf("%g allocations a round, want 0", n)
	}
}
