package par

import (
	"errors"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// count counts how often each task was done, and that no worker is in two tasks at once.
type count struct {
	hits    []atomic.Int32
	inside  []atomic.Int32
	clashes atomic.Int32
	before  func(worker, task int)
}

func newCount(threads, tasks int) *count {
	return &count{hits: make([]atomic.Int32, tasks), inside: make([]atomic.Int32, threads)}
}

func (c *count) Do(worker, task int) {
	if c.inside[worker].Add(1) != 1 {
		c.clashes.Add(1)
	}
	defer c.inside[worker].Add(-1)
	if c.before != nil {
		c.before(worker, task)
	}
	c.hits[task].Add(1)
}

func (c *count) check(t interface{ Fatalf(string, ...any) }, want int32) {
	for i := range c.hits {
		if n := c.hits[i].Load(); n != want {
			t.Fatalf("task %d of %d was done %d times, want %d", i, len(c.hits), n, want)
		}
	}
	if n := c.clashes.Load(); n != 0 {
		t.Fatalf("a worker was in two tasks at once, %d times", n)
	}
}

type jobFunc func(worker, task int)

func (f jobFunc) Do(worker, task int) { f(worker, task) }

// busyFor keeps the processor for a while, as a task does.
func busyFor(d time.Duration) {
	for t := time.Now(); time.Since(t) < d; {
	}
}

func TestEveryTaskOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		threads := rapid.IntRange(1, 9).Draw(t, "threads")
		p := New(threads)
		defer p.Close()
		for range rapid.IntRange(1, 30).Draw(t, "regions") {
			tasks := rapid.IntRange(0, 40).Draw(t, "tasks")
			work := time.Duration(rapid.SampledFrom([]int{0, 0, 1, 20}).Draw(t, "work")) * time.Microsecond
			gap := time.Duration(rapid.SampledFrom([]int{0, 0, 0, 5, 150, 400}).Draw(t, "gap")) * time.Microsecond
			c := newCount(threads, tasks)
			c.before = func(int, int) { busyFor(work) }
			p.Run(tasks, c)
			c.check(t, 1)
			busyFor(gap) // short of it workers spin, beyond it they park
		}
	})
}

// The writes of every region are seen by the next one, whoever does the tasks.
func TestRegionsFollowOneAnother(t *testing.T) {
	p := New(4)
	defer p.Close()
	const n = 64
	a, b := make([]int, n), make([]int, n)
	regions := 20000
	if testing.Short() {
		regions = 2000
	}
	for r := range regions {
		src, dst := a, b
		if r%2 == 1 {
			src, dst = b, a
		}
		p.Run(8, jobFunc(func(_, task int) {
			for i := task * 8; i < task*8+8; i++ {
				dst[i] = src[(i+8)%n] + 1
			}
		}))
	}
	for i := range n {
		if a[i] != regions {
			t.Fatalf("element %d is %d after %d regions", i, a[i], regions)
		}
	}
}

func TestCallersTakeTurns(t *testing.T) {
	const callers, regions, tasks = 6, 200, 9
	p := New(3)
	defer p.Close()
	var g sync.WaitGroup
	for range callers {
		g.Go(func() {
			c := newCount(p.Threads(), tasks)
			for range regions {
				p.Run(tasks, c)
			}
			c.check(t, regions)
		})
	}
	g.Wait()
}

// A task that runs a region on its own pool cannot get the workers; it must still end.
func TestNestedRunEnds(t *testing.T) {
	p := New(3)
	defer p.Close()
	var n atomic.Int32
	p.Run(3, jobFunc(func(int, int) {
		p.Run(5, jobFunc(func(int, int) { n.Add(1) }))
	}))
	if n.Load() != 15 {
		t.Fatalf("%d inner tasks done, want 15", n.Load())
	}
}

func TestPanicReachesTheCaller(t *testing.T) {
	cause := errors.New("bad task")
	rapid.Check(t, func(t *rapid.T) {
		threads := rapid.IntRange(1, 5).Draw(t, "threads")
		p := New(threads)
		defer p.Close()
		for range 5 {
			tasks := rapid.IntRange(1, 20).Draw(t, "tasks")
			bad := rapid.IntRange(0, tasks-1).Draw(t, "bad")
			var inside atomic.Int32
			var got any
			func() {
				defer func() { got = recover() }()
				p.Run(tasks, jobFunc(func(_, task int) {
					inside.Add(1)
					defer inside.Add(-1)
					busyFor(5 * time.Microsecond)
					if task == bad {
						panic(cause)
					}
				}))
			}()
			if err, ok := got.(error); !ok || !errors.Is(err, cause) {
				t.Fatalf("Run panicked with %v, want %v", got, cause)
			}
			if n := inside.Load(); n != 0 {
				t.Fatalf("%d workers were still in the job when Run panicked", n)
			}
			c := newCount(threads, tasks)
			p.Run(tasks, c)
			c.check(t, 1)
		}
	})
}

