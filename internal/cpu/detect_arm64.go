//go:build arm64 && !purego

package cpu

import (
	"runtime"

	"golang.org/x/sys/cpu"
)

func detect() Level {
	x := &cpu.ARM64
	switch {
	case runtime.GOOS == "darwin": // every Mac of this architecture has both
		return NEON
	case x.HasASIMD && x.HasASIMDDP:
		return NEON
	}
	return Portable
}
