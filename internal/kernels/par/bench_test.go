package par

import (
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"
)

type spend struct{ d time.Duration }

func (s *spend) Do(int, int) {
	if s.d > 0 {
		busyFor(s.d)
	}
}

// BenchmarkRegion times a region of one task a thread. "over" is what a region costs beyond
// its own work and the serial gap after it: the price of forking and joining.
func BenchmarkRegion(b *testing.B) {
	threads := runtime.GOMAXPROCS(0)
	cases := []struct {
		name      string
		work, gap time.Duration
	}{
		{"empty", 0, 0},
		{"work5us", 5 * time.Microsecond, 0},
		{"work5us-gap2us", 5 * time.Microsecond, 2 * time.Microsecond},
		{"work5us-gap20us", 5 * time.Microsecond, 20 * time.Microsecond},
		{"work50us-gap20us", 50 * time.Microsecond, 20 * time.Microsecond},
		{"work5us-gap500us", 5 * time.Microsecond, 500 * time.Microsecond},
	}
	run := func(b *testing.B, work, gap time.Duration, region func()) {
		b.ReportAllocs()
		for b.Loop() {
			region()
			if gap > 0 {
				busyFor(gap)
			}
		}
		b.ReportMetric(float64(b.Elapsed())/float64(b.N)-float64(work+gap), "over-ns")
	}
	for _, c := range cases {
		for _, n := range []int{2, 4} {
			if n > threads {
				continue
			}
			p := New(n)
			j := &spend{c.work}
			b.Run(fmt.Sprintf("%s/pool%d", c.name, n), func(b *testing.B) {
				run(b, c.work, c.gap, func() { p.Run(n, j) })
			})
			p.Close()
		}
		b.Run(fmt.Sprintf("%s/goroutines%d", c.name, threads), func(b *testing.B) {
			j := &spend{c.work}
			run(b, c.work, c.gap, func() {
				var g sync.WaitGroup
				for i := 1; i < threads; i++ {
					g.Add(1)
					go func() { defer g.Done(); j.Do(i, i) }()
				}
				j.Do(0, 0)
				g.Wait()
			})
		})
	}
}

// BenchmarkPhases times a phase of one task a thread, of a region of a hundred.
func BenchmarkPhases(b *testing.B) {
	for _, work := range []time.Duration{0, 5 * time.Microsecond} {
		for _, n := range []int{2, 4} {
			if n > runtime.GOMAXPROCS(0) {
				continue
			}
			b.Run(fmt.Sprintf("work%v/pool%d", work, n), func(b *testing.B) {
				p := New(n)
				defer p.Close()
				phases := make([]Phase, 100)
				for i := range phases {
					phases[i] = Phase{n, &spend{work}}
				}
				b.ReportAllocs()
				for i := 0; i < b.N; i += len(phases) {
					p.RunPhases(phases)
				}
				b.ReportMetric(float64(b.Elapsed())/float64(b.N)-float64(work), "over-ns")
			})
		}
	}
}
