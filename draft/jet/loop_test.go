package jet_test

import (
	"slices"
	"testing"

	"github.com/grovellm/grove/draft/jet"
	. "github.com/grovellm/grove/internal/drafttest"
	"github.com/grovellm/grove/internal/onepass"
	"github.com/grovellm/grove/sample"
	"github.com/grovellm/grove/speculate"
)

// Law 2 in a loop: a batch decodes to the tokens of each text alone and plainly, with every tree and either mask, under a
// controller and without one, whether heads are right or wrong. They are right where a bias leaves the choice to the noise.
func TestSameTokens(t *testing.T) {
	m := OpenTarget(t, 512)
	prompts := [][]int32{{1, 2, 3}, make([]int32, 70), {9}, {400, 401, 402, 403}}
	choice := map[int32]float32{7: 60, 8: 60, 9: 60}
	var causal, both *jet.Network
	for seed := uint64(0); causal == nil || both == nil; seed++ {
		if n := head(t, m, seed); n.Causal {
			causal = n
		} else {
			both = n
		}
	}
	for _, p := range []sample.Params{
		{}, {Temperature: 1, Seed: 4}, {Temperature: 1, Seed: 4, LogitBias: choice}, {LogitBias: choice},
		{Temperature: .8, TopP: .9, TopK: 60, RepetitionPenalty: 1.2, PenaltyLast: 20, Seed: 5, LogitBias: choice},
	} {
		var want [][]int32
		for _, prompt := range prompts {
			out, _ := Generate(t, m, nil, speculate.Options{}, p, [][]int32{prompt})
			want = append(want, out[0])
		}
		for _, name := range []string{withText, onepass.AccumLogP, onepass.DDTree, onepass.Hybrid, onepass.Entropy, onepass.Chain} {
			for _, n := range []*jet.Network{causal, both} {
				for _, free := range []bool{false, true} {
					d := newDrafter(t, jet.Options{Tree: name, Width: 4, Lambda: 1}, n, m)
					out, stats := Generate(t, m, d, speculate.Options{Budget: 24, Chunk: 33, Uncontrolled: free}, p, prompts)
					for i := range want {
						if !slices.Equal(out[i], want[i]) {
							t.Errorf("%s, causal %v, %+v, uncontrolled %v, text %d: %v, want %v", name, n.Causal, p, free, i, out[i], want[i])
						}
					}
					if free && p.Temperature == 1 && p.LogitBias != nil && stats.Tau() < 1.15 {
						t.Errorf("%s, causal %v: τ is %.2f where the noise decides between three tokens", name, n.Causal, stats.Tau())
					}
				}
			}
		}
	}
}
