package main

import (
	"fmt"
	"os"

	"github.com/grovellm/grove/internal/command"
	"github.com/grovellm/grove/internal/model"
)

type padCmd struct {
	From  string `arg:"" hub:"" help:"GGUF file to read."`
	Out   string `arg:"" help:"GGUF file to write."`
	To    string `required:"" help:"Approximate number of parameters to reach: 500M, 1.5B." placeholder:"N"`
	Type  string `help:"Type of the padding weights: bf16, f16, q8_0, q6_k, q5_k, q4_k, q5_1, q5_0, q4_1 or q4_0 (${default})." default:"bf16" placeholder:"TYPE"`
	Force bool   `short:"f" help:"Replace an existing file."`
}

func (padCmd) Help() string {
	return `Adds layers and columns to a model that leave its output the same to the bit. A pass then reads and multiplies
as many weights as a model of that size has: real text from a small model, at the cost of a large one. The file
says that it is padded (` + model.PaddingKey + `). The flag --pad of other commands does the same in memory.

Example:
    grove-lab pad model-q8_0.gguf model-500m.gguf --to 500M`
}

func (cmd *padCmd) Run(p *command.Program) error {
	n, err := command.ParseCount(cmd.To)
	if err != nil {
		return command.Usagef("--to %q: %v", cmd.To, err)
	}
	t, err := command.PadType(cmd.Type)
	if err != nil {
		return command.Usagef("--type %q: %v", cmd.Type, err)
	}
	if err := command.NewFile(cmd.Out, cmd.Force); err != nil {
		return err
	}
	if info, err := os.Stat(cmd.From); err == nil && info.IsDir() {
		return command.Usagef("%s is a folder: make a GGUF file of it with grove convert", cmd.From)
	}
	ctx, stop := p.Context()
	defer stop()
	bar := p.Progress("writing", true)
	c, err := model.WritePadded(ctx, cmd.From, cmd.Out, model.Options{Pad: n, PadType: t, Progress: bar.Set})
	bar.End()
	if err != nil {
		return err
	}
	info, err := os.Stat(cmd.Out)
	if err != nil {
		return err
	}
	if p.JSON {
		return p.PrintJSON(map[string]any{"file": cmd.Out, "parameters": c.Parameters(),
			"padding": c.Padded, "layers": c.Layers,
			"feed_forward": c.FFN, "bytes": info.Size()})
	}
	fmt.Fprintf(p.Stdout, "%s: %s parameters, %s of them padding, in %d layers; %s\n", cmd.Out,
		command.Count(c.Parameters()), command.Count(c.Padded), c.Layers, command.Size(info.Size()))
	return nil
}