func TestWorkersPanicCarriesItsStack(t *testing.T) {
	if runtime.GOMAXPROCS(0) < 2 || runtime.NumCPU() < 2 {
		t.Skip("one processor: every task runs in the caller")
	}
	p := New(2)
	defer p.Close()
	defer func() {
		err, ok := recover().(*Panic)
		if !ok || err.Value != "oh" || !strings.Contains(err.Error(), "TestWorkersPanicCarriesItsStack") {
			t.Fatalf("Run panicked with %v", err)
		}
	}()
	for {
		p.Run(2, jobFunc(func(worker, _ int) {
			if worker == 1 {
				panic("oh")
			}
			busyFor(300 * time.Microsecond) // time for the worker to come
		}))
	}
}

// runtime.Goexit in a task (t.FailNow calls it) must not cost the pool a worker.
func TestGoexitInATask(t *testing.T) {
	p := New(3)
	for range 10 {
		var g sync.WaitGroup
		g.Go(func() { // in the caller's share it ends the caller's goroutine
			defer func() { _ = recover() }() // in a worker's it is an error
			p.Run(6, jobFunc(func(_, task int) {
				busyFor(20 * time.Microsecond)
				if task == 3 {
					runtime.Goexit()
				}
			}))
		})
		g.Wait()
		c := newCount(3, 50)
		p.Run(50, c)
		c.check(t, 1)
	}
	p.Close() // waits for every worker
}

func TestClose(t *testing.T) {
	before := runtime.NumGoroutine()
	for range 20 {
		p := New(5)
		p.Run(10, newCount(5, 10))
		p.Close()
		p.Close()
		c := newCount(5, 10)
		p.Run(10, c)
		c.check(t, 1)
	}
	for i := 0; runtime.NumGoroutine() > before; i++ {
		if i == 1000 {
			t.Fatalf("%d goroutines before, %d after", before, runtime.NumGoroutine())
		}
		time.Sleep(time.Millisecond)
	}
}

func TestCloseWhileOthersRun(t *testing.T) {
	p := New(3)
	var g sync.WaitGroup
	for range 3 {
		g.Go(func() {
			c := newCount(3, 7)
			for range 300 {
				p.Run(7, c)
			}
			c.check(t, 300)
		})
	}
	p.Close()
	g.Wait()
}

// More threads than processors, and processors taken away and given back under way.
func TestFewProcessors(t *testing.T) {
	p := New(6)
	defer p.Close()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for _, procs := range []int{1, 2, 1, 4} {
		runtime.GOMAXPROCS(procs)
		c := newCount(6, 11)
		for range 600 { // more than the pool needs to notice
			p.Run(11, c)
		}
		c.check(t, 600)
	}
}

// Processors may be left to others and taken back at any time: every task is done once.
func TestSpare(t *testing.T) {
	p := New(4)
	defer p.Close()
	stop := make(chan struct{})
	var spared sync.WaitGroup
	spared.Go(func() {
		for i := 0; ; i++ {
			p.Spare(i % 6)
			runtime.Gosched()
			p.Spare(-(i % 6))
			select {
			case <-stop:
				return
			default:
			}
		}
	})
	for range 2000 {
		c := newCount(4, 64)
		p.Run(64, c)
		c.check(t, 1)
	}
	close(stop)
	spared.Wait()
	p.Spare(100)
	if p.usable.Load() != 1 {
		t.Errorf("all processors are left to others, and %d workers take part", p.usable.Load())
	}
	p.Spare(-100)
	if p.usable.Load() != int32(min(4, runtime.GOMAXPROCS(0), runtime.NumCPU())) {
		t.Errorf("no processor is left to others, and %d workers take part", p.usable.Load())
	}
}

func TestRunAllocatesNothing(t *testing.T) {
	p := New(4)
	defer p.Close()
	c := newCount(4, 16)
	if n := testing.AllocsPerRun(1000, func() { p.Run(16, c) }); n >= 1 {
		t.Fatalf("%v allocations a region", n)
	}
}
