// Command gemm writes the arm64 kernels of package gemm.
package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/grovellm/grove/internal/kernels/_neon/asm"
)

func main() {
	const command = "go run ./gemm"
	f := asm.New(command)
	floatKernels(f)
	blockKernels(f)
	kKernels(f)
	packedKernels(f)
	convertKernels(f)
	roofKernels(f)
	err := errors.Join(f.Write("../gemm/kernels_arm64.s"), asm.Stubs("../gemm/stubs_arm64.go", command, "gemm", f))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
