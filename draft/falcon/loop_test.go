package falcon_test

import (
	"slices"
	"testing"

	"github.com/grovellm/grove/draft/falcon"
	. "github.com/grovellm/grove/internal/drafttest"
	"github.com/grovellm/grove/internal/grow"
	"github.com/grovellm/grove/sample"
	"github.com/grovellm/grove/shortlist"
	"github.com/grovellm/grove/speculate"
)

// Law 2 in a loop: a batch decodes to the tokens of each text alone and plainly, with heads of both
// readings, every tree and list, under a controller and without one, whether heads are right or
// wrong. They are right where a bias leaves the choice to the noise.
func TestSameTokens(t *testing.T) {
	m := OpenTarget(t, 512)
	prompts := [][]int32{{1, 2, 3}, make([]int32, 70), {9}, {400, 401, 402, 403}}
	choice := map[int32]float32{7: 60, 8: 60, 9: 60}
	dynamic, best := grow.DefaultDynamic(), grow.DefaultBestFirst()
	shapes := []grow.Shape{&dynamic, withText{&best}, &best, &grow.Linear{K: 5}, &grow.Static{Children: [][]int{{4}, {3, 1}, {2, 1}, {2}}}}
	for _, p := range []sample.Params{
		{}, {Temperature: 1, Seed: 4, LogitBias: choice},
		{Temperature: .8, TopP: .9, TopK: 60, RepetitionPenalty: 1.2, PenaltyLast: 20, Seed: 5, LogitBias: choice},
	} {
		var want [][]int32
		for _, prompt := range prompts {
			out, _ := Generate(t, m, nil, speculate.Options{}, p, [][]int32{prompt})
			want = append(want, out[0])
		}
		for block := 1; block <= 3; block++ {
			n := head(t, m, uint64(block), func(c *falcon.Config) { c.Block, c.Recurrent = block, block == 2 })
			for i, shape := range shapes {
				lists := shortlist.Options{}
				if i%2 == 1 {
					lists = shortlist.Options{Method: []string{"freq-pa", "context"}[i/2%2], Size: min(64, n.Vocab), Extra: min(32, n.Vocab)}
				}
				for _, free := range []bool{false, true} {
					d := newDrafter(t, n, shape, lists, m)
					out, stats := Generate(t, m, d, speculate.Options{Budget: 24, Chunk: 33, Uncontrolled: free}, p, prompts)
					for text := range want {
						if !slices.Equal(out[text], want[text]) {
							t.Errorf("blocks of %d, %T %+v, %+v, uncontrolled %v, text %d: %v, want %v", block, shape, lists, p, free, text, out[text], want[text])
						}
					}
					if free && p.Temperature == 1 && i == 0 && stats.Tau() < 1.15 {
						t.Errorf("blocks of %d: τ is %.2f where the noise decides between three tokens", block, stats.Tau())
					}
				}
			}
		}
	}
}
