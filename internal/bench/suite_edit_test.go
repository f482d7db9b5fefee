package bench

import (
	"fmt"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/grovellm/grove/internal/train/data"
)

// A prompt is a file with an instruction what to rename. The output is the file with only that change.
func TestEdits(t *testing.T) {
	root := t.TempDir()
	folder := filepath.FromSlash(data.HeldOut[data.Prompts][0])
	code := `// Licence.

// Package p does things.
package p

import "io"

// A Thing is one.
type Thing struct {
	next *Thing // a Thing
	r    io.Reader
}

func NewThing(r io.Reader) *Thing { return &Thing{r: r} }

func (t *Thing) Thing() *Thing { return t.Thing() }

` + "func last() {\n" + strings.Repeat("\tprintln(\"a line of it\")\n", 90) + "}\n"
	write(t, root, "src", folder, "thing.go", code)
	write(t, root, "src", folder, "thing_test.go", code)
	write(t, root, "src", folder, "few.go", "package p\n\nvar once int\n")
	write(t, root, "src", "fmt", "seen.go", code)
	s, err := OpenSuite("edit", SuiteOptions{GoRoot: root})
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Prompts) != 1 || s.Prompts[0].Name != filepath.ToSlash(folder)+"/thing.go" {
		t.Fatalf("prompts %+v", s.Prompts)
	}
	p := s.Prompts[0]
	file, after, ok := strings.Cut(p.Text, "\n// The same file again, with Thing renamed ThingV2:\n\n")
	if !ok || after != "" || !strings.HasPrefix(file, "package p\n") || strings.Contains(file, "last") {
		t.Errorf("prompt %q", p.Text)
	}
	want := strings.NewReplacer("type Thing ", "type ThingV2 ", "*Thing", "*ThingV2", "&Thing{", "&ThingV2{", ") Thing()",
		") ThingV2()").Replace(file)
	if p.Forced != want {
		t.Errorf("output %s\nwant %s", p.Forced, want)
	}
	if short, err := OpenSuite("edit:chars=20", SuiteOptions{GoRoot: root}); err == nil {
		t.Errorf("20 bytes hold a file: %+v", short.Prompts)
	}
}

// Renaming back restores the file, and code remains code.
func TestRename(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var b strings.Builder
		b.WriteString("package p\n")
		name := rapid.SampledFrom([]string{"alpha", "beta", "gamma"})
		for i := range rapid.IntRange(0, 12).Draw(t, "declarations") {
			a, c := name.Draw(t, "a"), name.Draw(t, "c")
			b.WriteString(rapid.SampledFrom([]string{
				fmt.Sprintf("\n// %s is a thing.\nvar x%d = %s + %s\n", a, i, a,
					c), fmt.Sprintf("\nfunc f%d(%s int) { %s.%s(%s) }\n", i, a, c, a, a),
				fmt.Sprintf("\ntype t%d struct{ %s %s }\n", i, a, c), fmt.Sprintf("\nconst s%d = \"%s %s\"\n", i, a, c),
			}).Draw(t, "declaration"))
		}
		file := b.String()
		there := rename(file, "alpha", "omega")
		if got := rename(there, "omega", "alpha"); got != file {
			t.Fatalf("there and back:\n%s\nof\n%s", got, file)
		}
		if len(occurrences(there, "alpha")) != 0 || len(occurrences(there, "omega")) != len(occurrences(file, "alpha")) {
			t.Fatalf("renamed:\n%s\nof\n%s", there, file)
		}
		if _, err := parser.ParseFile(token.NewFileSet(), "", there, 0); err != nil {
			t.Fatal(err)
		}
	})
}
