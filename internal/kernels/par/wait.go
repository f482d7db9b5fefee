package par

import (
	"runtime"
	"time"

	"github.com/grovellm/grove/internal/kernels/fineclock"
)

const (
	spinFor   = 100 * time.Microsecond // a worker spins through waits up to this long
	spinLeast = 5 * time.Microsecond   // the budget that remains when regions are far apart
	wakeCost  = 60 * time.Microsecond  // of a parked worker, including waking its thread
	yieldStep = 30 * time.Microsecond  // between calls to the scheduler while spinning
	patience  = 2 * time.Millisecond   // of a caller whose pool is busy
)

// waiter spins: it limits the time of a busy wait and now and then lets other goroutines run. The
// clock is read only after the first iterations, so a short wait costs nothing.
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
