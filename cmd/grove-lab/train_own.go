// Training grove's own models.

package main

import (
	"context"
	"fmt"

	"github.com/grovellm/grove/internal/command"
	"github.com/grovellm/grove/internal/lab/sibling"
	"github.com/grovellm/grove/internal/train"
	"github.com/grovellm/grove/internal/train/bpe"
)

type trainOwnCmd struct {
	Tokenizer trainTokenizerCmd `cmd:"" help:"Learn the vocabulary."`
	Target    trainTargetCmd    `cmd:"" help:"Train the target model, and the vocabulary before it."`
	Draft     trainDraftCmd     `cmd:"" help:"Train the draft model, distilled from the target."`
	Sibling   trainSiblingCmd   `cmd:"" help:"Train models with twice the vocabulary, to study output heads."`
}

func (trainOwnCmd) Help() string {
	return `Trains the models that are part of grove (docs/training.md). An interrupted command continues when it is run again,
and ends with the same weights. grove train makes heads for them: grove train eagle --dir own --data DATA.

Examples:
    grove-lab train target --dir own --data DATA
    grove-lab train draft --dir own --data DATA`
}

type trainTokenizerCmd struct{ command.TrainFlags }

func (trainTokenizerCmd) Help() string {
	return "Example:\n    grove-lab train tokenizer --dir own --data DATA"
}

func (c *trainTokenizerCmd) Run(p *command.Program) error {
	return c.RunStage(p, func(ctx context.Context, j train.Job) error {
		return train.Tokenizer(ctx, j, bpe.Options{Threads: p.Threads})
	})
}

type trainTargetCmd struct{ command.TrainFlags }

func (trainTargetCmd) Help() string {
	return "Example:\n    grove-lab train target --dir own --data DATA"
}

func (c *trainTargetCmd) Run(p *command.Program) error {
	return c.RunStage(p, func(ctx context.Context, j train.Job) error {
		return train.TrainTarget(ctx, j, train.TargetRecipe())
	})
}

type trainDraftCmd struct{ command.TrainFlags }

func (trainDraftCmd) Help() string {
	return "Example:\n    grove-lab train draft --dir own --data DATA"
}

func (c *trainDraftCmd) Run(p *command.Program) error {
	return c.RunStage(p, func(ctx context.Context, j train.Job) error {
		if err := train.TrainTarget(ctx, j, train.TargetRecipe()); err != nil {
			return err
		}
		return train.TrainDraft(ctx, j, train.DraftRecipe(), train.TargetRecipe().Shape)
	})
}

type trainSiblingCmd struct {
	command.TrainFlags `recipe:"-"`

	TargetSteps *int `recipe:"Target.Steps" help:"Steps of the target." placeholder:"N"`
	HeadSteps   *int `recipe:"Head.Steps" help:"Steps of its EAGLE head." placeholder:"N"`
	RouterSteps *int `recipe:"Router.Steps" help:"Steps of the router." placeholder:"N"`
	Files       *int `recipe:"-" help:"Files of 512 generated texts of 512 tokens, and a fifth as many of 1024 tokens." placeholder:"N"`
}

func (c *trainSiblingCmd) Help() string {
	r := sibling.NewRecipe()
	return fmt.Sprintf(`Trains a vocabulary of %d tokens, a target, an EAGLE head and its router, by shorter forms of the usual recipes (%d,
%d and %d steps), to study what an output head costs and what shortlists save. It needs a folder for itself. An
interrupted command continues when it is run again.

Examples:
    grove-lab train sibling --dir sibling --data DATA
    grove bench spec -m sibling/target/model-q8_0.gguf --head sibling/eagle/model-q8_0.gguf --methods eagle3`,
		r.Target.Shape.Vocab, r.Target.Steps, r.Head.Steps, r.Router.Steps)
}

func (c *trainSiblingCmd) recipe() sibling.Recipe {
	r := sibling.NewRecipe()
	train.SetFlags(&r, c)
	if c.Files != nil {
		r.SetText(*c.Files, *c.Files/5)
	}
	return r
}

func (c *trainSiblingCmd) Run(p *command.Program) error {
	return c.RunStage(p, func(ctx context.Context, j train.Job) error { return sibling.Train(ctx, j, c.recipe()) })
}
