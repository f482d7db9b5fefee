package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/grovellm/grove/internal/bench"
)

func questions(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "questions.jsonl")
	text := `{"turns": ["one two one two one"]}
{"turns": ["a b c a b c"]}
{"turns": ["red green red green"]}
`
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestBenchHelp(t *testing.T) {
	for _, args := range []string{"bench", "bench spec", "bench memory"} {
		code, out, err := runGrove("", append(strings.Fields(args), "--help")...)
		if code != 0 || err != "" || !strings.Contains(out, "Usage: grove "+args) || !strings.Contains(out, "Example") {
			t.Errorf("grove %s --help: status %d\n%s%s", args, code, out, err)
		}
	}
	out := must(t, "", "bench", "spec", "--list")
	for _, want := range []string{"wikitext-articles", "dynatree-table1", "lookup"} {
		if !strings.Contains(out, want) {
			t.Errorf("grove bench spec --list does not list %s:\n%s", want, out)
		}
	}
}

// The report goes to the standard output and nothing else does; the folder gets it with figures.
func TestBenchSpec(t *testing.T) {
	model := tiny(t)
	file := questions(t)
	dir := filepath.Join(t.TempDir(), "report")
	args := []string{"bench", "spec", "-m", model, "--draft-model", model, "--suite", file + ":chars=15", "--methods",
		"lookup:min=2,fixed:d=2,b=2@budget=6",
		"-n", "12", "--no-bandwidth", "--ignore-end", "--prompts", "2", "--threads", "2"}
	code, out, stderr := runGrove("", append(args, "--json", "--out", dir)...)
	if code != 0 {
		t.Fatalf("status %d\n%s", code, stderr)
	}
	var r bench.SpecReport
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatalf("%v:\n%s", err, out)
	}
	if len(r.Suites) != 1 || len(r.Suites[0].Methods) != 3 || r.Pad != 0 || r.MaxTokens != 12 || r.Suites[0].WarmUp != 1 ||
		r.Suites[0].Prompts != 2 {
		t.Errorf("report %+v", r)
	}
	for i, name := range []string{"plain", "lookup:min=2", "fixed:d=2,b=2@budget=6"} {
		if m := r.Suites[0].Methods[i]; m.Name != name || m.Mismatches == nil || *m.Mismatches != 0 || m.Tokens != 24 {
			t.Errorf("method %+v, want %s with no mismatch", m, name)
		}
	}
	for _, f := range []string{"report.json", "report.md", "speedup.png", "speedup.svg"} {
		if _, err := os.Stat(filepath.Join(dir, f)); err != nil || !strings.Contains(stderr, f) {
			t.Errorf("%s: %v; said:\n%s", f, err, stderr)
		}
	}
	// Of several budgets and temperatures each method is run with each, named methods too; the target
	// may be made to write a text.
	forced := filepath.Join(t.TempDir(), "forced.jsonl")
	if err := os.WriteFile(forced, []byte(`{"prompt": "one two three", "forced_output": "three two one"}`+"\n"),
		0o644); err != nil {
		t.Fatal(err)
	}
	out = must(t, "", "bench", "spec", "-m", model, "--suite", forced, "--methods",
		"lookup,hostile@name=bad,lookup:min=2@budget=3", "-b", "4,8", "-t", "0,1", "-n", "4",
		"--no-bandwidth", "--json", "--warm-up", "0", "--threads", "2")
	r = bench.SpecReport{}
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatalf("%v:\n%s", err, out)
	}
	for _, s := range r.Suites {
		var names []string
		for _, m := range s.Methods {
			names = append(names, m.Name)
			if *m.Mismatches != 0 {
				t.Errorf("%s: %d mismatches", m.Name, *m.Mismatches)
			}
		}
		if got := strings.Join(names, " "); got != "plain lookup@budget=4 lookup@budget=8 bad@budget=4 bad@budget=8 lookup:min=2@budget=3" || !s.Forced {
			t.Errorf("suite %s, forced %v: methods %s", s.Name, s.Forced, got)
		}
	}
	if len(r.Suites) != 2 || r.Suites[1].Temperature != 1 {
		t.Errorf("suites %+v", r.Suites)
	}
	// How far trees are to be believed is another report, of the same kind of run.
	out = must(t, "", "bench", "spec", "-m", model, "--draft-model", model, "--preset", "jetspec-appendix-a", "--suite",
		file, "--methods", "linear:k=3,fixed:d=2,b=2",
		"--prompts", "2", "-n", "24", "--threads", "2", "--out", dir)
	if !strings.Contains(out, "| < 0.5 (faithful) | 100% | 100% |") {
		t.Errorf("a model is not its own faithful draft model:\n%s", out)
	}
	if _, err := os.Stat(filepath.Join(dir, "questions.jsonl-gap-by-depth.svg")); err != nil {
		t.Error(err)
	}
	// Padded, in words; two rules at a temperature, each in a row of its own; the preset's settings give way to flags.
	out = must(t, "", append(args[:6:6], "--suite", file, "--method", "linear:k=2", "--accept", "coupled,rejection", "-t",
		"1", "--seed", "1,2", "-n", "8",
		"--no-bandwidth", "--pad", "2M", "--preset", "dynatree-table4", "--prompts", "2")...)
	for _, want := range []string{"**padded**: from", "linear:k=2@coupled", "linear:k=2@rejection", "another sample",
		"| off |", "seeds 1 2", "at most 8 tokens", "Table 4"} {
		if !strings.Contains(out, want) {
			t.Errorf("the report does not say %q:\n%s", want, out)
		}
	}
}

