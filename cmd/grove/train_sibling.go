package main

import (
	"context"
	"fmt"

	"github.com/grovellm/grove/train"
)

type trainSiblingCmd struct {
	trainFlags

	TargetSteps *int `help:"Steps of the target." placeholder:"N"`
	HeadSteps   *int `help:"Steps of its EAGLE head." placeholder:"N"`
	RouterSteps *int `help:"Steps of the router." placeholder:"N"`
	Files       *int `help:"Files of 512 texts of 512 tokens that the target writes for them, and a fifth as many of 1024." placeholder:"N"`
}

func (c *trainSiblingCmd) Help() string {
	r := train.NewSiblingRecipe()
	return fmt.Sprintf(`A family with %d tokens, to study what a drafter's output head costs, and what shortlists save:
vocabulary, target, an EAGLE head and its router, one after the other, by the recipes of the shipped ones
with shorter courses (%d, %d and %d steps). It wants a folder of its own. The same command goes on where
it was stopped.

Examples:
    grove train sibling --dir sibling --data DATA
    grove bench spec -m sibling/target/model-q8_0.gguf --head sibling/eagle/model-q8_0.gguf --head sibling/router/model-q8_0.gguf --methods eagle3,eagle3+dynaspec`,
		r.Target.Shape.Vocab, r.Target.Steps, r.Head.Steps, r.Router.Steps)
}

func (c *trainSiblingCmd) recipe() train.SiblingRecipe {
	r := train.NewSiblingRecipe()
	set(&r.Target.Steps, c.TargetSteps)
	set(&r.Head.Steps, c.HeadSteps)
	set(&r.Router.Steps, c.RouterSteps)
	if c.Files != nil {
		r.SetText(*c.Files, *c.Files/5)
	}
	return r
}

func (c *trainSiblingCmd) Run(p *program) error {
	return c.runStage(p, func(ctx context.Context, j train.Job) error { return train.Sibling(ctx, j, c.recipe()) })
}
