package main

import (
	"fmt"
	"slices"

	"github.com/grovellm/grove/internal/command"
	"github.com/grovellm/grove/internal/drafters/registry"
	"github.com/grovellm/grove/internal/heads"
	"github.com/grovellm/grove/internal/heads/headfile"
	"github.com/grovellm/grove/internal/inside"
	"github.com/grovellm/grove/internal/train"
)

type trainTextCmd struct {
	command.ModelFlags

	Suite     string `help:"Suite of prompts, or a JSONL file (see grove bench spec --list)." default:"go" placeholder:"NAME"`
	Data      string `help:"Folder of the suites' data (${default})." env:"GROVE_DATA" default:"../shared/data" placeholder:"DIR"`
	Prompts   int    `help:"Prompts of the suite, 1 to 10000 (${default})." default:"200" placeholder:"N"`
	Chat      bool   `help:"Put questions into the model's chat template."`
	MaxTokens int    `short:"n" help:"Tokens to generate after each prompt, 1 to 4096 (${default})." default:"128" placeholder:"N"`
	Drafter   string `short:"d" help:"Drafter that runs the head; default: what auto chooses." placeholder:"NAME"`

	From string `arg:"" help:"GGUF file of the head, which --head names too unless it is grove's own." placeholder:"HEAD"`
	To   string `arg:"" help:"GGUF file to write." placeholder:"FILE"`
}

func (trainTextCmd) Help() string {
	return `The modifier +text ranks drafted tokens by a head's probabilities, n-grams of the text and earlier logits. It learns
the weights of these while decoding. This command generates text after many prompts, at temperature 0 and 1, and
rewrites the head's file with the weights learned on the way. +text then starts from them.

Use prompts like those that the head will serve, but not those that it is measured on.

Examples:
    grove train text --suite prompts.jsonl --chat -m FILE --head HEAD HEAD fitted.gguf
    grove train text --suite prompts.jsonl models/eagle-q8_0.gguf fitted.gguf`
}

func (cmd *trainTextCmd) Run(p *command.Program) error {
	if cmd.Prompts < 1 || cmd.Prompts > 10_000 || cmd.MaxTokens < 1 || cmd.MaxTokens > 4096 {
		return command.Usagef("--prompts %d, --max-tokens %d: want 1 to 10000, and 1 to 4096", cmd.Prompts, cmd.MaxTokens)
	}
	suite, err := openSuite(cmd.Suite, cmd.Data, cmd.Prompts)
	if err != nil {
		return err
	}
	m, err := cmd.Open(p)
	if err != nil {
		return err
	}
	defer p.Close(m)
	if cmd.Drafter == "" {
		if cmd.Drafter, err = autoOf(cmd.From, inside.Target(m)); err != nil {
			return err
		}
	}
	j := train.TextJob{Drafter: cmd.Drafter, Target: inside.Target(m), Tokens: cmd.MaxTokens}
	if j.Prompts, err = tokenize(m, suite, m.Context(), cmd.Chat); err != nil {
		return err
	}
	ctx, stop := p.Context()
	defer stop()
	bar := p.Progress("fitting", false)
	j.Progress = func(done, total int) { bar.Set(int64(done), int64(total)) }
	weights, err := train.FitText(ctx, j)
	bar.End()
	if err != nil {
		return err
	}
	if err := headfile.WriteTextWeights(cmd.From, cmd.To, weights); err != nil {
		return err
	}
	fmt.Fprintln(p.Stderr, cmd.To)
	return nil
}

// autoOf returns the drafter that auto stands for if one head, from a file, is open.
func autoOf(path string, target registry.Target) (string, error) {
	h, err := heads.Read(registry.Head{Name: path})
	if err != nil {
		return "", err
	}
	defer h.Close()
	target.Heads = []registry.Head{{Name: path}}
	for _, f := range registry.AutoFamilies() {
		if _, err := registry.New(f.Auto, target); err == nil && slices.Contains(h.Shape.Kind().Drafters, f.Name) {
			return f.Auto, nil
		}
	}
	return "", command.Usagef("--drafter: auto has no drafter for a %s: want one with +text", h.Shape.Kind().Name)
}
