// The suite edit: a Go file, to be rewritten with an identifier renamed.

package bench

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"

	"github.com/grovellm/grove/internal/train/data"
)

const (
	editBytes   = 1600 // maximum size of a file; it ends with a declaration
	leastRename = 3    // minimum number of places where the identifier occurs
	renamed     = "V2" // the suffix added to it
)

// readEdits makes a prompt from each file of the packages that suite go takes its prompts from: the
// file, from its package clause to the end of a declaration, and a comment that says what to
// rename. The target is made to write the file with that change: models of the size of ours repeat
// a file no better than they write one (docs/bench.md).
func readEdits(o *SuiteOptions, q query) ([]Prompt, error) {
	docs, root, err := promptFiles(o)
	if err != nil {
		return nil, err
	}
	size := cmp.Or(q.chars, editBytes)
	var all []Prompt
	for _, d := range docs {
		if strings.HasSuffix(d.Name, "_test.go") {
			continue
		}
		file, name := cutFile(d.Text(), size)
		if name == "" {
			continue
		}
		rel, err := filepath.Rel(root, d.Name)
		if err != nil {
			rel = d.Name
		}
		all = append(all, Prompt{
			Name:   filepath.ToSlash(rel),
			Text:   fmt.Sprintf("%s\n// The same file again, with %s renamed %s:\n\n", file, name, name+renamed),
			Forced: rename(file, name, name+renamed),
		})
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s: no file with a name to change in its packages held out for prompts", root)
	}
	return all, nil
}

// cutFile returns a file's package clause and those declarations that end within size bytes of it,
// and the name that they both declare and mention most often. The name is empty if none is
// mentioned often enough.
func cutFile(text string, size int) (file, name string) {
	set := token.NewFileSet()
	f, err := parser.ParseFile(set, "", text, parser.SkipObjectResolution|parser.ParseComments)
	if err != nil {
		return "", ""
	}
	from := set.Position(f.Package).Offset
	end := from
	var declared []string
	for _, d := range f.Decls {
		at := set.Position(d.End()).Offset
		if at-from > size {
			break
		}
		end = at
		declared = append(declared, names(d)...)
	}
	file = text[from:end] + "\n"
	most := leastRename - 1
	for _, n := range declared {
		if k := len(occurrences(file, n)); k > most {
			most, name = k, n
		}
	}
	return file, name
}

// names lists the names that a declaration declares in its package.
func names(d ast.Decl) (list []string) {
	add := func(id *ast.Ident) {
		if n := id.Name; n != "_" && n != "init" && n != "main" {
			list = append(list, n)
		}
	}
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Recv == nil {
			add(d.Name)
		}
	case *ast.GenDecl:
		for _, s := range d.Specs {
			switch s := s.(type) {
			case *ast.TypeSpec:
				add(s.Name)
			case *ast.ValueSpec:
				for _, n := range s.Names {
					add(n)
				}
			}
		}
	}
	return list
}

// occurrences lists an identifier's places in a file, except after a dot: there it is another package's, or a field.
func occurrences(file, name string) (at []int) {
	set := token.NewFileSet()
	f, err := parser.ParseFile(set, "", file, parser.SkipObjectResolution)
	if err != nil {
		return nil
	}
	selected := map[*ast.Ident]bool{}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			selected[n.Sel] = true
		case *ast.Ident:
			if n.Name == name && !selected[n] {
				at = append(at, set.Position(n.Pos()).Offset)
			}
		}
		return true
	})
	return at
}

// rename returns a file with another name for an identifier.
func rename(file, name, other string) string {
	var b strings.Builder
	last := 0
	for _, at := range occurrences(file, name) {
		b.WriteString(file[last:at] + other)
		last = at + len(name)
	}
	b.WriteString(file[last:])
	return b.String()
}

// promptFiles reads the packages of Go's library that are held out for prompts; root is their common folder.
func promptFiles(o *SuiteOptions) (docs []data.Document, root string, err error) {
	if o.GoRoot == "" {
		return nil, "", fmt.Errorf("where is the Go toolchain? The go command does not say: name its folder with --goroot")
	}
	root = filepath.Join(o.GoRoot, "src")
	docs, _, err = data.Source{Name: "go", Kind: data.Go, Path: root, Except: []string{"cmd"}, Packages: data.Prompts,
		Weight: 1}.Documents()
	if err != nil {
		return nil, root, fmt.Errorf("%w: name the folder of a Go toolchain with --goroot", err)
	}
	return docs, root, nil
}
