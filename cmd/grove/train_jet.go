package main

import (
	"context"
	"fmt"

	"github.com/grovellm/grove/train"
)

// trainJetCmd varies the recipe of the shipped heads: what is not given is theirs.
type trainJetCmd struct {
	trainFlags
	Head string `required:"" enum:"causal,bidirectional" help:"Whether rows of a block see those before them (causal, as JetSpec) or all (bidirectional, as DFlash)." placeholder:"causal|bidirectional"`
	Name string `help:"Folder below --dir for this head: jet or dflash by default." placeholder:"NAME"`

	Text      *string  `enum:"generated,corpus" help:"Text to learn from: what the target says after beginnings of the training text (generated), or that text itself (corpus)." placeholder:"generated|corpus" group:"What it learns"`
	Only      *string  `help:"A source of the training text: learn from that alone, and from what the target says after beginnings of it." placeholder:"SOURCE" group:"What it learns"`
	Loss      *string  `enum:"kl,reverse-kl,ce" help:"What is made small: the divergence from the target's distributions (kl, reverse-kl), or the cross-entropy of the text (ce)." placeholder:"kl|reverse-kl|ce" group:"What it learns"`
	Softening *float32 `help:"Temperature of both distributions in the divergence." placeholder:"T" group:"What it learns"`
	Gamma     *float64 `help:"Row k of a block counts exp(-(k-1)/gamma); 0: all rows alike." placeholder:"G" group:"What it learns"`
	Steps     *int     `help:"Steps of the optimiser." placeholder:"N" group:"What it learns"`
	Rows      *int     `help:"Texts of a step, a multiple of 4." placeholder:"N" group:"What it learns"`
	Anchors   *int     `help:"Blocks of a text; twice as many where they are half as long." placeholder:"N" group:"What it learns"`
	Rate      *float32 `help:"Peak rate of Muon." placeholder:"R" group:"What it learns"`
	Seed      *uint64  `help:"Of the first weights, the order of texts and the anchors." placeholder:"N" group:"What it learns"`

	Block    *int     `help:"Rows of a block, the anchor's included." placeholder:"N" group:"Shape"`
	Layers   *int     `help:"Layers of the head; with --from as many as it lists." placeholder:"N" group:"Shape"`
	From     []int    `help:"What each layer begins as: a block of the target, from 0, or -1, the layer that hands on the anchor. -1 alone: random weights." placeholder:"N" group:"Shape"`
	FFN      *int     `name:"ffn" help:"Width of the MLPs, a multiple of 32; no wider than the target's where layers begin as its blocks." placeholder:"N" group:"Shape"`
	Heads    *int     `help:"Attention heads; as the target's, like the next two, where layers begin as its blocks." placeholder:"N" group:"Shape"`
	KVHeads  *int     `name:"kv-heads" help:"Key/value heads." placeholder:"N" group:"Shape"`
	HeadDim  *int     `name:"head-dim" help:"Dimensions of an attention head." placeholder:"N" group:"Shape"`
	RopeBase *float64 `help:"Base of the rotation of positions." placeholder:"B" group:"Shape"`
	Taps     []int    `help:"Layers of the target to read: 0 is the embedding, i the output of the i-th layer. With 0 there is no hf/, which cannot name it." placeholder:"N" group:"Shape"`
}

func (c *trainJetCmd) Help() string {
	r := train.JetRecipe(true)
	return fmt.Sprintf(`A block head reads the target's hidden states of the text so far and gives, in one pass, the distributions
of the next %d tokens: jetspec, ddtree and dflash make draft trees of them. It learns over the frozen
target of --dir; vocabulary, target and the text that the target writes are made first where they are not
there. Flags change the recipe of the heads that ship: %d layers with MLPs of %d, %d steps, loss %s,
gamma %g. docs/training.md says what it does and why.

The same command goes on where it was stopped, and ends in the very weights of a run left alone. A
folder holds one recipe: give every other one its own --name. On the way held-out text is drafted: right
first guesses by depth, and the tokens a round that a chain and a tree of the head's bring.

Below --dir, in --name: model-q8_0.gguf for --head (without a tokenizer), model-f32.gguf, hf/, loss.png,
metrics.jsonl.

Examples:
    grove train jet --dir own --data DATA --head causal
    grove train jet --dir own --data DATA --head bidirectional --gamma 0 --name bidirectional
    grove train jet --dir own --data DATA --head causal --from=-1,0,1,2,5 --ffn 704 --name small
    grove run -m own/target/model-q8_0.gguf --head own/jet/model-q8_0.gguf -d jetspec --stats "func main() {"`,
		r.Block-1, r.Layers, r.FFN, r.Steps, r.Loss, r.Gamma)
}

func (c *trainJetCmd) recipe() train.HeadRecipe {
	r := train.JetRecipe(c.Head == "causal")
	set(&r.Steps, c.Steps)
	set(&r.Rows, c.Rows)
	set(&r.Anchors, c.Anchors)
	set(&r.Optimizer.MuonRate, c.Rate)
	set(&r.Block, c.Block)
	set(&r.Layers, c.Layers)
	set(&r.FFN, c.FFN)
	set(&r.Heads, c.Heads)
	set(&r.KVHeads, c.KVHeads)
	set(&r.HeadDim, c.HeadDim)
	set(&r.RopeBase, c.RopeBase)
	set(&r.Text, c.Text)
	set(&r.Only, c.Only)
	set(&r.Loss, c.Loss)
	set(&r.Temperature, c.Softening)
	set(&r.Gamma, c.Gamma)
	set(&r.Seed, c.Seed)
	r.ShortBlock = min(r.ShortBlock, r.Block)
	if len(c.Taps) > 0 {
		r.Taps = c.Taps
	}
	if setFrom(&r.From, c.From) && c.Layers == nil {
		r.Layers = len(r.From)
	}
	return r
}

func (c *trainJetCmd) Run(p *program) error {
	name := c.Name
	if name == "" {
		name = map[string]string{"causal": "jet", "bidirectional": "dflash"}[c.Head]
	}
	return c.runHead(p, name, func(ctx context.Context, j train.Job, target train.Shape) error {
		return train.Jet(ctx, j, name, c.recipe(), target)
	})
}
