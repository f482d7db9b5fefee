package main

import (
	"fmt"
	"os"

	"github.com/grovellm/grove/internal/model"
)

type padCmd struct {
	From  string `arg:"" hub:"" help:"GGUF file to read."`
	Out   string `arg:"" help:"GGUF file to write."`
	To    string `required:"" help:"Parameters that it should have, about: 500M, 1.5B." placeholder:"N"`
	Type  string `help:"Type of the padding weights: bf16, f16, q8_0, q6_k, q5_k, q4_k, q5_1, q5_0, q4_1 or q4_0 (${default})." default:"bf16" placeholder:"TYPE"`
	Force bool   `short:"f" help:"Replace an existing file."`
}

func (padCmd) Help() string {
	return `Adds layers and columns to a model that leave its output the same to the bit. A pass then reads and multiplies
as many weights as a model of that size has: real text from a small model, at the cost of a large one. The file
says that it is padded (` + model.PaddingKey + `). The flag --pad of other commands does the same in memory.

Example:
    grove pad model-q8_0.gguf model-500m.gguf --to 500M`
}

func (cmd *padCmd) Run(p *program) error {
	n, err := parseCount(cmd.To)
	if err != nil {
		return usagef("--to %q: %v", cmd.To, err)
	}
	t, err := padType(cmd.Type)
	if err != nil {
		return usagef("--type %q: %v", cmd.Type, err)
	}
	if err := newFile(cmd.Out, cmd.Force); err != nil {
		return err
	}
	if info, err := os.Stat(cmd.From); err == nil && info.IsDir() {
		return usagef("%s is a folder: make a GGUF file of it with grove convert", cmd.From)
	}
	ctx, stop := p.context()
	defer stop()
	bar := p.progress("writing", true)
	c, err := model.WritePadded(ctx, cmd.From, cmd.Out, model.Options{Pad: n, PadType: t, Progress: bar.set})
	bar.end()
	if err != nil {
		return err
	}
	info, err := os.Stat(cmd.Out)
	if err != nil {
		return err
	}
	if p.JSON {
		return p.printJSON(map[string]any{"file": cmd.Out, "parameters": c.Parameters(), "padding": c.Padded, "layers": c.Layers,
			"feed_forward": c.FFN, "bytes": info.Size()})
	}
	fmt.Fprintf(p.stdout, "%s: %s parameters, %s of them padding, in %d layers; %s\n", cmd.Out, count(c.Parameters()), count(c.Padded), c.Layers, size(info.Size()))
	return nil
}
