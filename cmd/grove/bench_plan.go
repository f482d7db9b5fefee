// The work of grove bench spec, from its flags.

package main

import (
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/grovellm/grove/internal/bench"
	"github.com/grovellm/grove/internal/command"
	"github.com/grovellm/grove/internal/drafters/registry"
	"github.com/grovellm/grove/internal/speculate"
)

// plannedRun is a suite that has been read, with its methods as text.
type plannedRun struct {
	suite   bench.Suite
	methods []string // if empty, the default ones
}

// runs reads the suites. Flags replace the preset's suites and methods; a suite of the preset's keeps its methods.
func (cmd *benchSpecCmd) runs(p *command.Program, preset *bench.Preset) ([]plannedRun, error) {
	plan := preset.Runs
	var methods []string
	for _, list := range cmd.Many {
		methods = append(methods, bench.SplitList(list)...)
	}
	methods = append(methods, cmd.One...)
	if len(cmd.Suite) > 0 {
		plan = nil
	}
	for _, list := range cmd.Suite {
		for _, suite := range bench.SplitList(list) {
			kind, _, _ := strings.Cut(suite, ":")
			has := func(r bench.PresetRun) bool { return slices.Contains(r.Suites, kind) }
			at := max(slices.IndexFunc(preset.Runs, has), 0)
			plan = append(plan, bench.PresetRun{Suites: []string{suite}, Methods: preset.Runs[at].Methods})
		}
	}
	o := bench.SuiteOptions{Data: cmd.Data, GoRoot: cmd.GoRoot, N: cmd.Prompts, Spare: *cmd.WarmUp}
	var runs []plannedRun
	for _, r := range plan {
		names, err := bench.Expand(r.Suites)
		if err != nil {
			return nil, command.Usagef("--suite %w", err)
		}
		for _, name := range names {
			if kind, _, _ := strings.Cut(name, ":"); kind == "go" || kind == "edit" {
				o.GoRoot = command.FindGoRoot(cmd.GoRoot)
			}
			if slices.ContainsFunc(runs, func(r plannedRun) bool { return r.suite.Name == name }) {
				return nil, command.Usagef("--suite %s is listed twice", name)
			}
			suite, err := bench.OpenSuite(name, o)
			if err != nil {
				return nil, err
			}
			p.Logf("suite %s: %d prompts, %d to warm up", name, len(suite.Prompts), len(suite.Spare))
			run := plannedRun{suite, r.Methods}
			if len(methods) > 0 {
				run.methods = methods
			}
			runs = append(runs, run)
		}
	}
	return runs, nil
}

// methods reads the methods of the runs.
func (cmd *benchSpecCmd) methods(runs []plannedRun, target registry.Target) (out []bench.SpecRun, err error) {
	base := bench.Method{Uncontrolled: cmd.NoController}
	if len(cmd.Accept) == 1 {
		base.Accept = cmd.Accept[0]
	}
	var budgets []string
	for _, n := range cmd.Budget {
		base.Budget = n
		budgets = append(budgets, fmt.Sprintf("budget=%d", n))
	}
	for _, r := range runs {
		texts := r.methods
		if len(texts) == 0 {
			texts = append([]string{bench.Plain}, comparedDrafters(target)...)
		}
		if len(cmd.Accept) > 1 {
			texts = bench.Cross(texts, cmd.Accept, speculate.Coupled, speculate.Rejection)
		}
		if len(budgets) > 1 {
			texts = bench.Cross(texts, budgets, "budget=")
		}
		run := bench.SpecRun{Suite: r.suite}
		if run.Methods, err = bench.ParseMethods(texts, base); err != nil {
			return nil, command.Usagef("%w", err)
		}
		out = append(out, run)
	}
	return out, nil
}

// list prints the available suites, presets and drafters.
func (cmd *benchSpecCmd) list(p *command.Program) error {
	suites := bench.SuiteNames(cmd.Data)
	var presets [][2]string
	for _, q := range bench.Presets() {
		presets = append(presets, [2]string{q.Name, q.Help})
	}
	if p.JSON {
		return p.PrintJSON(map[string]any{"suites": suites, "presets": presets, "drafters": drafterNames()})
	}
	t := tabwriter.NewWriter(p.Stdout, 0, 0, 2, ' ', 0)
	for _, part := range []struct {
		title string
		rows  [][2]string
	}{{"Suites:", suites}, {"Presets:", presets}} {
		fmt.Fprintln(t, part.title)
		for _, row := range part.rows {
			fmt.Fprintf(t, "  %s\t%s\n", row[0], row[1])
		}
		fmt.Fprintln(t)
	}
	fmt.Fprintf(t, "Drafters: %s.\nA method is %s.\n", strings.Join(drafterNames(), ", "),
		strings.ReplaceAll(bench.MethodUsage, "\n", " "))
	return t.Flush()
}
