package model_test

import (
	"context"
	"math"
	"testing"

	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/nn"
	"github.com/grovellm/grove/internal/nn/output"
	"github.com/grovellm/grove/tensor"
)

// The output head on each token's last hidden state gives the same logits as a pass. The states do
// not depend on where chunks begin.
func TestHiddenStatesGiveTheLogits(t *testing.T) {
	for _, arch := range []string{"tiny-qwen3", "tiny-gemma2"} {
		m := open(t, arch, tensor.F32, model.Options{Threads: 1})
		tokens := make([]int32, model.PrefillChunk+3)
		for i := range tokens {
			tokens[i] = int32(i * 7 % m.Config.Vocab)
		}
		p, check := m.NewPass(), m.NewPass()
		var states [][]float32
		if err := p.Hidden(context.Background(), tokens,
			func(s []float32) { states = append(states, append([]float32(nil), s...)) }); err != nil {
			t.Fatal(err)
		}
		if len(states) != len(tokens) {
			t.Fatalf("%s: %d states of %d tokens", arch, len(states), len(tokens))
		}
		for _, n := range []int{1, 5, model.PrefillChunk, model.PrefillChunk + 1, len(tokens)} {
			c := m.NewCache()
			if err := check.Prefill(context.Background(), c, tokens[:n], true); err != nil {
				t.Fatal(err)
			}
			var l output.Logits
			l.Add(0, nil)
			l.Run(nn.NewExec(m.Pool()), nn.Mat{Rows: 1, Cols: m.Config.Hidden, Stride: m.Config.Hidden,
				Data: states[n-1]}, nil, &m.Head)
			for i, want := range check.Logits(0, 0) {
				if got := l.Row(0)[i]; math.Abs(float64(got-want)) > 1e-5*(1+math.Abs(float64(want))) {
					t.Fatalf("%s, token %d: logit %d is %v from the hidden state, %v from the pass", arch, n, i, got,
						want)
				}
			}
			c.Free()
		}
	}
}

// The memory for the states' text does not count as memory of caches, which is for generation.
func TestHiddenStatesLeaveMemory(t *testing.T) {
	for _, arch := range []string{"tiny-qwen3", "tiny-gemma2"} {
		m := open(t, arch, tensor.F32, model.Options{Threads: 1})
		pages := m.NewCache().Pages()
		used := func(when string) {
			if n := pages.InUse(); n != 0 {
				t.Errorf("%s: %d bytes are in use %s", arch, n, when)
			}
		}
		if err := m.NewPass().Hidden(t.Context(), make([]int32, model.PrefillChunk+3),
			func([]float32) { used("meanwhile") }); err != nil {
			t.Fatal(err)
		}
		used("afterwards")
		c := m.NewCache()
		if err := m.NewPass().Prefill(t.Context(), c, make([]int32, 3), true); err != nil || pages.InUse() == 0 {
			t.Errorf("%s: %d bytes of a cache, %v", arch, pages.InUse(), err)
		}
		c.Free()
		used("when the cache is free")
	}
}
