// Command _asm generates the amd64 kernels of package gemm.
package main

import (
	"os"

	. "github.com/mmcloughlin/avo/build"
)

func main() {
	// avo looks at the build environment; what it writes must not depend on it.
	os.Setenv("GOOS", "linux")
	os.Setenv("GOARCH", "amd64")

	ConstraintExpr("!purego")
	floatKernels()
	q8AVX2()
	kQuants()
	codedKernels()
	packedKernels()
	fewBF16()
	convertKernels()
	roofKernels()
	Generate()
}
