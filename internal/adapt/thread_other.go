//go:build !linux

package adapt

import (
	"time"

	"github.com/grovellm/grove/internal/kernels/fineclock"
)

// modestly runs f. Other systems have no priority of a single thread that a program may set so
// simply.
func modestly(f func()) { f() }

// spent is the time from any moment on: that of a processor, where f has one to itself.
func spent() time.Duration { return fineclock.Since(start) }

var start = fineclock.Now()
