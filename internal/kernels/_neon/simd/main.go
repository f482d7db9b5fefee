// Command simd generates the arm64 kernels of package simd: one .s file a subject, and the Go
// declarations of them all. Run it with go generate in that package's folder.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/grovellm/grove/internal/kernels/_neon/asm"
)

const command = "go run -C ../_neon ./simd"

func main() {
	if err := generate(filepath.Join("..", "simd")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func generate(dir string) error {
	var files []*asm.File
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
		g := &gen{File: asm.New(command)}
		subject.kernels(g)
		if err := g.Write(filepath.Join(dir, subject.name+"_arm64.s")); err != nil {
			return err
		}
		files = append(files, g.File)
	}
	return asm.Stubs(filepath.Join(dir, "stubs_arm64.go"), command, "simd", files...)
}
