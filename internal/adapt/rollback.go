// Rollback: a fail-safe against learning what does harm (paper 004 §3.4).

package adapt

import (
	"math"

	"github.com/grovellm/grove/internal/learn"
)

// rollback watches accepted length over intervals: the relative gain over the first head on the
// same rounds, so that a harder prompt does not count as a fall.
type rollback struct {
	gains []comparison // of the last intervals
	good  *checkpoint
	below int // intervals in a row in which the first head did better
}

// checkpoint is a state of the student that did well.
type checkpoint struct {
	state learn.State
	head  learn.Head
}

const (
	falls  = 3   // windows in a row that fall, and with them
	fallen = .08 // so much in all, and not by chance, bring back the last good checkpoint
	lows   = 2   // intervals in a row that are surely below the first head do so too
	lowest = 3   // times Tuning.Minimum: one such is enough
)

// comparison is of two heads on the same rounds.
type comparison struct {
	gain  float64 // of the one over the other, relative
	error float64 // its standard error
}

// compare takes what two heads score on some rounds.
func compare(a, b []float64) comparison {
	n := float64(len(a))
	sum, base, squares := 0.0, 0.0, 0.0
	for i := range a {
		d := a[i] - b[i]
		sum += d
		squares += d * d
		base += b[i]
	}
	if n < 2 || base == 0 {
		return comparison{}
	}
	mean := sum / n
	return comparison{sum / base, math.Sqrt(max(squares/n-mean*mean, 0)/(n-1)) / (base / n)}
}

// surely reports that the gain is below least, and not by chance.
func (c comparison) surely(least float64) bool { return c.gain < least && c.gain+2*c.error < 0 }

// watch takes how the head did over an interval against the first one. score measures a head on the interval's rounds.
func (g *rollback) watch(
	w *worker, s *learn.Student, over comparison, score func(learn.Head) ([]float64, error),
) error {
	g.gains = append(g.gains, over)
	if n := len(g.gains) - falls - 1; n > 0 {
		g.gains = g.gains[n:]
	}
	least := w.a.o.Minimum
	if over.surely(least) {
		g.below++
	} else {
		g.below = 0
	}
	low := g.below >= lows || over.surely(lowest*least)
	if !low && !g.falling() {
		if over.gain >= 0 && (g.good == nil || over.gain >= g.gains[max(0, len(g.gains)-2)].gain) {
			if g.good == nil {
				g.good = new(checkpoint)
			}
			g.good.state, g.good.head = s.Save(g.good.state), w.a.now()
		}
		return nil
	}
	return g.back(w, s, score, low)
}

// falling reports three windows that fall, one after the other.
func (g *rollback) falling() bool {
	n := len(g.gains)
	if n <= falls {
		return false
	}
	for i := n - falls; i < n; i++ {
		if g.gains[i].gain >= g.gains[i-1].gain {
			return false
		}
	}
	first, last := g.gains[n-1-falls], g.gains[n-1]
	return first.gain-last.gain > max(fallen, 2*math.Hypot(first.error, last.error))
}

// back goes to the last good checkpoint, or to the first head where that does better on the rounds at hand, and forgets what the bandit
// took updates to be worth. A head that is not low, but falls, stays where the one to go back to does no better on these rounds: then they
// are of text from which there is less to gain.
func (g *rollback) back(w *worker, s *learn.Student, score func(learn.Head) ([]float64, error), low bool) error {
	a := w.a
	to, err := score(a.first)
	if err != nil {
		return err
	}
	better := false
	if g.good != nil {
		good, err := score(g.good.head)
		if err != nil {
			return err
		}
		if better = compare(good, to).gain > 0; better {
			to = good
		}
	}
	if !low {
		now, err := score(a.now())
		if err != nil {
			return err
		}
		if compare(now, to).gain >= 0 {
			return nil
		}
	}
	if better {
		s.Load(g.good.state)
		a.use(g.good.head)
	} else {
		if err := s.Reset(); err != nil {
			return err
		}
		a.use(a.first)
	}
	*g = rollback{}
	w.replay = nil // what was learned from
	a.mu.Lock()
	defer a.mu.Unlock()
	a.bandit.failed()
	a.stats.Rollbacks++
	a.filled = [actions]filling{}
	return nil
}
