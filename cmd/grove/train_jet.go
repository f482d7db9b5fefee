package main

import (
	"context"
	"path/filepath"
	"strings"

	"github.com/grovellm/grove/train"
)

// trainJetCmd varies the recipe of the shipped heads: what is not given is theirs.
type trainJetCmd struct {
	trainFlags
	Head string `required:"" enum:"causal,bidirectional" help:"Whether rows of a block see those before them (causal, as JetSpec) or all (bidirectional, as DFlash)." placeholder:"causal|bidirectional"`
	Name string `help:"Folder below --dir for this head: jet or dflash by default."`

	Steps     *int     `help:"Steps of the optimiser."`
	Rows      *int     `help:"Texts of a step."`
	Anchors   *int     `help:"Blocks of a text."`
	Rate      *float32 `help:"Peak rate of Muon."`
	Block     *int     `help:"Rows of a block, the anchor's included."`
	Layers    *int     `help:"Layers of the head."`
	FFN       *int     `name:"ffn" help:"Width of its MLPs."`
	Heads     *int     `help:"Attention heads."`
	KVHeads   *int     `name:"kv-heads" help:"Key/value heads."`
	HeadDim   *int     `name:"head-dim" help:"Dimensions of a head."`
	Taps      []int    `help:"Layers of the target to read: 0 is the embedding, i the output of the i-th layer."`
	Text      *string  `enum:"generated,corpus" help:"Text to learn from: what the target says after beginnings of the training text (generated), or that text itself (corpus)."`
	Loss      *string  `enum:"kl,reverse-kl,ce" help:"What is made small: the divergence from the target's distributions (kl, reverse-kl), or the cross-entropy of the text (ce)."`
	Softening *float32 `help:"Temperature of both distributions in the divergence."`
	Gamma     *float64 `help:"Row k of a block counts exp(-(k-1)/gamma); 0: all rows alike."`
	Seed      *uint64  `help:"Of the first weights, the order of texts and the anchors."`
}

func (c *trainJetCmd) Help() string {
	return `The head learns over the frozen target of --dir (grove train target), which is made first where it is not there.`
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
	set(&r.Text, c.Text)
	set(&r.Loss, c.Loss)
	set(&r.Temperature, c.Softening)
	set(&r.Gamma, c.Gamma)
	set(&r.Seed, c.Seed)
	if len(c.Taps) > 0 {
		r.Taps = c.Taps
	}
	return r
}

// set replaces a value where another is given.
func set[T any](to *T, value *T) {
	if value != nil {
		*to = *value
	}
}

func (c *trainJetCmd) Run(p *program) error {
	name := c.Name
	if name == "" {
		name = map[string]string{"causal": "jet", "bidirectional": "dflash"}[c.Head]
	}
	if name != filepath.Base(name) || strings.HasPrefix(name, ".") || name == "target" || name == "draft" || name == "cache" {
		return usagef("--name %q: want the name of a folder below --dir that no other stage uses", name)
	}
	return c.runStage(p, func(ctx context.Context, j train.Job) error {
		if err := train.Target(ctx, j, train.TargetRecipe()); err != nil {
			return err
		}
		return train.Jet(ctx, j, name, c.recipe(), train.TargetRecipe().Shape)
	})
}
