package specblock_test

import (
	"slices"
	"testing"

	"github.com/grovellm/grove/draft/specblock"
	"github.com/grovellm/grove/internal/drafttest"
	"github.com/grovellm/grove/sample"
	"github.com/grovellm/grove/speculate"
)

// Law 2 in a loop: a batch decodes to the tokens of each text alone and plainly, whatever trees, under a controller and without one,
// whether heads are right or wrong. They are right where a bias leaves the choice to the noise.
func TestSameTokens(t *testing.T) {
	m := drafttest.OpenTarget(t, 512)
	prompts := [][]int32{{1, 2, 3}, make([]int32, 40), {9}, {400, 401, 402, 403}}
	choice := map[int32]float32{7: 60, 8: 60, 9: 60}
	heads := []*specblock.Network{head(t, m, 0), head(t, m, 2)}
	for _, p := range []sample.Params{
		{}, {Temperature: 1, Seed: 4, LogitBias: choice},
		{Temperature: .8, TopP: .9, TopK: 60, RepetitionPenalty: 1.2, PenaltyLast: 20, Seed: 5, LogitBias: choice},
	} {
		var want [][]int32
		for _, prompt := range prompts {
			out, _ := drafttest.Generate(t, m, nil, speculate.Options{}, p, [][]int32{prompt})
			want = append(want, out[0])
		}
		for i, n := range heads {
			for _, o := range []specblock.Options{specblock.DefaultOptions, best, {Tree: specblock.Ranked, Blocks: 3, Widths: "2/4/6/4", Starts: 4, Nodes: 24}, uniform, listed} {
				if n.RankWidth == 0 && o.Uniform == 0 && o.Tree == specblock.Ranked {
					continue
				}
				for _, free := range []bool{false, true} {
					d := newDrafter(t, o, n, m)
					out, stats := drafttest.Generate(t, m, d, speculate.Options{Budget: 24, Chunk: 13, Uncontrolled: free}, p, prompts)
					for k := range want {
						if !slices.Equal(out[k], want[k]) {
							t.Errorf("head %d, %+v, %+v, uncontrolled %v, text %d: %v, want %v", i, o, p, free, k, out[k], want[k])
						}
					}
					if free && o.List.Method == "" && o.Uniform > 0 && n.DraftVocab == 0 && p.Temperature == 1 && p.LogitBias != nil && stats.Tau() < 1.15 {
						t.Errorf("head %d, %+v: τ is %.2f where the noise decides between three tokens", i, o, stats.Tau())
					}
				}
			}
		}
	}
}
