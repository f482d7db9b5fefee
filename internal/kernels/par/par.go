// Package par is the fork-join pool on which a pass runs: one region at a time, with consecutive
// phases, whose tasks are claimed one by one by a few workers.
//
// A decoding pass has some two hundred phases of 2 to 200 µs, while waking a parked goroutine costs
// 25 to 50 µs, and even a fork and join of spinning workers costs 1 to 2. So phases that depend
// only on each other form one region: the worker that does the last task of a phase begins the
// next, and the others, which spin on one cache line, continue at once. A worker parks only when no
// phase has come for about as long as waking it would take. Workers in excess of the available
// processors (GOMAXPROCS, the cores of the machine, or the limit of the container) stay parked: a
// spinning worker must never occupy the core that a working one needs. And nobody waits for a
// worker that holds no task: the system may have taken its core away, and others do its share.
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

// Job is the work of a phase. Do is called once for every task number. worker, in [0, Threads), is
// never in two calls of one region at once, so it can index scratch memory. Tasks may run in any
// order and must not wait for one another. Each worker begins with a share of neighbouring tasks,
// which is the same for the same number of tasks, so that its earlier data is near; then it takes
// tasks from the ends of the others' shares.
//
// A Job should be a pointer to state that outlives the region: then Run allocates nothing.
type Job interface{ Do(worker, task int) }

// Phase is tasks 0 to Tasks-1 of a Job. None begins before all tasks of the previous phase are done.
type Phase struct {
	Tasks int
	Job   Job
}

// Panic is the value with which Run panics after a Job panicked in a worker's goroutine. (A panic
// in the caller's own goroutine, which is worker 0, reaches the caller unchanged.)
type Panic struct {
	Value any    // the value of the Job's panic
	Stack []byte // of the worker, at the panic
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

// Pool is the workers. region.go runs the regions.
type Pool struct {
	threads int
	workers []worker // workers[0] is the caller
	group   sync.WaitGroup

	_      pad
	busy   atomic.Uint32 // a region or Close is in progress
	closed atomic.Bool
	// Owned by the holder of busy:
	runs    uint32 // regions since usable was last updated
	cleared uint32 // the number of the phase when the workers' words were last cleared

	_      pad
	phase  atomic.Uint64 // see phaseWord; watched by waiting workers
	usable atomic.Int32  // the number of workers with a processor
	spared atomic.Int32  // processors left to others
	job    Job           // of the phase
	tasks  int
	size   int // tasks claimed at a time

	_        pad
	left     atomic.Int64 // claims of the phase that are not yet done
	phases   []Phase      // of the region; the fields below are written by whoever begins a phase
	at       int          // the current one
	one      [1]Phase     // for Run
	failed   atomic.Bool  // a Job panicked: remaining tasks are claimed but not done
	panicked atomic.Pointer[Panic]
	_        pad
}

// New starts a pool of the given number of threads, including the caller of Run; threads <= 0 means
// one per processor.
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

// Threads is the number of workers, including the caller.
func (p *Pool) Threads() int { return p.threads }

// processors returns how many workers can run at once. Beyond a container's limit, waiting workers
// would take time from working ones.
func processors() int {
	n := min(runtime.GOMAXPROCS(0), runtime.NumCPU())
	if limit := cpu.Limit(); limit > 0 {
		n = min(n, limit)
	}
	return n
}

// count updates the number of workers that can run at once.
func (p *Pool) count() {
	n := int32(processors()) - p.spared.Load()
	p.usable.Store(max(min(int32(p.threads), n), 1))
}

// Spare leaves n more processors to others, or takes −n back: that many fewer workers take part in
// regions, but at least one always does. It may be called at any time.
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

// RunPhases runs the phases one after another, and returns when all are done. If a task panics,
// those not yet begun are dropped, and RunPhases panics once no worker is left in a Job. A task may
// change the Tasks of later phases.
//
// Concurrent callers take turns. A caller that cannot get the workers within a few milliseconds (because
// another's region is long, or because it is itself a task of that region) does its tasks alone.
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

// shared takes the pool for the caller's region; it returns false if the caller should do the work alone.
func (p *Pool) shared() bool { return (p.usable.Load() > 1 || p.recount()) && p.acquire() }

// recount checks whether a pool that had one processor now has more. (Other pools check as they run.)
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

// Close stops the workers and waits until they are gone. Later regions are run by their callers
// alone.
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
