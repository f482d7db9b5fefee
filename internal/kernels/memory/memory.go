// Package memory says how much memory the program may use.
package memory

import (
	"sync"
	"time"
)

var (
	mu     sync.Mutex
	read   time.Time // when latest was
	latest int64
)

// Available is the memory in bytes that the program can take, as of 10 ms ago at most: reading it takes 0.2 ms. On
// Linux that is what the machine has free or can free of its file cache, and no more than the container (control
// group) leaves of its limit; on macOS all memory; 0 elsewhere, which means not known.
func Available() int64 {
	mu.Lock()
	defer mu.Unlock()
	if time.Since(read) > 10*time.Millisecond {
		latest, read = available(), time.Now()
	}
	return latest
}
