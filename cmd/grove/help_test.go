package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/alecthomas/kong"

	"github.com/grovellm/grove"
	"github.com/grovellm/grove/internal/command"
	"github.com/grovellm/grove/internal/drafters/registry"
	"github.com/grovellm/grove/internal/inside"
	"github.com/grovellm/grove/models"
)

// commands lists all commands of the program, each as its words.
func commands(t *testing.T) (app *kong.Application, list [][]string) {
	t.Helper()
	p := command.NewProgram(&product, t.Context(), nil, new(strings.Builder), new(strings.Builder))
	k, _, err := p.Parse([]string{"version"})
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range command.PagesOf(k.Model, k.Model.Node) {
		list = append(list, strings.Fields(page.Name)[1:])
	}
	return k.Model, list
}

// Every command explains itself, in two ways that say the same, within the width of the terminal.
func TestHelp(t *testing.T) {
	_, list := commands(t)
	if len(list) < 30 {
		t.Fatalf("%d commands", len(list))
	}
	for _, width := range []int{50, 100} {
		t.Setenv("COLUMNS", fmt.Sprint(width))
		for _, words := range list {
			name := strings.Join(append([]string{"grove"}, words...), " ")
			code, out, stderr := runGrove("", append(words, "--help")...)
			if code != 0 || stderr != "" || !strings.HasPrefix(out, "Usage: "+name) {
				t.Errorf("%s --help: status %d\n%s%s", name, code, out, stderr)
			}
			if width == 100 {
				if help := must(t, "", append([]string{"help"}, words...)...); help != out {
					t.Errorf("grove help %s is not %s --help:\n%s", strings.Join(words, " "), name, help)
				}
			}
			if len(words) > 0 && !strings.Contains(out, "Example") {
				t.Errorf("%s --help has no example", name)
			}
			for _, line := range strings.Split(out, "\n") {
				if n := utf8.RuneCountInString(line); n > width && !strings.HasPrefix(line, "  ") {
					t.Errorf("%s --help at %d columns: a line of %d: %s", name, width, n, line)
				}
			}
			if words := regexp.MustCompile(`(?i)\bhostile\b|__complete`).FindString(out); words != "" {
				t.Errorf("%s --help shows %s", name, words)
			}
		}
	}
	if n := strings.Count(must(t, "", "run", "--help"), "\n"); n > 80 {
		t.Errorf("grove run --help has %d lines of 100 columns: want two screens of 40", n)
	}
	if out := must(t, "", "chat", "--help"); !strings.Contains(out, "(0.7)") || !strings.Contains(out, "(1024)") {
		t.Errorf("grove chat --help does not say its defaults:\n%s", out)
	}
	if out := must(t, ""); !strings.Contains(out, "Start with") || out != must(t, "", "help") {
		t.Errorf("grove alone:\n%s", out)
	}
	for _, args := range [][]string{{"--version"}, {"run", "--version"}, {"bench", "cost", "--version"}} {
		if out := must(t, "", args...); out != must(t, "", "version") {
			t.Errorf("grove %q: %s", args, out)
		}
	}
	for _, args := range [][]string{{"help", "fly"}, {"help", "bench", "fly"}, {"drafters", "fly"}, {"completion", "fly"}} {
		if code, _, stderr := runGrove("", args...); code != command.ExitUsage || !strings.Contains(stderr, "fly") {
			t.Errorf("grove %q: status %d\n%s", args, code, stderr)
		}
	}
}

// The pages in docs/ are those that go generate ./cmd/grove makes, and name every command.
func TestDocsAreCurrent(t *testing.T) {
	dir := t.TempDir()
	must(t, "", "help", "--write", dir)
	for _, name := range []string{"cli.md", "grove.1"} {
		want, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(filepath.Join("..", "..", "docs", name)); err != nil || string(got) != string(want) {
			t.Errorf("docs/%s is not current: run go generate ./cmd/grove (%v)", name, err)
		}
	}
	page, err := os.ReadFile(filepath.Join(dir, "cli.md"))
	if err != nil {
		t.Fatal(err)
	}
	man := must(t, "", "help", "--man")
	_, list := commands(t)
	for _, words := range list[1:] {
		name := strings.Join(words, " ")
		if row := regexp.MustCompile("(?m)^\\| `" + name + "[` ].* \\| .*\\. \\|$"); !row.Match(page) {
			t.Errorf("docs/cli.md does not list grove %s", name)
		}
		if !strings.Contains(man, ".SS grove "+name+"\n") {
			t.Errorf("the manual page has no section grove %s", name)
		}
	}
	if !strings.Contains(man, `\-\-max\-tokens=N`) {
		t.Errorf("the manual page has no flags:\n%.2000s", man)
	}
}

