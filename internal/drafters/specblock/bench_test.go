package specblock_test

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/drafters/drafttest"
	"github.com/grovellm/grove/internal/drafters/specblock"
	"github.com/grovellm/grove/internal/drafters/synthetic"
	"github.com/grovellm/grove/internal/heads/headfile"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/model/synth"
	"github.com/grovellm/grove/sample"
	"github.com/grovellm/grove/tensor"
	"github.com/grovellm/grove/tree"
)

// BenchmarkRound times a round of drafting in which three tokens are accepted, with heads and a
// vocabulary of the size of the embedded ones.
func BenchmarkRound(b *testing.B) {
	path := filepath.Join(b.TempDir(), "target.gguf")
	shape := synth.Shape{
		Name: "target", Arch: "qwen3", Vocab: 16384, Hidden: 256, Layers: 2, Heads: 8, KVHeads: 4, HeadDim: 32,
		FFN:     512,
		Context: 2048, NormEps: 1e-6, RopeBase: 1e4, RopeDims: 32, Tied: true, Tokens: synth.Qwen2,
	}
	if err := synth.Write(b.Context(), path, shape, synth.Options{Type: tensor.Q8_0, Seed: 1}); err != nil {
		b.Fatal(err)
	}
	m, err := model.Open(path, model.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer m.Close()
	c := specblock.Config{Base: headfile.Base{Config: m.Config, Taps: []int{0, 1, 2}},
		Block: 4, RankWidth: 256, Shift: true, Broadcast: true}
	c.Layers, c.FFN = 2, 768
	n, err := specblock.NewNetwork(c, synthetic.Head(&c, tensor.Q8_0, 1), synthetic.Tokens(&c, 1), &m.Network)
	if err != nil {
		b.Fatal(err)
	}
	taps := still{x: make([]float32, n.Hidden), logits: make([]float32, n.Vocab)}
	for i := range taps.x {
		taps.x[i] = float32(i%7) - 3
	}
	for _, temperature := range []float32{0, 1} {
		for _, o := range []specblock.Options{specblock.DefaultOptions, best} {
			for _, blocks := range []int{1, 2, 3} {
				b.Run(fmt.Sprintf("text=%v/blocks%d/t%g", o.Text, blocks, temperature), func(b *testing.B) {
					o.Blocks = blocks
					d, err := specblock.New(o, n, drafttest.As(m))
					if err != nil {
						b.Fatal(err)
					}
					s, err := d.Begin(draft.Options{Sampling: sample.Params{Temperature: temperature}})
					if err != nil {
						b.Fatal(err)
					}
					text := make([]int32, 500)
					if err := d.Commit([]draft.Rows{{State: s, Tokens: text, Nodes: text, Next: -1,
						Pass: &taps}}); err != nil {
						b.Fatal(err)
					}
					tr := tree.New(7)
					requests := []draft.Request{{State: s, Tree: tr, Budget: 64, Depth: 100}}
					accepted := []draft.Rows{{State: s, Tokens: text[:3], Tree: tr, Nodes: text[:3], Next: 7,
						Pass: &taps}}
					for b.Loop() {
						tr.Reset(7)
						if _, err := d.Propose(context.Background(), requests); err != nil {
							b.Fatal(err)
						}
						if err := d.Commit(accepted); err != nil {
							b.Fatal(err)
						}
					}
				})
			}
		}
	}
}
