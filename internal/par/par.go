// Package par is the fork-join pool that a pass runs on: one region at a time, its tasks
// claimed one by one by a few workers.
//
// A decoding pass is some hundred and fifty regions of 5 to 200 µs with a few µs of serial
// work between them, while waking a parked goroutine costs 25 to 50 µs. So a worker that runs
// out of tasks first spins on one cache line, and parks only when no region has come for
// about as long as the waking would cost. Workers beyond the processors there are (GOMAXPROCS,
// or the cores of the machine) stay parked: a spinning worker must never hold the core that
// a working one needs.
package par

import (
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"
)

// Job is the work of a region. Do is called once for every task number; worker, in
// [0, Threads), is never in two calls of one region at once, so that it can number scratch
// memory. Tasks may run in any order, and must not wait for one another.
//
// A Job is meant to be a pointer to state that outlives the region: then Run allocates nothing.
type Job interface{ Do(worker, task int) }

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

// maxTasks keeps task numbers, with room for the claims that fail, within half a word.
const maxTasks = 1 << 30

type pad [128]byte // two cache lines: processors fetch them in pairs

// A region is published by storing, in this order, job, tasks, next and epoch. The epoch
// stands in the upper halves of tasks and next too: a claim counts only if the number it
// got and the number of tasks it is compared with are of the same region. A worker that
// slept through the end of a region thus claims nothing by mistake, and nobody waits for it.
type Pool struct {
	threads int
	workers []worker // workers[0] is the caller, and unused
	group   sync.WaitGroup

	_      pad
	busy   atomic.Uint32 // a Run or Close is under way
	closed atomic.Bool
	runs   uint32 // regions since usable was looked up; owned by whoever is busy

	_      pad
	epoch  atomic.Uint32 // what waiting workers watch
	usable atomic.Int32  // how many workers there are processors for
	spared atomic.Int32  // processors left to others
	tasks  atomic.Uint64 // epoch<<32 | number of tasks
	job    Job

	_    pad
	next atomic.Uint64 // epoch<<32 | next task to claim

	_        pad
	done     atomic.Int64 // tasks finished
	asleep   atomic.Bool  // the caller is parked until done reaches its goal
	failed   atomic.Bool  // a Job panicked: what is left is claimed but not done
	panicked atomic.Pointer[Panic]
	wake     chan struct{}
	_        pad
}

type worker struct {
	parked atomic.Bool
	wake   chan struct{}
	_      pad
}

// New starts a pool of the given number of threads, the caller of Run being one of them;
// threads <= 0 means GOMAXPROCS.
func New(threads int) *Pool {
	if threads <= 0 {
		threads = runtime.GOMAXPROCS(0)
	}
	p := &Pool{threads: threads, workers: make([]worker, threads), wake: make(chan struct{}, 1)}
	p.count()
	for id := 1; id < threads; id++ {
		p.workers[id].wake = make(chan struct{}, 1)
		p.group.Add(1)
		go p.serve(id, 0)
	}
	return p
}

// Threads is the number of workers, the caller included.
func (p *Pool) Threads() int { return p.threads }

// count looks up how many workers can run at once.
func (p *Pool) count() {
	n := min(int32(runtime.GOMAXPROCS(0)), int32(runtime.NumCPU())) - p.spared.Load()
	p.usable.Store(max(min(int32(p.threads), n), 1))
}

// Spare leaves n more of the processors to others, or takes −n back: so many workers fewer take part in regions, but one always
// does. It may be called at any time.
func (p *Pool) Spare(n int) {
	p.spared.Add(int32(n))
	p.count()
}

// Run does tasks 0 to tasks-1 of j and returns when all are done. If a task panics, those not
// yet begun are dropped, and Run panics once no worker is left in j.
//
// Callers at the same time take turns. One that cannot get the workers within a few
// milliseconds (another's region is long, or it is a task of that very region) does its tasks alone.
func (p *Pool) Run(tasks int, j Job) {
	if tasks <= 0 {
		return
	}
	if tasks > maxTasks {
		panic(fmt.Sprintf("par: %d tasks in one region; at most %d", tasks, maxTasks))
	}
	if tasks == 1 || p.usable.Load() == 1 && !p.recount() || !p.acquire() {
		for i := range tasks {
			j.Do(0, i)
		}
		return
	}
	p.publish(tasks, j)
	defer p.join(tasks)
	p.work(0)
}

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

