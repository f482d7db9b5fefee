// Command _asm generates the amd64 kernels of package simd: one .s file a subject, and the Go
// declarations of them all. Run it with go generate in the package's folder.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/ir"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/pass"
	"github.com/mmcloughlin/avo/printer"
)

var config = printer.Config{Argv: []string{"go", "run", "-C", "_asm", "."}, Pkg: "simd"}

// Every kernel is written once and generated for each of these.
var levels = []level{{"AVX2", false}, {"AVX512", true}}

type level struct {
	name string
	zmm  bool // vectors of 16, masks
}

func main() {
	if err := generate(".."); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func generate(dir string) error {
	// avo looks at the build environment; what it writes must not depend on it.
	os.Setenv("GOOS", "linux")
	os.Setenv("GOARCH", "amd64")
	const constraint = "!purego" // and amd64, by the files' names
	ctx := build.NewContext()
	ctx.ConstraintExpr(constraint)
	stubs, err := ctx.Result()
	if err != nil {
		return err
	}
	for _, subject := range []struct {
		name    string
		kernels func(*gen)
	}{
		{"vector", vectorKernels},
		{"exp", expKernels},
		{"search", searchKernels},
		{"hash", hashKernels},
		{"attention", attentionKernels},
		{"kv", kvKernels},
	} {
		ctx := build.NewContext()
		ctx.ConstraintExpr(constraint)
		consts, tables := map[uint32]cst{}, map[string]operand.Mem{}
		for _, l := range levels {
			subject.kernels(&gen{Context: ctx, level: l, consts: consts, tables: tables})
		}
		f, err := ctx.Result()
		if err != nil {
			return fmt.Errorf("%s: %w", subject.name, err)
		}
		if err := pass.Compile.Execute(f); err != nil {
			return fmt.Errorf("%s: %w", subject.name, err)
		}
		for _, fn := range f.Functions() {
			stubs.AddSection(fn)
		}
		if err := write(printer.NewGoAsm(config), f, filepath.Join(dir, subject.name+"_amd64.s")); err != nil {
			return err
		}
	}
	return write(printer.NewStubs(config), stubs, filepath.Join(dir, "stubs_amd64.go"))
}

func write(p printer.Printer, f *ir.File, path string) error {
	text, err := p.Print(f)
	if err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o644)
}
