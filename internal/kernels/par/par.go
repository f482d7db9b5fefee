// Package par is the fork-join pool that a pass runs on: one region at a time, whose phases follow one
// another, the tasks of each claimed one by one by a few workers.
//
// A decoding pass is some two hundred phases of 2 to 200 µs, while waking a parked goroutine costs 25 to
// 50 µs and even a fork and join of workers that spin costs 1 to 2. So phases that depend on each other and on
// nothing else make one region: whoever does the last task of a phase begins the next, and the others,
// which spin on one cache line, go on at once. A worker parks only when no phase has come for about
// as long as the waking would cost. Workers beyond the processors there are (GOMAXPROCS, the cores
// of the machine, or the limit of the container) stay parked: a spinning worker must never hold the
// core that a working one needs. And nobody waits for a worker that holds no task: the system may
// have taken its core away, and others do its share.
package par

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/grovellm/grove/internal/kernels/cpu"
)

// Job is the work of a phase. Do is called once for every task number; worker, in
// [0, Threads), is never in two calls of one region at once, so that it can number scratch
// memory. Tasks may run in any order, and must not wait for one another. Each worker
// begins with a share of neighbouring tasks, the same share of as many tasks, so that what it worked on before is near;
// with its own done, it takes from the ends of the others'.
//
// A Job is meant to be a pointer to state that outlives the region: then Run allocates nothing.
type Job interface{ Do(worker, task int) }

// Phase is tasks 0 to Tasks-1 of a Job. None begins before all those of the phase before are done.
type Phase struct {
	Tasks int
	Job   Job
}

// Panic is what Run panics with when a Job panicked in a worker's goroutine. (A panic in the
// caller's own goroutine, which is worker 0, reaches the caller as it is.)
type Panic struct {
	Value any    // what the Job panicked with
	Stack []byte // of the worker, where it did
}

func (p *Panic) Error() string {
	return fmt.Sprintf("par: a job panicked: %v\n\nworker's stack:\n%s", p.Value, p.Stack)
}

func (p *Panic) Unwrap() error {
	err, _ := p.Value.(error)
	return err
}

var errGoexit = errors.New("runtime.Goexit called in a job")

type pad [128]byte // two cache lines: processors fetch them in pairs

// Pool is the workers. What happens in a region is in region.go.
type Pool struct {
	threads int
	workers []worker // workers[0] is the caller
	group   sync.WaitGroup

	_      pad
	busy   atomic.Uint32 // a region or Close is under way
	closed atomic.Bool
	// Owned by whoever is busy:
	runs    uint32 // regions since usable was looked up
	cleared uint32 // the number of the phase when the workers' words were

	_      pad
	phase  atomic.Uint64 // see phaseWord; what waiting workers watch
	usable atomic.Int32  // how many workers there are processors for
	spared atomic.Int32  // processors left to others
	job    Job           // of the phase
	tasks  int
	size   int // tasks claimed at a time

	_        pad
	left     atomic.Int64 // claims of the phase that are not done
	phases   []Phase      // of the region; the rest is written by whoever begins a phase
	at       int          // the one under way
	one      [1]Phase     // Run's
	failed   atomic.Bool  // a Job panicked: what is left is claimed but not done
	panicked atomic.Pointer[Panic]
	_        pad
}

// New starts a pool of the given number of threads, the caller of Run being one of them;
// threads <= 0 means as many as there are processors.
func New(threads int) *Pool {
	if threads <= 0 {
		threads = processors()
	}
	threads = min(threads, maxShare)
	p := &Pool{threads: threads, workers: make([]worker, threads)}
	p.count()
	p.workers[0].wake = make(chan struct{}, 1)
	for id := 1; id < threads; id++ {
		p.workers[id].wake = make(chan struct{}, 1)
		p.group.Add(1)
		go p.serve(id, 0)
	}
	return p
}

// Threads is the number of workers, the caller included.
func (p *Pool) Threads() int { return p.threads }

// processors is how many workers can run at once. Beyond the limit of a container, workers that
// wait would take the time of those that work.
func processors() int {
	n := min(runtime.GOMAXPROCS(0), runtime.NumCPU())
	if limit := cpu.Limit(); limit > 0 {
		n = min(n, limit)
	}
	return n
}

// count looks up how many workers can run at once.
func (p *Pool) count() {
	n := int32(processors()) - p.spared.Load()
	p.usable.Store(max(min(int32(p.threads), n), 1))
}

// Spare leaves n more of the processors to others, or takes −n back: so many workers fewer take
// part in regions, but one always does. It may be called at any time.
func (p *Pool) Spare(n int) {
	p.spared.Add(int32(n))
	p.count()
}

// Run does tasks 0 to tasks-1 of j and returns when all are done: a region of one phase.
func (p *Pool) Run(tasks int, j Job) {
	if tasks <= 0 {
		return
	}
	if tasks == 1 || !p.shared() {
		for i := range tasks {
			j.Do(0, i)
		}
		return
	}
	p.one[0] = Phase{tasks, j}
	p.region(p.one[:])
}

// RunPhases does the phases one after another, and returns when all are done. If a task panics, those not
// yet begun are dropped, and RunPhases panics once no worker is left in a Job. A task may change the Tasks of
// later phases.
//
// Callers at the same time take turns. One that cannot get the workers within a few
// milliseconds (another's region is long, or it is a task of that very region) does its tasks alone.
func (p *Pool) RunPhases(phases []Phase) {
	if len(phases) == 0 {
		return
	}
	if !p.shared() {
		for i := range phases {
			for t := range phases[i].Tasks {
				phases[i].Job.Do(0, t)
			}
		}
		return
	}
	p.region(phases)
}

// shared takes the pool for the caller's region; it is false where the caller should do the work alone.
func (p *Pool) shared() bool { return (p.usable.Load() > 1 || p.recount()) && p.acquire() }

// recount looks whether a pool that had one processor has more by now. (Others look as they run.)
func (p *Pool) recount() bool {
	if p.threads == 1 || p.closed.Load() {
		return false
	}
	p.count()
	return p.usable.Load() > 1
}

// acquire waits for the pool to be free; it gives up when the pool is closed or stays busy.
func (p *Pool) acquire() bool {
	for w := (waiter{budget: patience}); !p.closed.Load(); {
		if p.busy.CompareAndSwap(0, 1) {
			if p.closed.Load() {
				p.busy.Store(0)
				return false
			}
			return true
		}
		if !w.spin() {
			return false
		}
		if w.spent > spinFor {
			time.Sleep(20 * time.Microsecond)
		}
	}
	return false
}

// Close stops the workers and waits for them to be gone. Later regions are done by their
// callers alone.
func (p *Pool) Close() {
	for !p.busy.CompareAndSwap(0, 1) {
		time.Sleep(50 * time.Microsecond)
	}
	defer p.busy.Store(0)
	if p.closed.Swap(true) {
		return
	}
	p.usable.Store(1)
	p.publish(phaseWord(number(p.phase.Load())+1, 0, 0))
	for id := 1; id < p.threads; id++ {
		p.workers[id].unpark()
	}
	p.group.Wait()
}
