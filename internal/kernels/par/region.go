// Running a region: phases begin and end, tasks are claimed, done and counted.

package par

import "runtime/debug"

// A phase is published as one word: its number, which no other phase has, how many workers have a
// share in it, and how many claims there are. A region that is over is a phase without claims. Each
// worker's own claims are also a word: the number of the phase, and the claims left in its share.
// So a claim counts only in the phase it was meant for, the words need no clearing, and a worker
// that slept through the end of a phase claims nothing by mistake. A phase's other data (its Job)
// does not change while any claim of it is not done.
const (
	halfBits = 16
	maxShare = 1<<halfBits - 1 // of claims in a phase, and of workers
)

func phaseWord(number uint32, sharers, claims int) uint64 {
	return uint64(number)<<32 | uint64(sharers)<<halfBits | uint64(claims)
}

func number(word uint64) uint32 { return uint32(word >> 32) }

// halves returns sharers and claims of a phase, or the end and the beginning of the rest of a share.
func halves(word uint64) (high, low int) {
	return int(word >> halfBits & maxShare), int(word & maxShare)
}

// region runs phases, at least one, with the workers; the caller must have acquired the pool.
func (p *Pool) region(phases []Phase) {
	p.runs++
	if p.runs&255 == 0 {
		p.count()
	}
	n := number(p.phase.Load())
	if n-p.cleared > 1<<20 { // long before numbers repeat, clear all words
		p.cleared = n
		for id := range p.workers {
			p.workers[id].claims.Store(phaseWord(n, 0, 0))
		}
	}
	p.phases, p.at = phases, -1
	defer p.join()
	p.next(n)
	p.lead()
}

// lead is the caller's part in a region.
func (p *Pool) lead() {
	for w := p.phase.Load(); ; w = p.await(0, w) {
		if _, claims := halves(w); claims == 0 {
			return
		}
		p.work(0, w)
	}
}

// join ends a region. It runs deferred, so that a panic in the caller's own share
// still waits for the workers to leave the Job.
func (p *Pool) join() {
	p.lead()
	p.phases, p.one[0].Job = nil, nil
	err := p.panicked.Swap(nil)
	p.failed.Store(false)
	p.busy.Store(0)
	if err != nil {
		panic(err)
	}
}

// next begins the phase after the one with the given number, or ends the region. It is called by
// the worker that did the last task, when no other worker is in the region.
func (p *Pool) next(n uint32) {
	p.at++
	for p.at < len(p.phases) && p.phases[p.at].Tasks <= 0 {
		p.at++
	}
	if p.at == len(p.phases) || p.failed.Load() {
		p.job = nil
		p.publish(phaseWord(n+1, 0, 0))
		p.workers[0].unpark()
		return
	}
	f := &p.phases[p.at]
	size := (f.Tasks + maxShare - 1) / maxShare
	claims := (f.Tasks + size - 1) / size
	sharers := min(int(p.usable.Load()), claims)
	p.left.Store(int64(claims))
	p.job = f.Job
	p.tasks = f.Tasks
	p.size = size // just before the word, whose cache line the others watch
	p.publish(phaseWord(n+1, sharers, claims))
	// Spinning workers come by themselves; wake as many others as there is work for.
	for id := range sharers {
		p.workers[id].unpark()
	}
}

// publish makes word the phase's word. The code that follows checks who is parked, while a worker
// that parks checks the phase: one of the two sees the other. Both use swaps rather than stores:
// under an emulator of arm64, which seems to let a load pass an ordered store, workers slept on.
func (p *Pool) publish(word uint64) { p.phase.Swap(word) }

// finish counts n claims of a phase as done.
func (p *Pool) finish(phase uint64, n int64) {
	if n > 0 && p.left.Add(-n) == 0 {
		p.next(number(phase))
	}
}

// work does tasks of a phase until none is left to claim.
func (p *Pool) work(id int, phase uint64) {
	for !p.attempt(id, phase) {
	}
}

// attempt is work up to the first panic. A panic in a worker ends here and is kept for the caller,
// which is worker 0.
func (p *Pool) attempt(id int, phase uint64) (over bool) {
	n := int64(0) // claims done but not yet counted
	defer func() {
		if over {
			return
		}
		p.failed.Store(true)
		if id != 0 {
			v := recover()
			if v == nil {
				v = errGoexit
			}
			p.panicked.CompareAndSwap(nil, &Panic{Value: v, Stack: debug.Stack()})
		}
		p.finish(phase, n+1) // including the one that panicked
	}()
	sharers, _ := halves(phase)
	for k := range max(sharers, p.threads) {
		share := id + k
		if share >= p.threads {
			share -= p.threads
		}
		if share >= sharers {
			continue
		}
		if k == 1 && p.patient(phase) {
			return true
		}
		for {
			claim, ok := p.workers[share].claim(phase, share, k == 0)
			if !ok {
				break
			}
			if !p.failed.Load() {
				p.do(id, claim)
			}
			n++
		}
		p.finish(phase, n) // only then look for tasks left by others
		n = 0
	}
	return true
}

// patient gives the others a moment to end the phase, and reports whether they did: most do, and
// looking for the tasks they have left would take their words from them.
func (p *Pool) patient(phase uint64) (over bool) {
	for range moment {
		if p.phase.Load() != phase {
			return true
		}
		pause()
	}
	return false
}

const moment = 10 // pauses of about 20 ns each

// Share returns the tasks of a phase that a worker begins with, where the given number of workers take part.
func Share(worker, workers, tasks int) (from, to int) {
	return tasks * worker / workers, tasks * (worker + 1) / workers
}

// do does the tasks of a claim.
func (p *Pool) do(id, claim int) {
	if p.size == 1 {
		p.job.Do(id, claim)
		return
	}
	for t := claim * p.size; t < min((claim+1)*p.size, p.tasks); t++ {
		p.job.Do(id, t)
	}
}

// claim takes the first claim left in the worker's share of a phase, or the last one for another worker.
func (w *worker) claim(phase uint64, share int, first bool) (claim int, ok bool) {
	for {
		c := w.claims.Load()
		to, from := halves(c)
		if age := int32(number(phase) - number(c)); age < 0 {
			return 0, false // the phase is over
		} else if age > 0 { // nothing in this share has been claimed yet
			sharers, claims := halves(phase)
			from, to = Share(share, sharers, claims)
		}
		if from >= to {
			return 0, false
		}
		claim = from
		if first {
			from++
		} else {
			to--
			claim = to
		}
		if w.claims.CompareAndSwap(c, phaseWord(number(phase), to, from)) {
			return claim, true
		}
	}
}
