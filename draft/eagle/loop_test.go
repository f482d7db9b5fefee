package eagle_test

import (
	"slices"
	"testing"

	"github.com/grovellm/grove/draft/eagle"
	. "github.com/grovellm/grove/internal/drafttest"
	"github.com/grovellm/grove/internal/grow"
	"github.com/grovellm/grove/sample"
	"github.com/grovellm/grove/shortlist"
	"github.com/grovellm/grove/speculate"
)

// Law 2 in a loop: a batch decodes to the tokens of each text alone and plainly, with heads of every version and vocabulary, every
// tree and list, under a controller and without one, whether heads are right or wrong. They are right where a bias leaves the
// choice to the noise.
func TestSameTokens(t *testing.T) {
	m := OpenTarget(t, 512)
	prompts := [][]int32{{1, 2, 3}, make([]int32, 70), {9}, {400, 401, 402, 403}}
	choice := map[int32]float32{7: 60, 8: 60, 9: 60}
	heads := []*eagle.Network{head(t, m, 2, 1)}
	for seed := uint64(0); len(heads) < 3; seed++ { // one of all tokens, and one of some
		if n := head(t, m, 3, seed); (n.Tokens != nil) == (len(heads) == 2) {
			heads = append(heads, n)
		}
	}
	dynamic, best, tree := grow.DefaultDynamic(), grow.DefaultBestFirst(), grow.DefaultDynaTree()
	shapes := []grow.Shape{&dynamic, withText{&best}, withText{&tree}, &best, &grow.Linear{K: 5}, &grow.Dynamic{K: 3, Depth: 4, N: 20}}
	for _, p := range []sample.Params{
		{}, {Temperature: 1, Seed: 4}, {Temperature: 1, Seed: 4, LogitBias: choice}, {LogitBias: choice},
		{Temperature: .8, TopP: .9, TopK: 60, RepetitionPenalty: 1.2, PenaltyLast: 20, Seed: 5, LogitBias: choice},
	} {
		var want [][]int32
		for _, prompt := range prompts {
			out, _ := Generate(t, m, nil, speculate.Options{}, p, [][]int32{prompt})
			want = append(want, out[0])
		}
		for _, n := range heads {
			for i, shape := range shapes {
				lists := shortlist.Options{}
				if i%2 == 1 {
					lists = shortlist.Options{Method: []string{"freq-pa", "context"}[i/2%2], Size: min(64, n.DraftVocab), Extra: min(32, n.DraftVocab)}
				}
				for _, free := range []bool{false, true} {
					d := newDrafter(t, n, shape, lists, m)
					out, stats := Generate(t, m, d, speculate.Options{Budget: 24, Chunk: 33, Uncontrolled: free}, p, prompts)
					for text := range want {
						if !slices.Equal(out[text], want[text]) {
							t.Errorf("EAGLE-%d, %d tokens, %T %+v, %+v, uncontrolled %v, text %d: %v, want %v", n.Version, n.DraftVocab, shape, lists, p, free, text, out[text], want[text])
						}
					}
					if free && p.Temperature == 1 && p.LogitBias != nil && n.Tokens == nil && i == 0 && stats.Tau() < 1.15 {
						t.Errorf("EAGLE-%d: τ is %.2f where the noise decides between three tokens", n.Version, stats.Tau())
					}
				}
			}
		}
	}
}
