// Package spark drafts with a DSpark, DFlash 2 or Domino head: DFlash's block (package jet), and a
// small network that rescores the tokens of a row given the tokens before it in the block. So each
// node of a tree has its own candidates, scored for the path to it (onepass.Corrector). The three
// differ in that network:
//
//	DSpark    W2·e, e the row of W1 for the previous token; gated by the row's state, or by the path's recurrent state
//	DFlash 2  ⟨A[previous] ⊙ H·x, S[token]⟩ for the row's best tokens; and convolutions around the block's layers
//	Domino    W2·SiLU(W1·[x; s]), s a GRU's state of the path; the first tokens are not corrected
//
// DSpark's confidence head estimates how likely the next token is accepted: a node below a threshold gets no children.
package spark

import (
	"fmt"
	"math/rand/v2"

	"github.com/grovellm/grove/internal/drafters/jet"
	"github.com/grovellm/grove/internal/heads/headfile"
	"github.com/grovellm/grove/internal/model"
)

// Variants of heads. They are also architectures of GGUF files.
const (
	dspark  = "dspark"
	dflash2 = "dflash2"
	domino  = "domino"
)

// Kinds of DSpark's correction.
const (
	vanilla = "vanilla"
	gated   = "gated"
	rnn     = "rnn"
)

// Inputs of DSpark's confidence head.
const (
	noConfidence   = iota
	stateConfident // the row's state
	TokenConfident // also the row of W1 for the previous token
)

// Config is the shape of a head.
type Config struct {
	jet.Config
	Variant string
	Anchor  bool // the row of the anchor drafts too
	Rank    int  // of the correction

	Markov     string // of DSpark
	Confidence int    // of DSpark

	Kernel, Group int // of DFlash 2's convolutions: rows, and neighbouring numbers that share a dynamic kernel
	Top           int // of DFlash 2: number of a row's tokens that are scored

	Width  int // of Domino's GRU
	Prefix int // of Domino: number of tokens that are not corrected
}

// Depths returns the number of tokens that a block drafts.
func (c *Config) Depths() int {
	if c.Anchor && c.Variant != domino {
		return c.Block
	}
	return c.Block - 1
}

// most limits the widths in a file.
const most = 1 << 16

// Validate checks that the numbers make a valid head.
func (c *Config) Validate() error {
	if err := c.Config.Validate(); err != nil {
		return err
	}
	switch {
	case c.Rank < 1 || c.Rank > most:
		return fmt.Errorf("rank of the correction is %d: want 1 to %d", c.Rank, most)
	case c.Variant == dspark && c.Markov != vanilla && c.Markov != gated && c.Markov != rnn:
		return fmt.Errorf("markov_head_type is %q: want vanilla, gated or rnn", c.Markov)
	case c.Variant == dspark && (c.Confidence < noConfidence || c.Confidence > TokenConfident):
		return fmt.Errorf("kind of confidence head is %d: want 0 to 2", c.Confidence)
	case c.Variant != dspark && c.DraftVocab > 0:
		return fmt.Errorf("draft_vocab_size is %d of a %s head: want all of the vocabulary's %d", c.DraftVocab, c.Variant, c.Vocab)
	case c.Variant == dflash2 && (c.Kernel < 1 || c.Kernel > c.Block || c.Group < 1 || c.Hidden%c.Group != 0):
		return fmt.Errorf("convolutions of %d rows and groups of %d: want 1 to %d rows, and a divisor of %d", c.Kernel, c.Group, c.Block, c.Hidden)
	case c.Variant == dflash2 && (c.Top < 1 || c.Top > c.Vocab || c.Top > most):
		return fmt.Errorf("selector_top_k is %d: want 1 to %d", c.Top, min(c.Vocab, most))
	case c.Variant == dflash2 && c.Anchor:
		return fmt.Errorf("sample_from_anchor of a DFlash 2 head: want rows that predict their own tokens")
	case c.Variant == domino && (c.Width < 1 || c.Width > most || c.Prefix < 0):
		return fmt.Errorf("GRU of width %d, %d tokens not corrected: want positive numbers", c.Width, c.Prefix)
	}
	return nil
}

// Describe returns a description of the head.
func (c *Config) Describe(own bool) string {
	name := map[string]string{dspark: "DSpark head, " + c.Markov, dflash2: "DFlash 2 head",
		domino: "Domino head"}[c.Variant]
	return fmt.Sprintf("%s, rank %d, over a %s", name, c.Rank, c.Config.Describe(own))
}

// Draw draws the numbers of a random head that a drafter runs.
func (c *Config) Draw(rng *rand.Rand, drafter string, unit int) {
	c.Config.Draw(rng, "", unit)
	c.Causal = false
	c.Variant = drafter
	if drafter == "" {
		c.Variant = kind.Drafters[rng.IntN(len(kind.Drafters))]
	}
	c.Rank = unit * (1 + rng.IntN(64/unit))
	switch c.Variant {
	case dspark:
		c.Anchor = rng.IntN(2) == 0
		c.Markov = []string{vanilla, gated, rnn}[rng.IntN(3)]
		c.Confidence = rng.IntN(3)
	case dflash2:
		c.Kernel = 1 + rng.IntN(min(3, c.Block))
		c.Group = 1 + rng.IntN(2)
		if c.Hidden%c.Group != 0 {
			c.Group = 1
		}
		c.Top = 1 + rng.IntN(min(16, c.Vocab))
	case domino:
		c.Anchor = rng.IntN(2) == 0
		c.Width = unit * (1 + rng.IntN(64/unit))
		c.Prefix = rng.IntN(3)
	}
}

// published returns the shapes of published heads; see headfile.Kind.Published.
func published(t *model.Config) (list []headfile.Published) {
	block := func(rows int) jet.Config {
		return jet.Config{Base: headfile.Base{Config: headfile.PublishedLayers(t, "qwen3", 5)}, Block: rows}
	}
	add := func(about string, c Config) {
		list = append(list, headfile.Published{Drafter: c.Variant, About: about, Shape: &c})
	}
	add("5 layers, blocks of 7, rank 256", Config{Config: block(7), Variant: dspark, Anchor: true, Rank: 256,
		Markov: "vanilla", Confidence: TokenConfident})
	add("5 layers, blocks of 8, rank 256", Config{Config: block(8), Variant: dflash2, Kernel: 2, Group: 16, Rank: 256,
		Top: 16})
	add("5 layers, blocks of 16, GRU of 1,024", Config{Config: block(16), Variant: domino, Rank: 256, Width: 1024,
		Prefix: 1})
	return list
}
