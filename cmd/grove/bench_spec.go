package main

import (
	"cmp"
	"fmt"
	"io"

	"github.com/grovellm/grove/internal/bench"
	"github.com/grovellm/grove/internal/command"
	"github.com/grovellm/grove/internal/inside"
	"github.com/grovellm/grove/internal/speculate"
	"github.com/grovellm/grove/sample"
)

type benchSpecCmd struct {
	command.ModelFlags

	Preset string   `help:"An experiment: its suites, methods and settings, which flags replace (see --list)." placeholder:"NAME" group:"What to measure"`
	Suite  []string `name:"suite" help:"Suites of prompts (see --list) or JSONL files; NAME:chars=N cuts prompts, NAME:times=N repeats them N times, NAME:field=KEY names their field. Default: go." placeholder:"NAME,..." sep:"none" group:"What to measure"`
	Many   []string `name:"methods" help:"plain and drafters with options: lookup,fixed:d=8,b=3. Default: plain and every drafter that is ready." placeholder:"NAME,..." sep:"none" group:"What to measure"`
	One    []string `name:"method" help:"One method; may be repeated. Settings follow @: budget=N, coupled, rejection, controller, no-controller, paper, memory, name=NAME." placeholder:"METHOD" sep:"none" group:"What to measure"`
	List   bool     `help:"List suites, presets and drafters." group:"What to measure"`

	Prompts    int   `help:"Prompts of each suite; 0 means 8." placeholder:"N" group:"How much"`
	WarmUp     *int  `help:"Warm-up prompts, which do not count; default: 1." placeholder:"N" group:"How much"`
	MaxTokens  int   `short:"n" help:"Generate at most N tokens; 0 means 256." placeholder:"N" group:"How much"`
	Repeats    int   `help:"Measure everything N times, 1 to 1000 (${default})." default:"1" placeholder:"N" group:"How much"`
	Lengths    []int `help:"Also report the first N tokens of the outputs; default: powers of 2." placeholder:"N" group:"How much"`
	IgnoreEnd  bool  `help:"Continue past the model's end-of-text token." group:"How much"`
	Chat       bool  `help:"Put questions into the model's chat template." group:"How much"`
	PeakMemory bool  `help:"Measure peak memory too, in a process for each method." group:"How much"`

	Temperature  []float32 `short:"t" help:"0 takes the most probable token; 0 to 100. Suites are measured at each." placeholder:"T" group:"Sampling"`
	TopP         float32   `help:"Sample from the fewest tokens with total probability P, 0 to 1 (${default})." default:"1" placeholder:"P" group:"Sampling"`
	Seed         []uint64  `name:"seed" help:"Sampling seeds; prompts are decoded with each (${default})." default:"0" placeholder:"N" group:"Sampling"`
	Accept       []string  `help:"Acceptance rules: coupled or rejection; drafters run with each." placeholder:"RULE" group:"Speculation"`
	Budget       []int     `short:"b" help:"Maximum nodes of a draft tree, 2 to 4096; drafters run with each (${budget})." placeholder:"N" group:"Speculation"`
	NoController bool      `help:"Draft and verify whole trees in every round, even when they do not pay off." group:"Speculation"`

	Trained   string `help:"Folder of heads and token ranks that grove train wrote, for presets that compare them." placeholder:"DIR" group:"Files"`
	Data      string `env:"GROVE_DATA" help:"Folder with prompts/, math/ and prose/ (${default})." default:"../shared/data" placeholder:"DIR" group:"Files"`
	GoRoot    string `name:"goroot" help:"Go toolchain whose library the suite go reads; default: the go command's." placeholder:"DIR" group:"Files"`
	Out       string `help:"Write the report (JSON, Markdown) and figures (PNG, SVG) into this folder." placeholder:"DIR" group:"Files"`
	Bandwidth bool   `help:"Measure the memory's read bandwidth before and after each suite." default:"true" negatable:"" group:"Files"`
}

// maxBudget is the largest tree that --budget takes.
const maxBudget = 4096

func (benchSpecCmd) Help() string {
	return `Decodes prompts with each method in turn and reports speed over plain decoding, tokens per pass (τ), acceptance,
and whether every token is the same. docs/bench.md explains the report.

Prints Markdown, or JSON with --json. Ctrl-C ends it with the results so far.

Examples:
    grove bench spec --suite go --pad 500M
    grove bench spec --suite go,math,prose --methods plain,lookup,dynatree --json
    grove bench spec --methods eagle3,eagle3+freq,eagle3+dynaspec --no-controller
    grove bench spec --method dynatree --method "fixed:d={4,8},b=2@no-controller" --out report
    grove bench spec --preset dynatree-table1 --pad 500M --out table1
    grove bench spec --suite questions.jsonl:field=prompt -t 1 --accept coupled,rejection --seed 1,2,3`
}

