package grove_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// At most this many exported names; see countNames. Lower the number where names go.
const publicNames = 450

// A program of others can name every type that the public packages need, and finds few names there.
func TestPublicNames(t *testing.T) {
	api := loadPublic(t)
	total := 0
	for _, p := range api.packages {
		n := api.countNames(p)
		total += n
		t.Logf("%s: %d names", p.Path(), n)
		for _, hidden := range api.findHidden(p) {
			t.Error(hidden)
		}
	}
	t.Logf("%d names in %d packages", total, len(api.packages))
	if total > publicNames {
		t.Errorf("the public packages export %d names: at most %d", total, publicNames)
	}
}

// publicAPI is the public packages, and the internal types that have a name in one of them.
type publicAPI struct {
	packages []*types.Package
	named    map[*types.TypeName]bool
}

// loadPublic reads the export data that the compiler wrote of the public packages. Programs are not compiled for it.
func loadPublic(t *testing.T) *publicAPI {
	list := func(args ...string) []byte {
		cmd := exec.Command("go", append([]string{"list"}, args...)...)
		cmd.Stderr = os.Stderr
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	all := strings.Fields(string(list("-f", `{{if ne .Name "main"}}{{.ImportPath}}{{end}}`, "./...")))
	paths := slices.DeleteFunc(all, isInternal)
	files := map[string]string{}
	exports := list(append([]string{"-export", "-deps", "-json=ImportPath,Export"}, paths...)...)
	for d := json.NewDecoder(bytes.NewReader(exports)); ; {
		var p struct{ ImportPath, Export string }
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		files[p.ImportPath] = p.Export
	}
	imports := importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(files[path])
	})
	var packages []*types.Package
	for _, path := range paths {
		p, err := imports.Import(path)
		if err != nil {
			t.Fatal(err)
		}
		packages = append(packages, p)
	}
	return newPublicAPI(packages)
}

func newPublicAPI(list []*types.Package) *publicAPI {
	api := &publicAPI{list, map[*types.TypeName]bool{}}
	for _, p := range list {
		for _, o := range exported(p) {
			if n, ok := types.Unalias(o.Type()).(*types.Named); ok && isTypeName(o) {
				api.named[n.Origin().Obj()] = true
			}
		}
	}
	return api
}

func isInternal(path string) bool { return strings.Contains(path+"/", "/internal/") }

func isTypeName(o types.Object) bool {
	_, is := o.(*types.TypeName)
	return is
}

// exported lists a package's exported names.
func exported(p *types.Package) (list []types.Object) {
	for _, name := range p.Scope().Names() {
		if o := p.Scope().Lookup(name); o.Exported() {
			list = append(list, o)
		}
	}
	return list
}

// countNames counts the names that go doc shows of a package: exported constants, variables, functions
// and types, and of each type its exported fields and the exported methods that are declared on it.
// A type of an internal package that has a name here counts with its fields and methods, one of
// another public package without, and an embedded type where it is declared.
func (a *publicAPI) countNames(p *types.Package) (n int) {
	for _, o := range exported(p) {
		n++
		if isTypeName(o) && !isElsewhere(o.Type(), p) {
			n += len(members(o.Type()))
		}
	}
	return n
}

// isElsewhere reports whether a type has its fields and methods in another public package.
func isElsewhere(t types.Type, p *types.Package) bool {
	n, ok := types.Unalias(t).(*types.Named)
	return ok && n.Obj().Pkg() != p && !isInternal(n.Obj().Pkg().Path())
}

// members lists a type's exported fields and the exported methods that are declared on it.
func members(t types.Type) (list []types.Object) {
	t = types.Unalias(t)
	if n, ok := t.(*types.Named); ok {
		for m := range n.Methods() {
			list = append(list, m)
		}
	}
	switch u := t.Underlying().(type) {
	case *types.Struct:
		for f := range u.Fields() {
			list = append(list, f)
		}
	case *types.Interface:
		for m := range u.ExplicitMethods() {
			list = append(list, m)
		}
	}
	return slices.DeleteFunc(list, func(o types.Object) bool { return !o.Exported() })
}

