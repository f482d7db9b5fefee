package par

import (
	"runtime"
	"time"

	"github.com/grovellm/grove/internal/kernels/fineclock"
)

const (
	spinFor   = 100 * time.Microsecond // a wait up to this long is spun through
	spinLeast = 5 * time.Microsecond   // what is left of it when regions are far apart
	wakeCost  = 60 * time.Microsecond  // of a parked worker, the thread's waking included
	yieldStep = 30 * time.Microsecond  // between calls of the scheduler while spinning
	patience  = 2 * time.Millisecond   // of a caller whose pool is busy
)

// waiter spins: it bounds a busy wait in time and lets other goroutines in now and then.
// The clock is read only after the first turns, so that a short wait costs nothing.
type waiter struct {
	budget time.Duration
	spent  time.Duration
	yield  time.Duration // when, in time spent, to call the scheduler
	start  time.Time
	turns  uint32
}

// spin passes a few tens of nanoseconds; it reports false once the budget is spent.
func (w *waiter) spin() bool {
	pause()
	w.turns++
	if w.turns&15 != 0 {
		return true
	}
	if w.start.IsZero() {
		w.start = fineclock.Now()
		w.yield = yieldStep
		return true
	}
	w.spent = fineclock.Since(w.start)
	if w.spent >= w.yield {
		w.yield = w.spent + yieldStep
		runtime.Gosched()
	}
	return w.spent < w.budget
}
