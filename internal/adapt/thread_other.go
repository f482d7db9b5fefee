//go:build !linux

package adapt

import "time"

// modestly runs f. Other systems have no priority of a single thread that a program may set so
// simply.
func modestly(f func()) { f() }

// spent is the time from any moment on: that of a processor, where f has one to itself.
func spent() time.Duration { return time.Since(start) }

var start = time.Now()
