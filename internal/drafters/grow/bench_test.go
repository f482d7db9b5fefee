package grow

import (
	"context"
	"fmt"
	"testing"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/drafters/registry"
	"github.com/grovellm/grove/internal/drafters/shortlist"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/model/synth"
	"github.com/grovellm/grove/sample"
	"github.com/grovellm/grove/tensor"
	"github.com/grovellm/grove/tree"
)

// BenchmarkRound times a proposal and its commit with a draft model of the size of grove's own,
// with random weights.
func BenchmarkRound(b *testing.B) {
	m := openSynth(b, synth.Shape{
		Name: "draft", Arch: "qwen3", Vocab: 16384, Hidden: 64, Layers: 3, Heads: 2, KVHeads: 1, HeadDim: 32, FFN: 192,
		Context: 1 << 20, NormEps: 1e-6, RopeBase: 1e4, RopeDims: 32, Tied: true, Tokens: synth.Qwen2,
	}, tensor.Q8_0, 1, model.Options{})
	for _, shape := range []Shape{ptr(DefaultLinear()), ptr(DefaultFixed()), ptr(DefaultDynaTree()),
		ptr(DefaultDynamic()), ptr(DefaultBestFirst()), withText{ptr(DefaultBestFirst())}} {
		for _, method := range []string{"", "freq", "context"} {
			for _, temperature := range []float32{0, 1} {
				b.Run(fmt.Sprintf("%T/%s/T=%g", shape, method, temperature), func(b *testing.B) {
					target := registry.Target{Vocab: 16384, Context: 1 << 20}
					d := must(listed(shape, shortlist.Options{Method: method}, m, target))(b)
					s := prompted(b, d, draft.Options{Sampling: sample.Params{Temperature: temperature}},
						make([]int32, 200))
					defer s.Close()
					tr := tree.New(0)
					requests := []draft.Request{{State: s, Tree: tr, Budget: 32, Depth: 100}}
					rows := []draft.Rows{{State: s, Nodes: []int32{0, 1}}}
					steps, nodes := 0, 0
					b.ReportAllocs()
					for i := int32(0); b.Loop(); i++ {
						if i%300 == 299 { // keep the text short
							if err := s.(*state).read.Cache.Truncate(200); err != nil {
								b.Fatal(err)
							}
							s.(*state).ready = false
						}
						tr.Reset(i % 1000)
						if _, err := d.Propose(context.Background(), requests); err != nil {
							b.Fatal(err)
						}
						steps += s.(*state).steps
						nodes += tr.Len()
						rows[0].Tokens = append(rows[0].Tokens[:0], i%1000, tr.Token[min(1, tr.Len()-1)])
						if err := d.Commit(rows); err != nil {
							b.Fatal(err)
						}
					}
					b.ReportMetric(float64(steps)/float64(b.N), "passes")
					b.ReportMetric(float64(nodes)/float64(b.N), "nodes")
				})
			}
		}
	}
}
