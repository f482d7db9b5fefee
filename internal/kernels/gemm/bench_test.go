package gemm

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// BenchmarkMul multiplies layers too many for any cache by n rows, as a pass does. Beside
// the rate at which weights are read it reports that rate's share of what ReadKernel reads
// the same weights at, the products' share of PeakKernel's, and the time over the larger
// of the two times those would take: the distance from the roof.
func BenchmarkMul(b *testing.B) {
	const layers, out, in = 48, 3072, 1024
	for _, t := range allTypes {
		var ms []*Matrix
		for _, threads := range []int{1, 4} {
			for _, n := range []int{1, 2, 4, 8, 16, 32, 64, 512} {
				b.Run(fmt.Sprintf("%v/threads=%d/n=%d", t, threads, n), func(b *testing.B) {
					if ms == nil {
						src := fileRows(rand.New(rand.NewPCG(1, 1)), t, out, in, false)
						for range layers {
							ms = append(ms, pack(b, t, out, in, src))
						}
					}
					benchmarkMul(b, ms, n, threads)
				})
			}
		}
	}
}

func benchmarkMul(b *testing.B, ms []*Matrix, n, threads int) {
	t := ms[0].Type()
	out := ms[0].Out()
	in := ms[0].In()
	var x Input
	x.Reset(t, n, in)
	row := make([]float32, in)
	for k := range row {
		row[k] = float32(k%17) - 8
	}
	for r := range n {
		x.SetRow(r, row)
	}
	dst := make([][]float32, threads)
	for i := range dst {
		dst[i] = make([]float32, n*out)
	}
	bytes := float64(len(ms) * ms[0].Bytes())
	ops := 2 * float64(n) * float64(out) * float64(in) * float64(len(ms))

	mul := func() {
		forPanels(ms, threads, func(w int, m *Matrix, p0, p1 int) { m.Mul(dst[w], out, &x, p0, p1) })
	}
	read := fastest(func() {
		forPanels(ms, threads, func(_ int, m *Matrix, p0, p1 int) { ReadKernel(m.data[p0*m.panel : p1*m.panel]) })
	})
	var done atomic.Int64
	const iters = 1 << 20
	peak := fastest(func() {
		done.Store(0)
		forThreads(threads, func(int) { done.Add(int64(PeakKernel(t, iters))) })
	})
	bandwidth, multiply := bytes/read, float64(done.Load())/peak
	b.SetBytes(int64(bytes))
	for b.Loop() {
		mul()
	}
	each := b.Elapsed().Seconds() / float64(b.N)
	b.ReportMetric(bytes/each/bandwidth, "of-read")
	b.ReportMetric(ops/each/multiply, "of-peak")
	b.ReportMetric(each/max(bytes/bandwidth, ops/multiply), "over-roof")
}

// forPanels gives the panels of all matrices to threads, a few at a time.
func forPanels(ms []*Matrix, threads int, f func(worker int, m *Matrix, p0, p1 int)) {
	const task = 8
	panels := ms[0].Panels()
	tasks := (panels + task - 1) / task
	var next atomic.Int64
	forThreads(threads, func(w int) {
		for {
			i := int(next.Add(1)) - 1
			if i >= tasks*len(ms) {
				return
			}
			p := i % tasks * task
			f(w, ms[i/tasks], p, min(p+task, panels))
		}
	})
}

func forThreads(threads int, f func(worker int)) {
	var wg sync.WaitGroup
	for w := range threads {
		wg.Go(func() { f(w) })
	}
	wg.Wait()
}

// fastest is the least time f takes, in seconds.
func fastest(f func()) float64 {
	best := time.Hour
	for range 7 {
		start := time.Now()
		f()
		best = min(best, time.Since(start))
	}
	return best.Seconds()
}

// BenchmarkPack packs on one thread.
func BenchmarkPack(b *testing.B) {
	for _, t := range allTypes {
		for _, in := range []int{1024, 3072} {
			b.Run(fmt.Sprintf("%v/%d", t, in), func(b *testing.B) {
				src := fileRows(rand.New(rand.NewPCG(1, 1)), t, 4096, in, false)
				m, err := New(t, 4096, in)
				if err != nil {
					b.Fatal(err)
				}
				b.SetBytes(int64(len(src)))
				for b.Loop() {
					m.PackPanels(src, 0, m.Panels())
				}
			})
		}
	}
}

// BenchmarkSetRow converts activations on one thread.
func BenchmarkSetRow(b *testing.B) {
	for _, t := range allTypes {
		b.Run(t.String(), func(b *testing.B) {
			const in = 3072
			var x Input
			x.Reset(t, 1, in)
			row := make([]float32, in)
			for k := range row {
				row[k] = float32(k%17) - 8
			}
			b.SetBytes(in * 4)
			for b.Loop() {
				x.SetRow(0, row)
			}
		})
	}
}
