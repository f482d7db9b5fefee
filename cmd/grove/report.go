package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/grovellm/grove/internal/lab/report"
)

type reportCmd struct {
	modelFlags

	Quick  bool     `help:"Few prompts and short outputs: minutes, and rough figures."`
	Only   []string `help:"Only these experiments: ${experiments}." placeholder:"NAME"`
	Dir    string   `help:"Folder of the report (${default})." default:"grove-report" placeholder:"DIR"`
	Data   string   `env:"GROVE_DATA" help:"Folder with prompts/, math/ and prose/ (${default})." default:"../shared/data" placeholder:"DIR"`
	GoRoot string   `name:"goroot" help:"Go toolchain whose library the suite go reads; default: the go command's." placeholder:"DIR"`
}

func (reportCmd) Help() string {
	return `Runs the experiments of the five papers on a model: speed, trees at one budget, trees by budget, shortlists, merged trees,
adaptation, load. Writes DIR/report.html, which needs no other file, and DIR/report.json: what was found, what the papers
found, and whether their orders hold.

Drafters, suites and heads that are not there are left out, and the page says so. Without --model, the embedded model is
padded to 500 million parameters (--quick: 200), so that speeds are those of a larger model.

Ctrl-C ends it with the experiments that are finished. The same command goes on with the others.

Examples:
    grove report --quick
    grove report -m qwen3-0.6b-q8_0.gguf --head eagle3.gguf --dir qwen3
    grove report --quick --only dynatree-table1,merge --json`
}

func (cmd *reportCmd) Run(p *program) error {
	experiments := report.Experiments()
	for _, name := range cmd.Only {
		if !slices.ContainsFunc(experiments, func(e report.Experiment) bool { return e.Name == name }) {
			return usagef("--only %s: want one of %s", name, experimentNames())
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
	ctx, stop := p.context()
	defer stop()
	m, err := cmd.open(p)
	if err != nil {
		return err
	}
	defer p.close(m)
	o := report.Options{Model: m, ModelName: ownName(m.Target().Model, cmd.Model), Dir: cmd.Dir, Quick: cmd.Quick, Data: cmd.Data, GoRoot: findGoRoot(cmd.GoRoot), Log: p.logf}
	if version, revision := buildVersion(); revision != "" {
		o.Version = fmt.Sprintf("%s (%s)", version, revision)
	} else {
		o.Version = version
	}
	bar := p.progress("measuring", false)
	o.Progress = func(done, total int) { bar.set(int64(done), int64(total)) }
	r, err := report.Run(ctx, o, experiments)
	bar.end()
	if len(r.Results) == 0 {
		return err
	}
	if p.JSON {
		return errors.Join(p.printJSON(r), err)
	}
	for _, result := range r.Results {
		fmt.Fprintf(p.stdout, "%s\n", result.Title)
		for _, f := range result.Findings {
			fmt.Fprintf(p.stdout, "  %s\n", f.Text)
		}
		for _, left := range result.Left {
			fmt.Fprintf(p.stdout, "  left out: %s\n", left)
		}
	}
	fmt.Fprintf(p.stdout, "\n%s\n", filepath.Join(cmd.Dir, "report.html"))
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
