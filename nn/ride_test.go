package nn

import (
	"math"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"

	"github.com/grovellm/grove/internal/gemm"
	"github.com/grovellm/grove/internal/par"
)

// tally counts how often each task is done.
type tally []atomic.Int32

// after is a phase of tasks, and those of the phases before.
type after struct {
	tally  tally
	before []tally
	early  atomic.Int32
}

func (a *after) Do(_, task int) {
	for _, c := range a.before {
		for i := range c {
			if c[i].Load() == 0 {
				a.early.Add(1)
			}
		}
	}
	a.tally[task].Add(1)
}

// A pass computes the same with a rider and without, to the bit, and the rider's tasks are done once, whatever regions there are,
// at the landing at the latest.
func TestRidersArrive(t *testing.T) {
	pools := []*par.Pool{par.New(1), par.New(3)}
	defer pools[0].Close()
	defer pools[1].Close()
	rapid.Check(t, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 12))
		e, in := NewExec(rapid.SampledFrom(pools).Draw(t, "pool")), 32*rapid.IntRange(1, 4).Draw(t, "in")
		head := randomHead(r, gemm.Q8_0, rapid.IntRange(1, 400).Draw(t, "out"), in, false)
		x := randomMat(r, rapid.IntRange(1, 9).Draw(t, "rows"), in)
		want := NewMat(x.Rows, head.W.Out())
		e.Linear(Source{X: x}, Proj{Linear: head, Dst: want})

		for range rapid.IntRange(1, 3).Draw(t, "rides") {
			var riders []tally
			var phases []par.Phase
			for range rapid.IntRange(0, 5).Draw(t, "phases") {
				c := make(tally, rapid.IntRange(0, 30).Draw(t, "tasks"))
				riders, phases = append(riders, c), append(phases, par.Phase{Tasks: len(c), Job: &after{tally: c, before: riders}})
			}
			e.Ride(phases)
			for range rapid.IntRange(0, 2).Draw(t, "regions") {
				got := NewMat(x.Rows, head.W.Out())
				e.Linear(Source{X: x}, Proj{Linear: head, Dst: got})
				if !slices.EqualFunc(got.Data, want.Data, func(a, b float32) bool { return math.Float32bits(a) == math.Float32bits(b) }) {
					t.Fatal("with a rider a product is another")
				}
			}
			e.Land()
			for p, c := range riders {
				if early := phases[p].Job.(*after).early.Load(); early > 0 {
					t.Fatalf("%d tasks of phase %d were done before all of the phases before", early, p)
				}
				for i := range c {
					if n := c[i].Load(); n != 1 {
						t.Fatalf("task %d of %d was done %d times", i, len(c), n)
					}
				}
			}
		}
	})
}
