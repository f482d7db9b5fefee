package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"text/tabwriter"

	"github.com/grovellm/grove/internal/bench"
	"github.com/grovellm/grove/internal/command"
	_ "github.com/grovellm/grove/internal/drafters/drafttest/hostile" // drafters to measure the controller against
	"github.com/grovellm/grove/internal/hub"
	"github.com/grovellm/grove/internal/kernels/gemm"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/model/synth"
	"github.com/grovellm/grove/tensor"
)

type benchCmd struct {
	Cost   benchCostCmd   `cmd:"" help:"Measure the time of a pass of n rows."`
	Spec   benchSpecCmd   `cmd:"" help:"Measure the speed-up of drafters on suites of prompts."`
	Adapt  benchAdaptCmd  `cmd:"" help:"Measure the gain of a draft head that learns from generated text."`
	Serve  benchServeCmd  `cmd:"" help:"Measure the speed of many concurrent callers of one model."`
	Memory benchMemoryCmd `cmd:"" help:"Measure the peak memory of a drafter."`
}

func (benchCmd) Help() string {
	return `Measurements are interleaved within a run and reported as medians.

Examples:
    grove bench cost --shape qwen3-0.6b --type q8_0
    grove bench spec --suite go --pad 500M`
}

type benchCostCmd struct {
	Shape   string `help:"Shape of a random model (see grove-lab synth --list), or eagle3-SHAPE for its EAGLE-3 head (${default})." default:"qwen3-0.6b" placeholder:"SHAPE"`
	Type    string `help:"Type of its matrices: f32, f16, bf16, q8_0, q6_k, q5_k, q4_k, q5_1, q5_0, q4_1, q4_0, iq4_nl or mxfp4 (${default})." default:"bf16" placeholder:"TYPE"`
	Model   string `short:"m" hub:"" help:"Measure this GGUF file, Hugging Face folder, or ORG/REPO instead." placeholder:"FILE"`
	Rows    []int  `help:"Rows of the passes, 1 to 4096 each (1,2,4,8,16,32,64,512)." placeholder:"N"`
	Prompts []int  `help:"Lengths of prompts to process too, each into an empty cache and with logits only for its last token." placeholder:"N"`
	Rounds  int    `help:"Measurements of each pass, 1 to 10000 (${default})." default:"15" placeholder:"N"`

	Committed int `help:"Tokens in the cache before a pass (${default})." default:"128" placeholder:"N"`

	Heads    []string `help:"Measure drafts with random heads of these drafters instead, next to plain passes; all means every drafter that the model allows." placeholder:"NAME"`
	HeadType string   `help:"With --heads: type of the heads' matrices, f32, bf16 or q8_0 (q8_0)." placeholder:"TYPE"`

	command.KVFlag
}

func (benchCostCmd) Help() string {
	return `Measures passes of n rows: a tree of n nodes after the cached tokens, with logits of every node. In the same rounds
it measures the machine's read bandwidth and multiply peak. The roof of a pass is the time to read the weights, and the
keys and values that it sees, at that bandwidth, or to do its products, those of attention included, at that peak,
whichever is longer. "predicted" is the time over the measured one that the controller of speculation predicts from
the smallest and the largest pass. "experts" are those that the pass read, summed over the layers, where the model has
some; "expected" is how many the controller expects, over that. Random weights go through a temporary file.

For the shape of an EAGLE-3 head, it measures drafts, with the whole output matrix and with shortlists.

With --heads it measures drafts of trees, each with the drafter's usual options and a random head of the numbers that
published ones have, and a plain pass in the same rounds. "share" is the time of a draft over that of a pass.

Examples:
    grove bench cost --shape qwen3-0.6b --type bf16
    grove bench cost --shape pythia-410m --type q8_0 --rows 1,16,64 --json
    grove bench cost -m qwen3-0.6b-q8_0.gguf --rows 1 --prompts 512
    grove bench cost --shape eagle3-llama3-8b --type q8_0
    grove bench cost --shape qwen3.5-4b --type q4_k --heads all`
}