func (cmd *benchSpecCmd) Run(p *command.Program) error {
	if cmd.List {
		return cmd.list(p)
	}
	preset := bench.Preset{Runs: []bench.PresetRun{{Suites: []string{"go"}}}}
	if cmd.Preset != "" {
		var err error
		if preset, err = bench.LookupPreset(cmd.Preset); err != nil {
			return command.Usagef("--preset: %w", err)
		}
	}
	missing, err := preset.FindHeads(cmd.Trained)
	if err != nil {
		return command.Usagef("--preset %s: %w", preset.Name, err)
	}
	for _, file := range missing {
		fmt.Fprintf(p.Stderr, "grove bench spec: there is no %s (--trained): it is left out\n", file)
	}
	if err := cmd.settle(&preset); err != nil {
		return err
	}
	runs, err := cmd.runs(p, &preset)
	if err != nil {
		return err
	}
	ctx, stop := p.Context()
	defer stop()
	if err := command.OutFolder(cmd.Out); err != nil {
		return err
	}
	m, err := cmd.Open(p)
	if err != nil {
		return err
	}
	defer m.Close()
	if preset.Measure != "" {
		return cmd.faithful(ctx, p, &preset, runs, m)
	}
	target := inside.Target(m)
	o := bench.SpecOptions{
		Target: target, ModelName: command.OwnName(target.Model, cmd.Model), DraftName: command.OwnName(target.Draft,
			cmd.DraftModel), Title: preset.Help,
		Sampling: sample.Params{TopP: cmd.TopP, Seed: cmd.Seed[0]}, Temperatures: cmd.Temperature, Seeds: cmd.Seed,
		MaxTokens: cmd.MaxTokens, Repeats: cmd.Repeats, Lengths: cmd.Lengths, IgnoreEnd: cmd.IgnoreEnd, Chat: cmd.Chat,
	}
	if o.Runs, err = cmd.methods(runs, target); err != nil {
		return err
	}
	if cmd.PeakMemory {
		o.Memory = cmd.memoryOf(p)
	}
	if cmd.Bandwidth {
		o.Between = func(r *bench.SpecReport) {
			if b, err := bench.Bandwidth(inside.Target(m).Model.Threads()); err == nil {
				r.Bandwidth = append(r.Bandwidth, b/1e9)
			}
		}
	}
	bar := newSpecProgress(p)
	o.Progress = bar.generation
	report, err := bench.Spec(ctx, o)
	bar.End()
	if report == nil || len(report.Suites) == 0 {
		return err
	}
	return cmp.Or(printReport(p, report, cmd.Out,
		func(w io.Writer) error { return report.Markdown(w, preset.Tables) },
		func(dir string) ([]string, error) { return report.Save(dir, preset.Tables, preset.Figures) }), err)
}

// settle checks the flags, and fills in from the preset those that were not given.
func (cmd *benchSpecCmd) settle(preset *bench.Preset) error {
	for _, f := range []struct {
		name   string
		v, top int
	}{{"prompts", cmd.Prompts, 1e6}, {"max-tokens", cmd.MaxTokens, 1e6}} {
		if f.v < 0 || f.v > f.top {
			return command.Usagef("--%s %d: want 0 (the default) to %d", f.name, f.v, f.top)
		}
	}
	if cmd.Adapt != "" || cmd.Memory != "" {
		return command.Usagef("--adapt, --memory (GROVE_ADAPT, GROVE_MEMORY): methods say it, and these do nothing here: " +
			"write NAME+adapt with --learned DIR, or NAME@memory, and leave them out")
	}
	if len(cmd.Seed) == 0 {
		return command.Usagef("--seed: want a number, or several")
	}
	for _, n := range cmd.Budget {
		switch {
		case n == 1:
			return command.Usagef("--budget 1: that is plain decoding: want 2 or more")
		case n < 0 || n > maxBudget || n == 0 && len(cmd.Budget) > 1:
			return command.Usagef("--budget %d: want 2 to %d nodes", n, maxBudget)
		}
	}
	if err := within("repeats", 1, 1000, cmd.Repeats); err != nil {
		return err
	}
	for _, rule := range cmd.Accept {
		if rule != speculate.Coupled && rule != speculate.Rejection {
			return command.Usagef("--accept %q: want %s or %s", rule, speculate.Coupled, speculate.Rejection)
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
			return err
		}
	}
	cmd.Prompts = cmp.Or(cmd.Prompts, preset.Prompts, 8)
	if cmd.WarmUp == nil {
		cmd.WarmUp = preset.WarmUp
		if cmd.WarmUp == nil {
			cmd.WarmUp = new(1)
		}
	}
	if *cmd.WarmUp < 0 || *cmd.WarmUp > 1e6 {
		return command.Usagef("--warm-up %d: want 0 or more", *cmd.WarmUp)
	}
	cmd.MaxTokens = cmp.Or(cmd.MaxTokens, preset.MaxTokens, bench.DefaultMaxTokens)
	if len(cmd.Budget) == 0 {
		cmd.Budget = preset.Budgets
	}
	if cmd.Lengths == nil {
		cmd.Lengths = preset.Lengths
	}
	cmd.NoController = cmd.NoController || preset.NoController
	cmd.PeakMemory = cmd.PeakMemory || preset.Memory
	cmd.Chat = cmd.Chat || preset.Chat
	return nil
}

// specProgress shows how many generations bench spec has done; with --verbose it names each.
type specProgress struct {
	*command.Progress
	p *command.Program
}

func newSpecProgress(p *command.Program) *specProgress {
	return &specProgress{p.Progress("measuring", false), p}
}

func (s *specProgress) generation(q bench.SpecProgress) {
	s.p.Logf("%d of %d: suite %s, %s, method %s", q.Done+1, q.Total, q.Suite, q.Prompt, q.Method)
	s.Set(int64(q.Done), int64(q.Total))
}
