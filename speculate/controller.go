package speculate

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
	alone  recent // seconds of drafting by the text alone, a sequence
	rest   recent // seconds of a plain round beside the pass, a sequence
	read   recent // seconds that a drafter takes to read a row of text, among many
	worlds [worlds]world

	refresh uint32 // passes after which a plain one is measured again
}

// world is a way of choosing tokens: a drafter's probabilities are worth something else in each.
type world struct {
	calibration
	outcome  float32 // mean of what runs brought lately, in tokens
	runs     int
	waited   float32 // rounds of sequences that wait for a try, since the last try of any
	interval float32 // the guards' last
	record   record  // the same
	lost     int     // the same
	want     float32 // mean number of nodes that were worth verifying
	arms     arms
	rivals   rivals // the sequences' last
}

const (
	greedy  = iota // temperature 0
	coupled        // above, by the coupled noise
	rejecting
	byAlone // the same three, of trees of the text alone
	worlds  = 2 * byAlone
)

// How long things are remembered, and how often plain decoding is measured while it is not in use.
const (
	outcomeMemory = 4 // runs
	trusted       = 4 // tokens that runs bring
	wantMemory    = 8 // rounds

	// A drafter that is not asked reads along if a row costs no more than this, in tokens, and else only so many of the last rows.
	dear      = 0.0025
	wakeRows  = 32
	readLeast = 16 // rows read at once, for their time to be a measurement

	coldBudget = 4 // nodes of a drafter's first tree

	firstRefresh = 8
	lastRefresh  = 256
	steady       = 0.1 // what a plain pass may change by, for more time to go by before the next measurement
)

// NewController returns a controller that knows nothing yet.
func NewController() *Controller {
	c := &Controller{verify: newCurve(rowAxis), draft: newCurve(levelAxis), refresh: firstRefresh}
	for i := range c.worlds {
		c.worlds[i] = world{calibration: newCalibration(), interval: firstInterval, record: fairRecord, arms: arms{best: armFirst}}
	}
	return c
}

// start makes what guards a new sequence.
func (c *Controller) start(s *Sequence) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s.guard, s.want = c.guard(s.world), c.worlds[s.world].want
	if s.recites {
		s.rivals = c.worlds[s.world].rivals
		s.alone = c.guard(s.world + byAlone)
		s.alone.alone = true
	}
}

func (c *Controller) guard(in int) guard {
	w := &c.worlds[in]
	g := guard{balance: gift, record: w.record, interval: firstInterval}
	if w.outcome >= trusted {
		g.balance, g.trusted = 2*gift, true
	}
	if w.runs > 0 && w.outcome < losing {
		// Others have tried, and their tries and waiting are this one's too: so short texts cost no more than a long one.
		g.balance, g.off = 0, true
		g.interval, g.lost = w.interval, w.lost
		g.quiet = int(min(w.waited, w.interval))
		if c.dear() && in < byAlone { // the prompt need not be read
			g.quiet = min(g.quiet, int(w.interval)-wakeRows)
		}
	}
	return g
}

// judged takes what a proposal brought to a sequence, by whose guard it was judged.
func (w *world) judged(g *guard, v verdict) {
	if sum, done := g.run.add(v.gain()-v.extra, g.off); done {
		w.runs++
		w.outcome += (sum - w.outcome) / float32(min(w.runs, outcomeMemory))
	}
	w.interval, w.record, w.lost = g.interval, g.record, g.lost
	w.waited = 0
}

// rest notes a round in which a sequence's drafter was not asked.
func (w *world) rest(g *guard) {
	if g.rest(); g.off {
		w.waited++
	}
}

// dear reports whether a drafter had better not read text that it is not asked about.
func (c *Controller) dear() bool {
	return c.read.n > 0 && c.verify.known && c.read.median() > dear*c.verify.first()
}

// budget is how many nodes a sequence's drafter may draft.
func (c *Controller) budget(s *Sequence) int {
	if s.turn.alone {
		return s.r.Budget
	}
	if s.sampled {
		s.arm = c.worlds[s.world].arms.choose(s.guard.judged, s.r.Budget)
		return armBudget(s.arm)
	}
	// What is drafted and not verified costs little, once it is known what drafting costs.
	return coldBudget << min(c.draft.seen, 16)
}

// passed takes the time of a pass of n rows. refresh says that it was plain to be measured.
func (c *Controller) passed(n int, seconds float64, refresh bool) {
	was := 0.0
	if refresh {
		was = c.verify.at(n)
	}
	if c.verify.observe(n, seconds) {
		c.refresh = firstRefresh
	} else if refresh {
		if is := c.verify.at(n); is > was*(1-steady) && is < was*(1+steady) {
			c.refresh = min(2*c.refresh, lastRefresh)
		} else {
			c.refresh = max(c.refresh/2, firstRefresh)
		}
	}
}