func (cmd *benchCostCmd) Run(p *command.Program) error {
	if err := cmp.Or(within("rows", 1, 4096, cmd.Rows...), within("rounds", 1, 10_000, cmd.Rounds)); err != nil {
		return err
	}
	if cmd.Committed < 0 {
		return command.Usagef("--committed %d: want 0 or more", cmd.Committed)
	}
	for _, n := range cmd.Prompts {
		if n < 1 {
			return command.Usagef("--prompts %d: want 1 or more", n)
		}
	}
	kind, target := bench.HeadTarget(cmd.Shape)
	ofHead := kind != nil && cmd.Model == ""
	switch {
	case cmd.Rows != nil && (ofHead || cmd.Heads != nil):
		return command.Usagef("--rows %d: drafts have as many rows as their trees: leave it out", cmd.Rows)
	case cmd.Prompts != nil && (ofHead || cmd.Heads != nil):
		return command.Usagef("--prompts %d: drafts are measured: leave it out", cmd.Prompts)
	case cmd.Heads != nil && ofHead:
		return command.Usagef("--heads %v: --shape %s is a head: name its target's shape", cmd.Heads, cmd.Shape)
	case cmd.HeadType != "" && cmd.Heads == nil:
		return command.Usagef("--head-type %s: is of the heads that --heads names", cmd.HeadType)
	case cmd.Rows == nil:
		cmd.Rows = []int{1, 2, 4, 8, 16, 32, 64, 512}
	}
	ctx, stop := p.Context()
	defer stop()
	if ofHead {
		return cmd.drafts(ctx, p, kind, target)
	}
	m, path, o, err := cmd.open(ctx, p)
	if path != "" && path != cmd.Model {
		defer os.RemoveAll(filepath.Dir(path))
	}
	if err != nil {
		return err
	}
	defer m.Close()
	most := m.Context() // a pass adds a token
	if err := cmp.Or(within("committed", 0, most-1, cmd.Committed), within("prompts", 1, most, cmd.Prompts...)); err != nil {
		return err
	}
	if cmd.Heads != nil {
		return cmd.heads(ctx, p, m, path, o.Shape)
	}
	o.Rows, o.Prompts = cmd.Rows, cmd.Prompts
	o.Rounds, o.Committed = cmd.Rounds, cmd.Committed
	bar := p.Progress("measuring", false)
	o.Progress = func(done, total int) { bar.Set(int64(done), int64(total)) }
	r, err := bench.Cost(ctx, m, o)
	bar.End()
	if err != nil {
		return err
	}
	if p.JSON {
		return p.PrintJSON(r)
	}
	fmt.Fprintf(p.Stdout, "%s %s, %s of weights, %d threads, %s; %d tokens in the cache, %s each as %s, of which a pass reads %s\n",
		r.Shape, r.Type, command.Size(int64(r.Weights)), r.Threads, r.CPU, r.Committed, command.Size(int64(r.Cache)), r.KV,
		command.Size(int64(r.CacheRead)))
	if r.States > 0 {
		fmt.Fprintf(p.Stdout, "rows of recurrent layers are freed once a state has them: the sequence and its largest pass take %s, of which %d states %s each\n",
			command.Size(r.Sequence), r.States, command.Size(int64(r.State)))
	}
	fmt.Fprintf(p.Stdout, "read bandwidth %.1f GB/s, multiply peak %.1f Gop/s; plain decoding reads at %.2f of the bandwidth\n\n", r.Bandwidth, r.Peak, r.ReadShare)
	t := tabwriter.NewWriter(p.Stdout, 0, 0, 3, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "rows\tms\tover 1 row\troof ms\tover roof\tpredicted\texperts\texpected\t")
	for _, row := range r.Rows {
		fmt.Fprintf(t, "%d\t%.2f\t%.2f\t%.2f\t%.2f\t%.2f\t%d\t%.2f\t\n", row.N, row.MS, row.Ratio, row.RoofMS, row.OverRoof,
			row.Predicted, row.Experts, row.Expected)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, x := range r.Prompts {
		fmt.Fprintf(p.Stdout, "a prompt of %d tokens takes %.0f ms, %.1f tokens/s\n", x.N, x.MS, x.TokensPerS)
	}
	return nil
}

// within checks that a flag's numbers are in a range.
func within(flag string, low, top int, numbers ...int) error {
	for _, n := range numbers {
		if n < low || n > top {
			return command.Usagef("--%s %d: want %d to %d", flag, n, low, top)
		}
	}
	return nil
}

// open opens the model to measure and prints its name and place: a file of random weights is in a folder of its own.
func (cmd *benchCostCmd) open(ctx context.Context, p *command.Program) (m *model.Model, path string, o bench.CostOptions,
	err error) {
	if cmd.Model != "" {
		c, err := readContents(cmd.Model, false, false)
		if err != nil {
			return nil, "", o, err
		}
		o.Shape, o.Type = filepath.Base(hub.Shown(cmd.Model)), kernelType(c.mainType())
		m, err := p.OpenWeights(cmd.Model, cmd.KVFlag)
		return m, cmd.Model, o, err
	}
	shape, typ, err := command.ShapeAndType(cmd.Shape, cmd.Type)
	if err != nil {
		return nil, "", o, err
	}
	o.Shape, o.Type = shape.Name, kernelType(typ.String())
	dir, err := os.MkdirTemp("", "grove-bench-")
	if err != nil {
		return nil, "", o, err
	}
	path = filepath.Join(dir, "random.gguf")
	bar := p.Progress("making weights", true)
	err = synth.Write(ctx, path, shape, synth.Options{Type: typ, Seed: 1, Repeat: cmd.Heads != nil,
		Progress: bar.Set})
	bar.End()
	if err == nil {
		m, err = p.OpenWeights(path, cmd.KVFlag)
	}
	return m, path, o, err
}

// kernelType returns the type in which tensors of the named type are multiplied.
func kernelType(name string) gemm.Type {
	t, err := tensor.ParseType(name)
	if err != nil {
		return gemm.F32
	}
	return model.ProductType(t, 256)
}
