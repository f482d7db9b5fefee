package falcon

import (
	"fmt"
	"math/rand/v2"

	"github.com/grovellm/grove/internal/heads/headfile"
)

// Config is the shape of a Falcon head, as in its authors' code (Bestpay-inc/Falcon). Arch
// is "llama", or "qwen3" with norms of queries and keys. Layers counts the layers after the LSTM, one
// in the release. The head taps only the target's last layer.
type Config struct {
	headfile.Base

	Block     int  // k: tokens that a pass predicts, and rows of a block
	Recurrent bool // the LSTM keeps its state between rows; otherwise each row starts from zeros, as in the release
}

// maxBlock limits Block in a file.
const maxBlock = 16

// Validate checks that the numbers make a valid head.
func (c *Config) Validate() error {
	switch {
	case c.Arch != "llama" && c.Arch != "qwen3":
		return fmt.Errorf("layers of architecture %q: want llama or qwen3", c.Arch)
	case c.Parallel:
		return fmt.Errorf("attention and MLP are parallel: want one after the other")
	case c.Block < 1 || c.Block > maxBlock:
		return fmt.Errorf("a pass predicts %d tokens: want 1 to %d", c.Block, maxBlock)
	case len(c.Taps) != 1:
		return fmt.Errorf("the head taps %d layers: a Falcon head taps only the last", len(c.Taps))
	}
	if err := headfile.CheckTaps(c.Taps, c.TargetLayers); err != nil {
		return err
	}
	return c.Config.Validate()
}

// DefaultTaps returns the last layer of a target with the given number of layers.
func (*Config) DefaultTaps(layers int) []int { return []int{layers} }

// Describe returns a description of the head.
func (c *Config) Describe(bool) string {
	reading := "rows that each begin with zeros"
	if c.Recurrent {
		reading = "rows that continue one another"
	}
	return fmt.Sprintf("Falcon head: %d tokens a pass, an LSTM of %s, layers %d", c.Block, reading, c.Layers)
}

// Draw draws the numbers of a random head.
func (c *Config) Draw(rng *rand.Rand, _ string, _ int) {
	c.Arch, c.Layers = []string{"llama", "qwen3"}[rng.IntN(2)], 1+rng.IntN(4)/3
	c.Block, c.Recurrent = 1+rng.IntN(4), rng.IntN(2) == 0
}
