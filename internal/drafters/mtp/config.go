package mtp

import (
	"fmt"
	"math/rand/v2"

	"github.com/grovellm/grove/internal/drafters/eagle"
	"github.com/grovellm/grove/internal/heads/headfile"
	"github.com/grovellm/grove/internal/model"
)

// Config is the shape of a layer for multi-token prediction as a model includes it: that of an EAGLE head
// of version eagle.Native. StateFirst distinguishes MiMo's layers from Qwen's, GLM's and DeepSeek's.
type Config struct{ eagle.Config }

// behind returns the shape of the layer that follows the layers of a model with configuration m.
func behind(m model.Config) Config {
	return Config{eagle.Config{Base: headfile.Base{Config: m.Behind(), DraftVocab: m.Vocab, TargetLayers: m.Layers},
		Version: eagle.Native}}
}

// Validate checks that the numbers make a valid layer.
func (c *Config) Validate() error {
	switch {
	case c.Version != eagle.Native:
		return fmt.Errorf("EAGLE version is %d: want the one of layers for multi-token prediction", c.Version)
	case !c.OneAhead():
		return fmt.Errorf("%d layers for multi-token prediction: want one, which is used at every depth", c.Layers)
	case c.Experts > 0 && !model.Alike(c.Arch):
		return fmt.Errorf("a layer for multi-token prediction with %d experts: want one MLP", c.Experts)
	}
	return c.Config.Validate()
}

// Describe returns a description of the head.
func (c *Config) Describe(bool) string {
	order := "embedding and state after the target's last norm (Qwen, GLM, DeepSeek)"
	if c.Unnormed {
		order = "embedding and state before the target's last norm (MiMo-V2)"
	}
	if c.StateFirst {
		order = "state before the target's last norm and embedding (MiMo)"
	}
	return "MTP head: a layer over " + order
}

// Draw draws the numbers of a random head.
func (c *Config) Draw(rng *rand.Rand, _ string, _ int) {
	c.Arch = []string{"llama", "qwen3"}[rng.IntN(2)]
	c.Layers = 1
	c.Version = eagle.Native
	c.StateFirst = rng.IntN(2) == 0
}
