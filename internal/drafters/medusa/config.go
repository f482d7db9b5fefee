package medusa

import (
	"fmt"
	"math/rand/v2"

	"github.com/grovellm/grove/internal/heads/headfile"
	"github.com/grovellm/grove/internal/model"
)

// Config is the shape of Medusa heads, which tap the target's last layer.
type Config struct {
	headfile.Base // of the layers only Vocab and Hidden matter

	// Depths is the number of heads. Each drafts the token of one depth: head i, from 0, that i+2
	// places after the row that it reads.
	Depths    int
	ResBlocks int // residual blocks of a head

	// OwnOutputs says that each head has an output matrix. Otherwise they share one, which is the
	// target's if the file has none.
	OwnOutputs bool

	Template Template // fitted to the heads' accuracies by their training; nil: PaperTemplate
}

// Limits on the numbers that a file may claim.
const (
	maxHeads  = 64
	maxBlocks = 64
)

// Validate checks that the numbers make heads. Without a Vocab the target's is still to be taken.
func (c *Config) Validate() error {
	switch {
	case c.Vocab < 0 || c.Vocab > 1<<24:
		return fmt.Errorf("vocabulary is %d: want 1 to %d", c.Vocab, 1<<24)
	case c.Hidden < 1 || c.Hidden > 1<<20:
		return fmt.Errorf("hidden size is %d: want 1 to %d", c.Hidden, 1<<20)
	case c.Depths < 1 || c.Depths > maxHeads:
		return fmt.Errorf("%d Medusa heads: want 1 to %d", c.Depths, maxHeads)
	case c.ResBlocks < 1 || c.ResBlocks > maxBlocks:
		return fmt.Errorf("heads of %d residual blocks: want 1 to %d", c.ResBlocks, maxBlocks)
	case c.DraftVocab < 0 || c.DraftVocab > c.Vocab:
		return fmt.Errorf("draft vocabulary is %d: want 1 to the vocabulary's %d", c.DraftVocab, c.Vocab)
	case len(c.Taps) != 1:
		return fmt.Errorf("%d tapped layers of Medusa heads: want only the last", len(c.Taps))
	}
	if err := c.Template.check(); err != nil {
		return err
	}
	return headfile.CheckTaps(c.Taps, c.TargetLayers)
}

// DefaultTaps returns the last layer of a target of so many.
func (*Config) DefaultTaps(layers int) []int { return []int{layers} }

// Describe returns a description of the heads.
func (c *Config) Describe(own bool) string {
	output := "the target's output matrix"
	switch {
	case c.OwnOutputs:
		output = "an output matrix each"
	case own:
		output = "an output matrix of their own"
	}
	if c.DraftVocab > 0 && c.DraftVocab < c.Vocab {
		output += fmt.Sprintf(" of %d tokens", c.DraftVocab)
	}
	return fmt.Sprintf("Medusa heads: %d, residual blocks %d, %s", c.Depths, c.ResBlocks, output)
}

// Draw draws the numbers of random heads.
func (c *Config) Draw(rng *rand.Rand, _ string, _ int) {
	c.Config = model.Config{Vocab: c.Vocab, Hidden: c.Hidden}
	c.Depths, c.ResBlocks = 1+rng.IntN(5), 1+rng.IntN(2)
	c.OwnOutputs = rng.IntN(3) == 0
	for n := rng.IntN(2) * (1 + rng.IntN(40)); len(c.Template) < n; {
		c.Template = append(c.Template, rng.Int32N(int32(len(c.Template)+1)))
	}
}
