package bench

import (
	"context"
	"testing"

	_ "github.com/grovellm/grove/internal/heads"
	"github.com/grovellm/grove/internal/kernels/gemm"
	"github.com/grovellm/grove/internal/model/synth"
	"github.com/grovellm/grove/tensor"
)

// A draft computes all of the vocabulary, the lists of a router, or one panel; ratios are over the first.
func TestDraftCosts(t *testing.T) {
	shape, err := synth.Lookup("tiny-llama3")
	if err != nil {
		t.Fatal(err)
	}
	kind, target := HeadTarget("EAGLE3-tiny-llama3")
	if none, _ := HeadTarget("tiny-llama3"); kind == nil || target != "tiny-llama3" || none != nil {
		t.Fatalf("the shape names the target %q", target)
	}
	rounds := 0
	r, err := DraftCosts(context.Background(), DraftCostOptions{Kind: kind, Target: shape, Type: tensor.Q8_0, Threads: 1,
		Rounds: 2, Progress: func(done, _ int) { rounds = done }})
	if err != nil {
		t.Fatal(err)
	}
	if r.Target != "tiny-llama3" || r.Vocab != 768 || r.Head < 768*192 || r.Layer < 200_000 ||
		rounds != 2 || len(r.Lists) != 3 {
		t.Fatalf("%+v after %d rounds", r, rounds)
	}
	for _, l := range r.Lists {
		if !(l.MS > 0) || !near(l.Ratio*r.Lists[0].MS, l.MS) {
			t.Errorf("%+v", l)
		}
	}
	full := r.Lists[0].Size
	routed := r.Lists[1].Size
	panel := r.Lists[2].Size
	if full != 768 || routed >= full || routed <= panel || panel != gemm.Panel {
		t.Errorf("lists of %g, %g and %g tokens", full, routed, panel)
	}

	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := DraftCosts(ctx, DraftCostOptions{Kind: kind, Target: shape, Type: tensor.BF16, Threads: 1}); err == nil {
		t.Error("it goes on when told to stop")
	}
	for _, name := range []string{"tiny-gptneox", "tiny-qwen2"} {
		shape, _ := synth.Lookup(name)
		if _, err := DraftCosts(context.Background(), DraftCostOptions{Kind: kind, Target: shape, Type: tensor.BF16,
			Threads: 1}); err == nil {
			t.Errorf("an EAGLE head of a layer of %s", name)
		}
	}
}
