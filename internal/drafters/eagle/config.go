package eagle

import (
	"fmt"
	"math/rand/v2"

	"github.com/grovellm/grove/internal/heads/headfile"
	"github.com/grovellm/grove/internal/model"
)

// Config is the shape of an EAGLE head, as in the code of its authors (SafeAILab/EAGLE): one
// decoder layer over the embedding of a token and the feature of the place before it, which is made
// from the taps: EAGLE-2 has only the last layer's. Tap i is what llama.cpp and vLLM call the input of
// layer i. Arch is "llama" or "qwen3" (with norms of queries and keys). Layers is 1, or more if ordinary
// layers follow the first. DraftVocab is Vocab if the head has none.
type Config struct {
	headfile.Base

	Version int // 3; 2: EAGLE-1 and EAGLE-2, whose feature is the target's last hidden state; or Native

	// StateFirst is for Native: fc reads the feature before the embedding, and the feature is the
	// target's last hidden state before its last norm, as in MiMo's models. Otherwise the embedding
	// comes first, and the norm is part of the feature, as in Qwen's.
	StateFirst bool

	// Unnormed is for Native: the feature is the state before the last norm, the target's and the layer's own (MiMo-V2).
	Unnormed bool

	// Variants of EAGLE-3 in vLLM's speculators format.
	NormBeforeResidual bool // the layer adds to the normalised feature
	NormBeforeFC       bool // the joined taps are normalised
	FCNorm             bool // each tap is normalised
	NormOutput         bool // the feature of the next row is the normalised state
}

// Native is the Version of a layer that was trained with a model to predict one more token (MiMo,
// Qwen3-Next): EAGLE-2's network with norms of embedding, feature and output. Its tensors have
// llama.cpp's names.
const Native = -1

// last reports whether the feature is only the target's last hidden state.
func (c *Config) last() bool { return c.Version != 3 }

// alike reports whether the layer is of its target's kind, with gated or latent attention or with experts, as those of
// Qwen 3.5, GLM and DeepSeek are. Such a head does not learn.
func (c *Config) alike() bool { return c.Version == Native && model.Alike(c.Arch) }

// Validate checks that the numbers make a head.
func (c *Config) Validate() error {
	switch {
	case c.Version != 2 && c.Version != 3 && c.Version != Native:
		return fmt.Errorf("EAGLE version is %d: want 2 or 3", c.Version)
	case c.Arch != "llama" && c.Arch != "qwen3" && !c.alike():
		return fmt.Errorf("layers of architecture %q: want llama or qwen3", c.Arch)
	case c.Parallel:
		return fmt.Errorf("attention and MLP are parallel: want one after the other")
	case c.DraftVocab < 1 || c.DraftVocab > c.Vocab:
		return fmt.Errorf("draft vocabulary is %d: want 1 to the vocabulary's %d", c.DraftVocab, c.Vocab)
	case c.last() && len(c.Taps) != 1:
		return fmt.Errorf("%d tapped layers of a head that reads only the last: want one", len(c.Taps))
	case c.last() && (c.NormBeforeResidual || c.NormBeforeFC || c.FCNorm || c.NormOutput):
		return fmt.Errorf("an EAGLE-2 head with norms of EAGLE-3's variants: want none")
	}
	if err := headfile.CheckTaps(c.Taps, c.TargetLayers); err != nil {
		return err
	}
	return c.Config.Validate()
}

// DefaultTaps returns the layers that heads of this version tap by default, in a target of so many layers.
func (c *Config) DefaultTaps(layers int) []int {
	if c.last() {
		return []int{layers}
	}
	return c.Base.DefaultTaps(layers)
}

// Describe returns a description of the head.
func (c *Config) Describe(own bool) string {
	output := "the target's output head"
	switch {
	case c.DraftVocab < c.Vocab:
		output = fmt.Sprintf("an output head of %d tokens", c.DraftVocab)
	case own:
		output = "an output head of its own"
	}
	return fmt.Sprintf("EAGLE-%d head: layers %d, %s", c.Version, c.Layers, output)
}

// Draw draws the variant of a random head of the version that a drafter runs.
func (c *Config) Draw(rng *rand.Rand, drafter string, _ int) {
	c.Arch = []string{"llama", "qwen3"}[rng.IntN(2)]
	c.Layers = 1 + rng.IntN(4)/3
	c.Version = 3
	if drafter == arch2 {
		c.Version, c.DraftVocab = 2, c.Vocab
		return
	}
	variant := func() bool { return rng.IntN(4) == 0 }
	c.NormBeforeResidual = variant()
	c.NormBeforeFC = variant()
	c.FCNorm = variant()
	c.NormOutput = variant()
}
