// The decision for each query: skip, train the last part, or train all (paper 004 §3.4, Algorithm 1).

package adapt

import (
	"math"
	"math/rand/v2"
)

// Action is what a query's feedback is used for.
type Action int

const (
	Skip Action = iota
	Head        // an update of the last part alone
	Full        // an update of all
	actions
)

func (a Action) String() string { return [...]string{"skip", "head", "full"}[a] }

// Numbers of the paper's Appendix A.3, and what it leaves open.
const (
	coldEvents = 8    // updates that explore
	coldFirst  = .3   // the chance to explore, at first and after
	coldLast   = .1   //
	blocked    = 2    // queries after an update that cannot begin another
	leastTrig  = 5    // s_min: signals below teach no value
	memory     = .1   // α: the weight of a new reward
	hope       = 3e-4 // what an update is taken to bring, a unit of signal, before any was made
	hopeCounts = 2    // rewards that this is worth
	firstProbe = 24   // queries without an update after which one is tried in any case; then twice as many
	lastProbe  = 768
	soon       = 8
	firstPause = 8 // queries that a rollback blocks, then twice as many for one that follows
)

// bandit knows what updates have brought so far: v is the relative gain in throughput for a unit of the signal, net of cost. It is saved
// as it is.
//
// The paper's v is a mean of quotients, gain/s. Signals of queries differ tenfold, so a chance loss at a small s outweighed many gains at
// large ones, and updates that paid were given up. Here v is the quotient of the two means, and what is known of the
// gain's error comes off it once: where there is nothing to gain, means are as often a little above zero as below.
type bandit struct {
	Value   [actions]float64 `json:"value"`
	Gain    [actions]float64 `json:"gain"`   // means of rewards, weighted as equation 10 has it
	Doubt   [actions]float64 `json:"doubt"`  // their variances
	Signal  [actions]float64 `json:"signal"` // means of the signals
	Rewards [actions]int     `json:"rewards"`
	Queries int              `json:"queries"`
	Events  int              `json:"events"`
	Blocked int              `json:"blocked"` // queries to come that cannot begin an update
	Idle    int              `json:"idle"`    // queries since the last update
	Probe   int              `json:"probe"`   // queries after which one is tried in any case
	Pause   int              `json:"pause"`   // queries without updates after the last rollback
	Lasting lasting          `json:"lasting"`

	warmUp int
}

func newBandit(warmUp int) bandit {
	b := bandit{Probe: firstProbe, warmUp: warmUp}
	b.forget()
	return b
}

// forget makes all values what they were at first.
func (b *bandit) forget() {
	b.Value = [actions]float64{Head: hope, Full: hope}
	b.Gain, b.Doubt, b.Signal = [actions]float64{}, [actions]float64{}, [actions]float64{}
	b.Rewards = [actions]int{}
	b.Lasting = lasting{}
}

// choose says what a query with the signal s is to be used for. Without head the last part is never trained alone.
func (b *bandit) choose(s float64, head bool, rng *rand.Rand) Action {
	b.Queries++
	b.Idle++
	if b.Queries <= b.warmUp {
		return Skip
	}
	best := Full
	if head && b.Value[Head] > b.Value[Full] {
		best = Head
	}
	switch {
	case head && b.Events < coldEvents && rng.Float64() < coldFirst+(coldLast-coldFirst)*float64(b.Events)/coldEvents:
		return Head + Action(rng.IntN(int(actions-Head)))
	case b.Events < coldEvents: // the first few rewards are no ground to give up on
		return best
	case s*b.Value[best] > 0:
		return best
	case b.Idle >= b.Probe: // no traffic stays the same for ever
		return best
	}
	return Skip
}

// hopes reports whether feedback is likely to be used soon.
func (b *bandit) hopes() bool {
	return b.Value[Head] > 0 || b.Value[Full] > 0 || b.Events < coldEvents || b.Idle+soon >= b.Probe
}

// may reports whether a query may begin an update.
func (b *bandit) may() bool {
	if b.Blocked > 0 {
		b.Blocked--
		return false
	}
	return true
}

// begun notes an update.
func (b *bandit) begun() {
	if b.Value[Head] <= 0 && b.Value[Full] <= 0 && b.Events >= coldEvents {
		b.Probe = min(2*b.Probe, lastProbe)
	}
	b.Events++
	b.Blocked, b.Idle = blocked, 0
}

// failed notes a rollback: values are what they were at first, and for a while, each time a longer one, no update begins.
func (b *bandit) failed() {
	b.forget()
	b.Pause = min(max(firstPause, 2*b.Pause), lastProbe)
	b.Blocked = b.Pause
}

// reward takes what an update brought, with its standard error, for the signal it was begun at.
func (b *bandit) reward(a Action, gain, err, signal float64) {
	if signal < leastTrig {
		return
	}
	if b.Signal[a] == 0 {
		b.Signal[a], b.Gain[a] = signal, hope*signal
	}
	b.Rewards[a]++
	weight := max(memory, 1/float64(b.Rewards[a]+hopeCounts))
	b.Gain[a] += weight * (gain - b.Gain[a])
	b.Signal[a] += weight * (signal - b.Signal[a])
	b.Doubt[a] = (1-weight)*(1-weight)*b.Doubt[a] + weight*weight*err*err
	b.Value[a] = (b.Gain[a] - math.Sqrt(b.Doubt[a])) / b.Signal[a]
	if gain > 0 {
		b.Pause = 0
	}
	if b.Value[a] > 0 {
		b.Probe = firstProbe
	}
}
