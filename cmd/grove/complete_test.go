package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/grovellm/grove/internal/command"
)

// A command line can be typed from its completions: every beginning of each of its words leads
// there, and nothing is offered that does not begin as the word does.
func TestCompletions(t *testing.T) {
	app, list := commands(t)
	rapid.Check(t, func(r *rapid.T) {
		words := slices.Clone(rapid.SampledFrom(list).Draw(r, "command"))
		node := app.Node
		for _, w := range words {
			node = command.Child(node, w)
		}
		flags := command.FlagWords(append(slices.Clone(app.Flags), node.Flags...))
		words = append(words, rapid.SampledFrom(flags).Draw(r, "flag"))
		for i, w := range words {
			begun := w[:rapid.IntRange(0, len(w)).Draw(r, "typed")]
			if i == len(words)-1 && begun == "" {
				begun = "-"
			}
			got := command.Completions(app, append(slices.Clone(words[:i]), begun))
			if !slices.Contains(got, w) {
				r.Fatalf("after %q, %q is not completed to %q: %q", words[:i], begun, w, got)
			}
			for _, g := range got {
				if !strings.HasPrefix(g, begun) {
					r.Fatalf("%q is offered for %q", g, begun)
				}
			}
		}
	})
	for line, want := range map[string]string{
		"run -d eag":                        "eagle2 eagle3",
		"run --drafter eagle3:dep":          "eagle3:depth=",
		"run -d eagle3:depth=3,k":           "eagle3:depth=3,k=",
		"run -d eagle3:k=3+te":              "eagle3:k=3+text",
		"run -d eagle3+text+freq:si":        "eagle3+text+freq:size=",
		"run --drafter=look":                "--drafter=lookup",
		"run --color=a":                     "--color=auto --color=always",
		"--threads 2 run --color n":         "never",
		"run -m ":                           "",
		"run --model=qw":                    "",
		"run prompt mo":                     "",
		"bench cost --shape qwen2":          "qwen2.5-0.5b",
		"drafters merg":                     "merge",
		"completion ":                       "bash zsh fish",
		"help benc":                         "bench",
		"run -- --temp":                     "",
		"train jet --head causal --loss re": "reverse-kl",
	} {
		args := append([]string{"__complete", "--"}, strings.Split(line, " ")...)
		if got := strings.Fields(must(t, "", args...)); strings.Join(got, " ") != want {
			t.Errorf("grove %s: %q, want %q", line, got, want)
		}
	}
}

// The scripts complete in the shells that are installed: words, values after = and :, and files.
func TestCompletionInShells(t *testing.T) {
	dir := t.TempDir()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(program, filepath.Join(dir, "grove")); err != nil {
		t.Skip(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "weights.gguf"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, shell := range []string{"bash", "zsh", "fish"} {
		path, err := exec.LookPath(shell)
		if err != nil {
			t.Logf("no %s here", shell)
			continue
		}
		script := filepath.Join(dir, "grove."+shell)
		if err := os.WriteFile(script, []byte(must(t, "", "completion", shell)), 0o600); err != nil {
			t.Fatal(err)
		}
		run := func(args ...string) string {
			c := exec.Command(path, args...)
			path := "PATH=" + dir + ":" + os.Getenv("PATH")
			c.Dir, c.Env = dir, append(os.Environ(), asCommand+"=1", path, "HOME="+dir, "XDG_CONFIG_HOME="+dir)
			out, err := c.Output()
			if err != nil {
				t.Fatalf("%s %q: %v", shell, args, err)
			}
			return strings.Join(strings.Fields(string(out)), " ")
		}
		if shell == "zsh" { // it completes only on a terminal
			run("-n", script)
			continue
		}
		for line, want := range map[string]string{
			"grove ru":                  "run",
			"grove run --temp":          "--temperature",
			"grove run -d eag":          "eagle2 eagle3",
			"grove run --color=al":      "--color=always",
			"grove run -d eagle3:depth": "eagle3:depth=",
			"grove run -m wei":          "weights.gguf",
			"grove run --model=wei":     "--model=weights.gguf",
			"grove run \"a b\" --see":   "--seed",
		} {
			var got string
			if shell == "fish" {
				got = run("--no-config", "-c", "source "+script+"; complete -C '"+line+"'")
			} else {
				got = run("--norc", "-c", `compopt() { :; }; source "$1"
					COMP_LINE=$2; COMP_POINT=${#2}; _grove; echo "${COMPREPLY[@]}"`, "-", script, line)
				if strings.Contains(want, "weights") {
					want = "" // readline completes files: TestBashCompletesSpaces
				}
				// bash replaces only the text after the last = or :.
				if cut := strings.LastIndexAny(want, "=:"); cut >= 0 && cut < len(want)-1 {
					want = want[cut+1:]
				} else if cut := strings.LastIndex(want, ":"); cut >= 0 {
					want = want[cut+1:]
				}
			}
			if got != want {
				t.Errorf("%s completes %q to %q, want %q", shell, line, got, want)
			}
		}
	}
}
