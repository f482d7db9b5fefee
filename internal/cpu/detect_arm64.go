//go:build arm64 && !purego

package cpu

import (
	"runtime"

	"golang.org/x/sys/cpu"
)

// Has says whether this processor has a level.
func Has(l Level) bool {
	x := &cpu.ARM64
	if l == NEON { // every Mac of this architecture has both
		return runtime.GOOS == "darwin" || x.HasASIMD && x.HasASIMDDP
	}
	return l == Portable
}
