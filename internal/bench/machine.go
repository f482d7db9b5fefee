package bench

import (
	"time"

	"github.com/grovellm/grove/internal/gemm"
	"github.com/grovellm/grove/internal/par"
)

// machine measures what the processor allows: bytes read and products done a second, by the
// same number of threads as the passes have.
type machine struct {
	pool  *par.Pool
	typ   gemm.Type
	buf   []byte
	free  func()
	iters int // of the peak kernel, about a millisecond's worth
	sink  []uint64
}

const (
	readBuffer = 512 << 20 // far beyond any cache
	readChunk  = 1 << 20
	peakTasks  = 8 // a thread
)

func newMachine(threads int, typ gemm.Type) (*machine, error) {
	buf, free, err := newBuffer(readBuffer)
	if err != nil {
		return nil, err
	}
	m := &machine{pool: par.New(threads), typ: typ, buf: buf, free: free, sink: make([]uint64, threads)}
	for i := 0; i < len(m.buf); i += 512 { // each page must be there, and not be the shared zero page
		m.buf[i] = byte(i >> 9)
	}
	for m.iters = 1; m.peakTime() < time.Millisecond; m.iters *= 2 {
	}
	m.bandwidth()
	m.peak()
	return m, nil
}

// peakTime is how long the peak kernel takes: the best of three, since one alone may have been interrupted.
func (m *machine) peakTime() time.Duration {
	best := time.Hour
	for range 3 {
		start := time.Now()
		gemm.PeakKernel(m.typ, m.iters)
		best = min(best, time.Since(start))
	}
	return best
}

func (m *machine) close() {
	m.pool.Close()
	m.free()
}

// bandwidth returns the bytes read a second.
func (m *machine) bandwidth() float64 {
	start := time.Now()
	m.pool.Run(len(m.buf)/readChunk, (*readJob)(m))
	return float64(len(m.buf)) / time.Since(start).Seconds()
}

type readJob machine

func (j *readJob) Do(worker, task int) {
	j.sink[worker] ^= gemm.ReadKernel(j.buf[task*readChunk : (task+1)*readChunk])
}

// peak returns the operations done a second.
func (m *machine) peak() float64 {
	tasks := peakTasks * m.pool.Threads()
	j := &peakJob{m: m, ops: make([]int, tasks)}
	start := time.Now()
	m.pool.Run(tasks, j)
	t := time.Since(start).Seconds()
	ops := 0
	for _, n := range j.ops {
		ops += n
	}
	return float64(ops) / t
}

type peakJob struct {
	m   *machine
	ops []int
}

func (j *peakJob) Do(_, task int) { j.ops[task] = gemm.PeakKernel(j.m.typ, j.m.iters) }
