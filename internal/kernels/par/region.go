// What happens in a region: phases begin and end, tasks are claimed, done and counted.

package par

import "runtime/debug"

// A phase is published as one word: its number, which no other phase has, how many workers have a share
// in it and how many claims there are. A region that is over is a phase without claims. Each worker's own claims
// are a word too: the number of the phase, and which are left of its share. So a claim counts only
// in the phase it was meant for, nobody has to clear the words, and a worker that slept through
// the end of a phase claims nothing by mistake. What a phase says beside (its Job) holds still
// while a claim of it is not done.
const (
	halfBits = 16
	maxShare = 1<<halfBits - 1 // of claims in a phase, and of workers
)

func phaseWord(number uint32, sharers, claims int) uint64 {
	return uint64(number)<<32 | uint64(sharers)<<halfBits | uint64(claims)
}

func number(word uint64) uint32 { return uint32(word >> 32) }

// halves are sharers and claims of a phase; the end and the beginning of what is left of a share.
func halves(word uint64) (high, low int) {
	return int(word >> halfBits & maxShare), int(word & maxShare)
}

// region does phases, at least one, with the workers; the caller has acquired the pool.
func (p *Pool) region(phases []Phase) {
	p.runs++
	if p.runs&255 == 0 {
		p.count()
	}
	n := number(p.phase.Load())
	if n-p.cleared > 1<<20 { // long before a number comes again, no word is left that has it
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

// next begins the phase after the one of that number, or ends the region. Whoever did the last task calls it: nobody
// else is in the region then.
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
	p.size = size // just before the word, with which they share the line that others watch
	p.publish(phaseWord(n+1, sharers, claims))
	// Those that spin come by themselves; wake as many others as there is work for.
	for id := range sharers {
		p.workers[id].unpark()
	}
}

// publish makes a word the phase's. What follows looks who is parked, while who parks looks at the
// phase: one of the two sees the other. Both swap, and do not store: under an emulator of arm64,
// which seems to let a look pass an ordered store, workers slept on.
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

// attempt is work up to the first panic. A worker's panic ends here, and is kept for the
// caller; worker 0 is the caller.
func (p *Pool) attempt(id int, phase uint64) (over bool) {
	n := int64(0) // claims done and not counted
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
		p.finish(phase, n+1) // with the one that panicked
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
		p.finish(phase, n) // and only then look for what others have left
		n = 0
	}
	return true
}

// patient gives the others a moment to end the phase, and says whether they did: most do, and
// looking for what they have left would take their words from them.
func (p *Pool) patient(phase uint64) (over bool) {
	for range moment {
		if p.phase.Load() != phase {
			return true
		}
		pause()
	}
	return false
}

const moment = 10 // pauses, of some 20 ns each

// Share is which of a phase's tasks a worker begins with, where so many workers take part.
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

// claim takes the first of what is left of the worker's share in a phase, or the last for another worker.
func (w *worker) claim(phase uint64, share int, first bool) (claim int, ok bool) {
	for {
		c := w.claims.Load()
		to, from := halves(c)
		if age := int32(number(phase) - number(c)); age < 0 {
			return 0, false // the phase is over
		} else if age > 0 { // nobody has claimed of this share yet
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
