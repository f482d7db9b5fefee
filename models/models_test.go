package models_test

import (
	"context"
	"go/scanner"
	"go/token"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/grovellm/grove"
	"github.com/grovellm/grove/gguf"
	"github.com/grovellm/grove/internal/drafters/registry"
	"github.com/grovellm/grove/internal/heads"
	"github.com/grovellm/grove/internal/inside"
	"github.com/grovellm/grove/models"
)

// Both files open, are small, and are a pair: a drafter may run the second for the first.
func TestPair(t *testing.T) {
	const most = 20_000_000
	if n := len(models.Target()) + len(models.Draft()); n > most {
		t.Errorf("the files have %d bytes together: want at most %d", n, most)
	}
	var files []*gguf.File
	for name, data := range map[string][]byte{"target": models.Target(), "draft": models.Draft()} {
		m, err := grove.OpenGGUF(name, data, grove.Options{Threads: 1})
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		if m.Tokenizer() == nil {
			t.Errorf("%s has no tokenizer", name)
		}
		if _, err := m.Layout(); err != nil {
			t.Errorf("%s cannot chat: %v", name, err)
		}
		f, err := gguf.Parse(name, data)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	for key, want := range files[0].Meta() {
		if !strings.HasPrefix(key, "tokenizer.") {
			continue
		}
		if v, ok := files[1].Lookup(key); !ok || v != want {
			t.Errorf("the models' tokenizers differ in %s", key)
		}
	}
}

// The heads are small, of different kinds, made for the target, and draft what it goes on to say.
func TestHeads(t *testing.T) {
	m, err := grove.OpenGGUF("target", models.Target(), grove.Options{HeadGGUF: models.Heads()})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	kinds := []struct {
		name     string // as heads.Describe begins
		group    string // whose bytes count together
		drafters []string
	}{
		{"block head, causal", "block heads", []string{"jetspec"}},
		{"block head, bidirectional", "block heads", []string{"ddtree", "dflash"}},
		{"EAGLE-3 head", "EAGLE and router", []string{"eagle3", "eagle3:tree=linear"}},
		{"router", "EAGLE and router", []string{"eagle3+dynaspec"}},
		{"SpecBlock head", "SpecBlock", []string{"specblock"}},
		{"Medusa heads", "baselines", []string{"medusa"}},
		{"ParallelSpec head", "baselines", []string{"parallelspec"}},
		{"P-EAGLE head", "baselines", []string{"peagle"}},
		{"Falcon head", "baselines", []string{"falcon"}},
	}
	bytes := map[string]int{}
	next := 0
	for _, data := range models.Heads() {
		text, err := heads.Describe(registry.Head{Name: "head", Data: data})
		if err != nil {
			t.Fatal(err)
		}
		for next < len(kinds) && !strings.HasPrefix(text, kinds[next].name) {
			next++
		}
		if next == len(kinds) {
			t.Fatalf("a head that is not one of each kind in order: %s", text)
		}
		k := kinds[next]
		bytes[k.group] += len(data)
		for _, d := range k.drafters {
			r, err := grove.Collect(m.Generate(context.Background(), "func main() {\n", grove.Request{MaxTokens: 100, Drafter: d,
				Uncontrolled: true, IgnoreEnd: true}))
			if err != nil {
				t.Fatal(err)
			}
			if tau := r.Stats.Tau(); tau < 2 { // chance is 1.0
				t.Errorf("%s: τ = %.2f", d, tau)
			}
		}
	}
	for group, most := range map[string]int{"block heads": 8_000_000, "EAGLE and router": 5_000_000,
		"SpecBlock": 5_000_000, "baselines": 8_000_000} {
		if bytes[group] > most {
			t.Errorf("%s: %d bytes: want at most %d", group, bytes[group], most)
		}
	}
}

// The target goes on with a Go program in Go: nearly all of its text is tokens of the language, and
// it uses the language's words.
func TestTargetWritesGo(t *testing.T) {
	m, err := grove.OpenGGUF("target", models.Target(), grove.Options{DraftGGUF: models.Draft()})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if inside.Target(m).Draft == nil {
		t.Error("opened without its draft model")
	}
	const prompt = "package list\n\n// Len returns the number of elements in the list.\nfunc (l *List) Len() int {\n\treturn l.len\n}\n\n"
	r, err := grove.Collect(m.Generate(context.Background(), prompt, grove.Request{MaxTokens: 200, Drafter: "lookup"}))
	if err != nil {
		t.Fatal(err)
	}
	var s scanner.Scanner
	files := token.NewFileSet()
	text := []byte(prompt + r.Text)
	wrong, all := 0, 0
	var words []string
	s.Init(files.AddFile("", files.Base(), len(text)), text, func(token.Position, string) { wrong++ }, scanner.ScanComments)
	for {
		at, kind, _ := s.Scan()
		if kind == token.EOF {
			break
		}
		if files.Position(at).Offset < len(prompt) {
			continue
		}
		all++
		if kind == token.ILLEGAL {
			wrong++
		}
		if kind.IsKeyword() {
			words = append(words, kind.String())
		}
	}
	if all < 20 || wrong*20 > all || !slices.Contains(words, "func") && !slices.Contains(words, "return") {
		t.Errorf("%d tokens, %d wrong, keywords %v:\n%s", all, wrong, words, r.Text)
	}
}

// A program that imports package grove carries none of the weights.
func TestLibraryIsWithoutThem(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", "github.com/grovellm/grove").Output()
	if err != nil {
		t.Skipf("the go command does not run here: %v", err)
	}
	deps := strings.Fields(string(out))
	if !slices.Contains(deps, "github.com/grovellm/grove/internal/model") {
		t.Fatalf("go list -deps says %q", deps)
	}
	if slices.Contains(deps, "github.com/grovellm/grove/models") {
		t.Error("package grove imports package models")
	}
}
