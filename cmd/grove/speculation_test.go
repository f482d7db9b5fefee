package main

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rivo/uniseg"
	"pgregory.net/rapid"

	"github.com/grovellm/grove"
	"github.com/grovellm/grove/internal/command"
)

// The demo decodes plainly and with a drafter; its figures are those of one run.
func TestDemo(t *testing.T) {
	d := lines(t, must(t, "", "demo", "-n", "40", "--pad", "20M", "--json"))[0]
	stats, plain := d["stats"].(map[string]any), d["plain"].(map[string]any)
	if d["same_tokens"] != true || stats["tokens"] != 40.0 || stats["rounds"].(float64) > 20 || plain["rounds"] != 39.0 ||
		d["padding"] == nil {
		t.Errorf("demo: %v", d)
	}
	if want := plain["per_token_s"].(float64) / stats["per_token_s"].(float64); math.Abs(
		d["speedup"].(float64)-want) > 1e-6*want {
		t.Errorf("the speed-up is %v, of figures that say %v", d["speedup"], want)
	}
	out := must(t, "", "demo", "-n", "40", "--pad", "20M")
	for _, want := range []string{"grove target, padded from", "func TestReadFile", "plain decoding",
		"tree speculation (best-first+text)", "the same 40 tokens", "tokens/s", "× the speed"} {
		if !strings.Contains(out, want) {
			t.Errorf("demo does not say %q:\n%s", want, out)
		}
	}
	if out := must(t, "", "demo", "-m", tiny(t), "-n", "12", "--pad", "3M", "one two"); !strings.Contains(out, "(auto)") ||
		!strings.Contains(out, "padded from") {
		t.Errorf("demo of a padded model without a draft model:\n%s", out)
	}
	all := lines(t, must(t, "", "demo", "--all", "-n", "8", "--pad", "0", "--json"))
	if len(all) < 8 || all[0]["drafter"] != "plain" || all[0]["speedup"] != 1.0 || all[len(all)-1]["drafter"] != "auto" {
		t.Errorf("demo --all: %v", all)
	}
}

// What the demo says of a tree is so: its marks are as many as it says, and without an accepted token there is no tree.
func TestDemoCaption(t *testing.T) {
	caption := regexp.MustCompile(`accepted (\d+) of (\d+) drafted tokens \(marked \*\)`)
	shown := 0
	for _, args := range [][]string{
		{"-d", "hostile"}, {"-d", "hostile", "-b", "3"}, {"-d", "lookup", "no words repeat here"}, {"--pad", "10M"}, {"-d",
			"eagle3", "-t", "1", "--seed", "4"}, {"-d", "linear", "-b", "2"},
	} {
		out := must(t, "", append([]string{"demo", "--pad", "0", "-n", "16"}, args...)...)
		marks := strings.Count(out, "% *")
		if strings.Contains(out, "marked *") != (marks > 0) {
			t.Errorf("demo %q has %d marks:\n%s", args, marks, out)
		}
		if m := caption.FindStringSubmatch(out); m != nil {
			shown++
			if nodes := strings.Count(out[strings.Index(out, m[0]):], "%"); m[1] != fmt.Sprint(marks) || m[2] != fmt.Sprint(nodes) {
				t.Errorf("demo %q says %q of %d marks and %d nodes:\n%s", args, m[0], marks, nodes, out)
			}
		}
	}
	if shown == 0 {
		t.Error("no demo showed a tree")
	}
}

