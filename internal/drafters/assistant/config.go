// Package assistant drafts with the assistants of Gemma 4 (google/gemma-4-*-it-assistant): a few
// layers that compute only queries. Their keys and values come from the target's own cache: from
// its last layer of the same kind, with or without a window. So they read no text and keep no
// cache, and a row depends only on its token and the state of its parent:
//
//	x = Pre·[√H·E(token); s]     layers over the target's rows     y = norm(x)     logits = E'·y     s' = Post·y
//
// H and E are the target's width and embedding, E' is the assistant's own. The first s is the
// target's state after its last norm, at the last row of its text. All rows of a tree have one
// position, that of its root: siblings and whole levels are rows of one pass, and trees grow as
// those of EAGLE heads do (package grow).
//
// Other engines differ in two points. In transformers (the authors' own code) and in llama.cpp, the
// position is that of the newest token, which has no row yet; vLLM takes that of the row before.
// And after a rejection, transformers still reads the first rejected token's row, which vLLM does
// not. Here the position is the newest token's, and only committed rows are read. Where a window
// ends, llama.cpp counts as the target does: the row's own place and those before it. transformers
// lets in two rows more.
//
// With ordered embeddings the tokens are grouped in clusters, and only the tokens of the clusters
// whose centroids suit the row best get logits: these are the lists of a router (package shortlist)
// whose scores are products with the centroids.
package assistant

import (
	"fmt"
	"math/rand/v2"

	"github.com/grovellm/grove/internal/heads/headfile"
	"github.com/grovellm/grove/internal/model"
)

// arch is the architecture of GGUF files, as llama.cpp names it, and the drafter's name.
const arch = "gemma4-assistant"

// target is the architecture of the targets.
const target = "gemma4"

// Config is the shape of an assistant. Hidden is the width of its layers. It taps the
// target's last layer.
type Config struct {
	headfile.Base
	headfile.GGUFOnly // of folders that are written: it reads them

	Centroids int // clusters of tokens, all of the same size; 0: rows have logits of all tokens
	Chosen    int // clusters whose tokens have logits
}

// most limits the widths in a file.
const most = 1 << 20

// Validate checks that the numbers make a valid assistant.
func (c *Config) Validate() error {
	switch {
	case c.Arch != target || !c.Borrows:
		return fmt.Errorf("layers of architecture %q with keys and values of their own: want gemma4 layers without any", c.Arch)
	case c.TargetHidden < 1 || c.TargetHidden > most:
		return fmt.Errorf("width of the target is %d: want 1 to %d", c.TargetHidden, most)
	case c.Centroids < 0 || c.Centroids > 0 && (c.Vocab%c.Centroids != 0 || c.Chosen < 1 || c.Chosen > c.Centroids):
		return fmt.Errorf("%d of %d clusters of %d tokens: want clusters of one size, and 1 of them or more", c.Chosen, c.Centroids, c.Vocab)
	case len(c.Taps) != 1:
		return fmt.Errorf("%d tapped layers: want only the target's last", len(c.Taps))
	}
	if err := headfile.CheckTaps(c.Taps, c.TargetLayers); err != nil {
		return err
	}
	return c.Config.Validate()
}

// BorrowsFrom returns an error that says which keys and values the layers read but a target lacks.
func (c *Config) BorrowsFrom(of *model.Config) error {
	if of.Padded > 0 {
		return fmt.Errorf("the head reads keys and values of the last layers, which the target's padding comes after: want the target without it")
	}
	_, err := c.BorrowedFrom(of)
	return err
}

// DefaultTaps returns the target's last layer.
func (*Config) DefaultTaps(layers int) []int { return []int{layers} }

// Describe returns a description of the head.
func (c *Config) Describe(bool) string {
	output := "logits of all tokens"
	if c.Centroids > 0 {
		output = fmt.Sprintf("logits of %d of %d clusters of tokens", c.Chosen, c.Centroids)
	}
	return fmt.Sprintf("Gemma 4 assistant: %d layers, %d wide, over the target's keys and values, %s", c.Layers, c.Hidden, output)
}

// Draw draws the clusters of a random assistant.
func (c *Config) Draw(rng *rand.Rand, _ string, _ int) {
	if rng.IntN(2) == 0 {
		return
	}
	sizes := []int{}
	for n := 1; n <= 64; n++ {
		if c.Vocab%n == 0 {
			sizes = append(sizes, n)
		}
	}
	c.Centroids = sizes[rng.IntN(len(sizes))]
	c.Chosen = 1 + rng.IntN(c.Centroids)
}

// DrawFor draws layers for a target.
func (c *Config) DrawFor(rng *rand.Rand, of *model.Config, unit int) {
	width := unit * (1 + rng.IntN(64/unit))
	context := c.Context
	c.Config = of.Borrowing(2+rng.IntN(3), width, c.FFN)
	c.Context = context
	c.TargetHidden = of.Hidden
}
