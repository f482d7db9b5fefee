package grove_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"strings"
	"testing"
)

// The functions that docs/design.md names on the way of a token stand in the files that it names.
func TestWayOfAToken(t *testing.T) {
	page, err := os.ReadFile("docs/design.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n## The way of a token\n")
	section, _, _ = strings.Cut(section, "\n## ")
	rows := regexp.MustCompile("(?m)^\\| `([^`]+\\.go)` \\| ([^|]+) \\|").FindAllStringSubmatch(section, -1)
	if len(rows) < 20 {
		t.Fatalf("%d steps: want 20 and more", len(rows))
	}
	for _, row := range rows {
		functions := listFunctions(t, row[1])
		for _, name := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(row[2], -1) {
			if !functions[name[1]] {
				t.Errorf("docs/design.md: %s has no function %s: write where the token goes now", row[1], name[1])
			}
		}
	}
}

// listFunctions are the functions of a file, methods with their type before them.
func listFunctions(t *testing.T, path string) map[string]bool {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Error(err)
		return nil
	}
	functions := map[string]bool{}
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok {
			continue
		}
		name := f.Name.Name
		if f.Recv != nil {
			of := f.Recv.List[0].Type
			if star, ok := of.(*ast.StarExpr); ok {
				of = star.X
			}
			if id, ok := of.(*ast.Ident); ok {
				name = id.Name + "." + name
			}
		}
		functions[name] = true
	}
	return functions
}
