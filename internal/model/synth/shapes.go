package synth

import (
	"fmt"
	"slices"
	"strings"

	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/nn"
)

// shapes holds the named shapes. The tiny ones have one of everything that can go wrong: widths
// that are not powers of two, heads that do not add up to the hidden size, every sharing of
// key/value heads, and rotations whose scaling starts within a test's reach.
var shapes = []Shape{
	{Name: "tiny-llama2", Arch: "llama", Vocab: 544, Hidden: 160, Layers: 3, Heads: 5, KVHeads: 5, HeadDim: 32, FFN: 416,
		Context: 1024, NormEps: 1e-5, RopeBase: 1e4, RopeDims: 32, Tokens: SPM},
	{Name: "tiny-llama3", Arch: "llama", Vocab: 768, Hidden: 192, Layers: 3, Heads: 6, KVHeads: 2, HeadDim: 32, FFN: 544,
		Context: 2048, NormEps: 1e-5, RopeBase: 1e4, RopeDims: 32, Llama3: &Llama3Rope{Factor: 8, Low: 1, High: 4, Original: 256},
		Tied: true, Tokens: Llama3},
	{Name: "tiny-qwen2", Arch: "qwen2", Vocab: 640, Hidden: 224, Layers: 3, Heads: 7, KVHeads: 1, HeadDim: 32, FFN: 608,
		Context: 1024, NormEps: 1e-6, RopeBase: 1e6, RopeDims: 32, Tokens: Qwen2},
	{Name: "tiny-qwen3", Arch: "qwen3", Vocab: 1000, Hidden: 160, Layers: 4, Heads: 6, KVHeads: 2, HeadDim: 64, FFN: 480,
		Context: 1024, NormEps: 1e-6, RopeBase: 1e6, RopeDims: 64, Tied: true, Tokens: Qwen2},
	{Name: "tiny-qwen3-untied", Arch: "qwen3", Vocab: 512, Hidden: 128, Layers: 2, Heads: 4, KVHeads: 4, HeadDim: 48, FFN: 352,
		Context: 1024, NormEps: 1e-6, RopeBase: 1e6, RopeDims: 48, Tokens: Qwen2},
	{Name: "tiny-gptneox", Arch: "gptneox", Vocab: 600, Hidden: 192, Layers: 3, Heads: 4, KVHeads: 4, HeadDim: 48, FFN: 768,
		Context: 1024, NormEps: 1e-5, RopeBase: 1e4, RopeDims: 12, Parallel: true, Tokens: GPT2},
	{Name: "tiny-gptneox-sequential", Arch: "gptneox", Vocab: 600, Hidden: 160, Layers: 3, Heads: 5, KVHeads: 5, HeadDim: 32, FFN: 640,
		Context: 1024, NormEps: 1e-5, RopeBase: 1e4, RopeDims: 16, Tokens: GPT2},

	{Name: "tiny-mistral", Arch: "llama", Vocab: 416, Hidden: 160, Layers: 3, Heads: 6, KVHeads: 2, HeadDim: 32, FFN: 416,
		Context: 1024, NormEps: 1e-5, RopeBase: 1e4, RopeDims: 32, Tokens: SPM, Tune: func(c *model.Config) { c.SetWindow(70) }},
	{Name: "tiny-mistral3", Arch: "mistral3", Vocab: 416, Hidden: 160, Layers: 3, Heads: 6, KVHeads: 2, HeadDim: 48, FFN: 416,
		Context: 1024, NormEps: 1e-5, RopeBase: 1e5, RopeDims: 48, Tokens: Qwen2, Tune: func(c *model.Config) {
			c.Rope.Scale = 16
			c.Rope.Original = 64
			c.Rope.Yarn = &model.Yarn{Fast: 32, Slow: 1, LogMul: 1}
			c.Temper = nn.Temper{Scale: 0.1, Length: 64}
		}},
	{Name: "tiny-yarn", Arch: "qwen2", Vocab: 416, Hidden: 192, Layers: 3, Heads: 6, KVHeads: 2, HeadDim: 32, FFN: 416,
		Context: 1024, NormEps: 1e-6, RopeBase: 1e6, RopeDims: 32, Tokens: Qwen2, Tune: func(c *model.Config) {
			c.Rope.Scale = 4
			c.Rope.Original = 64
			c.Rope.Yarn = &model.Yarn{Fast: 32, Slow: 1}
		}},
	{Name: "tiny-linear", Arch: "llama", Vocab: 416, Hidden: 160, Layers: 2, Heads: 5, KVHeads: 1, HeadDim: 32, FFN: 416,
		Context: 1024, NormEps: 1e-5, RopeBase: 1e4, RopeDims: 32, Tokens: SPM, Tune: func(c *model.Config) { c.Rope.Scale = 2.5 }},
	{Name: "tiny-lfm2", Arch: "lfm2", Vocab: 416, Hidden: 160, Layers: 5, Heads: 5, KVHeads: 1, HeadDim: 32, FFN: 416,
		Context: 1024, NormEps: 1e-5, RopeBase: 1e6, RopeDims: 32, Tied: true, Tokens: Llama3, Tune: func(c *model.Config) {
			c.Kernel, c.Recurrent = 3, []bool{true, true, false, true, false}
		}},
	{Name: "tiny-qwen35", Arch: "qwen35", Vocab: 416, Hidden: 160, Layers: 5, Heads: 4, KVHeads: 2, HeadDim: 48, FFN: 416,
		Context: 1024, NormEps: 1e-6, RopeBase: 1e6, RopeDims: 12, Tokens: Qwen2, Tune: func(c *model.Config) {
			c.Kernel, c.Recurrent = 4, []bool{true, true, false, true, false}
			c.Delta = model.DeltaConfig{KeyHeads: 3, ValueHeads: 3, KeyDim: 32, ValueDim: 32}
		}},
	{Name: "tiny-granite-hybrid", Arch: "granitehybrid", Vocab: 416, Hidden: 192, Layers: 5, Heads: 6, KVHeads: 2, HeadDim: 32, FFN: 416,
		Context: 1024, NormEps: 1e-5, RopeBase: 1e4, RopeDims: 32, Tied: true, Tokens: GPT2, Tune: func(c *model.Config) {
			mambaLayers(c, model.MambaConfig{Heads: 12, Groups: 1, HeadDim: 32, StateDim: 48})
		}},
	{Name: "tiny-granite-hybrid-experts", Arch: "granitehybrid", Vocab: 416, Hidden: 192, Layers: 5, Heads: 6, KVHeads: 2, HeadDim: 32, FFN: 96,
		Context: 1024, NormEps: 1e-5, RopeBase: 1e4, RopeDims: 32, Tied: true, Tokens: GPT2, Tune: func(c *model.Config) {
			mambaLayers(c, model.MambaConfig{Heads: 12, Groups: 2, HeadDim: 32, StateDim: 48})
			c.Experts, c.Used = 7, 3
			c.SharedFFN = 160
		}},
	{Name: "tiny-lfm2moe", Arch: "lfm2moe", Vocab: 416, Hidden: 160, Layers: 5, Heads: 5, KVHeads: 1, HeadDim: 32, FFN: 416,
		Context: 1024, NormEps: 1e-5, RopeBase: 1e6, RopeDims: 32, Tied: true, Tokens: Llama3, Tune: func(c *model.Config) {
			c.Kernel, c.Recurrent = 3, []bool{true, true, false, true, false}
			c.Experts, c.Used = 8, 3
			c.ExpertFFN, c.Dense = 64, 2
		}},
	{Name: "tiny-qwen35moe", Arch: "qwen35moe", Vocab: 416, Hidden: 160, Layers: 5, Heads: 4, KVHeads: 2, HeadDim: 48, FFN: 64,
		Context: 1024, NormEps: 1e-6, RopeBase: 1e6, RopeDims: 12, Tokens: Qwen2, Tune: func(c *model.Config) {
			sharedExpert(c)
			c.Delta = model.DeltaConfig{KeyHeads: 2, ValueHeads: 6, KeyDim: 32, ValueDim: 32}
		}},
	{Name: "tiny-qwen3next", Arch: "qwen3next", Vocab: 416, Hidden: 160, Layers: 5, Heads: 4, KVHeads: 2, HeadDim: 48, FFN: 64,
		Context: 1024, NormEps: 1e-6, RopeBase: 1e6, RopeDims: 12, Tokens: Qwen2, Tune: func(c *model.Config) {
			sharedExpert(c)
			c.Delta = model.DeltaConfig{KeyHeads: 2, ValueHeads: 6, KeyDim: 32, ValueDim: 32, Grouped: true}
		}},
	{Name: "tiny-nemotron-h", Arch: "nemotron_h", Vocab: 416, Hidden: 128, Layers: 7, Heads: 4, KVHeads: 2, HeadDim: 24, FFN: 352,
		Context: 1024, NormEps: 1e-5, RopeBase: 1e4, RopeDims: 24, Tokens: Qwen2, Tune: func(c *model.Config) {
			oneHalf(c, "M-M*-M*", model.MambaConfig{Heads: 20, Groups: 2, HeadDim: 16, StateDim: 40})
		}},
	{Name: "tiny-nemotron-h-experts", Arch: "nemotron_h_moe", Vocab: 416, Hidden: 128, Layers: 7, Heads: 4, KVHeads: 2, HeadDim: 24, FFN: 96,
		Context: 1024, NormEps: 1e-5, RopeBase: 1e4, RopeDims: 24, Tokens: Qwen2, Tune: func(c *model.Config) {
			oneHalf(c, "MEM*E*E", model.MambaConfig{Heads: 20, Groups: 2, HeadDim: 16, StateDim: 40})
			c.Experts, c.Used = 8, 3
			c.ExpertFFN, c.SharedFFN = 96, 160
			c.Narrow = 64
			c.Rule.Norm, c.Rule.Scale = true, 2.5
			c.Rule.Groups, c.Rule.Chosen = 1, 1
		}},
	{Name: "tiny-smollm3", Arch: "smollm3", Vocab: 416, Hidden: 160, Layers: 5, Heads: 5, KVHeads: 1, HeadDim: 32, FFN: 416,
		Context: 1024, NormEps: 1e-6, RopeBase: 2e6, RopeDims: 32, Tied: true, Tokens: Llama3},
	{Name: "tiny-granite", Arch: "granite", Vocab: 416, Hidden: 192, Layers: 4, Heads: 6, KVHeads: 2, HeadDim: 32, FFN: 416,
		Context: 1024, NormEps: 1e-5, RopeBase: 1e4, RopeDims: 32, Tied: true, Tokens: GPT2, Tune: func(c *model.Config) {
			c.AttnScale = 0.3
			c.EmbedScale = 3
			c.ResidualScale = 0.7
			c.LogitScale = 2.5
		}},
	{Name: "tiny-olmo2", Arch: "olmo2", Vocab: 416, Hidden: 192, Layers: 4, Heads: 6, KVHeads: 2, HeadDim: 32, FFN: 416,
		Context: 1024, NormEps: 1e-6, RopeBase: 5e5, RopeDims: 32, Tokens: GPT2},
	{Name: "tiny-olmo3", Arch: "olmo2", Vocab: 416, Hidden: 192, Layers: 5, Heads: 6, KVHeads: 6, HeadDim: 32, FFN: 416,
		Context: 1024, NormEps: 1e-6, RopeBase: 5e5, RopeDims: 32, Tokens: GPT2, Tune: func(c *model.Config) {
			c.Rope.Scale = 8
			c.Rope.Original = 64
			c.Rope.Yarn = &model.Yarn{Fast: 32, Slow: 1}
			c.SetWindow(70)
		}},
	{Name: "tiny-longrope", Arch: "phi3", Vocab: 416, Hidden: 192, Layers: 3, Heads: 6, KVHeads: 2, HeadDim: 32, FFN: 416,
		Context: 1024, NormEps: 1e-5, RopeBase: 1e4, RopeDims: 24, Tokens: SPM, Tune: func(c *model.Config) {
			c.Rope.Original, c.Rope.Attn = 300, 1.1875
			for i := range c.Rope.Dims / 2 {
				c.Rope.Short = append(c.Rope.Short, 1+float32(i)/16)
				c.Rope.Long = append(c.Rope.Long, 1+float32(i*i)/4)
			}
		}},
	{Name: "tiny-gemma2", Arch: "gemma2", Vocab: 416, Hidden: 160, Layers: 4, Heads: 6, KVHeads: 2, HeadDim: 48, FFN: 416,
		Context: 1024, NormEps: 1e-6, RopeBase: 1e4, RopeDims: 48, Tied: true, Tokens: SPM, Tune: func(c *model.Config) {
			c.AttnCap, c.LogitCap = 5, 7
			c.SetWindow(70)
		}},
	{Name: "tiny-gemma3", Arch: "gemma3", Vocab: 416, Hidden: 160, Layers: 7, Heads: 6, KVHeads: 2, HeadDim: 48, FFN: 416,
		Context: 1024, NormEps: 1e-6, RopeBase: 1e6, RopeDims: 48, Tied: true, Tokens: SPM, Tune: func(c *model.Config) {
			c.Rope.Scale = 8
			c.SetWindow(70)
		}},
	{Name: "tiny-gemma4", Arch: "gemma4", Vocab: 416, Hidden: 96, Layers: 6, Heads: 4, KVHeads: 2, HeadDim: 48, FFN: 160,
		Context: 1024, NormEps: 1e-6, RopeBase: 1e6, RopeDims: 48, Tied: true, Tokens: SPM, Tune: func(c *model.Config) {
			c.SetGemma4Layers(24, 2)
			c.Windowed = []bool{true, true, false, true, true, false}
			c.Window = 70
			c.Sharing = 3
			c.WideSharing = true
			c.PerLayer = 16
			c.LogitCap = 9
		}},
	{Name: "tiny-gemma4-experts", Arch: "gemma4", Vocab: 416, Hidden: 96, Layers: 3, Heads: 4, KVHeads: 1, HeadDim: 48, FFN: 160,
		Context: 1024, NormEps: 1e-6, RopeBase: 1e6, RopeDims: 48, Tied: true, Tokens: SPM, Tune: func(c *model.Config) {
			c.SetGemma4Layers(24, 4)
			c.Windowed = []bool{true, true, false}
			c.Window = 70
			c.KeyValues = true
			c.Experts = 6
			c.Used = 2
			c.ExpertFFN = 56
			c.LogitCap = 9
		}},
	{Name: "tiny-glm4", Arch: "glm4", Vocab: 416, Hidden: 160, Layers: 3, Heads: 6, KVHeads: 2, HeadDim: 32, FFN: 416,
		Context: 1024, NormEps: 1.5625e-7, RopeBase: 1e4, RopeDims: 16, Biases: true, Tokens: Qwen2},
	{Name: "tiny-glm4moe", Arch: "glm4moe", Vocab: 416, Hidden: 160, Layers: 4, Heads: 6, KVHeads: 2, HeadDim: 32, FFN: 416,
		Context: 1024, NormEps: 1e-5, RopeBase: 1e6, RopeDims: 16, Biases: true, Tokens: Qwen2, Tune: func(c *model.Config) {
			c.Experts = 8
			c.Used = 3
			c.ExpertFFN = 56
			c.SharedFFN = 112
			c.Dense, c.HeadNorms = 1, true
			c.Rule.Norm = true
			c.Rule.Scale = 2.5
			c.Rule.Groups = 4
			c.Rule.Chosen = 2
		}},
	{Name: "tiny-deepseek2", Arch: "deepseek2", Vocab: 416, Hidden: 160, Layers: 3, Heads: 5, KVHeads: 1, HeadDim: 48, FFN: 416,
		Context: 2560, NormEps: 1e-6, RopeBase: 1e4, RopeDims: 16, Tokens: Qwen2, Tune: func(c *model.Config) {
			c.SetLatent(model.LatentConfig{Rank: 32, PlainDim: 32, ValueDim: 24})
			c.Rope.Scale = 40
			c.Rope.Original = 64
			c.Rope.Yarn = &model.Yarn{Fast: 32, Slow: 1, LogMul: 0.707, Plain: true}
			tuneExperts(c)
			c.Rule.Scale = 1.5
		}},
	{Name: "tiny-glm4lite", Arch: "deepseek2", Vocab: 416, Hidden: 160, Layers: 4, Heads: 5, KVHeads: 1, HeadDim: 80, FFN: 416,
		Context: 1024, NormEps: 1e-5, RopeBase: 1e6, RopeDims: 16, Tokens: Qwen2, Tune: func(c *model.Config) {
			c.SetLatent(model.LatentConfig{Rank: 64, QueryRank: 96, PlainDim: 32, ValueDim: 56})
			tuneExperts(c)
			c.Rule.All, c.Rule.Sigmoid = false, true
			c.Rule.Norm = true
			c.Rule.Scale = 1.8
			c.Rule.Groups = 4
			c.Rule.Chosen = 2
		}},
	{Name: "tiny-minicpm", Arch: "minicpm", Vocab: 416, Hidden: 192, Layers: 4, Heads: 6, KVHeads: 2, HeadDim: 32, FFN: 416,
		Context: 1024, NormEps: 1e-5, RopeBase: 1e4, RopeDims: 32, Tokens: SPM, Tune: func(c *model.Config) {
			c.EmbedScale = 6
			c.ResidualScale = 0.7
			c.LogitScale = 1.5
		}},
	{Name: "tiny-apertus", Arch: "apertus", Vocab: 416, Hidden: 192, Layers: 3, Heads: 6, KVHeads: 2, HeadDim: 32, FFN: 416,
		Context: 1024, NormEps: 1e-5, RopeBase: 1e6, RopeDims: 32, Llama3: &Llama3Rope{Factor: 8, Low: 1, High: 4, Original: 128},
		Tokens: GPT2, Tune: func(c *model.Config) {
			c.XIELU = [][4]float32{{0.25, -1, 0.5, -1e-6}, {-0.5, 0.125, 0.5, -1e-6}, {0.75, -0.375, 0.25, -0.03125}}
		}},
	{Name: "tiny-seed-oss", Arch: "seed_oss", Vocab: 416, Hidden: 160, Layers: 3, Heads: 6, KVHeads: 2, HeadDim: 48, FFN: 416,
		Context: 1024, NormEps: 1e-6, RopeBase: 1e6, RopeDims: 48, Biases: true, Tokens: Qwen2},
	{Name: "tiny-exaone4", Arch: "exaone4", Vocab: 416, Hidden: 192, Layers: 5, Heads: 6, KVHeads: 2, HeadDim: 32, FFN: 416,
		Context: 1024, NormEps: 1e-5, RopeBase: 1e6, RopeDims: 32, Llama3: &Llama3Rope{Factor: 16, Low: 1, High: 4, Original: 128},
		Tokens: GPT2, Tune: func(c *model.Config) { c.SetWindow(70) }},
	{Name: "tiny-exaone4-full", Arch: "exaone4", Vocab: 416, Hidden: 192, Layers: 3, Heads: 6, KVHeads: 2, HeadDim: 32, FFN: 416,
		Context: 1024, NormEps: 1e-5, RopeBase: 1e6, RopeDims: 32, Llama3: &Llama3Rope{Factor: 16, Low: 1, High: 4, Original: 128},
		Tied: true, Tokens: GPT2},
	{Name: "tiny-hunyuan", Arch: "hunyuan-dense", Vocab: 416, Hidden: 160, Layers: 3, Heads: 6, KVHeads: 2, HeadDim: 48, FFN: 416,
		Context: 262144, NormEps: 1e-5, RopeBase: 13503140, RopeDims: 48, Tied: true, Tokens: Qwen2},
	{Name: "tiny-ernie4_5", Arch: "ernie4_5", Vocab: 416, Hidden: 160, Layers: 3, Heads: 6, KVHeads: 2, HeadDim: 48, FFN: 416,
		Context: 1024, NormEps: 1e-5, RopeBase: 5e5, RopeDims: 48, Tied: true, Tokens: SPM},
	{Name: "tiny-cohere2", Arch: "cohere2", Vocab: 416, Hidden: 192, Layers: 5, Heads: 6, KVHeads: 2, HeadDim: 32, FFN: 416,
		Context: 1024, NormEps: 1e-5, RopeBase: 5e4, RopeDims: 32, Tied: true, Tokens: Qwen2, Tune: func(c *model.Config) {
			c.SetWindow(70)
			c.LogitScale = 4
		}},
	{Name: "tiny-arcee", Arch: "arcee", Vocab: 416, Hidden: 192, Layers: 3, Heads: 6, KVHeads: 2, HeadDim: 48, FFN: 416,
		Context: 1024, NormEps: 1e-5, RopeBase: 1e4, RopeDims: 48, Tokens: Llama3, Tune: func(c *model.Config) {
			c.Rope.Scale = 4
			c.Rope.Original = 128
			c.Rope.Yarn = &model.Yarn{Fast: 32, Slow: 1}
		}},
	{Name: "tiny-mixtral", Arch: "llama", Vocab: 416, Hidden: 160, Layers: 3, Heads: 6, KVHeads: 2, HeadDim: 32, FFN: 224,
		Context: 1024, NormEps: 1e-5, RopeBase: 1e6, RopeDims: 32, Tokens: SPM, Tune: sparse(4, 2)},
	{Name: "tiny-qwen3moe", Arch: "qwen3moe", Vocab: 416, Hidden: 192, Layers: 3, Heads: 6, KVHeads: 2, HeadDim: 48, FFN: 96,
		Context: 1024, NormEps: 1e-6, RopeBase: 1e6, RopeDims: 48, Tied: true, Tokens: Qwen2, Tune: sparse(11, 3)},
	{Name: "tiny-granitemoe", Arch: "granitemoe", Vocab: 416, Hidden: 192, Layers: 3, Heads: 6, KVHeads: 2, HeadDim: 32, FFN: 128,
		Context: 1024, NormEps: 1e-6, RopeBase: 1e4, RopeDims: 32, Tied: true, Tokens: GPT2, Tune: func(c *model.Config) {
			c.AttnScale = 0.3
			c.EmbedScale = 3
			c.ResidualScale = 0.7
			c.LogitScale = 2.5
			c.Experts, c.Used = 8, 3
		}},
	{Name: "tiny-olmoe", Arch: "olmoe", Vocab: 416, Hidden: 192, Layers: 3, Heads: 6, KVHeads: 6, HeadDim: 32, FFN: 96,
		Context: 1024, NormEps: 1e-5, RopeBase: 1e4, RopeDims: 32, Tokens: GPT2, Tune: sparse(12, 4)},
	{Name: "tiny-gpt-oss", Arch: "gpt-oss", Vocab: 416, Hidden: 160, Layers: 4, Heads: 6, KVHeads: 2, HeadDim: 32, FFN: 96,
		Context: 1024, NormEps: 1e-5, RopeBase: 15e4, RopeDims: 32, Tokens: GPT2, Tune: func(c *model.Config) {
			c.Experts, c.Used = 7, 3
			c.Rope.Scale = 32
			c.Rope.Original = 64
			c.Rope.Yarn = &model.Yarn{Fast: 32, Slow: 1}
			c.SetWindow(70)
		}},
	{Name: "tiny-stablelm", Arch: "stablelm", Vocab: 416, Hidden: 192, Layers: 3, Heads: 6, KVHeads: 2, HeadDim: 32, FFN: 416,
		Context: 1024, NormEps: 1e-5, RopeBase: 1e4, RopeDims: 8, Tokens: GPT2},

	{Name: "qwen3-30b-a3b-4-layers", Arch: "qwen3moe", Vocab: 151936, Hidden: 2048, Layers: 4, Heads: 32, KVHeads: 4, HeadDim: 128,
		FFN: 768, Context: 40960, NormEps: 1e-6, RopeBase: 1e6, RopeDims: 128, Tokens: Qwen2, Tune: sparse(128, 8)},
	{Name: "gpt-oss-20b-4-layers", Arch: "gpt-oss", Vocab: 201088, Hidden: 2880, Layers: 4, Heads: 64, KVHeads: 8, HeadDim: 64,
		FFN: 2880, Context: 131072, NormEps: 1e-5, RopeBase: 15e4, RopeDims: 64, Tokens: GPT2, Tune: func(c *model.Config) {
			c.Experts, c.Used = 32, 4
			c.Rope.Scale = 32
			c.Rope.Original = 4096
			c.Rope.Yarn = &model.Yarn{Fast: 32, Slow: 1}
			c.SetWindow(128)
		}},
	{Name: "gemma-3-1b", Arch: "gemma3", Vocab: 262144, Hidden: 1152, Layers: 26, Heads: 4, KVHeads: 1, HeadDim: 256, FFN: 6912,
		Context: 32768, NormEps: 1e-6, RopeBase: 1e6, RopeDims: 256, Tied: true, Tokens: SPM, Tune: func(c *model.Config) { c.SetWindow(512) }},
	{Name: "phi-4-mini", Arch: "phi3", Vocab: 200064, Hidden: 3072, Layers: 32, Heads: 24, KVHeads: 8, HeadDim: 128, FFN: 8192,
		Context: 131072, NormEps: 1e-5, RopeBase: 1e4, RopeDims: 96, Tied: true, Tokens: GPT2, Tune: func(c *model.Config) {
			c.Rope.Original, c.Rope.Attn = 4096, 1.19
			for i := range c.Rope.Dims / 2 {
				c.Rope.Short = append(c.Rope.Short, 1)
				c.Rope.Long = append(c.Rope.Long, 1+float32(i))
			}
		}},
	{Name: "qwen3-0.6b", Arch: "qwen3", Vocab: 151936, Hidden: 1024, Layers: 28, Heads: 16, KVHeads: 8, HeadDim: 128, FFN: 3072,
		Context: 40960, NormEps: 1e-6, RopeBase: 1e6, RopeDims: 128, Tied: true, Tokens: Qwen2},
	{Name: "qwen3-1.7b", Arch: "qwen3", Vocab: 151936, Hidden: 2048, Layers: 28, Heads: 16, KVHeads: 8, HeadDim: 128, FFN: 6144,
		Context: 40960, NormEps: 1e-6, RopeBase: 1e6, RopeDims: 128, Tied: true, Tokens: Qwen2},
	{Name: "qwen3.5-0.8b", Arch: "qwen35", Vocab: 248320, Hidden: 1024, Layers: 24, Heads: 8, KVHeads: 2, HeadDim: 256, FFN: 3584,
		Context: 262144, NormEps: 1e-6, RopeBase: 1e7, RopeDims: 64, Tied: true, Tokens: Qwen2, Tune: func(c *model.Config) {
			c.Kernel = 4
			c.Recurrent = slices.Repeat([]bool{true, true, true, false}, 6)
			c.Delta = model.DeltaConfig{KeyHeads: 16, ValueHeads: 16, KeyDim: 128, ValueDim: 128}
		}},
	{Name: "lfm2-1.2b", Arch: "lfm2", Vocab: 65536, Hidden: 2048, Layers: 16, Heads: 32, KVHeads: 8, HeadDim: 64, FFN: 8192,
		Context: 32768, NormEps: 1e-5, RopeBase: 1e6, RopeDims: 64, Tied: true, Tokens: Llama3, Tune: func(c *model.Config) {
			c.Kernel = 3
			for i := range 16 {
				c.Recurrent = append(c.Recurrent, !slices.Contains([]int{2, 5, 8, 10, 12, 14}, i))
			}
		}},
	{Name: "qwen2.5-0.5b", Arch: "qwen2", Vocab: 151936, Hidden: 896, Layers: 24, Heads: 14, KVHeads: 2, HeadDim: 64, FFN: 4864,
		Context: 32768, NormEps: 1e-6, RopeBase: 1e6, RopeDims: 64, Tied: true, Tokens: Qwen2},
	{Name: "llama-3.2-1b", Arch: "llama", Vocab: 128256, Hidden: 2048, Layers: 16, Heads: 32, KVHeads: 8, HeadDim: 64, FFN: 8192,
		Context: 131072, NormEps: 1e-5, RopeBase: 5e5, RopeDims: 64, Llama3: &Llama3Rope{Factor: 32, Low: 1, High: 4, Original: 8192},
		Tied: true, Tokens: Llama3},
	{Name: "llama3-8b", Arch: "llama", Vocab: 128256, Hidden: 4096, Layers: 32, Heads: 32, KVHeads: 8, HeadDim: 128, FFN: 14336,
		Context: 8192, NormEps: 1e-5, RopeBase: 5e5, RopeDims: 128, Tokens: Llama3},
	{Name: "tinyllama-1.1b", Arch: "llama", Vocab: 32000, Hidden: 2048, Layers: 22, Heads: 32, KVHeads: 4, HeadDim: 64, FFN: 5632,
		Context: 2048, NormEps: 1e-5, RopeBase: 1e4, RopeDims: 64, Tokens: SPM},
	{Name: "smollm2-135m", Arch: "llama", Vocab: 49152, Hidden: 576, Layers: 30, Heads: 9, KVHeads: 3, HeadDim: 64, FFN: 1536,
		Context: 8192, NormEps: 1e-5, RopeBase: 1e5, RopeDims: 64, Tied: true, Tokens: GPT2},
	{Name: "pythia-70m", Arch: "gptneox", Vocab: 50304, Hidden: 512, Layers: 6, Heads: 8, KVHeads: 8, HeadDim: 64, FFN: 2048,
		Context: 2048, NormEps: 1e-5, RopeBase: 1e4, RopeDims: 16, Parallel: true, Tokens: GPT2},
	{Name: "pythia-160m", Arch: "gptneox", Vocab: 50304, Hidden: 768, Layers: 12, Heads: 12, KVHeads: 12, HeadDim: 64, FFN: 3072,
		Context: 2048, NormEps: 1e-5, RopeBase: 1e4, RopeDims: 16, Parallel: true, Tokens: GPT2},
	{Name: "pythia-410m", Arch: "gptneox", Vocab: 50304, Hidden: 1024, Layers: 24, Heads: 16, KVHeads: 16, HeadDim: 64, FFN: 4096,
		Context: 2048, NormEps: 1e-5, RopeBase: 1e4, RopeDims: 16, Parallel: true, Tokens: GPT2},
}

