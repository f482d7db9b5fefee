package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/grovellm/grove/internal/bench"
	"github.com/grovellm/grove/internal/kernels/par"
	"github.com/grovellm/grove/internal/lab/report"
)

type benchAllCmd struct {
	Only    []string `help:"Only these measurements (see --list)." placeholder:"NAME"`
	List    bool     `help:"List the measurements, and how long each takes about on two cores."`
	Dir     string   `help:"Folder that keeps each run, so that the same command goes on (${default})." default:"grove-bench" placeholder:"DIR"`
	Program string   `help:"Grove to measure; default: this program." placeholder:"FILE"`
	Docs    string   `help:"Folder docs of grove's source, whose results are compared with (${default})." default:"docs" placeholder:"DIR"`
	Write   bool     `help:"Put the results into --docs, and write the tables there anew."`
	Measure bool     `help:"Measure; with --no-measure, --write only writes the tables from the results in --docs." default:"true" negatable:""`
}

func (benchAllCmd) Help() string {
	return `Measures the tables of docs/benchmarks anew, by the commands that the tables name, and says what changed by more than the
noise: the spread of the runs, and 5 % for figures of time. Figures of time of another machine are not compared.

Run it at the root of grove's source: it reads models/ there. GROVE_DATA names the folder of prompts and texts.
Each command runs once before one runs again. Ctrl-C ends it; the same command goes on with the runs that are missing.

Examples:
    grove bench all --list
    grove bench all --write
    grove bench all --only pass-cost,speculation --json
    grove bench all --no-measure --write`
}

// measurements can be others in tests.
var measurements = report.Measurements

func (cmd *benchAllCmd) Run(p *program) error {
	every := measurements()
	list, err := chosen(every, cmd.Only)
	if err != nil {
		return err
	}
	if cmd.List {
		return listMeasurements(p, list)
	}
	ctx, stop := p.context()
	defer stop()
	var results []*report.Measured
	var failed error
	if cmd.Measure {
		o, err := cmd.options(ctx, p)
		if err != nil {
			return err
		}
		if results, failed = report.Measure(ctx, o, list); len(results) == 0 {
			return failed
		}
	}
	if err := cmd.show(p, results); err != nil {
		return errors.Join(err, failed)
	}
	if cmd.Write {
		for _, r := range results {
			failed = errors.Join(failed, r.Store(cmd.Docs))
		}
		_, err := report.Documents(cmd.Docs, every, true)
		failed = errors.Join(failed, err)
	}
	return failed
}

// options say how to measure the program, and find out which commit it is of.
func (cmd *benchAllCmd) options(ctx context.Context, p *program) (o report.MeasureOptions, err error) {
	file := cmd.Program
	if file == "" {
		if file, err = os.Executable(); err != nil {
			return o, err
		}
	}
	var built struct{ Revision, Go string }
	out, err := p.runProgram(ctx, file, "version", "--json")
	if err == nil {
		err = json.Unmarshal(out, &built)
	}
	if err != nil {
		return o, fmt.Errorf("%s version: %w", file, err)
	}
	if cmd.Write && (built.Revision == "" || strings.Contains(built.Revision, "+")) {
		return o, fmt.Errorf("--write: results name the commit that they are of, and %s is of %q: build it in a clean clone with go build -buildvcs=true", file, built.Revision)
	}
	pool := par.New(p.Threads)
	defer pool.Close()
	threads := pool.Threads()
	return report.MeasureOptions{
		Dir: cmd.Dir, Machine: bench.Machine(), Commit: built.Revision, Go: built.Go, Threads: threads, Log: p.logf,
		Run: func(ctx context.Context, args []string) ([]byte, error) {
			return p.runProgram(ctx, file, append([]string{fmt.Sprint("--threads=", threads)}, args...)...)
		},
		Progress: func(what string, left time.Duration) {
			fmt.Fprintf(p.stderr, "grove: %s; about %v left\n", what, left.Round(time.Second))
		},
	}, nil
}

// chosen are the measurements of these names, all where there are none.
func chosen(list []report.Measurement, names []string) ([]report.Measurement, error) {
	if len(names) == 0 {
		return list, nil
	}
	for _, name := range names {
		if !slices.ContainsFunc(list, func(m report.Measurement) bool { return m.Name == name }) {
			return nil, usagef("--only %s: there is no such measurement: see grove bench all --list", name)
		}
	}
	return slices.DeleteFunc(slices.Clone(list), func(m report.Measurement) bool { return !slices.Contains(names, m.Name) }), nil
}

// runProgram runs a grove command in a process of its own, and returns what it prints.
func (p *program) runProgram(ctx context.Context, file string, args ...string) ([]byte, error) {
	child := exec.CommandContext(ctx, file, args...)
	child.Cancel = func() error { return child.Process.Signal(os.Interrupt) }
	child.WaitDelay = 10 * time.Second
	child.Stderr = p.stderr
	out, err := child.Output()
	return out, cmp.Or(ctx.Err(), err)
}

func listMeasurements(p *program, list []report.Measurement) error {
	if p.JSON {
		return p.printJSON(list)
	}
	t := tabwriter.NewWriter(p.stdout, 0, 0, 2, ' ', 0)
	total := 0.0
	for i := range list {
		m := &list[i]
		total += m.TotalSeconds()
		fmt.Fprintf(t, "%s\t%.1f min\t%s\n", m.Name, m.TotalSeconds()/60, m.About)
	}
	fmt.Fprintf(t, "all\t%.0f min\t\n", total/60)
	return t.Flush()
}

// show prints what changed.
func (cmd *benchAllCmd) show(p *program, results []*report.Measured) error {
	type compared struct {
		*report.Measured
		Changes []report.Change `json:"changes"`
		Reason  string          `json:"not_compared,omitempty"`
	}
	all := []compared{}
	for _, r := range results {
		old, err := report.Stored(cmd.Docs, r.Name)
		if err != nil {
			return err
		}
		c := compared{Measured: r}
		c.Changes, c.Reason = report.Compare(old, r)
		all = append(all, c)
	}
	if p.JSON {
		return p.printJSON(all)
	}
	for _, c := range all {
		switch {
		case c.Reason != "":
			fmt.Fprintf(p.stdout, "%s: %s\n", c.Name, c.Reason)
		case len(c.Changes) == 0:
			fmt.Fprintf(p.stdout, "%s: no change\n", c.Name)
		}
		for _, change := range c.Changes {
			fmt.Fprintln(p.stdout, change)
		}
	}
	return nil
}
