package par

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// Every task of every phase is done once, none before all of the phase before.
func TestPhasesFollowOneAnother(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		threads := rapid.IntRange(1, 6).Draw(t, "threads")
		p := New(threads)
		defer p.Close()
		for range rapid.IntRange(1, 10).Draw(t, "regions") {
			var (
				sizes  = rapid.SliceOfN(rapid.SampledFrom([]int{0, 1, 2, 3, 5, 40}), 0, 9).Draw(t, "tasks")
				work   = time.Duration(rapid.SampledFrom([]int{0, 0, 2, 150}).Draw(t, "work")) * time.Microsecond
				phases []Phase
				counts []*count
				early  atomic.Int32
				done   = make([]atomic.Int64, len(sizes))
			)
			for i, n := range sizes {
				c := newCount(threads, n)
				c.before = func(_, task int) {
					if i > 0 && done[i-1].Load() != int64(sizes[i-1]) {
						early.Add(1)
					}
					if task == 0 { // others wait for it, so long perhaps that they park
						busyFor(work)
					}
					done[i].Add(1)
				}
				counts = append(counts, c)
				phases = append(phases, Phase{n, c})
			}
			p.RunPhases(phases)
			for _, c := range counts {
				c.check(t, 1)
			}
			if n := early.Load(); n != 0 {
				t.Fatalf("%d tasks began before the phase before was done", n)
			}
		}
	})
}

// There may be more tasks than fit a worker's word.
func TestManyTasks(t *testing.T) {
	p := New(3)
	defer p.Close()
	for _, n := range []int{maxShare, maxShare + 1, 3*maxShare - 5} {
		c := newCount(3, n)
		p.Run(n, c)
		c.check(t, 1)
	}
}

// A task may say how many tasks a later phase has.
func TestTaskSizesALaterPhase(t *testing.T) {
	p := New(4)
	defer p.Close()
	for n := range 50 {
		c := newCount(4, n)
		phases := []Phase{{1, nil}, {0, c}}
		phases[0].Job = jobFunc(func(int, int) { phases[1].Tasks = n })
		p.RunPhases(phases)
		c.check(t, 1)
	}
}

// The phases after one with a panic are dropped.
func TestPanicEndsTheRegion(t *testing.T) {
	cause := errors.New("bad task")
	p := New(3)
	defer p.Close()
	for bad := range 30 {
		var after atomic.Int32
		func() {
			defer func() {
				if err, ok := recover().(error); !ok || !errors.Is(err, cause) {
					t.Fatalf("RunPhases panicked with %v, want %v", err, cause)
				}
			}()
			p.RunPhases([]Phase{
				{7, jobFunc(func(int, int) {})},
				{30, jobFunc(func(_, task int) {
					if task == bad {
						panic(cause)
					}
				})},
				{9, jobFunc(func(int, int) { after.Add(1) })},
			})
		}()
		if n := after.Load(); n != 0 {
			t.Fatalf("%d tasks done after the phase of the panic", n)
		}
		c := newCount(3, 20)
		p.Run(20, c)
		c.check(t, 1)
	}
}

// A worker's share of tasks is the same whenever there are as many, if nobody is late.
func TestSharesAreNeighbours(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sharers, claims := rapid.IntRange(1, 70).Draw(t, "workers"), rapid.IntRange(1, maxShare).Draw(t, "claims")
		sharers = min(sharers, claims)
		w := make([]worker, sharers)
		word := phaseWord(rapid.Uint32().Draw(t, "number"), sharers, claims)
		old := number(word) - rapid.Uint32Range(1, 1<<21).Draw(t, "age")
		next := 0
		for id := range w {
			w[id].claims.Store(phaseWord(old, 9, 3)) // of an earlier phase
			size := 0
			for {
				got, ok := w[id].claim(word, id, true)
				if !ok {
					break
				}
				if got != next {
					t.Fatalf("worker %d claims %d after %d", id, got, next-1)
				}
				next++
				size++
			}
			if size < claims/sharers || size > claims/sharers+1 {
				t.Fatalf("worker %d of %d has a share of %d of %d", id, sharers, size, claims)
			}
			if _, ok := w[id].claim(phaseWord(old, sharers, claims), id, true); ok {
				t.Fatal("a claim in a phase that is over")
			}
		}
		if next != claims {
			t.Fatalf("%d of %d claimed", next, claims)
		}
	})
}

// Numbers of phases come again after four billion: a word left from the last time must not pass for one of this time.
func TestNumbersComeAgain(t *testing.T) {
	p := New(3)
	defer p.Close()
	c := newCount(3, 50)
	p.Run(50, c)                            // leaves words of phase 1
	p.phase.Store(phaseWord(1<<32-1, 0, 0)) // the last but one before phase 0, and so 1, comes again
	p.Run(50, c)
	p.Run(50, c)
	c.check(t, 3)
}

func TestRunPhasesAllocatesNothing(t *testing.T) {
	p := New(4)
	defer p.Close()
	c := newCount(4, 16)
	phases := []Phase{{16, c}, {3, c}}
	if n := testing.AllocsPerRun(1000, func() { p.RunPhases(phases) }); n >= 1 {
		t.Fatalf("%v allocations a region", n)
	}
}

// A pool can close before its workers have seen a phase, whatever the number of the last one.
func TestCloseBeforeWorkersBegin(t *testing.T) {
	for range 100 {
		p := New(5)
		p.phase.Store(phaseWord(1<<32-1, 0, 0)) // the next is 0, as workers begin with
		p.Close()
	}
}