// Shapes lists the named shapes, the tiny ones first.
func Shapes() []Shape { return slices.Clone(shapes) }

// Lookup finds a shape by its name, in either case.
func Lookup(name string) (Shape, error) {
	names := make([]string, len(shapes))
	for i, s := range shapes {
		if strings.EqualFold(s.Name, name) {
			return s, nil
		}
		names[i] = s.Name
	}
	return Shape{}, fmt.Errorf("synth: no shape is named %q: use one of %s", name, strings.Join(names, ", "))
}

// mambaLayers makes layers of Mamba-2 of three of five, and sets Granite's multipliers.
func mambaLayers(c *model.Config, m model.MambaConfig) {
	c.Kernel, c.Recurrent = 4, []bool{true, true, false, true, false}
	c.Mamba = m
	c.NoRope = slices.Repeat([]bool{true}, c.Layers)
	c.AttnScale = 0.3
	c.EmbedScale = 3
	c.ResidualScale = 0.7
	c.LogitScale = 2.5
}

// sharedExpert gives five layers, three of them recurrent, experts beside one that all rows have.
func sharedExpert(c *model.Config) {
	c.Kernel, c.Recurrent = 4, []bool{true, false, true, false, true}
	c.Experts, c.Used = 6, 2
	c.SharedFFN = 96
}

// oneHalf gives layers one half each: M Mamba-2, * attention without rotation, others MLPs or experts.
func oneHalf(c *model.Config, kinds string, m model.MambaConfig) {
	c.Kernel, c.Mamba = 4, m
	c.NoRope = slices.Repeat([]bool{true}, c.Layers)
	for _, k := range kinds {
		c.Recurrent = append(c.Recurrent, k == 'M')
		c.Bare = append(c.Bare, k != 'M' && k != '*')
	}
}

// sparse gives layers experts, and rows some of them.
func sparse(experts, used int) func(c *model.Config) {
	return func(c *model.Config) { c.Experts, c.Used = experts, used }
}

// tuneExperts gives layers but the first experts, beside two that all rows have.
func tuneExperts(c *model.Config) {
	c.Experts = 8
	c.Used = 3
	c.ExpertFFN = 56
	c.SharedFFN = 112
	c.Dense = 1
}
