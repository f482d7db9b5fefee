//go:build !linux

package adapt

import (
	"time"

	"github.com/grovellm/grove/internal/kernels/fineclock"
)

// modestly runs f. On other systems a program cannot set a single thread's priority so
// simply.
func modestly(f func()) { f() }

// spent returns the time from an arbitrary start: processor time, if f has a processor to itself.
func spent() time.Duration { return fineclock.Since(start) }

var start = fineclock.Now()
