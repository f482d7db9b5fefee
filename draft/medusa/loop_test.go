package medusa_test

import (
	"slices"
	"testing"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/draft/medusa"
	. "github.com/grovellm/grove/internal/drafttest"
	"github.com/grovellm/grove/sample"
	"github.com/grovellm/grove/shortlist"
	"github.com/grovellm/grove/speculate"
)

// Law 2 in a loop: a batch decodes to the tokens of each text alone and plainly, with every tree,
// with output matrices of their own and without, over shortlists, under a controller and without
// one, whether heads are right or wrong. They are right where a bias leaves the choice to the
// noise.
func TestSameTokens(t *testing.T) {
	m := OpenTarget(t, 512)
	prompts := [][]int32{{1, 2, 3}, make([]int32, 70), {9}, {400, 401, 402, 403}}
	choice := map[int32]float32{7: 60, 8: 60, 9: 60}
	kinds := map[bool]*medusa.Network{}
	for seed := uint64(0); len(kinds) < 2; seed++ {
		if n := heads(t, m, seed); n.Output() == n.Vocab && n.Depths > 1 {
			kinds[n.OwnOutputs] = n
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
		for _, o := range []medusa.Options{
			{Tree: withText}, {Tree: medusa.Static}, {Tree: medusa.Paper}, {Tree: medusa.BestFirst, Width: 4}, {Tree: medusa.Chain},
			{Tree: medusa.Paper, Modifiers: draft.Modifiers{Text: true, List: shortlist.Options{Method: "freq-pa", Size: 200}}},
			{Tree: medusa.BestFirst, Modifiers: draft.Modifiers{List: shortlist.Options{Method: "context", Size: 64, Extra: 32}}},
		} {
			for own, n := range kinds {
				for _, free := range []bool{false, true} {
					d := newDrafter(t, o, n, m)
					out, stats := Generate(t, m, d, speculate.Options{Budget: 24, Chunk: 33, Uncontrolled: free}, p, prompts)
					for i := range want {
						if !slices.Equal(out[i], want[i]) {
							t.Errorf("%+v, own outputs %v, %+v, uncontrolled %v, text %d: %v, want %v", o, own, p, free, i, out[i], want[i])
						}
					}
					if free && o.List.Method == "" && p.Temperature == 1 && p.LogitBias != nil && stats.Tau() < 1.15 {
						t.Errorf("%+v, own outputs %v: τ is %.2f where the noise decides between three tokens", o, own, stats.Tau())
					}
				}
			}
		}
	}
}
