package main

import (
	"fmt"

	"github.com/grovellm/grove/bench"
	"github.com/grovellm/grove/sample"
	"github.com/grovellm/grove/speculate"
)

type benchSpecCmd struct {
	modelFlags

	Preset string   `help:"An experiment with its suites, methods and settings, of which flags replace some; --list lists them." placeholder:"NAME" group:"What"`
	Suite  []string `name:"suite" help:"Suites, separated by commas; may be given several times. A name of --list or the path of a jsonl file; :chars=N after it cuts the prompts, :field=NAME names the field that has them. Without one: go." placeholder:"NAME,..." sep:"none" group:"What"`
	Many   []string `name:"methods" help:"Methods, separated by commas: plain and drafters with options, as fixed:d=8,b=3,dynatree. Without any: plain, lookup and those whose draft model or head there is." placeholder:"NAME,..." sep:"none" group:"What"`
	One    []string `name:"method" help:"One method; may be given several times. With settings of its own after @: budget=N, coupled, rejection, controller, no-controller, name=NAME." placeholder:"METHOD" sep:"none" group:"What"`
	List   bool     `help:"List suites, presets and drafters." group:"What"`

	Prompts   int   `help:"Prompts of a suite, evenly spread; 0 for 8." placeholder:"N" group:"How much"`
	WarmUp    *int  `help:"Prompts to warm up with, left out of the figures; 1 by default." placeholder:"N" group:"How much"`
	MaxTokens int   `short:"n" help:"Tokens of an output at most; 0 for 256." placeholder:"N" group:"How much"`
	Repeats   int   `help:"Measure everything so many times." default:"1" placeholder:"N" group:"How much"`
	Lengths   []int `help:"Lengths of outputs to report besides the whole; powers of 2 by default." placeholder:"N" group:"How much"`
	IgnoreEnd bool  `help:"Go on after the model's end-of-text token." group:"How much"`
	Chat      bool  `help:"Put questions into the model's chat template." group:"How much"`
	Memory    bool  `help:"Measure each method's peak memory too, in a process of its own." group:"How much"`

	Temperature  []float32 `short:"t" help:"0 takes the likeliest token; of several each suite is measured at each." placeholder:"T" group:"Sampling"`
	TopP         float32   `help:"Sample among the fewest tokens whose probability reaches P." default:"1" placeholder:"P" group:"Sampling"`
	Seed         []uint64  `name:"seed" help:"Seeds; above temperature 0 each prompt is decoded with each." default:"0" placeholder:"N" group:"Sampling"`
	Accept       []string  `help:"Acceptance rule: coupled or rejection; of several each drafter is run with each." placeholder:"RULE" group:"Speculation"`
	Budget       []int     `short:"b" help:"Nodes of a draft tree at most, root included; ${budget} by default. Of several each drafter is run with each." placeholder:"N" group:"Speculation"`
	NoController bool      `help:"Every round drafts and verifies as much as its budget allows." group:"Speculation"`

	Trained   string `help:"Folder of heads as grove train leaves them, and of token ranks, for presets that compare such." placeholder:"DIR" group:"Where"`
	Data      string `env:"GROVE_DATA" help:"Folder with prompts/, math/ and prose/; ${default} by default." default:"../shared/data" placeholder:"DIR" group:"Where"`
	GoRoot    string `name:"goroot" help:"The Go toolchain whose library the suite go reads; asked of the go command by default." placeholder:"DIR" group:"Where"`
	Out       string `help:"Write the report (JSON and Markdown) and figures (PNG and SVG) into this folder." placeholder:"DIR" group:"Where"`
	Bandwidth bool   `help:"Measure the memory's read bandwidth before and after each suite." default:"true" negatable:"" group:"Where"`
}

// maxBudget is the largest tree that --budget takes.
const maxBudget = 4096

func (benchSpecCmd) Help() string {
	return `Decodes prompts with each method in turn, in one run: speed over plain decoding, τ (tokens committed
a pass), acceptance, and whether every token is plain decoding's. docs/bench.md says how to read it.

Prints Markdown, or JSON with --json. Ctrl-C ends it with what was measured so far.

Examples:
    grove bench spec --suite go --pad 500M
    grove bench spec --suite go,math,prose --methods plain,lookup,dynatree --json
    grove bench spec --methods eagle3,eagle3+freq,eagle3+dynaspec,eagle3+context --no-controller
    grove bench spec --method dynatree --method "fixed:d={4,8},b=2@no-controller" --out report
    grove bench spec --suite edit --methods plain,lookup,dynatree --budget 64,256
    grove bench spec --preset dynatree-table1 --pad 500M --out table1
    grove bench spec --suite questions.jsonl:field=prompt -t 1 --accept coupled,rejection --seed 1,2,3`
}

