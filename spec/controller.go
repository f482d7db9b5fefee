package spec

import "sync"

// Controller decides, round by round, whether speculation pays and how much of it (docs/design.md, law 3). It learns
// what a pass of the target costs by its rows, what drafting costs, and how often nodes are accepted that the
// drafter believes in so and so much; from these it picks the number of nodes that yields the most tokens
// in the time, which may be none. It never changes a token.
//
// What it learns belongs to one target with one drafter on one machine. Loops that share these may share a Controller, at
// the same time too, and so what one generation taught serves the next.
type Controller struct {
	mu     sync.Mutex
	verify curve  // seconds of a target pass, by rows
	draft  curve  // seconds of drafting, by levels
	rest   recent // seconds of a plain round beside the pass, a sequence
	worlds [worlds]world

	refresh uint32 // passes after which a plain one is measured again
}

// world is a way of choosing tokens: a drafter's probabilities are worth something else in each.
type world struct {
	calibration
	worth    float32 // mean gain of a proposal, in tokens
	judged   int
	interval float32 // the guards' last
	bias     float32 // the same
	want     float32 // mean number of nodes that were worth verifying
	arms     arms
}

const (
	greedy  = iota // temperature 0
	coupled        // above, by the coupled noise
	rejecting
	worlds
)

// How long things are remembered, and how often plain decoding is measured while it is not in use.
const (
	worthMemory  = 16 // proposals
	wantMemory   = 8  // rounds
	fewProposals = 8  // fewer are no ground for starting a sequence without speculation

	lastStart = 128 // rounds after which a sequence first tries a drafter that others lost with: texts differ

	coldBudget = 4 // nodes of a drafter's first tree

	firstRefresh = 8
	lastRefresh  = 256
	steady       = 0.1 // what a plain pass may change by, for more time to go by before the next measurement
)

// NewController returns a controller that knows nothing yet.
func NewController() *Controller {
	c := &Controller{verify: newCurve(rowAxis), draft: newCurve(levelAxis), refresh: firstRefresh}
	for i := range c.worlds {
		c.worlds[i] = world{calibration: newCalibration(), interval: firstInterval, arms: arms{best: armFirst}}
	}
	return c
}

// start makes the guard of a new sequence and says how many nodes to begin with.
func (c *Controller) start(in int) (g guard, want float32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	w := &c.worlds[in]
	g = guard{balance: gift, bias: w.bias, interval: firstInterval}
	if w.judged >= fewProposals && w.worth < losing { // others have tried
		g.balance, g.off = 0, true
		g.interval = w.interval
		g.quiet = int(w.interval - min(w.interval/2, lastStart))
	}
	return g, w.want
}

// budget is how many nodes a sequence's drafter may draft.
func (c *Controller) budget(s *Sequence) int {
	if s.sampled {
		s.arm = c.worlds[s.world].arms.choose(s.guard.judged, s.r.Budget)
		return armBudget(s.arm)
	}
	// What is drafted and not verified costs little, once it is known what drafting costs.
	return coldBudget << min(c.draft.seen, 16)
}

// passed takes the time of a pass of n rows. refresh says that it was plain to be measured.
func (c *Controller) passed(n int, seconds float64, refresh bool) {
	was := c.verify.at(n)
	changed := c.verify.observe(n, seconds)
	is := c.verify.at(n)
	switch {
	case changed:
		c.refresh = firstRefresh
	case refresh && is > was*(1-steady) && is < was*(1+steady):
		c.refresh = min(2*c.refresh, lastRefresh)
	case refresh:
		c.refresh = max(c.refresh/2, firstRefresh)
	}
}
