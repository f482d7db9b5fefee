package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/grovellm/grove/internal/lab/report"
)

// Commands of every kind are measured; the same command takes their runs, and finds nothing changed.
func TestTables(t *testing.T) {
	dir := t.TempDir()
	model := filepath.Join(dir, "tiny.gguf")
	prompts := filepath.Join(dir, "prompts.jsonl")
	program := filepath.Join(dir, "grove.exe")
	must(t, "synth", "tiny-qwen3", model)
	if err := os.WriteFile(prompts, []byte(`{"prompt":"one two one two one"}`+"\n"+`{"prompt":"a b c a b c"}`+"\n"),
		0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("go", "build", "-buildvcs=false", "-o", program, "../grove").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Setenv("TINY", model)
	t.Setenv("PROMPTS", prompts)
	list := []report.Measurement{
		{Name: "passes", Commands: []report.Command{{Labels: []string{"tiny"},
			Args: "bench cost --model $TINY --rows 1,2 --rounds 1 --committed 4"}}, Tables: []report.View{
			{Name: "passes", Labels: []string{"model", "rows"}, Rows: []string{"rows.n"}, Columns: []report.Column{
				{Head: "ms", Field: "ms", Format: "%.2f"}, {Head: "GB/s", Field: "bandwidth_gbs", Format: "%.1f"}}}}},
		{Name: "methods", Commands: []report.Command{{Args: "bench spec -m $TINY --suite $PROMPTS --methods plain,lookup -n 8 --prompts 2 -t 0,1 --no-controller --no-bandwidth --ignore-end"}},
			Tables: []report.View{
				{Name: "methods", Labels: []string{"suite", "method"}, Rows: []string{"suites.name", "methods.name"},
					Columns: []report.Column{{Head: "τ", Field: "tau", Format: "%.2f"}, {Head: "over plain", Field: "tau",
						Format: "%.2f", Over: "plain"}}}}},
		{Name: "callers", Runs: 2, Commands: []report.Command{
			{Args: "bench serve -m $TINY --suite $PROMPTS --drafters plain --clients 2 --requests 1 --rounds 1 --prompts 2 -n 4"}}, Tables: []report.View{
			{Name: "callers", Labels: []string{"drafter", "callers"}, Rows: []string{"rows.drafter.clients"},
				Columns: []report.Column{{Head: "tokens/s", Field: "tokens_per_s", Format: "%.0f"}}}}},
	}
	measurements = func() []report.Measurement { return list }
	defer func() { measurements = report.Measurements }()
	dir, docs := filepath.Join(dir, "runs"), t.TempDir()
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
