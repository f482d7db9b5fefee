package main

import (
	"fmt"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/grovellm/grove/internal/model/synth"
	"github.com/grovellm/grove/tensor"
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
    grove synth --list
    grove synth tiny-qwen3 --type f32 --seed 7
    grove synth qwen3-0.6b /data/random.gguf --type q8_0`
}

func (cmd *synthCmd) Run(p *program) error {
	if cmd.List {
		return listShapes(p)
	}
	if cmd.Shape == "" {
		return usagef("which shape? Name one of: %s", strings.Join(shapeNames(), ", "))
	}
	shape, typ, err := shapeAndType(cmd.Shape, cmd.Type)
	if err != nil {
		return err
	}
	if cmd.Out == "" {
		cmd.Out = fmt.Sprintf("%s-%s.gguf", shape.Name, strings.ToLower(typ.String()))
	}
	if err := newFile(cmd.Out, cmd.Force); err != nil {
		return err
	}
	ctx, stop := p.context()
	defer stop()
	bar := p.progress("writing", true)
	err = synth.Write(ctx, cmd.Out, shape, synth.Options{Type: typ, Seed: cmd.Seed, Progress: bar.set})
	bar.end()
	if err != nil {
		return err
	}
	info, err := os.Stat(cmd.Out)
	if err != nil {
		return err
	}
	if p.JSON {
		return p.printJSON(map[string]any{"file": cmd.Out, "shape": shape.Name, "type": strings.ToLower(typ.String()),
			"seed": cmd.Seed, "bytes": info.Size(), "parameters": shape.Parameters()})
	}
	fmt.Fprintf(p.stdout, "%s: %s in %v, %s parameters, %s\n", cmd.Out, shape.Name, typ, count(shape.Parameters()), size(info.Size()))
	return nil
}

// shapeAndType finds a shape and a type by their names.
func shapeAndType(shape, typ string) (synth.Shape, tensor.Type, error) {
	s, err := synth.Lookup(shape)
	if err != nil {
		return s, 0, usagef("no shape is named %q: use one of %s", shape, strings.Join(shapeNames(), ", "))
	}
	t, err := tensor.ParseType(typ)
	if err != nil || !t.Writable() {
		return s, 0, usagef("--type %q: want f32, f16, bf16, q8_0, q6_k, q5_k, q4_k, q5_1, q5_0, q4_1, q4_0, iq4_nl or mxfp4", typ)
	}
	return s, t, nil
}

func listShapes(p *program) error {
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
		return p.printJSON(list)
	}
	t := tabwriter.NewWriter(p.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "shape\tarchitecture\tparameters\tvocabulary\thidden\tlayers\tcontext")
	for _, s := range synth.Shapes() {
		fmt.Fprintf(t, "%s\t%s\t%s\t%d\t%d\t%d\t%d\n", s.Name, s.Arch, count(s.Parameters()), s.Vocab, s.Hidden, s.Layers, s.Context)
	}
	return t.Flush()
}
