package main

import (
	"context"
	"fmt"

	"github.com/grovellm/grove/internal/train"
	"github.com/grovellm/grove/internal/train/eagle"
)

type trainSiblingCmd struct {
	trainFlags `recipe:"-"`

	TargetSteps *int `recipe:"Target.Steps" help:"Steps of the target." placeholder:"N"`
	HeadSteps   *int `recipe:"Head.Steps" help:"Steps of its EAGLE head." placeholder:"N"`
	RouterSteps *int `recipe:"Router.Steps" help:"Steps of the router." placeholder:"N"`
	Files       *int `recipe:"-" help:"Files of 512 generated texts of 512 tokens, and a fifth as many of 1024 tokens." placeholder:"N"`
}

func (c *trainSiblingCmd) Help() string {
	r := eagle.NewSiblingRecipe()
	return fmt.Sprintf(`Trains a vocabulary of %d tokens, a target, an EAGLE head and its router, by shorter forms of the usual recipes (%d,
%d and %d steps), to study what an output head costs and what shortlists save. It needs a folder for itself. An
interrupted command continues when it is given again.

Examples:
    grove train sibling --dir sibling --data DATA
    grove bench spec -m sibling/target/model-q8_0.gguf --head sibling/eagle/model-q8_0.gguf --methods eagle3`,
		r.Target.Shape.Vocab, r.Target.Steps, r.Head.Steps, r.Router.Steps)
}

func (c *trainSiblingCmd) recipe() eagle.SiblingRecipe {
	r := eagle.NewSiblingRecipe()
	train.SetFlags(&r, c)
	if c.Files != nil {
		r.SetText(*c.Files, *c.Files/5)
	}
	return r
}

func (c *trainSiblingCmd) Run(p *program) error {
	return c.runStage(p, func(ctx context.Context, j train.Job) error { return eagle.Sibling(ctx, j, c.recipe()) })
}
