package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/grovellm/grove/internal/bench"
	"github.com/grovellm/grove/internal/command"
	"github.com/grovellm/grove/internal/lab/report"
)

// asGrove is the variable with which the test program prints what grove's commands print.
const asGrove = "GROVE_TEST_AS_GROVE"

func TestMain(m *testing.M) {
	if os.Getenv(asGrove) == "" {
		os.Exit(m.Run())
	}
	args := strings.Join(os.Args[1:], " ")
	var printed any
	switch {
	case strings.Contains(args, "--no-such-flag"):
		fmt.Fprintln(os.Stderr, "unknown flag --no-such-flag")
		os.Exit(command.ExitUsage)
	case strings.HasPrefix(args, "version"):
		printed = map[string]string{}
	case strings.Contains(args, "bench cost --model tiny.gguf"):
		printed = bench.CostReport{Bandwidth: 9, Rows: []bench.RowCost{{N: 1, MS: 2}, {N: 2, MS: 3}}}
	case strings.Contains(args, "bench spec"):
		methods := []bench.MethodReport{{Name: "plain", Tau: 1}, {Name: "lookup", Tau: 2}}
		printed = bench.SpecReport{Suites: []bench.SuiteReport{{Name: "t=0", Methods: methods}, {Name: "t=1", Methods: methods}}}
	case strings.Contains(args, "bench serve"):
		printed = bench.ServeReport{Rows: []bench.ServeResult{{Drafter: "plain", Clients: 1, PerSecond: 5},
			{Drafter: "plain", Clients: 2, PerSecond: 8}}}
	}
	if err := json.NewEncoder(os.Stdout).Encode(printed); err != nil {
		panic(err)
	}
	os.Exit(0)
}

// Commands of every kind are measured; the same command takes their runs, and finds nothing changed.
func TestTables(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(asGrove, "1")
	t.Setenv("TINY", "tiny.gguf")
	list := []report.Measurement{
		{Name: "passes", Commands: []report.Command{{Labels: []string{"tiny"},
			Args: "bench cost --model $TINY --rows 1,2"}}, Tables: []report.View{
			{Name: "passes", Labels: []string{"model", "rows"}, Rows: []string{"rows.n"}, Columns: []report.Column{
				{Head: "ms", Field: "ms", Format: "%.2f"}, {Head: "GB/s", Field: "bandwidth_gbs", Format: "%.1f"}}}}},
		{Name: "methods", Commands: []report.Command{{Args: "bench spec --methods plain,lookup -t 0,1"}},
			Tables: []report.View{
				{Name: "methods", Labels: []string{"suite", "method"}, Rows: []string{"suites.name", "methods.name"},
					Columns: []report.Column{{Head: "τ", Field: "tau", Format: "%.2f"}, {Head: "over plain", Field: "tau",
						Format: "%.2f", Over: "plain"}}}}},
		{Name: "callers", Runs: 2, Commands: []report.Command{
			{Args: "bench serve --clients 2"}}, Tables: []report.View{
			{Name: "callers", Labels: []string{"drafter", "callers"}, Rows: []string{"rows.drafter.clients"},
				Columns: []report.Column{{Head: "tokens/s", Field: "tokens_per_s", Format: "%.0f"}}}}},
	}
	measurements = func() []report.Measurement { return list }
	defer func() { measurements = report.Measurements }()
	dir, docs := filepath.Join(t.TempDir(), "runs"), t.TempDir()
	type found struct {
		report.Measured
		Changes []report.Change `json:"changes"`
		Reason  string          `json:"not_compared"`
	}
	measure := func() (all []found, stderr string) {
		t.Helper()
		code, out, stderr := runLab("tables", "--program", program, "--dir", dir, "--docs", docs,
			"--threads", "1", "--json", "-v")
		if code != 0 {
			t.Fatalf("status %d\n%s", code, stderr)
		}
		if err := json.Unmarshal([]byte(out), &all); err != nil || len(all) != len(list) {
			t.Fatalf("%d results: %v\n%s", len(all), err, out)
		}
		return all, stderr
	}
	first, stderr := measure()
	if strings.Contains(stderr, "taken from") || strings.Count(stderr, " left\n") != 4 {
		t.Errorf("a first run takes results, or does not say what runs:\n%s", stderr)
	}
	for i, rows := range []int{2, 4, 2} {
		r := first[i]
		if len(r.Tables) != 1 || len(r.Tables[0].Rows) != rows || r.Threads != 1 || r.Machine == "" ||
			r.Date.IsZero() || r.Reason == "" {
			t.Errorf("%s: %+v", list[i].Name, r)
		}
		for _, row := range r.Tables[0].Rows {
			if len(row.Values[0]) != r.Runs || !(slices.Min(append(row.Values[0], 1)) > 0) {
				t.Errorf("%s, %v: runs %v", r.Name, row.Labels, row.Values)
			}
		}
		if err := r.Store(docs); err != nil {
			t.Fatal(err)
		}
	}
	second, stderr := measure()
	if strings.Count(stderr, "taken from") != 4 {
		t.Errorf("the second run does not take all 4 runs of the first:\n%s", stderr)
	}
	for _, r := range second {
		if r.Reason != "" || len(r.Changes) > 0 {
			t.Errorf("%s: %s %v", r.Name, r.Reason, r.Changes)
		}
	}
	if out := must(t, "tables", "--program", program, "--only", "callers", "--dir", dir, "--docs", docs, "--threads",
		"1"); out != "callers: no change\n" {
		t.Errorf("printed %q", out)
	}
	if out := must(t, "tables", "--list"); strings.Count(out, "\n") != len(list)+1 {
		t.Errorf("listed %q", out)
	}
	list[1].Commands[0].Args += " --no-such-flag"
	code, out, stderr := runLab("tables", "--program", program, "--dir", dir, "--docs", docs, "--threads", "1")
	if code != 1 || out != "passes: no change\ncallers: no change\n" || !strings.Contains(stderr, "--no-such-flag") {
		t.Errorf("a command that fails: status %d, %q\n%s", code, out, stderr)
	}
	for args, want := range map[string]int{"--only no-such": 2, "--write": 1} { // the test binary knows no commit
		if code, _, stderr := runLab(append([]string{"tables", "--program", program, "--dir", dir, "--docs", docs},
			strings.Fields(args)...)...); code != want || !strings.Contains(stderr, fmt.Sprint(strings.Fields(args)[0])) {
			t.Errorf("grove-lab tables %s: status %d, want %d\n%s", args, code, want, stderr)
		}
	}
}
