package main

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/grovellm/grove/internal/command"
	"github.com/grovellm/grove/internal/kernels/cpu"
	"github.com/grovellm/grove/internal/lab/sibling"
	"github.com/grovellm/grove/internal/model/synth"
	"github.com/grovellm/grove/internal/testing/pages"
)

// runLab runs grove-lab in this process.
func runLab(args ...string) (code int, stdout, stderr string) {
	var out, err bytes.Buffer
	defer cpu.Use(cpu.Active())() // --cpu is for the whole process
	code = command.NewProgram(&lab, context.Background(), strings.NewReader(""), &out, &err).Main(args)
	return code, out.String(), err.String()
}

// must runs the command and wants it to succeed.
func must(t *testing.T, args ...string) string {
	t.Helper()
	code, out, err := runLab(args...)
	if code != 0 {
		t.Fatalf("grove-lab %q: status %d\n%s", args, code, err)
	}
	return out
}

// object is the JSON object that a command prints.
func object(t *testing.T, args ...string) (o map[string]any) {
	t.Helper()
	out := must(t, append(args, "--json")...)
	if err := json.Unmarshal([]byte(out), &o); err != nil {
		t.Fatalf("grove-lab %q: %v\n%s", args, err, out)
	}
	return o
}

// Every command explains itself; docs/lab.md lists it, and docs/grove-lab.1 says the same.
func TestHelp(t *testing.T) {
	p := command.NewProgram(&lab, t.Context(), nil, new(strings.Builder), new(strings.Builder))
	k, _, err := p.Parse([]string{"version"})
	if err != nil {
		t.Fatal(err)
	}
	list, err := os.ReadFile(filepath.Join("..", "..", "docs", "lab.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range command.PagesOf(k.Model, k.Model.Node) {
		words := strings.Fields(page.Name)[1:]
		if out := must(t, append(words, "--help")...); !strings.HasPrefix(out, "Usage: "+page.Name) || len(words) > 0 &&
			!strings.Contains(out, "Example") {
			t.Errorf("%s --help:\n%s", page.Name, out)
		}
		if row := "\n| `" + strings.Join(words, " "); len(words) > 0 && !bytes.Contains(list, []byte(row+"`")) &&
			!bytes.Contains(list, []byte(row+" ")) {
			t.Errorf("docs/lab.md does not list %s", page.Name)
		}
	}
	dir := t.TempDir()
	must(t, "help", "--write", dir)
	must(t, "picture", filepath.Join(dir, "tree.svg"))
	for _, name := range []string{"lab.md", "grove-lab.1", "tree.svg"} {
		want, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(filepath.Join("..", "..", "docs", name)); err != nil || !bytes.Equal(got, want) {
			t.Errorf("docs/%s is not current: run go generate ./cmd/grove-lab (%v)", name, err)
		}
	}
}

// Every command line in a block of code names a command and flags that exist.
func TestDocsCommands(t *testing.T) {
	n := 0
	for name, page := range pages.All(t, "../..") {
		for _, args := range pages.Commands(page, "grove-lab") {
			n++
			if code, _, err := runLab(append(args, "--help")...); code != 0 {
				t.Errorf("%s: grove-lab %q: %s", name, args, err)
			}
		}
	}
	if n == 0 {
		t.Error("no page shows a command of grove-lab")
	}
}

func TestSynth(t *testing.T) {
	file := filepath.Join(t.TempDir(), "m.gguf")
	made := object(t, "synth", "tiny-gptneox", file, "--type", "f16", "--seed", "9")
	if info, err := os.Stat(file); err != nil || made["bytes"] != float64(info.Size()) {
		t.Errorf("made %v, the file has %v", made, info)
	}
	if code, _, err := runLab("synth", "tiny-gptneox", file); code != 1 || !strings.Contains(err, "--force") {
		t.Errorf("synth over a file: status %d, %s", code, err)
	}
	must(t, "synth", "tiny-gptneox", file, "--force")
	if got := must(t, "__complete", "--", "synth", "tiny-ll"); strings.Join(strings.Fields(got),
		" ") != "tiny-llama2 tiny-llama3 tiny-llama4" {
		t.Errorf("synth tiny-ll is completed to %q", got)
	}
	if n := strings.Count(must(t, "synth", "--list"), "\n"); n < len(synth.Shapes()) {
		t.Errorf("synth --list has %d lines", n)
	}
}

// A padded file has about the parameters asked for.
func TestPad(t *testing.T) {
	dir := t.TempDir()
	model, padded := filepath.Join(dir, "m.gguf"), filepath.Join(dir, "padded.gguf")
	must(t, "synth", "tiny-qwen3", model)
	made := object(t, "pad", model, padded, "--to", "2.5M")
	if n, _ := made["parameters"].(float64); n < 2.3e6 || n > 2.7e6 {
		t.Errorf("padded to 2.5M: %v", made)
	}
}

func TestCheck(t *testing.T) {
	for _, what := range []string{"bits", "tokens"} {
		r := object(t, "check", what, "--cases", "1")
		if r["cases"] != 1.0 || r["mismatches"] != 0.0 {
			t.Errorf("check %s: %v", what, r)
		}
		if out := must(t, "check", what, "--cases", "10", "--only", "7"); !strings.Contains(out, "1 cases") {
			t.Errorf("check %s --only 7: %s", what, out)
		}
	}
}

// Flags change the values that they name in the recipe of the family with a larger vocabulary, and nothing else.
func TestTrainSiblingRecipe(t *testing.T) {
	two, three := 2, 3
	want := sibling.NewRecipe()
	want.Head.Steps = 2
	want.Head.Short.Files = 3
	want.Head.Long.Files = 0
	want.Router.Short.Files = 3
	want.Router.Long.Files = 0
	cmd := trainSiblingCmd{HeadSteps: &two, Files: &three}
	if got := cmd.recipe(); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v\nmakes the recipe\n%+v\nwant\n%+v", cmd, got, want)
	}
}

