// The guard: whatever is predicted, speculation that loses time stops.

package speculate

// guard watches one sequence. It keeps a balance of what speculating has gained, in tokens that plain decoding would
// have made in the time (a loss is negative), and stops speculation when the balance is spent. A
// sequence starts with a small gift, so that a drafter is given a chance; what it may lose beyond that is its
// allowance, a share of the time. Then the drafter is asked again after 4 rounds, after 8, 16 and so on while
// it keeps losing, later if what one try costs would be more than the allowance of the rounds between, which is halved
// when a few tries in a row have lost.
//
// What is booked is the tokens that were predicted, by as much as such predictions came true lately, less the cost that was
// predicted and what costs were beyond that lately: the same on average as what came out, without most of its luck. Trust is a share, so
// that a few large promises that were not kept say little of small ones, and no proposal is expected to lose more than it costs. A
// promise to gain more than a few tokens counts as one of those, kept to the same part: a tree that goes on for dozens of tokens as the
// text does says little of the next tree of three, and one lost bet of that size would silence a drafter that wins every round.
//
// So with the drafter at its worst a sequence loses about the gift and the allowance, and when the
// controller knows the drafter from other sequences, hardly that.
type guard struct {
	balance  float32
	record   record
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

	recordMemory  = 16 // proposals of a token or more, and of those that promise less as many as make such
	costFirst     = 5  // the weight of the first one's cost is one in so many
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
	came     float32 // tokens beside the one of a plain round
	said     float32 // the same, predicted
	cost     float32 // what it took
	foreseen float32 // the same, predicted
	extra    float32 // what it cost beyond for the drafter to catch up on text since its last proposal
	verified bool    // a node was verified
	guess    bool    // drafting was measured once, and that was an accident or the drafter is senseless
	try      bool    // in any case
	bound    bool    // it could not show all that it can
}

// gain is what was gained.
func (v *verdict) gain() float32 { return v.came - v.cost }

// record is how predictions came true lately.
type record struct {
	came, said float32 // sums of tokens
	over       float32 // mean of costs beyond the predicted
}

// fairRecord is that of a drafter of which nothing is known: it is taken at its word, as far as a token goes.
var fairRecord = record{came: 1, said: 1}

// learn takes a proposal of a sequence, of which it has seen some before, and returns what such a one is worth.
func (r *record) learn(v *verdict, seen int) (value float32) {
	came, said := v.came, v.said
	if most := v.foreseen + mostGain; said > most {
		came, said = came*most/said, most
	}
	keep := 1 - min(said, 1)/recordMemory
	r.came, r.said = keep*r.came+came, keep*r.said+said
	r.over += (v.cost - v.foreseen - r.over) / float32(min(seen+costFirst, recordMemory))
	return r.came/r.said*said - v.foreseen - r.over
}

func (g *guard) judge(v verdict) {
	value, gain := g.record.learn(&v, g.judged), v.gain()
	g.judged++
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
	won := v.verified && (gain > 0 || value > allowance && (!v.try || g.judged > fewJudged)) // a first try is won by what came of it
	switch {
	case v.try && won:
		g.off = false
		g.balance = max(g.balance, min(gain, mostGain), value)
		g.outlook = max(g.outlook, 0)
		g.interval = firstInterval
		g.quiet = firstInterval // again at once
		g.lost = 0
	case v.try:
		g.lost++
		g.wait(&v, value)
	case g.balance < 0 || g.outlook < hopeless || g.judged >= fewJudged && g.outlook < losing:
		g.off = true
		g.wait(&v, max(value, g.outlook)) // one bad bet says little of the next
	case won:
		g.interval = firstInterval
	}
}

// wait sets the interval: twice as long for each try lost in a row, and one over which what the next may lose is no more than what is
// allowed, if that is known.
func (g *guard) wait(v *verdict, value float32) {
	last, ever := float32(lastInterval), float32(everInterval)
	if g.alone {
		last, ever = lastAlone, everAlone
	}
	allowed := float32(allowance)
	if g.lost >= patience {
		allowed /= 2
	}
	g.interval = min(float32(int(firstInterval)<<min(g.lost, 16)), last)
	if !v.guess {
		g.interval = min(max(g.interval, (v.extra-value)/allowed), ever)
	}
}