// grove drafters lists each drafter that can be named, says which can run, and explains each.
func TestDrafters(t *testing.T) {
	out := must(t, "", "drafters")
	for _, name := range drafterNames() {
		if !strings.Contains(out, "\n  "+name+" ") {
			t.Errorf("%s is not listed:\n%s", name, out)
		}
		text := must(t, "", "drafters", name)
		if !strings.HasPrefix(text, name+": ") {
			t.Errorf("grove drafters %s:\n%s", name, text)
		}
	}
	if strings.Contains(out, "hostile") {
		t.Errorf("a drafter for tests is listed:\n%s", out)
	}
	for _, m := range []struct{ model, ready, not string }{
		{"", "eagle3 jetspec ddtree best-first lookup", "eagle2"},
		{tiny(t), "plain lookup merge", "eagle3 jetspec best-first"},
	} {
		ready := map[string]bool{}
		args := []string{"drafters", "--json"}
		if m.model != "" {
			args = append(args, "-m", m.model)
		}
		var list []drafterInfo
		if err := json.Unmarshal([]byte(must(t, "", args...)), &list); err != nil {
			t.Fatal(err)
		}
		for _, d := range list {
			ready[d.Name] = d.Ready
		}
		for _, name := range strings.Fields(m.ready) {
			if !ready[name] {
				t.Errorf("with model %q %s is not ready", m.model, name)
			}
		}
		for _, name := range strings.Fields(m.not) {
			if ready[name] {
				t.Errorf("with model %q %s is ready", m.model, name)
			}
		}
	}
	text := must(t, "", "drafters", "eagle2")
	for _, want := range []string{"--head FILE", "arXiv", "k=10", "+dynaspec", "cannot run"} {
		if !strings.Contains(text, want) {
			t.Errorf("grove drafters eagle2 does not say %q:\n%s", want, text)
		}
	}
}

// The ranges in options' help are exact: their ends are accepted, and values beyond them are not.
func TestRangesOfOptions(t *testing.T) {
	o := grove.Options{DraftGGUF: models.Draft(), HeadGGUF: models.Heads()}
	m, err := grove.OpenGGUF("embedded", models.Target(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	span := regexp.MustCompile(`\((-?[\d.]+) (?:to (-?[\d.]+)|or more)\)`)
	found := 0
	for _, f := range registry.Families() {
		if ready(&f, m) != nil || f.Name == "merge" {
			continue
		}
		for _, o := range f.Listed() {
			r := span.FindStringSubmatch(o.Help)
			if r == nil {
				continue
			}
			found++
			others := ""
			if strings.HasPrefix(o.Help, "for best-first:") {
				others = "tree=best-first,"
			}
			try := func(value string, good bool) {
				if _, err := registry.New(f.Name+":"+others+o.Key+"="+value, inside.Target(m)); (err == nil) != good {
					t.Errorf("%s, whose option %s is for %s: with %s: %v", f.Name, o.Key, r[0], value, err)
				}
			}
			number := func(s string) int {
				n, err := strconv.Atoi(s)
				if err != nil {
					t.Fatalf("%s: %s: %v", f.Name, o.Key, err)
				}
				return n
			}
			if o.Key == "b-min" { // bounded by other options above
				continue
			}
			try(r[1], true)
			try(fmt.Sprint(number(r[1])-1), false)
			if r[2] != "" {
				try(r[2], true)
				try(fmt.Sprint(number(r[2])+1), false)
			}
		}
	}
	if found < 20 {
		t.Errorf("%d ranges", found)
	}
}