// Without --model the command runs its own pair; every drafter gives the text of plain decoding, padded or not.
func TestEmbeddedModels(t *testing.T) {
	common := []string{"run", "-n", "24", "-t", "0.8", "--seed", "5", "func main() {"}
	want := must(t, "", append(common, "-d", "plain")...)
	for _, args := range [][]string{nil, {"-d", "lookup"}, {"-d", "dynatree", "--budget", "12"}, {"--pad", "20M"},
		{"--uncontrolled"}} {
		if got := must(t, "", append(common, args...)...); got != want {
			t.Errorf("grove run %q: %q, want %q", args, got, want)
		}
	}
	file := filepath.Join(t.TempDir(), "main.go")
	if err := os.WriteFile(file, []byte("package main\n\nfunc main() {\n}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if r := lines(t, must(t, "", "eval", "--text", file, "--json"))[0]; r["tokens"].(float64) < 5 {
		t.Errorf("eval: %v", r)
	}
	if a := lines(t, must(t, "2 and 2?\n", "chat", "-n", "8", "-t", "0", "--json"))[0]; a["role"] != "assistant" {
		t.Errorf("chat: %v", a)
	}
}

// A draft model is named by path as well; one of another vocabulary is refused.
func TestDraftModel(t *testing.T) {
	model := tiny(t)
	common := []string{"run", "-m", model, "-n", "20", "--ignore-end", "one two"}
	want := must(t, "", append(common, "-d", "plain")...)
	for _, args := range [][]string{{"--draft-model", model}, {"-d", "linear:model=" + model}} {
		if got := must(t, "", append(common, args...)...); got != want {
			t.Errorf("grove run %q: %q, want %q", args, got, want)
		}
	}
	// A model that drafts for itself has every token accepted.
	r := lines(t, must(t, "", append(common, "--draft-model", model, "--uncontrolled", "--stats", "--json")...))
	stats := r[len(r)-1]["stats"].(map[string]any)
	if tau := stats["tau"].(float64); tau < 2 {
		t.Errorf("a model that drafts for itself: τ = %v", tau)
	}
	if code, _, err := runGrove("", "run", "--draft-model", model, "x"); code == 0 || !strings.Contains(err, "tokenizer") {
		t.Errorf("a draft model of another vocabulary: status %d, %s", code, err)
	}
}

// grove run --show tree draws every round, and the text is the same as without it.
func TestShowTree(t *testing.T) {
	args := []string{"run", "-n", "30", "--uncontrolled", "func (s *Stack) Push(v int) {"}
	want := must(t, "", args...)
	code, out, drawn := runGrove("", append(args, "--show", "tree", "--stats")...)
	if code != 0 || out != want {
		t.Fatalf("status %d, %q, want %q", code, out, want)
	}
	for _, want := range []string{"round 1:", " of a budget of ", "accepted (*), τ ", "% *", "next: ", "depth", "TTFT",
		"TPOT", "drafting"} {
		if !strings.Contains(drawn, want) {
			t.Errorf("--show tree --stats does not say %q:\n%s", want, drawn)
		}
	}
	r := lines(t, must(t, "", append(args, "--json", "--stats")...))
	stats := r[len(r)-1]["stats"].(map[string]any)
	if rounds := strings.Count("\n"+drawn, "\nround "); float64(rounds) != stats["rounds"].(float64) {
		t.Errorf("%d rounds drawn, %v counted:\n%s", rounds, stats["rounds"], drawn)
	}
}

// Colours mark drafted text, if they are wanted, and change no character of the text.
func TestColor(t *testing.T) {
	args := []string{"run", "-n", "40", "-d", "lookup", "--uncontrolled", "--color"}
	prompt := "\tx = append(x, y)\n\tx = append(x, y)\n\tx ="
	plain := must(t, "", append(args, "never", prompt)...)
	if auto := must(t, "", append(args, "auto", prompt)...); auto != plain || strings.Contains(plain, "\x1b") {
		t.Errorf("colours where there is no terminal: %q", auto)
	}
	colored := must(t, "", append(args, "always", prompt)...)
	if !strings.Contains(colored, "\x1b[32m") || uncolored(colored) != plain {
		t.Errorf("with colours %q, without %q", colored, plain)
	}
}

func uncolored(s string) string { return regexp.MustCompile(`\x1b\[\d*m`).ReplaceAllString(s, "") }

// A padded model's text is the model's own, and reports say that it is padded.
func TestPad(t *testing.T) {
	model := tiny(t)
	args := []string{"-n", "10", "--ignore-end", "a b a b"}
	want := must(t, "", append([]string{"run", "-m", model}, args...)...)
	how := []string{"-m", model, "--pad", "2.5M", "--pad-type", "q8_0"}
	code, out, figures := runGrove("", append(append([]string{"run"}, how...), args...)...)
	if code != 0 || out != want || !strings.Contains(figures, "padded from") {
		t.Errorf("status %d, %q, want %q; figures %s", code, out, want, figures)
	}
	last := lines(t, must(t, "", append(append([]string{"run", "--json"}, how...), args...)...))
	if n, ok := last[len(last)-1]["padding"].(float64); !ok || n < 5e5 {
		t.Errorf("JSON says padding %v", n)
	}
}

// Text in a column is the text: of the column's width line by line, nothing lost, whatever it is made of. Some
// characters take two columns of a terminal.
func TestColumns(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := &screen{style: command.Style{On: rapid.Bool().Draw(t, "colours")}, width: rapid.IntRange(4, 30).Draw(t, "width"),
			height: 1 << 20}
		l := &lane{title: "title", tokens: 3}
		var all strings.Builder
		for range rapid.IntRange(0, 12).Draw(t, "pieces") {
			text := rapid.StringMatching(`[a-zé世🎉\n\t ]{0,20}`).Draw(t, "text")
			l.pieces = append(l.pieces, grove.Piece{Text: text, Drafted: rapid.Bool().Draw(t, "drafted")})
			all.WriteString(text)
		}
		frame := s.frame([]*lane{l})
		var got strings.Builder
		for i, line := range frame {
			line = uncolored(line)
			if uniseg.StringWidth(line) != s.width {
				t.Fatalf("line %d, %q, is not %d wide", i, line, s.width)
			}
			if i > 0 && i < len(frame)-1 {
				got.WriteString(line)
			}
		}
		squeeze := func(s string) string { return strings.Join(strings.Fields(s), "") }
		if squeeze(got.String()) != squeeze(all.String()) {
			t.Fatalf("drawn %q of %q", got.String(), all.String())
		}
	})
}

func TestParseCount(t *testing.T) {
	for text, want := range map[string]int64{"1500": 1500, "500M": 500e6, "1.5b": 15e8, "2k": 2000, "": 0, "M": 0,
		"-1M": 0, "NaN": 0, "1e30": 0, "10T": 0} {
		if n, err := command.ParseCount(text); n != want || (err != nil) != (want == 0) {
			t.Errorf("%q is %d, %v: want %d", text, n, err, want)
		}
	}
}

// A run compares its own text with plain decoding, not the text of a run that found it in the memory.
func TestStatsWithMemory(t *testing.T) {
	args := []string{"run", "--drafter", "lookup", "--uncontrolled", "-t", "1", "--seed", "3", "-n", "60", "--stats",
		"--json", "func main() {"}
	rounds := func(args []string) float64 {
		r := lines(t, must(t, "", args...))
		return r[len(r)-1]["stats"].(map[string]any)["rounds"].(float64)
	}
	want := rounds(args)
	if got := rounds(append([]string{"run", "--memory", t.TempDir()}, args[1:]...)); got != want {
		t.Errorf("%g rounds with an empty memory, and %g without", got, want)
	}
}
