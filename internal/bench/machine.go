package bench

import (
	"time"

	"github.com/grovellm/grove/internal/kernels/fineclock"
	"github.com/grovellm/grove/internal/kernels/gemm"
	"github.com/grovellm/grove/internal/kernels/par"
)

// machine measures the processor's limits: bytes read and products done per second, with as many
// threads as the passes have.
type machine struct {
	pool *par.Pool
	buf  []byte
	free func()
	sink []uint64
}

const (
	readBuffer = 512 << 20 // far beyond any cache
	readChunk  = 1 << 20
	peakTasks  = 8 // per thread
)

func newMachine(threads int) (*machine, error) {
	buf, free, err := newBuffer(readBuffer)
	if err != nil {
		return nil, err
	}
	m := &machine{pool: par.New(threads), buf: buf, free: free, sink: make([]uint64, threads)}
	for i := 0; i < len(m.buf); i += 512 { // make each page exist, and not be the shared zero page
		m.buf[i] = byte(i >> 9)
	}
	m.bandwidth()
	return m, nil
}

func (m *machine) close() {
	m.pool.Close()
	m.free()
}

// bandwidth returns the bytes read per second.
func (m *machine) bandwidth() float64 {
	start := fineclock.Now()
	m.pool.Run(len(m.buf)/readChunk, (*readJob)(m))
	return float64(len(m.buf)) / fineclock.Since(start).Seconds()
}

type readJob machine

func (j *readJob) Do(worker, task int) {
	j.sink[worker] ^= gemm.ReadKernel(j.buf[task*readChunk : (task+1)*readChunk])
}

// multiplier measures the peak of products of a type.
type multiplier struct {
	*machine
	typ   gemm.Type
	iters int // of the peak kernel, about a millisecond's worth
	ops   []int
}

func (m *machine) multiplier(typ gemm.Type) *multiplier {
	p := &multiplier{machine: m, typ: typ, ops: make([]int, peakTasks*m.pool.Threads())}
	for p.iters = 1; p.kernelTime() < time.Millisecond; p.iters *= 2 {
	}
	p.peak()
	return p
}

// kernelTime returns the time of the peak kernel: the best of three, since a single run may be interrupted.
func (p *multiplier) kernelTime() time.Duration {
	best := time.Hour
	for range 3 {
		start := fineclock.Now()
		gemm.PeakKernel(p.typ, p.iters)
		best = min(best, fineclock.Since(start))
	}
	return best
}

// peak returns the operations per second.
func (p *multiplier) peak() float64 {
	start := fineclock.Now()
	p.pool.Run(len(p.ops), p)
	t := fineclock.Since(start).Seconds()
	ops := 0
	for _, n := range p.ops {
		ops += n
	}
	return float64(ops) / t
}

// Do runs the peak kernel.
func (p *multiplier) Do(_, task int) { p.ops[task] = gemm.PeakKernel(p.typ, p.iters) }