func (cmd *benchSpecCmd) Run(p *program) error {
	if cmd.List {
		return cmd.list(p)
	}
	preset := bench.Preset{Runs: []bench.PresetRun{{Suites: []string{"go"}}}}
	if cmd.Preset != "" {
		var err error
		if preset, err = bench.LookupPreset(cmd.Preset); err != nil {
			return usagef("--preset: %w", err)
		}
	}
	missing, err := preset.FindHeads(cmd.Trained)
	if err != nil {
		return usagef("--preset %s: %w", preset.Name, err)
	}
	for _, file := range missing {
		fmt.Fprintf(p.stderr, "grove bench spec: there is no %s (--trained): left out\n", file)
	}
	if err := cmd.settle(&preset); err != nil {
		return err
	}
	runs, err := cmd.runs(p, &preset)
	if err != nil {
		return err
	}
	ctx, stop := p.context()
	defer stop()
	m, err := cmd.open(p)
	if err != nil {
		return err
	}
	defer m.Close()
	if preset.Measure != "" {
		return cmd.other(ctx, p, &preset, runs, m)
	}
	target := m.Target()
	o := bench.SpecOptions{
		Target: target, ModelName: ownName(target.Model, cmd.Model), DraftName: ownName(target.Draft, cmd.DraftModel), Title: preset.Help,
		Sampling: sample.Params{TopP: cmd.TopP, Seed: cmd.Seed[0]}, Temperatures: cmd.Temperature, Seeds: cmd.Seed,
		MaxTokens: cmd.MaxTokens, Repeats: cmd.Repeats, Lengths: cmd.Lengths, IgnoreEnd: cmd.IgnoreEnd, Chat: cmd.Chat,
	}
	if o.Runs, err = cmd.methods(runs, target); err != nil {
		return err
	}
	if cmd.Memory {
		o.Memory = cmd.memoryOf(p)
	}
	if cmd.Bandwidth {
		o.Between = func(r *bench.SpecReport) {
			if b, err := bench.Bandwidth(m.Threads()); err == nil {
				r.Bandwidth = append(r.Bandwidth, b/1e9)
			}
		}
	}
	bar := p.specProgress()
	o.Progress = bar.generation
	report, err := bench.Spec(ctx, o)
	bar.end()
	if report == nil || len(report.Suites) == 0 {
		return err
	}
	if printErr := cmd.print(p, report, &preset); printErr != nil {
		return printErr
	}
	return err
}

// settle checks the flags, and lets the preset fill in what they leave open.
func (cmd *benchSpecCmd) settle(preset *bench.Preset) error {
	for _, f := range []struct {
		name   string
		v, top int
	}{{"prompts", cmd.Prompts, 1e6}, {"max-tokens", cmd.MaxTokens, 1e6}} {
		if f.v < 0 || f.v > f.top {
			return usagef("--%s %d: want 0 (the default) to %d", f.name, f.v, f.top)
		}
	}
	for _, n := range cmd.Budget {
		switch {
		case n == 1:
			return usagef("--budget 1: that is plain decoding: want 2 or more")
		case n < 0 || n > maxBudget || n == 0 && len(cmd.Budget) > 1:
			return usagef("--budget %d: want 2 to %d nodes", n, maxBudget)
		}
	}
	if cmd.Repeats < 1 || cmd.Repeats > 1000 {
		return usagef("--repeats %d: want 1 to 1000", cmd.Repeats)
	}
	for _, rule := range cmd.Accept {
		if rule != speculate.Coupled && rule != speculate.Rejection {
			return usagef("--accept %q: want %s or %s", rule, speculate.Coupled, speculate.Rejection)
		}
	}
	if len(cmd.Temperature) == 0 {
		cmd.Temperature = preset.Temperatures
	}
	if len(cmd.Temperature) == 0 {
		cmd.Temperature = []float32{0}
	}
	for _, t := range cmd.Temperature {
		params := sample.Params{Temperature: t, TopP: cmd.TopP}
		if err := params.Validate(); err != nil {
			return usagef("%w", err)
		}
	}
	if cmd.Prompts == 0 {
		cmd.Prompts = preset.Prompts
	}
	if cmd.Prompts == 0 {
		cmd.Prompts = 8
	}
	if cmd.WarmUp == nil {
		if cmd.WarmUp = preset.WarmUp; cmd.WarmUp == nil {
			one := 1
			cmd.WarmUp = &one
		}
	}
	if *cmd.WarmUp < 0 || *cmd.WarmUp > 1e6 {
		return usagef("--warm-up %d: want 0 or more", *cmd.WarmUp)
	}
	if cmd.MaxTokens == 0 {
		cmd.MaxTokens = preset.MaxTokens
	}
	if cmd.MaxTokens == 0 {
		cmd.MaxTokens = bench.DefaultMaxTokens
	}
	if len(cmd.Budget) == 0 {
		cmd.Budget = preset.Budgets
	}
	if cmd.Lengths == nil {
		cmd.Lengths = preset.Lengths
	}
	cmd.NoController = cmd.NoController || preset.NoController
	cmd.Memory = cmd.Memory || preset.Memory
	return nil
}

// print writes the report: to the standard output, and to the folder if there is one.
func (cmd *benchSpecCmd) print(p *program, r *bench.SpecReport, preset *bench.Preset) error {
	if p.JSON {
		if err := p.printJSON(r); err != nil {
			return err
		}
	} else if err := r.Markdown(p.stdout, preset.Tables); err != nil {
		return err
	}
	if cmd.Out == "" {
		return nil
	}
	files, err := r.Save(cmd.Out, preset.Tables, preset.Figures)
	for _, f := range files {
		fmt.Fprintln(p.stderr, f)
	}
	return err
}
