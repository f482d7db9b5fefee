// The cost of learning: the time that decoding loses while a task runs.

package adapt

import (
	"math/bits"
	"slices"
	"sync"
	"time"

	"github.com/grovellm/grove/draft"
)

// slowdown measures how much slower rounds are while an update runs than otherwise. The update's
// processor time says little about that: decoding that waits for memory hardly misses a processor.
//
// A round's time depends on its rows, so rounds are compared with others of about as many.
type slowdown struct {
	now func() time.Time

	mu    sync.Mutex
	usual [17]times // of rounds while nothing is learned, by the bit length of their number of rows
	lost  float64   // seconds that rounds took beyond the usual during updates
	took  float64   // seconds that those rounds took in total
}

// How long rounds are remembered: usualMemory usual ones, and learningMemory seconds of those during
// updates. So the share follows a load that changes, by any factor.
const (
	usualMemory    = 32
	learningMemory = 8
	priorSeconds   = 1 // weight, in seconds, of the initial estimate: the share of the workers
	stalled        = 4 // a round counts as at most so many times the usual time, and at least the usual over it
)

// round records a round's rows and time.
func (s *slowdown) round(rows int, seconds float64, learning bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	recent := &s.usual[min(bits.Len(uint(rows)), len(s.usual)-1)]
	if !learning {
		recent.add(seconds)
		return
	}
	usual := recent.mean()
	if usual == 0 {
		return
	}
	seconds = min(seconds, stalled*usual)
	s.lost += seconds - min(usual, stalled*seconds)
	s.took += seconds
	if s.took > learningMemory {
		s.lost, s.took = s.lost/2, s.took/2
	}
}

// times has the times of the last usualMemory rounds.
type times struct {
	last [usualMemory]float64
	n    int // rounds ever
}

func (t *times) add(seconds float64) {
	t.last[t.n%usualMemory] = seconds
	t.n++
}

// mean returns the mean of the times, each limited to stalled times their median; 0 without any.
func (t *times) mean() float64 {
	n := min(t.n, usualMemory)
	if n == 0 {
		return 0
	}
	sorted := t.last
	slices.Sort(sorted[:n])
	sum, median := 0.0, sorted[n/2]
	for _, v := range sorted[:n] {
		sum += min(v, stalled*median)
	}
	return sum / float64(n)
}

// share returns the share of its time that decoding loses. at is the estimate before anything is measured.
func (s *slowdown) share(at float64) float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return min(max((s.lost+at*priorSeconds)/(s.took+priorSeconds), 0), 1)
}

// timer times the rounds of a drafter: from its proposal to its commit.
type timer struct {
	began    time.Time // zero in a step without a proposal
	learning bool
}

func (t *timer) begin(a *Adapter) { t.began, t.learning = a.slow.now(), a.running.Load() }

func (t *timer) end(a *Adapter, rows []draft.Rows) {
	began := t.began
	t.began = time.Time{}
	n := 0
	for _, r := range rows {
		if r.Next < 0 { // a prompt was read in the same step
			return
		}
		n += r.Tree.Len()
	}
	if began.IsZero() || t.learning != a.running.Load() {
		return
	}
	a.slow.round(n, a.slow.now().Sub(began).Seconds(), t.learning)
}

// meter measures the cost of a task.
type meter struct {
	processor time.Duration
	clock     time.Time
}

func startMeter(a *Adapter) meter { return meter{spent(), a.slow.now()} }

// read returns the seconds of processors and of decoding that the task has cost.
func (m meter) read(a *Adapter) (processors, lost float64) {
	processors = (spent() - m.processor).Seconds() * float64(a.o.Threads)
	return processors, a.lost(processors, a.slow.now().Sub(m.clock).Seconds())
}
