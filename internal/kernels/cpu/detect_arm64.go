//go:build arm64 && !purego

package cpu

import (
	"runtime"

	"golang.org/x/sys/cpu"
)

// Has says whether this processor has a level.
func Has(l Level) bool {
	x := &cpu.ARM64
	switch l {
	case NEON: // every Mac of this architecture has both
		return runtime.GOOS == "darwin" || x.HasASIMD && x.HasASIMDDP
	case I8MM:
		return Has(NEON) && x.HasI8MM
	}
	return l == Portable
}