func (p *Pool) publish(tasks int, j Job) {
	if p.runs++; p.runs&255 == 0 {
		p.count()
	}
	e := p.epoch.Load() + 1
	p.job = j
	p.done.Store(0)
	p.tasks.Store(uint64(e)<<32 | uint64(tasks))
	p.next.Store(uint64(e) << 32)
	p.epoch.Store(e)
	// Those that spin come by themselves; wake as many others as there is work for.
	n := min(int(p.usable.Load()), tasks)
	for id := 1; id < n; id++ {
		p.workers[id].unpark()
	}
}

// join waits for the tasks the caller did not do itself. It runs deferred, so that a panic
// in the caller's own share still waits for the workers to leave the Job.
func (p *Pool) join(tasks int) {
	for p.failed.Load() && !p.attempt(0) {
	}
	for w := (waiter{budget: spinFor}); p.done.Load() != int64(tasks); {
		if w.spin() {
			continue
		}
		p.asleep.Store(true)
		if p.done.Load() != int64(tasks) || !p.asleep.CompareAndSwap(true, false) {
			<-p.wake
		}
	}
	p.job = nil
	err := p.panicked.Swap(nil)
	p.failed.Store(false)
	p.busy.Store(0)
	if err != nil {
		panic(err)
	}
}

// work does tasks of the current region until none is left to claim.
func (p *Pool) work(id int) {
	for !p.attempt(id) {
	}
}

// attempt is work up to the first panic. A worker's panic ends here, and is kept for the
// caller; worker 0 is the caller.
func (p *Pool) attempt(id int) (over bool) {
	n := int64(0)
	defer func() {
		if !over {
			n++ // the task that panicked
			p.failed.Store(true)
			if id != 0 {
				v := recover()
				if v == nil {
					v = errGoexit
				}
				p.panicked.CompareAndSwap(nil, &Panic{Value: v, Stack: debug.Stack()})
			}
		}
		p.finish(n)
	}()
	for {
		c := p.next.Add(1) - 1
		t := p.tasks.Load()
		if c>>32 != t>>32 || uint32(c) >= uint32(t) {
			return true
		}
		if !p.failed.Load() {
			p.job.Do(id, int(uint32(c)))
		}
		n++
	}
}

// finish counts n tasks as done, and wakes the caller if it waits for them in its sleep.
func (p *Pool) finish(n int64) {
	if n == 0 {
		return
	}
	p.done.Add(n)
	// The caller looks at done once more after it has set asleep. A wake-up too many,
	// from a worker that read asleep a region late, makes the caller look again, no more.
	if p.asleep.Load() && p.asleep.CompareAndSwap(true, false) {
		p.wake <- struct{}{}
	}
}

// serve is the life of a worker: wait for the next region, work, until the pool closes.
func (p *Pool) serve(id int, seen uint32) {
	exit := false
	defer func() {
		if exit {
			p.group.Done()
		} else { // a Job called runtime.Goexit: another goroutine takes its place
			go p.serve(id, seen)
		}
	}()
	w := &p.workers[id]
	budget := spinFor
	for {
		seen, budget = p.await(w, id, seen, budget)
		if p.closed.Load() {
			exit = true
			return
		}
		p.work(id)
	}
}

// await returns the epoch of a region newer than seen, and the budget of the next wait.
func (p *Pool) await(w *worker, id int, seen uint32, budget time.Duration) (uint32, time.Duration) {
	s := waiter{budget: budget}
	for int32(id) < p.usable.Load() {
		if e := p.epoch.Load(); e != seen {
			return e, budget
		}
		if !s.spin() {
			break
		}
	}
	w.parked.Store(true)
	if p.epoch.Load() == seen || !w.parked.CompareAndSwap(true, false) {
		<-w.wake
	}
	// Spinning that leads to parking was for nothing: do less of it, until a gap is seen that
	// the full budget would have bridged.
	if s.start.IsZero() || time.Since(s.start) > spinFor+wakeCost {
		return p.epoch.Load(), max(budget/2, spinLeast)
	}
	return p.epoch.Load(), spinFor
}

func (w *worker) unpark() {
	if w.parked.Load() && w.parked.CompareAndSwap(true, false) {
		w.wake <- struct{}{}
	}
}

// Close stops the workers and waits for them to be gone. Later Runs do their tasks in the
// caller alone.
func (p *Pool) Close() {
	for !p.busy.CompareAndSwap(0, 1) {
		time.Sleep(50 * time.Microsecond)
	}
	defer p.busy.Store(0)
	if p.closed.Swap(true) {
		return
	}
	p.usable.Store(1)
	p.epoch.Add(1)
	for id := 1; id < p.threads; id++ {
		p.workers[id].unpark()
	}
	p.group.Wait()
}
