package jet

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/grovellm/grove/internal/heads/headfile"
	"github.com/grovellm/grove/tree"
)

// Config is the shape of a block head. Arch is "qwen3", for layers of that kind. Hugging Face's
// target_layer_ids are one less than Taps; llama.cpp's dflash.target_layers are the same.
type Config struct {
	headfile.Base

	Block  int   // rows of a block, the anchor's included
	Causal bool  // rows of a block see those before them (JetSpec); otherwise all of them (DFlash)
	Mask   int32 // the token of all of a block's rows except the anchor's

	// WindowCausal says that rows of a block see only those before them in layers with a window, whatever
	// the other layers do.
	WindowCausal bool
}

// maxBlock is the largest block that a file may claim.
const maxBlock = 1 << 10

// Validate checks that the numbers make a head.
func (c *Config) Validate() error {
	switch {
	case c.Arch != "qwen3":
		return fmt.Errorf("layers of architecture %q: want qwen3", c.Arch)
	case c.Block < 2 || c.Block > maxBlock:
		return fmt.Errorf("block size is %d: want 2 to %d", c.Block, maxBlock)
	case c.Mask < 0 || int(c.Mask) >= c.Vocab:
		return fmt.Errorf("mask token is %d: want 0 to %d", c.Mask, c.Vocab-1)
	case c.DraftVocab < 0 || c.DraftVocab > c.Vocab:
		return fmt.Errorf("draft vocabulary is %d: want 1 to the vocabulary's %d, or 0 for all", c.DraftVocab, c.Vocab)
	case c.Window > 0 && c.Window < c.Block:
		return fmt.Errorf("sliding window is %d: want a block of %d rows or more", c.Window, c.Block)
	}
	if err := headfile.CheckTaps(c.Taps, c.TargetLayers); err != nil {
		return err
	}
	return c.Config.Validate()
}

// Describe returns a description of the head.
func (c *Config) Describe(bool) string {
	kind := "bidirectional (DFlash)"
	if c.Causal {
		kind = "causal (JetSpec)"
	}
	more := ""
	if c.DraftVocab > 0 {
		more = fmt.Sprintf(", an output head of %d tokens", c.DraftVocab)
	}
	if c.Window > 0 {
		more += fmt.Sprintf(", a window of %d", c.Window)
	}
	return fmt.Sprintf("block head, %s: blocks of %d rows, token %d is the mask%s", kind, c.Block, c.Mask, more)
}

// mixed reports whether some layers see a block differently from LayOut.
func (c *Config) mixed() bool {
	return c.Window > 0 && c.WindowCausal != c.Causal && slices.Contains(c.Windowed, true)
}

// EndsEarly reports whether a block may end early: no row of any layer sees one after it.
func (c *Config) EndsEarly() bool {
	if c.Window > 0 && c.WindowCausal && !slices.Contains(c.Windowed, false) {
		return true
	}
	return c.Causal && !c.mixed()
}

// Draw draws the numbers of a random head that a drafter runs.
func (c *Config) Draw(rng *rand.Rand, drafter string, _ int) {
	c.Arch, c.Layers = "qwen3", 1+rng.IntN(3)
	c.Block = 2 + rng.IntN(15)
	c.Causal = rng.IntN(2) == 0
	c.Mask = rng.Int32N(int32(c.Vocab))
	if drafter != "" {
		c.Causal = drafter == kind.Drafters[0]
	}
	c.DraftVocab = 0
}

// LayOut makes t a block of so many rows, the first of them an anchor: a chain whose rows see those
// before them, or all of them.
func (c *Config) LayOut(t *tree.Tree, anchor int32, rows int) {
	t.Reset(anchor)
	c.fill(t, 0, rows)
}

// Branch appends a whole block to t, below a node of the text. So many blocks of one text can be
// computed in one pass, each with the text up to its parent as context. Branch returns the anchor's
// node.
func (c *Config) Branch(t *tree.Tree, parent int, anchor int32) int {
	first := t.AppendApart(parent, anchor)
	c.fill(t, first, c.Block)
	return first
}

// fill appends a block's other rows below its first.
func (c *Config) fill(t *tree.Tree, first, rows int) {
	last := first
	for range rows - 1 {
		last = t.AppendApart(last, c.Mask) // also where the anchor is the mask token
	}
	if c.Causal {
		return
	}
	for i := first; i < last; i++ {
		for j := i + 1; j <= last; j++ {
			t.SetSees(i, j, true)
		}
	}
}
