// Package hostile measures, for tests and fuzzers, the cost of reading a damaged or hostile file.
package hostile

import (
	"flag"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync/atomic"
	"testing"
	"time"
)

const (
	multiple = 4        // bytes of memory allowed for each byte of the input
	constant = 64 << 20 // bytes of memory allowed for any input
	maxTime  = 2 * time.Second
	maxSteps = 1 << 22 // allocations allowed for any input, in addition to multiple for each byte
)

// Check runs read on an input of size bytes. It fails the test if read takes more than 4 × size +
// 64 MB of memory at any moment, or allocates more than 4 × size + 2^22 times, which stands for its
// steps. While fuzzing it also fails if read takes more than 2 s; ordinary tests have no time
// limit. read may run several times and must do the same each time.
//
// The total that read allocates bounds the memory that it holds at any moment, and is exact: it is
// checked first. Only a read that allocates more is measured with the collector.
func Check(t testing.TB, size int, read func()) {
	t.Helper()
	limit := uint64(multiple*size + constant)
	start := time.Now()
	before := metric("/gc/heap/allocs:bytes")
	steps := metric("/gc/heap/allocs:objects")
	read()
	took, total := time.Since(start), metric("/gc/heap/allocs:bytes")-before
	steps = metric("/gc/heap/allocs:objects") - steps
	if steps > uint64(multiple*size+maxSteps) {
		t.Errorf("an input of %d bytes takes %d allocations: want at most %d", size, steps, multiple*size+maxSteps)
	}
	held := total
	for try := 0; held > limit && try < 4; try++ { // a collection also counts memory dropped while it runs
		held = min(held, peak(read))
	}
	if held > limit {
		t.Errorf("an input of %d bytes takes %d bytes of memory (%d allocated in total): want at most %d", size, held, total, limit)
	}
	if !fuzzing() {
		return
	}
	for range 2 { // a busy machine can delay one run
		if took > maxTime {
			start = time.Now()
			read()
			took = min(took, time.Since(start))
		}
	}
	if took > maxTime {
		t.Errorf("an input of %d bytes takes %v: want at most %v", size, took, maxTime)
	}
}

func fuzzing() bool {
	f := flag.Lookup("test.fuzz")
	return f != nil && f.Value.String() != ""
}

// peak returns the most memory that read holds, by the collector's measure: live memory at the end
// of each collection, and the stacks. Collections run whenever the heap has grown by a tenth.
func peak(read func()) uint64 {
	defer debug.SetGCPercent(debug.SetGCPercent(10))
	runtime.GC()
	held := func() uint64 { return metric("/gc/heap/live:bytes") + metric("/memory/classes/heap/stacks:bytes") }
	before := held()
	var top atomic.Uint64
	var done atomic.Bool
	var watch func(*[16]byte)
	watch = func(*[16]byte) { // runs after each collection
		if done.Load() {
			return
		}
		for now := held(); ; {
			old := top.Load()
			if now <= old || top.CompareAndSwap(old, now) {
				break
			}
		}
		runtime.SetFinalizer(new([16]byte), watch)
	}
	watch(nil)
	read()
	done.Store(true)
	return max(top.Load(), before) - before
}

func metric(name string) uint64 {
	s := []metrics.Sample{{Name: name}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}
