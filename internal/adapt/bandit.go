// The paper's bandit: SpecBlock, section 3.4, Algorithm 1 and Appendix A.3.

package adapt

import "math/rand/v2"

// Action is the use of a query's feedback.
type Action int

const (
	Skip Action = iota
	Head        // an update of the last part
	Full        // an update of all weights
	actions
)

func (a Action) String() string { return [...]string{"skip", "head", "full"}[a] }

// Numbers of the paper.
const (
	warmUp     = 10 // queries before the first update
	coldEvents = 8  // updates that explore
	coldFirst  = .3 // ε at the first of them
	coldLast   = .1 // ε at the last of them
	blocked    = 2  // queries after an update that cannot begin another one
	leastTrig  = 5  // s_min: rewards of weaker signals do not count
	memory     = .1 // α
	falls      = 3  // consecutive windows of falling accepted length
)

// Numbers that the paper leaves open.
const (
	buffered = 2    // queries that saturate a buffer
	interval = 2    // N: queries after an update whose throughput is measured
	firstV   = 1e-9 // initial v: positive, so that the first query after the warm-up is not skipped
)

// bandit chooses how a query's feedback is used. v is the mean change in throughput, in tokens per
// second, per unit of the signal: equation 10. It is saved as it is.
type bandit struct {
	Value   [actions]float64 `json:"value"` // v
	Queries int              `json:"queries"`
	Events  int              `json:"events"`  // updates
	Blocked int              `json:"blocked"` // queries to come that cannot begin an update
	Before  throughput       `json:"before"`  // since the last update began

	Open      bool    `json:"open"` // an interval is measured
	Trigger   Action  `json:"trigger"`
	Signal    float64 `json:"signal"`   // s_trig
	Baseline  float64 `json:"baseline"` // throughput before the update, in tokens per second
	Remaining int     `json:"remaining"`

	Windows []float64 `json:"-"` // accepted length of the last intervals, whose heads are not saved
}

// throughput adds up queries.
type throughput struct {
	Tokens  int     `json:"tokens"`
	Rounds  int     `json:"rounds"`
	Seconds float64 `json:"seconds"`
}

func (t *throughput) perSecond() float64 { return float64(t.Tokens) / max(t.Seconds, 1e-9) }

func newBandit() bandit {
	return bandit{Value: [actions]float64{Head: firstV, Full: firstV}}
}

// choose returns the action for a query with the signal s: lines 3 to 8, and the cold start of A.3.
func (b *bandit) choose(s float64, rng *rand.Rand) Action {
	b.Queries++
	if b.Queries <= warmUp {
		return Skip
	}
	if b.Events < coldEvents {
		epsilon := coldFirst + (coldLast-coldFirst)*float64(b.Events)/(coldEvents-1)
		if rng.Float64() < epsilon {
			return Head + Action(rng.IntN(int(actions-Head)))
		}
	}
	head, full := s*b.Value[Head], s*b.Value[Full] // equation 9
	switch {
	case head <= 0 && full <= 0:
		return Skip
	case head >= full:
		return Head
	}
	return Full
}

// may reports whether a query may begin an update.
func (b *bandit) may() bool {
	if b.Blocked > 0 {
		b.Blocked--
		return false
	}
	return !b.Open
}

// begun records an update that a query with the signal s began: lines 13 and 17. The interval begins
// with it, so that its throughput includes the update's cost.
func (b *bandit) begun(a Action, s float64) {
	b.Events++
	b.Blocked = blocked
	b.Open = true
	b.Trigger = a
	b.Signal = s
	b.Remaining = interval
	b.Baseline, b.Before = b.Before.perSecond(), throughput{}
}

// trend is the change of accepted length at the end of an interval.
type trend int

const (
	still  trend = iota // no interval ended
	held                // no less than in the interval before, or there was none before
	fell                // less than in the interval before
	failed              // it fell in as many consecutive intervals as the fail-safe allows
)

// served takes in a query. If an interval ended with it, served returns the trend of accepted length:
// lines 19 to 24. inUse says that the last update is done.
func (b *bandit) served(q *query, inUse bool) trend {
	b.Before.Tokens += q.committed
	b.Before.Rounds += q.rounds
	b.Before.Seconds += q.seconds
	if !b.Open || !inUse {
		return still
	}
	b.Remaining--
	if b.Remaining > 0 {
		return still
	}
	b.Open = false
	if b.Signal >= leastTrig {
		v := &b.Value[b.Trigger]
		*v = (1-memory)**v + memory*(b.Before.perSecond()-b.Baseline)/b.Signal
	}
	b.Windows = append(b.Windows, float64(b.Before.Tokens)/float64(max(b.Before.Rounds, 1)))
	if n := len(b.Windows) - falls; n > 0 {
		b.Windows = b.Windows[n:]
	}
	switch n := len(b.Windows); {
	case n == 1 || b.Windows[n-1] >= b.Windows[n-2]:
		return held
	case n == falls && b.Windows[0] > b.Windows[1]:
		return failed
	}
	return fell
}

// rolledBack records a rollback: it resets the values to their initial ones.
func (b *bandit) rolledBack() {
	b.Value, b.Windows = newBandit().Value, nil
}
