package peagle

import (
	"fmt"
	"math/rand/v2"

	"github.com/grovellm/grove/internal/drafters/eagle"
	"github.com/grovellm/grove/tree"
)

// Config is the shape of a P-EAGLE head: EAGLE-3's, and what its mask rows consist of.
type Config struct {
	eagle.Config

	Depths int   // tokens that one pass drafts: from the entry's row and Depths−1 mask rows
	Mask   int32 // the token whose embedding the mask rows use
	Masks  int   // 0: all mask rows use that embedding (P-EAGLE); Depths−1: each has its own (ParallelSpec)
}

// maxDepths limits Depths in a file.
const maxDepths = 1 << 10

// Validate checks that the numbers make a valid head.
func (c *Config) Validate() error {
	switch {
	case c.Version != 3:
		return fmt.Errorf("EAGLE version is %d: want 3", c.Version)
	case c.Depths < 2 || c.Depths > maxDepths:
		return fmt.Errorf("depths are %d: want 2 to %d", c.Depths, maxDepths)
	case c.Mask < 0 || int(c.Mask) >= c.Vocab:
		return fmt.Errorf("mask token is %d: want 0 to %d", c.Mask, c.Vocab-1)
	case c.Masks != 0 && c.Masks != c.Depths-1:
		return fmt.Errorf("%d mask embeddings: want %d, one for each mask row, or none", c.Masks, c.Depths-1)
	}
	return c.Config.Validate()
}

// method returns the name of the paper's method that the head implements.
func (c *Config) method() string {
	if c.Masks > 0 {
		return "ParallelSpec"
	}
	return "P-EAGLE"
}

// Describe returns a description of the head.
func (c *Config) Describe(own bool) string {
	return fmt.Sprintf("%s head: %d tokens a pass, %s", c.method(), c.Depths, c.Config.Describe(own))
}

// Draw draws the variant of a random head that a drafter runs.
func (c *Config) Draw(rng *rand.Rand, drafter string, unit int) {
	c.Config.Draw(rng, "", unit)
	c.Depths, c.Mask = 2+rng.IntN(9), rng.Int32N(int32(c.Vocab))
	if drafter == parallelSpec || drafter == "" && rng.IntN(2) == 0 {
		c.Masks = c.Depths - 1
	}
}

// LayOut makes t a block of the given number of rows: an anchor's entry, and mask rows below it.
func (c *Config) LayOut(t *tree.Tree, anchor int32, rows int) {
	t.Reset(anchor)
	c.Branch(t, 0, rows-1)
}

// Branch appends a chain of the given number of mask rows to t, below the node of an entry.
func (c *Config) Branch(t *tree.Tree, entry, rows int) {
	for range rows {
		entry = t.AppendApart(entry, c.Mask)
	}
}
