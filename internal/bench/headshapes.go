// Shapes of heads as they are published, for targets that have none yet.

package bench

import (
	"fmt"

	"github.com/grovellm/grove/internal/drafters/assistant"
	"github.com/grovellm/grove/internal/drafters/eagle"
	"github.com/grovellm/grove/internal/drafters/falcon"
	"github.com/grovellm/grove/internal/drafters/jet"
	"github.com/grovellm/grove/internal/drafters/medusa"
	"github.com/grovellm/grove/internal/drafters/peagle"
	"github.com/grovellm/grove/internal/drafters/spark"
	"github.com/grovellm/grove/internal/heads/headfile"
	"github.com/grovellm/grove/internal/model"
)

// publishedHead is a head's shape for a target.
type publishedHead struct {
	drafter, about string
	shape          headfile.Shape // nil: the head is in the target's file
}

// draftVocab is how many tokens the output of EAGLE-3 heads has.
const draftVocab = 32000

// publishedHeads are heads for a target of the numbers that published ones of their kinds have: layers of 32 heads of
// 128 with 8 of keys, MLPs as wide as the target's.
func publishedHeads(t *model.Config) (list []publishedHead) {
	layers := func(arch string, n int) model.Config {
		return model.Config{Arch: arch, Vocab: t.Vocab, Hidden: t.Hidden, Layers: n, Heads: 32, KVHeads: 8, HeadDim: 128,
			FFN: t.FFN, Context: t.Context, NormEps: 1e-6, Rope: model.RopeConfig{Base: 1e4, Dims: 128, Scale: 1}}
	}
	block := func(rows int) jet.Config { return jet.Config{Config: layers("qwen3", 5), Block: rows} }
	eagle3 := func(n int) eagle.Config {
		return eagle.Config{Config: layers("llama", n), Version: 3, DraftVocab: min(draftVocab, t.Vocab)}
	}
	dflash, jetspec := block(16), block(16)
	jetspec.Causal = true
	list = []publishedHead{
		{"eagle3", "a layer, 32,000 tokens", ptr(eagle3(1))},
		{"eagle2", "a layer", &eagle.Config{Config: layers("llama", 1), Version: 2, DraftVocab: t.Vocab}},
		{"peagle", "2 layers, 8 depths, 32,000 tokens", &peagle.Config{Config: eagle3(2), Depths: 8}},
		{"ddtree", "DFlash: 5 layers, blocks of 16", &dflash},
		{"jetspec", "5 layers, blocks of 16", &jetspec},
		{"dspark", "5 layers, blocks of 7, rank 256", &spark.Config{Config: block(7), Variant: "dspark", Anchor: true,
			Rank: 256, Markov: "vanilla", Confidence: spark.TokenConfident}},
		{"dflash2", "5 layers, blocks of 8, rank 256", &spark.Config{Config: block(8), Variant: "dflash2", Kernel: 2,
			Group: 16, Rank: 256, Top: 16}},
		{"domino", "5 layers, blocks of 16, GRU of 1,024", &spark.Config{Config: block(16), Variant: "domino", Rank: 256,
			Width: 1024, Prefix: 1}},
		{"medusa", "5 heads of a block", &medusa.Config{Config: model.Config{Vocab: t.Vocab, Hidden: t.Hidden}, Depths: 5,
			ResBlocks: 1}},
		{"falcon", "an LSTM of 2 layers and a layer, 2 tokens a pass", &falcon.Config{Config: layers("llama", 1), Block: 2}},
	}
	if t.Ahead > 0 {
		list = append(list, publishedHead{"mtp", "the target's own layer", nil})
	}
	if t.Arch == "gemma4" {
		layers := t.Borrowing(4, 256, 2048)
		size := 128
		for t.Vocab%size != 0 {
			size /= 2
		}
		ordered := assistant.Config{Config: layers, Backbone: t.Hidden, Centroids: t.Vocab / size,
			Chosen: min(32, t.Vocab/size)}
		list = append(list,
			publishedHead{"gemma4-assistant", "4 layers 256 wide, all tokens",
				&assistant.Config{Config: layers, Backbone: t.Hidden}},
			publishedHead{"gemma4-assistant", fmt.Sprintf("4 layers 256 wide, %d of %d clusters of tokens", ordered.Chosen,
				ordered.Centroids), &ordered})
	}
	return list
}

func ptr[T any](x T) *T { return &x }
