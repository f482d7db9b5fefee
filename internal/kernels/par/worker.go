// The life of a worker: it waits for a phase, first spinning, then parked, and works.

package par

import (
	"sync/atomic"
	"time"

	"github.com/grovellm/grove/internal/kernels/fineclock"
)

type worker struct {
	parked atomic.Bool
	wake   chan struct{}
	budget time.Duration // of its next wait
	_      pad
	claims atomic.Uint64 // phaseWord of the rest of its share: its end and its beginning
	_      pad
}

// serve waits for phases and works, until the pool closes.
func (p *Pool) serve(id int, seen uint64) {
	exit := false
	defer func() {
		if exit {
			p.group.Done()
		} else { // a Job called runtime.Goexit: another goroutine replaces this one
			go p.serve(id, seen)
		}
	}()
	p.workers[id].budget = spinFor
	for {
		seen = p.await(id, seen)
		if p.closed.Load() {
			exit = true
			return
		}
		p.work(id, seen)
	}
}

// await returns the word of a phase other than the one seen.
func (p *Pool) await(id int, seen uint64) uint64 {
	w := &p.workers[id]
	s := waiter{budget: w.budget}
	if id == 0 {
		s.budget = spinFor
	}
	for int32(id) < p.usable.Load() {
		if f := p.phase.Load(); f != seen {
			return f
		}
		if !s.spin() {
			break
		}
	}
	w.parked.Swap(true) // see publish
	if p.phase.Load() == seen && !p.closed.Load() || !w.parked.CompareAndSwap(true, false) {
		<-w.wake
	}
	// Spinning that ends in parking was wasted: spin less, until a gap occurs that the full budget
	// would have bridged.
	if s.start.IsZero() || fineclock.Since(s.start) > spinFor+wakeCost {
		w.budget = max(s.budget/2, spinLeast)
	} else {
		w.budget = spinFor
	}
	return p.phase.Load()
}

func (w *worker) unpark() {
	if w.parked.Load() && w.parked.CompareAndSwap(true, false) {
		w.wake <- struct{}{}
	}
}
