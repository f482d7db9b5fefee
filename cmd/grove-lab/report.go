package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/grovellm/grove/internal/command"
	"github.com/grovellm/grove/internal/inside"
	"github.com/grovellm/grove/internal/lab/report"
)

type reportCmd struct {
	command.ModelFlags

	Quick  bool     `help:"Few prompts and short outputs: minutes, and rough figures."`
	Only   []string `help:"Only these experiments: ${experiments}." placeholder:"NAME"`
	Dir    string   `help:"Folder of the report (${default})." default:"grove-report" placeholder:"DIR"`
	Data   string   `env:"GROVE_DATA" help:"Folder with prompts/, math/ and prose/ (${default})." default:"../shared/data" placeholder:"DIR"`
	GoRoot string   `name:"goroot" help:"Go toolchain whose library the suite go reads; default: the go command's." placeholder:"DIR"`
}

func (reportCmd) Help() string {
	return `Runs the experiments of the five papers on a model: speed, trees at one budget, trees by budget, shortlists, merged trees,
adaptation, load. Writes DIR/report.html, which needs no other file, and DIR/report.json: the results, those of the papers,
and whether the papers' rankings hold.

Missing drafters, suites and heads are left out, and the page says so. Without --model, the embedded model is
padded to 500 million parameters (--quick: 200), so that speeds are those of a larger model.

Ctrl-C ends it with the finished experiments. The same command continues with the others.

Examples:
    grove-lab report --quick
    grove-lab report -m qwen3-0.6b-q8_0.gguf --head eagle3.gguf --dir qwen3
    grove-lab report --quick --only dynatree-table1,merge --json`
}

func (cmd *reportCmd) Run(p *command.Program) error {
	experiments := report.Experiments()
	for _, name := range cmd.Only {
		if !slices.ContainsFunc(experiments, func(e report.Experiment) bool { return e.Name == name }) {
			return command.Usagef("--only %s: want one of %s", name, experimentNames())
		}
	}
	if len(cmd.Only) > 0 {
		experiments = slices.DeleteFunc(experiments, func(e report.Experiment) bool { return !slices.Contains(cmd.Only, e.Name) })
	}
	if cmd.Model == "" && cmd.Pad == "" {
		cmd.Pad = "500M"
		if cmd.Quick {
			cmd.Pad = "200M"
		}
	}
	ctx, stop := p.Context()
	defer stop()
	m, err := cmd.Open(p)
	if err != nil {
		return err
	}
	defer p.Close(m)
	o := report.Options{Model: m, ModelName: command.OwnName(inside.Target(m).Model, cmd.Model), Dir: cmd.Dir,
		Quick: cmd.Quick, Data: cmd.Data, GoRoot: command.FindGoRoot(cmd.GoRoot), Log: p.Logf,
		Opened: append([]string{cmd.Model, cmd.DraftModel, fmt.Sprint(cmd.ModelFlags)}, cmd.Head...)}
	if version, revision := command.BuildVersion(); revision != "" {
		o.Version = fmt.Sprintf("%s (%s)", version, revision)
	} else {
		o.Version = version
	}
	bar := p.Progress("measuring", false)
	o.Progress = func(done, total int) { bar.Set(int64(done), int64(total)) }
	r, err := report.Run(ctx, o, experiments)
	bar.End()
	if len(r.Results) == 0 {
		return err
	}
	if p.JSON {
		return errors.Join(p.PrintJSON(r), err)
	}
	for _, result := range r.Results {
		fmt.Fprintf(p.Stdout, "%s\n", result.Title)
		for _, f := range result.Findings {
			fmt.Fprintf(p.Stdout, "  %s\n", f.Text)
		}
		for _, left := range result.Left {
			fmt.Fprintf(p.Stdout, "  left out: %s\n", left)
		}
	}
	fmt.Fprintf(p.Stdout, "\n%s\n", filepath.Join(cmd.Dir, "report.html"))
	return err
}

// experimentNames lists the experiments of a report.
func experimentNames() string {
	var names []string
	for _, e := range report.Experiments() {
		names = append(names, e.Name)
	}
	return strings.Join(names, ", ")
}
