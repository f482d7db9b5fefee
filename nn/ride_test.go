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

// counted is a rider of stages of tasks: each task is done once, after all tasks of the stages before.
type counted struct {
	stages []int // tasks of each
	at     int
	done   []atomic.Int32
	wrong  atomic.Bool
}

func (c *counted) Stage() (int, par.Job) {
	if c.at > 0 && int(c.done[c.at-1].Load()) != c.stages[c.at-1] {
		c.wrong.Store(true)
	}
	if c.at == len(c.stages) {
		return 0, nil
	}
	c.at++
	return c.stages[c.at-1], c
}

func (c *counted) Do(_, task int) {
	if task < 0 || task >= c.stages[c.at-1] {
		c.wrong.Store(true)
	}
	c.done[c.at-1].Add(1)
}

// A pass computes the same with a rider and without, to the bit, and the rider's stages are done one after the other, whatever
// regions there are; those that are left over at the landing.
func TestRidersArrive(t *testing.T) {
	pools := []*par.Pool{par.New(1), par.New(3)}
	defer pools[0].Close()
	defer pools[1].Close()
	rapid.Check(t, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 12))
		pool := rapid.SampledFrom(pools).Draw(t, "pool")
		e, in := NewExec(pool), 32*rapid.IntRange(1, 4).Draw(t, "in")
		head := randomHead(r, gemm.Q8_0, rapid.IntRange(1, 400).Draw(t, "out"), in, false)
		x := randomMat(r, rapid.IntRange(1, 9).Draw(t, "rows"), in)
		want := NewMat(x.Rows, head.W.Out())
		e.Linear(Source{X: x}, Proj{Linear: head, Dst: want})

		c := &counted{stages: rapid.SliceOfN(rapid.IntRange(1, 9), 0, 4).Draw(t, "stages")}
		c.done = make([]atomic.Int32, len(c.stages))
		e.Ride(c)
		for range rapid.IntRange(0, 5).Draw(t, "regions") {
			got := NewMat(x.Rows, head.W.Out())
			e.Linear(Source{X: x}, Proj{Linear: head, Dst: got})
			if !slices.EqualFunc(got.Data, want.Data, func(a, b float32) bool { return math.Float32bits(a) == math.Float32bits(b) }) {
				t.Fatal("with a rider a product is another")
			}
		}
		e.Land()
		for i, n := range c.stages {
			if int(c.done[i].Load()) != n || c.wrong.Load() {
				t.Fatalf("stage %d of %v: %d tasks done, or out of order", i, c.stages, c.done[i].Load())
			}
		}
		staged := NewMat(x.Rows, head.W.Out())
		RunRider(pool, &once{e: NewExec(pool), src: Source{X: x}, p: Proj{Linear: head, Dst: staged}})
		if !slices.Equal(staged.Data, want.Data) {
			t.Fatal("a product as a stage is another")
		}
	})
}

// once is a product as a rider.
type once struct {
	e    *Exec
	src  Source
	p    Proj
	done bool
}

func (o *once) Stage() (int, par.Job) {
	if o.done {
		return 0, nil
	}
	o.done = true
	return o.e.Stage(o.src, o.p)
}
