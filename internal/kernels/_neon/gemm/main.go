// Command gemm writes the arm64 kernels of package gemm.
package main

import (
	"fmt"
	"os"

	"github.com/grovellm/grove/internal/kernels/_neon/asm"
)

func main() {
	f := asm.New("go run ./gemm")
	floatKernels(f)
	blockKernels(f)
	kKernels(f)
	packedKernels(f)
	convertKernels(f)
	roofKernels(f)
	if err := f.Write("../gemm/kernels_arm64.s"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
