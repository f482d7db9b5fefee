package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/grovellm/grove/internal/bench"
	"github.com/grovellm/grove/internal/command"
	"github.com/grovellm/grove/internal/kernels/par"
	"github.com/grovellm/grove/internal/lab/report"
)

type tablesCmd struct {
	Only    []string `help:"Only these measurements (see --list)." placeholder:"NAME"`
	List    bool     `help:"List the measurements, and about how long each takes on two cores."`
	Dir     string   `help:"Folder that keeps each run, so that the same command can continue (${default})." default:"grove-bench" placeholder:"DIR"`
	Program string   `help:"Grove to measure; default: the one in this program's folder, or on the PATH." placeholder:"FILE"`
	Docs    string   `help:"Folder docs of grove's source, whose results are compared with (${default})." default:"docs" placeholder:"DIR"`
	Write   bool     `help:"Put the results into --docs, and rewrite the tables there."`
	Measure bool     `help:"Measure; with --no-measure, --write only writes the tables from the results in --docs." default:"true" negatable:""`
}

func (tablesCmd) Help() string {
	return `Measures the tables of docs/benchmarks again, with the commands that the tables name, and reports changes larger than the
noise: the spread of the runs, and 5 % for times. Times of another machine are not compared.

Run it at the root of grove's source: it reads models/ there. GROVE_DATA names the folder of prompts and texts.
Each command runs once before any runs again. Ctrl-C ends it; the same command continues with the missing runs.

Examples:
    grove-lab tables --list
    grove-lab tables --write
    grove-lab tables --only pass-cost,speculation --json
    grove-lab tables --no-measure --write`
}

// measurements is replaced in tests.
var measurements = report.Measurements

func (cmd *tablesCmd) Run(p *command.Program) error {
	every := measurements()
	list, err := chosen(every, cmd.Only)
	if err != nil {
		return err
	}
	if cmd.List {
		return listMeasurements(p, list)
	}
	ctx, stop := p.Context()
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

// options returns how to measure the program, and determines its commit.
func (cmd *tablesCmd) options(ctx context.Context, p *command.Program) (o report.MeasureOptions, err error) {
	own, err := os.Executable()
	if err != nil {
		return o, err
	}
	file := cmd.Program
	if file == "" {
		if file, err = findGrove(own); err != nil {
			return o, err
		}
	}
	var built struct{ Revision, Go string }
	out, err := runProgram(p, ctx, file, "version", "--json")
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
		Dir: cmd.Dir, Machine: bench.Machine(), Commit: built.Revision, Go: built.Go, Threads: threads, Log: p.Logf,
		Run: func(ctx context.Context, program string, args []string) ([]byte, error) {
			run := file
			if program == p.Name {
				run = own
			}
			return runProgram(p, ctx, run, append([]string{fmt.Sprint("--threads=", threads)}, args...)...)
		},
		Progress: func(what string, left time.Duration) {
			fmt.Fprintf(p.Stderr, "%s: %s; about %v left\n", p.Name, what, left.Round(time.Second))
		},
	}, nil
}

// findGrove finds the command that users run: next to this program, whose path is own, or on the PATH.
func findGrove(own string) (string, error) {
	neighbour := filepath.Join(filepath.Dir(own), "grove"+filepath.Ext(own))
	if _, err := os.Stat(neighbour); err == nil {
		return neighbour, nil
	}
	file, err := exec.LookPath("grove")
	if err != nil {
		return "", command.Usagef("--program: no grove is beside %s nor on the PATH: go build ./cmd/grove, and name it", own)
	}
	return file, nil
}

// chosen returns the measurements with these names, or all if there are no names.
func chosen(list []report.Measurement, names []string) ([]report.Measurement, error) {
	if len(names) == 0 {
		return list, nil
	}
	for _, name := range names {
		if !slices.ContainsFunc(list, func(m report.Measurement) bool { return m.Name == name }) {
			return nil, command.Usagef("--only %s: there is no such measurement: see grove-lab tables --list", name)
		}
	}
	return slices.DeleteFunc(slices.Clone(list), func(m report.Measurement) bool {
		return !slices.Contains(names, m.Name)
	}), nil
}

// runProgram runs a grove command in a process of its own, and returns what it prints.
func runProgram(p *command.Program, ctx context.Context, file string, args ...string) ([]byte, error) {
	child := exec.CommandContext(ctx, file, args...)
	child.Cancel = func() error { return child.Process.Signal(os.Interrupt) }
	child.WaitDelay = 10 * time.Second
	child.Stderr = p.Stderr
	out, err := child.Output()
	return out, cmp.Or(ctx.Err(), err)
}

func listMeasurements(p *command.Program, list []report.Measurement) error {
	if p.JSON {
		return p.PrintJSON(list)
	}
	t := tabwriter.NewWriter(p.Stdout, 0, 0, 2, ' ', 0)
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
func (cmd *tablesCmd) show(p *command.Program, results []*report.Measured) error {
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
		return p.PrintJSON(all)
	}
	for _, c := range all {
		switch {
		case c.Reason != "":
			fmt.Fprintf(p.Stdout, "%s: %s\n", c.Name, c.Reason)
		case len(c.Changes) == 0:
			fmt.Fprintf(p.Stdout, "%s: no change\n", c.Name)
		}
		for _, change := range c.Changes {
			fmt.Fprintln(p.Stdout, change)
		}
	}
	return nil
}