// findHidden lists the exported names that need a type without a name outside: an internal one that
// no public package gives a name, or one that is not exported.
func (a *publicAPI) findHidden(p *types.Package) (list []string) {
	for _, o := range exported(p) {
		hidden := map[string]bool{}
		if isTypeName(o) {
			for _, m := range members(o.Type()) {
				a.walk(m.Type(), hidden)
			}
			if _, named := types.Unalias(o.Type()).(*types.Named); !named {
				a.walk(o.Type(), hidden)
			}
		} else {
			a.walk(o.Type(), hidden)
		}
		for _, name := range slices.Sorted(maps.Keys(hidden)) {
			list = append(list, fmt.Sprintf("%s.%s needs %s, which a program of others cannot name", p.Path(), o.Name(), name))
		}
	}
	return list
}

// walk collects the types without a name that t is made of.
func (a *publicAPI) walk(t types.Type, hidden map[string]bool) {
	switch t := types.Unalias(t).(type) {
	case *types.Named:
		o := t.Obj()
		if o.Pkg() != nil && !a.named[t.Origin().Obj()] && (!o.Exported() || isInternal(o.Pkg().Path())) {
			hidden[o.Pkg().Path()+"."+o.Name()] = true
		}
		for arg := range t.TypeArgs().Types() {
			a.walk(arg, hidden)
		}
	case interface{ Elem() types.Type }: // pointers, slices, arrays, channels, and the values of maps
		a.walk(t.Elem(), hidden)
		if m, ok := t.(*types.Map); ok {
			a.walk(m.Key(), hidden)
		}
	case *types.Signature:
		for _, tuple := range []*types.Tuple{t.Params(), t.Results()} {
			for v := range tuple.Variables() {
				a.walk(v.Type(), hidden)
			}
		}
	case *types.Struct, *types.Interface:
		for _, m := range members(t) {
			a.walk(m.Type(), hidden)
		}
	}
}

// Types without a name outside are found wherever they are needed, and names are counted as go doc shows them.
func TestFindHidden(t *testing.T) {
	inside := checkSource(t, "m/internal/x", "package x; type T struct{ A, B int }; type U int; func (U) Get() int { return 0 }", nil)
	for code, want := range map[string]struct{ hidden, names int }{
		"func F(x.T)":                               {1, 1},
		"func F() (map[string][]*x.T, error)":       {1, 1},
		"func F(func(chan x.T))":                    {1, 1},
		"var V x.T":                                 {1, 1},
		"type S struct{ N int; X x.T }":             {1, 3},
		"type S struct{ x.T }":                      {1, 2},
		"type S struct{ n int; t x.T }":             {0, 1},
		"type I interface{ M(x.T); N() }":           {1, 3},
		"type S struct{}; func (S) M(x.T) {}":       {1, 2},
		"type S struct{}; func (S) m(x.T) {}":       {0, 1},
		"type own int; func F() own { return 0 }":   {1, 1},
		"type T = x.T; func F(x.T)":                 {0, 4},
		"type U = x.U":                              {0, 2},
		"type P = *x.T":                             {1, 1},
		"type G[E any] struct{ E E }; var V G[x.T]": {1, 3},
		"func f(x.T)":                               {0, 0},
	} {
		p := checkSource(t, "m/p", "package p; import \"m/internal/x\"; var _ x.T; "+code, inside)
		api := newPublicAPI([]*types.Package{p})
		if hidden := api.findHidden(p); len(hidden) != want.hidden {
			t.Errorf("%s: %q, want %d", code, hidden, want.hidden)
		}
		if n := api.countNames(p); n != want.names {
			t.Errorf("%s: %d names, want %d", code, n, want.names)
		}
	}
}

// Another name for a type of a public package is one name.
func TestCountOtherNames(t *testing.T) {
	other := checkSource(t, "m/q", "package q; type T struct{ A, B int }", nil)
	p := checkSource(t, "m/p", "package p; import \"m/q\"; type S = q.T; type U struct{ C q.T }", other)
	if n := newPublicAPI([]*types.Package{p, other}).countNames(p); n != 3 {
		t.Errorf("%d names, want 3", n)
	}
}

// only imports one package.
type only struct{ p *types.Package }

func (o only) Import(string) (*types.Package, error) { return o.p, nil }

func checkSource(t *testing.T, path, code string, imported *types.Package) *types.Package {
	t.Helper()
	set := token.NewFileSet()
	f, err := parser.ParseFile(set, "", code, 0)
	if err != nil {
		t.Fatalf("%s: %v", code, err)
	}
	config := types.Config{Importer: only{imported}, IgnoreFuncBodies: true}
	p, err := config.Check(path, set, []*ast.File{f}, nil)
	if err != nil {
		t.Fatalf("%s: %v", code, err)
	}
	return p
}
