package bench

import (
	"context"
	"testing"

	"github.com/grovellm/grove/internal/gemm"
	"github.com/grovellm/grove/internal/synth"
)

// Drafts are as long whatever part of the head they compute, and lists are of the sizes asked for.
func TestDraftCosts(t *testing.T) {
	shape, err := synth.Lookup("tiny-llama3")
	if err != nil {
		t.Fatal(err)
	}
	for _, typ := range []gemm.Type{gemm.Q8_0, gemm.BF16} {
		calls := 0
		r, err := DraftCosts(context.Background(), DraftCostOptions{Target: shape, Type: typ, Threads: 2, Rounds: 2, Progress: func(string, int, int) { calls++ }})
		if err != nil {
			t.Fatal(err)
		}
		if r.Target != "tiny-llama3" || r.Type != typ.String() || r.Vocab != 768 || r.Rows != 71 || r.Passes != 8 || r.HeadBytes < 768*192 || r.LayerBytes < 200_000 || calls != 12+3 {
			t.Errorf("%+v after %d calls", r, calls)
		}
		sizes := map[string]float64{}
		for i, l := range r.Lists {
			sizes[l.Name] = l.Size
			if !(l.MS > 0 && l.Ratio > 0) || i == 0 && l.Ratio != 1 {
				t.Errorf("%+v", l)
			}
		}
		if sizes["full"] != 768 || sizes["freq"] != 192 || !(sizes["freq-pa"] < 192) || !(sizes["dynaspec, k_max 1/2"] < 768) || sizes["one panel"] != gemm.Panel || len(sizes) != 12 {
			t.Errorf("sizes %v", sizes)
		}
		if !(r.Bandwidth > 0 && r.Peak > 0 && r.LayerRoof > 0 && r.FullRoof > r.LayerRoof) {
			t.Errorf("%g GB/s, %g Gop/s: roofs %g and %g ms", r.Bandwidth, r.Peak, r.LayerRoof, r.FullRoof)
		}
	}
}

func TestDraftCostsRefuses(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	shape, _ := synth.Lookup("tiny-llama3")
	if _, err := DraftCosts(ctx, DraftCostOptions{Target: shape, Type: gemm.BF16, Threads: 1}); err == nil {
		t.Error("it goes on when told to stop")
	}
	for _, name := range []string{"tiny-gptneox", "tiny-qwen2"} {
		shape, _ := synth.Lookup(name)
		if _, err := DraftCosts(context.Background(), DraftCostOptions{Target: shape, Type: gemm.BF16, Threads: 1}); err == nil {
			t.Errorf("an EAGLE head of a layer of %s", name)
		}
	}
}
