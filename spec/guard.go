// The guard: whatever is predicted, speculation that loses time stops.

package spec

// guard watches one sequence. It keeps a balance of what speculating has gained, in tokens that plain decoding would
// have made in the time (a loss is negative), and stops speculation when the balance is spent. A
// sequence starts with a small gift, so that a drafter is given a chance; what it may lose beyond that is its
// allowance, a share of the time. Then the drafter is asked again after 4 rounds, after 8, 16 and so on while
// it keeps losing, later if what one try costs would be more than the allowance of the rounds between, which is halved
// when a few tries in a row have lost.
//
// What is booked is the gain that was predicted, plus the mean of what came out beside the predictions lately: the same on
// average as what came out, without most of its luck. A gain beyond a few tokens, predicted or not, counts as those: a tree
// that goes on for dozens of tokens as the text does is wrong by dozens when it is wrong, which says nothing of the next tree
// of three, and one lost bet of that size would silence a drafter that wins every round.
//
// So with the drafter at its worst a sequence loses about the gift and the allowance, and when the
// controller knows the drafter from other sequences, hardly that.
type guard struct {
	balance  float32
	bias     float32 // mean of gains beyond the predicted
	outlook  float32 // mean of what was booked lately
	judged   int     // proposals judged
	interval float32 // rounds without a drafted node after which one is tried in any case
	quiet    int     // rounds since a drafted node was verified
	off      bool    // only tries
	alone    bool    // proposals are of the text alone
	trusted  bool    // others won
	tries    int
	lost     int // tries in a row that won nothing, others' before this sequence included
	run      run // the proposals since it was last off
}

// run is what the first proposals of a sequence brought, or those that followed on a try.
type run struct {
	sum    float32 // tokens
	length int
}

// Runs are compared by their first proposals, and a long win counts for as much as a loss.
const (
	runLength = 8
	mostRun   = 8 // tokens
)

// add takes what a proposal brought; done says that the run is over, of which sum is the outcome.
func (r *run) add(gain float32, off bool) (sum float32, done bool) {
	r.sum += min(gain, mostGain)
	r.length++
	if !off && r.length < runLength {
		return 0, false
	}
	sum = max(min(r.sum, mostRun), -mostRun)
	*r = run{}
	return sum, true
}

const (
	gift      = 1     // token
	mostSaved = 4     // tokens of balance at most, so that a drafter that turned bad is stopped soon
	mostGain  = 5     // tokens that one round counts for at most
	allowance = 0.008 // tokens a round
	patience  = 4     // tries lost in a row, from which on the next ones are allowed half as much

	firstInterval = 4
	lastInterval  = 256 // by doubling

	// The same where a try costs next to nothing but its stake, and a text may begin to repeat itself any time.
	lastAlone    = 16
	everAlone    = 64
	everInterval = 4096 // by cost

	biasMemory    = 16 // proposals
	biasFirst     = 5  // the weight of the first is one in so many
	outlookMemory = 4
	hopeless      = -0.25 // tokens: stop without waiting for the balance
	losing        = -0.04 // tokens: the same after a few proposals
	fewJudged     = 3

	leastStake = 1 // token
)

// due reports whether the next round is to try the drafter in any case.
func (g *guard) due() bool { return float32(g.quiet) >= g.interval }

// soon reports whether it is at least half the way to that.
func (g *guard) soon() bool { return 2*float32(g.quiet) >= g.interval }

// asleep reports whether so many rounds at least go by before the next try.
func (g *guard) asleep(rounds int) bool {
	return g.off && g.interval-float32(g.quiet) >= float32(rounds)
}

// stake is what may be put on a proposal of which little is known, in tokens: what is lost when nothing comes of it. ok is false where
// proposals were judged, or others won much: then what is known of them decides.
func (g *guard) stake() (tokens float32, ok bool) {
	return max(g.balance, leastStake), g.judged < fewJudged && !g.trusted || g.off
}

// brief reports whether the next try is to be of one level: most drafters that pay show it there, at a fraction of the cost.
func (g *guard) brief() bool { return g.off && !g.alone && g.tries%2 == 0 }

// rest notes a round in which the drafter was not asked.
func (g *guard) rest() { g.quiet++ }

// verdict is what came of asking the drafter in one round; all in tokens.
type verdict struct {
	gain     float32 // what it gained
	hope     float32 // the gain that was predicted
	extra    float32 // what it cost beyond for the drafter to catch up on text since its last proposal
	verified bool    // a node was verified
	try      bool    // in any case
	bound    bool    // it could not show all that it can
}

func (g *guard) judge(v verdict) {
	v.gain, v.hope = min(v.gain, mostGain), min(v.hope, mostGain)
	g.bias += (v.gain - v.hope - g.bias) / float32(min(g.judged+biasFirst, biasMemory))
	g.judged++
	value := v.hope + g.bias
	if !v.bound {
		g.outlook += (value - g.outlook) / outlookMemory
	}
	g.balance = min(g.balance+value+allowance, mostSaved)
	g.quiet++
	if v.verified {
		g.quiet = 0
	}
	if v.try {
		g.tries++
	}
	won := v.verified && (v.gain > 0 || value > 0 && (!v.try || g.judged > fewJudged)) // a first try is won by what came of it
	switch {
	case v.try && won:
		g.off = false
		g.balance = max(g.balance, v.gain, value)
		g.outlook = max(g.outlook, 0)
		g.interval = firstInterval
		g.quiet = firstInterval // again at once
		g.lost = 0
	case v.try:
		g.lost++
		g.wait(2*g.interval, v.extra-value)
	case g.balance < 0 || g.outlook < hopeless || g.judged >= fewJudged && g.outlook < losing:
		g.off = true
		g.wait(g.interval, v.extra-value)
	case won:
		g.interval = firstInterval
	}
}

// wait sets the interval, to one over which loss is no more than what is allowed.
func (g *guard) wait(interval, loss float32) {
	last, ever := float32(lastInterval), float32(everInterval)
	if g.alone {
		last, ever = lastAlone, everAlone
	}
	allowed := float32(allowance)
	if g.lost >= patience {
		allowed /= 2
	}
	g.interval = min(max(min(interval, last), loss/allowed), ever)
}
