package specblock

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/grovellm/grove/internal/heads/headfile"
)

// Config is the shape of a SpecBlock head. Arch is "llama", or "qwen3" whose layers normalise
// queries and keys. The release's hidden_states[i] is tap i.
type Config struct {
	headfile.Base

	Block     int  // K: rows of a block, one for each of the K tokens after its own
	RankWidth int  // of the rank head's one hidden layer; 0: there is no rank head
	Shift     bool // between layers a row takes in the row before it (equation 3)
	Broadcast bool // condition and token go to all rows of a block, not only to its first (equation 2)

	// Features of the released code that the paper does not have. SamePosition: the rows of a later
	// block have the positions of the first block's, instead of those after the row that it starts
	// from. RankNormed: the rank head reads hidden states after the last norm.
	SamePosition, RankNormed bool

	// RankFull says that the rank head's features describe the whole distribution, as in the paper
	// (appendix B), and not only that of the largest logits.
	RankFull bool

	// RankOffset is added to the rank head's scores only to choose a row's bucket: chances depend on
	// the scores without it.
	RankOffset [RankBuckets]float32
}

// RankBuckets is the number of classes that the rank head distinguishes: the rank of the target's
// token among the drafter's is 1, 2 to 4, 5 to 10, or more (§3.2).
const RankBuckets = 4

// Limits on the numbers that a file may claim.
const (
	maxBlock = 1 << 6
	maxRank  = 1 << 14

	maxOffset = 100 // in either direction
)

// Validate checks that the numbers make a head.
func (c *Config) Validate() error {
	switch {
	case c.Arch != "llama" && c.Arch != "qwen3":
		return fmt.Errorf("layers of architecture %q: want llama or qwen3", c.Arch)
	case c.Block < 1 || c.Block > maxBlock:
		return fmt.Errorf("block size is %d: want 1 to %d", c.Block, maxBlock)
	case c.RankWidth < 0 || c.RankWidth > maxRank:
		return fmt.Errorf("the rank head is %d wide: want 1 to %d, or 0 for none", c.RankWidth, maxRank)
	case c.DraftVocab < 0 || c.DraftVocab > c.Vocab:
		return fmt.Errorf("the head's output has %d tokens: want 1 to %d, or 0 for all", c.DraftVocab, c.Vocab)
	}
	for _, v := range c.RankOffset {
		if !(math.Abs(float64(v)) <= maxOffset) {
			return fmt.Errorf("the rank head's offsets are %v: want numbers from -%d to %d", c.RankOffset, maxOffset,
				maxOffset)
		}
	}
	if err := headfile.CheckTaps(c.Taps, c.TargetLayers); err != nil {
		return err
	}
	return c.Config.Validate()
}

// Describe returns a description of the head.
func (c *Config) Describe(bool) string {
	rank := "no rank head"
	if c.RankWidth > 0 {
		rank = "a rank head"
	}
	return fmt.Sprintf("SpecBlock head: blocks of %d rows, layers %d, %s", c.Block, c.Layers, rank)
}

// Draw draws the numbers of a random head. For a drafter it has a rank head. Widths of matrices are
// multiples of unit.
func (c *Config) Draw(rng *rand.Rand, drafter string, unit int) {
	c.Arch, c.Layers = []string{"llama", "qwen3"}[rng.IntN(2)], 1+rng.IntN(3)
	c.Block = 1 + rng.IntN(6)
	c.RankWidth = unit * (1 + rng.IntN(40/unit))
	c.Shift = rng.IntN(4) > 0
	c.Broadcast = rng.IntN(4) > 0
	c.SamePosition = rng.IntN(3) == 0
	c.RankNormed = rng.IntN(3) == 0
	c.RankFull = rng.IntN(3) == 0
	if drafter == "" && rng.IntN(6) == 0 {
		c.RankWidth = 0
	}
	if rng.IntN(2) == 0 {
		for b := range c.RankOffset {
			c.RankOffset[b] = float32(rng.NormFloat64())
		}
	}
}