// A suite of a preset's that is asked for alone keeps the preset's methods for it.
func TestBenchSpecSuiteOfPreset(t *testing.T) {
	model, data := tiny(t), t.TempDir()
	if err := os.Mkdir(filepath.Join(data, "prose"), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(data, "prose", "novel.txt"), []byte(strings.Repeat("one two three ", 40)),
		0o666); err != nil {
		t.Fatal(err)
	}
	out := must(t, "", "bench", "spec", "-m", model, "--draft-model", model, "--data", data, "--preset", "dynatree-table1",
		"--suite", "prose:chars=300", "--prompts", "1", "-n", "4", "--no-bandwidth", "--json", "--threads", "2")
	var r bench.SpecReport
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatalf("%v:\n%s", err, out)
	}
	if m := r.Suites[0].Method("linear"); m == nil || m.Drafter != "linear:k=5" {
		t.Errorf("linear is %+v: want linear:k=5, as DynaTree's paper has it on PG-19", m)
	}
}

// For an EAGLE-3 head's shape, drafts are measured with the whole output matrix and with parts of it.
func TestBenchCostDrafts(t *testing.T) {
	var r bench.DraftCostReport
	out := must(t, "", "bench", "cost", "--shape", "eagle3-tiny-llama3", "--type", "q8_0", "--rounds", "1",
		"--threads", "2", "--json")
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatalf("%v:\n%s", err, out)
	}
	if r.Target != "tiny-llama3" || r.Type != "q8_0" || r.Rounds != 1 || len(r.Lists) != 3 || r.Lists[0].Name != "full" ||
		r.Lists[0].Size != 768 {
		t.Errorf("%+v", r)
	}
	for _, args := range [][]string{{"--shape", "eagle3-nothing"}, {"--shape", "eagle3-tiny-gptneox"}} {
		if code, _, err := runGrove("", append([]string{"bench", "cost", "--rounds", "1"}, args...)...); code == 0 ||
			!strings.Contains(err, strings.TrimPrefix(args[1], "eagle3-")) {
			t.Errorf("%v: status %d\n%s", args, code, err)
		}
	}
}

// Memory is measured in a process of its own, which is this command.
func TestBenchMemory(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("memory is measured on Linux")
	}
	t.Setenv(asCommand, "1")
	model := tiny(t)
	out := must(t, "", "bench", "spec", "-m", model, "--suite", questions(t), "--methods", "lookup@budget=6@no-controller",
		"-n", "8", "--no-bandwidth", "--peak-memory",
		"--ignore-end", "--json", "--threads", "2")
	var r bench.SpecReport
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatal(err)
	}
	for _, m := range r.Suites[0].Methods {
		if m.Peak <= 0 {
			t.Errorf("%s: peak %d", m.Name, m.Peak)
		}
	}
}

func TestBenchUsage(t *testing.T) {
	model, file := tiny(t), questions(t)
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"--prompts=-1"}, 2, "--prompts -1"},
		{[]string{"--budget", "1"}, 2, "plain decoding"},
		{[]string{"--budget", "4,1"}, 2, "plain decoding"},
		{[]string{"--budget", "4,0"}, 2, "--budget 0"},
		{[]string{"--budget", "5000"}, 2, "2 to 4096"},
		{[]string{"--temperature=0,-1"}, 2, "--temperature -1: want 0 to 100"},
		{[]string{"--preset", "jetspec-table4"}, 2, "--trained"},
		{[]string{"--preset", "jetspec-table4", "--trained", t.TempDir()}, 2, "none is there"},
		{[]string{"--repeats", "0"}, 2, "--repeats 0"},
		{[]string{"--warm-up=-1"}, 2, "--warm-up -1"},
		{[]string{"--accept", "all"}, 2, "coupled or rejection"},
		{[]string{"--temperature=-1"}, 2, "--temperature -1"},
		{[]string{"--preset", "nothing"}, 2, "dynatree-table1"},
		{[]string{"--suite", file, "--method", "a{b"}, 2, "{ without }"},
		{[]string{"--suite", file, "--method", "nothing"}, 1, `there is no "nothing"`},
		{[]string{"--suite", "nothing"}, 1, "no such suite"},
		{[]string{"--suite", file + "," + file}, 2, "listed twice"},
		{[]string{"--suite", "math", "--data", t.TempDir()}, 1, "GROVE_DATA"},
	} {
		code, _, stderr := runGrove("", append([]string{"bench", "spec", "-m", model}, c.args...)...)
		if code != c.code || !strings.Contains(stderr, c.want) {
			t.Errorf("grove bench spec %q: status %d\n%s\nwant %d with %q", c.args, code, stderr, c.code, c.want)
		}
	}
}
