package main

import (
	"fmt"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/grovellm/grove/internal/command"
	"github.com/grovellm/grove/internal/model/synth"
)

type synthCmd struct {
	Shape string `arg:"" optional:"" help:"Name of the shape (see --list)."`
	Out   string `arg:"" optional:"" help:"GGUF file to write; default: SHAPE-TYPE.gguf."`
	Type  string `help:"Type of the matrices: f32, f16, bf16, q8_0, q6_k, q5_k, q4_k, q5_1, q5_0, q4_1, q4_0, iq4_nl or mxfp4 (${default})." default:"bf16" placeholder:"TYPE"`
	Seed  uint64 `help:"Seed of the weights (${default})." default:"1" placeholder:"N"`
	Force bool   `short:"f" help:"Replace an existing file."`
	List  bool   `help:"List the shapes."`
}

func (synthCmd) Help() string {
	return `Writes a GGUF file with random weights and a tokenizer, to measure a shape without its trained weights. The
same shape, type and seed give the same file on every machine.

Examples:
    grove-lab synth --list
    grove-lab synth tiny-qwen3 --type f32 --seed 7
    grove-lab synth qwen3-0.6b /data/random.gguf --type q8_0`
}

func (cmd *synthCmd) Run(p *command.Program) error {
	if cmd.List {
		return listShapes(p)
	}
	if cmd.Shape == "" {
		return command.Usagef("which shape? Name one of: %s", strings.Join(command.ShapeNames(), ", "))
	}
	shape, typ, err := command.ShapeAndType(cmd.Shape, cmd.Type)
	if err != nil {
		return err
	}
	if cmd.Out == "" {
		cmd.Out = fmt.Sprintf("%s-%s.gguf", shape.Name, strings.ToLower(typ.String()))
	}
	if err := command.NewFile(cmd.Out, cmd.Force); err != nil {
		return err
	}
	ctx, stop := p.Context()
	defer stop()
	bar := p.Progress("writing", true)
	err = synth.Write(ctx, cmd.Out, shape, synth.Options{Type: typ, Seed: cmd.Seed, Progress: bar.Set})
	bar.End()
	if err != nil {
		return err
	}
	info, err := os.Stat(cmd.Out)
	if err != nil {
		return err
	}
	if p.JSON {
		return p.PrintJSON(map[string]any{"file": cmd.Out, "shape": shape.Name, "type": strings.ToLower(typ.String()),
			"seed": cmd.Seed, "bytes": info.Size(), "parameters": shape.Parameters()})
	}
	fmt.Fprintf(p.Stdout, "%s: %s in %v, %s parameters, %s\n", cmd.Out, shape.Name, typ, command.Count(shape.Parameters()),
		command.Size(info.Size()))
	return nil
}

func listShapes(p *command.Program) error {
	if p.JSON {
		type entry struct {
			Name       string `json:"name"`
			Arch       string `json:"architecture"`
			Parameters int64  `json:"parameters"`
			Vocab      int    `json:"vocab"`
			Hidden     int    `json:"hidden"`
			Layers     int    `json:"layers"`
			Context    int    `json:"context"`
		}
		list := []entry{}
		for _, s := range synth.Shapes() {
			list = append(list, entry{s.Name, s.Arch, s.Parameters(), s.Vocab, s.Hidden, s.Layers, s.Context})
		}
		return p.PrintJSON(list)
	}
	t := tabwriter.NewWriter(p.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "shape\tarchitecture\tparameters\tvocabulary\thidden\tlayers\tcontext")
	for _, s := range synth.Shapes() {
		fmt.Fprintf(t, "%s\t%s\t%s\t%d\t%d\t%d\t%d\n", s.Name, s.Arch, command.Count(s.Parameters()), s.Vocab,
			s.Hidden, s.Layers, s.Context)
	}
	return t.Flush()
}