// Wrong usage is status 2, a failure 1; both say what is wrong and where, and what to do.
func TestBadInput(t *testing.T) {
	dir := t.TempDir()
	model := filepath.Join(dir, "m.gguf")
	text := filepath.Join(dir, "text.txt")
	broken := filepath.Join(dir, "broken")
	must(t, "synth", "tiny-qwen3", model)
	if err := os.WriteFile(text, []byte("no model"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(broken, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(broken, "config.json"), []byte(`{"model_type":"qwen3",`), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args string // split at spaces; M is a model
		code int
		want string // all of these, split at |
	}{
		{"synth", 2, "which shape|tiny-qwen3"},
		{"synth huge", 2, "huge|tiny-qwen3"},
		{"synth tiny-qwen3 --type q3", 2, "--type|q3|bf16"},
		{"synth tiny-qwen3 " + text, 1, "text.txt|--force"},
		{"synth tiny-qwen3 " + dir, 2, "is a folder"},
		{"synth tiny-qwen3 " + filepath.Join(dir, "no", "such", "x.gguf"), 1, "x.gguf"},
		{"check", 2, "bits"},
		{"check bits --cases 0", 2, "--cases|0"},
		{"check bits --cases 9000000000000000000", 2, "--cases 9000000000000000000: want 1 to"},
		{"check lengths -m none --to 9000000000000000000", 2, "--to 9000000000000000000: want 1 to"},
		{"check bits --cases 5 --only 9", 2, "--only|9"},
		{"check tokens --cases -1", 2, "--cases|-1"},
		{"pad --to 10M " + model, 2, "<out>"},
		{"pad M " + filepath.Join(dir, "p.gguf"), 2, "--to"},
		{"pad M " + filepath.Join(dir, "p.gguf") + " --to 0", 2, "--to|500M"},
		{"pad M " + filepath.Join(dir, "p.gguf") + " --to 10", 1, "padding to 10"},
		{"pad M " + filepath.Join(dir, "p.gguf") + " --to 10M --type q3", 2, "--type|q3"},
		{"pad M " + text + " --to 10M", 1, "text.txt|--force"},
		{"pad " + text + " " + filepath.Join(dir, "p.gguf") + " --to 10M", 1, "text.txt"},
		{"pad " + broken + " " + filepath.Join(dir, "p.gguf") + " --to 10M", 2, "grove convert"},
		{"train target --data " + dir, 2, "--dir"},
		{"train target --dir " + dir + " --data " + filepath.Join(dir, "none") + " --goroot " + dir, 2, "--data"},
		{"train draft --dir " + dir + " --data " + dir + " --goroot " + filepath.Join(dir, "none"), 2, "--goroot"},
	} {
		args := strings.Fields(c.args)
		if i := slices.Index(args, "M"); i >= 0 {
			args[i] = model
		}
		code, out, err := runLab(args...)
		if code != c.code || out != "" {
			t.Errorf("grove-lab %s: status %d, want %d; output %q", c.args, code, c.code, out)
		}
		for want := range strings.SplitSeq(c.want, "|") {
			if !strings.Contains(err, want) {
				t.Errorf("grove-lab %s: the message does not say %q:\n%s", c.args, want, err)
			}
		}
	}
}

// The picture is XML that a browser shows by itself, and small.
func TestPicture(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a.svg")
	must(t, "picture", file, "-d", "eagle3", "-t", "0.9", "--seed", "3", "x < y && \"é\" {\n\t")
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for d := xml.NewDecoder(bytes.NewReader(data)); ; {
		if _, err := d.Token(); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if bad := regexp.MustCompile("href|<script|NaN").Find(data); len(data) > 60<<10 || bad != nil {
		t.Errorf("a picture of %d bytes with %q:\n%.1000s", len(data), bad, data)
	}
}
