package simd

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// What can be said of the arm64 kernels from their source is tested on every processor.

func parse(t *testing.T, name string) []*ast.FuncDecl {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var fs []*ast.FuncDecl
	for _, d := range f.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok {
			fs = append(fs, fn)
		}
	}
	return fs
}

// Every operation asks for the level and calls the kernel of its name, or the portable code.
func TestDispatchReachesEveryNEONKernel(t *testing.T) {
	reached := map[string]bool{}
	for _, fn := range parse(t, "stubs_arm64.go") {
		if fn.Body != nil {
			t.Errorf("%s has a body", fn.Name.Name)
		}
		reached[fn.Name.Name] = false
	}
	called := func(n ast.Node) (names string) {
		ast.Inspect(n, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok {
				if id, ok := call.Fun.(*ast.Ident); ok {
					names += id.Name
				}
			}
			return true
		})
		return names
	}
	for _, fn := range parse(t, "dispatch_arm64.go") {
		name := fn.Name.Name
		list := fn.Body.List
		choice, ok := list[0].(*ast.IfStmt)
		if !ok || len(list) != 2 || choice.Else != nil {
			t.Errorf("%s is not one choice of two", name)
			continue
		}
		if cmp, ok := choice.Cond.(*ast.BinaryExpr); !ok || cmp.Op != token.GEQ ||
			cmp.Y.(*ast.SelectorExpr).Sel.Name != "NEON" {
			t.Errorf("%s does not ask for NEON", name)
		}
		if last, ok := choice.Body.List[len(choice.Body.List)-1].(*ast.ReturnStmt); !ok || last == nil {
			t.Errorf("%s goes on after its kernel", name)
		}
		kernel := called(choice.Body)
		if _, ok := reached[kernel]; !ok || kernel != name+"NEON" {
			t.Errorf("%s calls %s, want %sNEON", name, kernel, name)
		}
		if generic := called(list[1]); generic != name+"Generic" {
			t.Errorf("%s calls %s, want %sGeneric", name, generic, name)
		}
		reached[kernel] = true
	}
	for name, ok := range reached {
		if !ok {
			t.Errorf("nothing calls %s", name)
		}
	}
}

// R18 is the platform's, R26 to R30 are the linker's and Go's, the stack is not ours.
var reserved = regexp.MustCompile(`\b(R18(_PLATFORM)?|R2[6-9]|R30|RSP|SP|BL|CALL)\b`)

func TestNEONKernelsKeepToTheirRegisters(t *testing.T) {
	files, _ := filepath.Glob("*_arm64.s")
	n := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range strings.Split(string(text), "\n") {
			line, _, _ = strings.Cut(line, "//")
			if strings.HasPrefix(line, "TEXT ") {
				n++
			} else if r := reserved.FindString(line); r != "" {
				t.Errorf("%s: %s in %s", file, r, line)
			}
		}
	}
	if want := len(parse(t, "stubs_arm64.go")); n != want {
		t.Errorf("%d kernels in %v, %d declared", n, files, want)
	}
}
