package control

import "github.com/grovellm/grove/internal/drafters/calibrate"

// allowance bounds what speculation may lose, whatever is predicted. It keeps a credit in tokens:
// what proposals of one kind have gained over plain decoding, at most mostCredit, and allowanceRate
// for every token emitted. While the credit is negative, no such proposal is asked for. So a
// drafter that never pays costs the first credit, one token, up to firstTrust tokens where it promises
// them, and a share of allowanceRate of the time, and one that costs more is asked less often.
//
// A gain is booked as predicted, by the share of late predictions that came true, less the
// predicted cost and what costs exceeded predictions by lately. That is the same on average as the
// gain itself, and most of its luck is left out.
//
// Worked example: drafting and verifying costs 0.5 tokens, and nothing is promised. The first two
// proposals use up the first credit; then one proposal is asked for in every 0.5/0.004 = 125
// rounds.
type allowance struct {
	credit float64 // tokens
	mean   float64 // of what late proposals were booked as, in tokens
	cost   float64 // of late proposals, in tokens
	idle   float64 // tokens emitted since the last proposal
	unseen float64 // tokens emitted since the target's choice was compared with a proposal

	accepted, predicted float64 // sums of tokens accepted and predicted lately
	over                float64 // mean of costs beyond the predicted ones, in tokens
	proposals           int
	seen                int // proposals that the target's choice was compared with
}

const (
	allowanceRate = 0.004 // tokens that tries may cost for each token emitted
	mostCredit    = 4     // tokens: a drafter that turns bad is stopped soon
	firstTrust    = 6     // tokens, predicted and accepted, that a drafter begins with
)

func newAllowance() allowance {
	return allowance{credit: 1, accepted: firstTrust, predicted: firstTrust}
}

// outcome is what came of one proposal, in tokens.
type outcome struct {
	accepted  float64
	predicted float64 // tokens accepted
	cost      float64 // of the time that drafting and verifying took
	foreseen  float64 // the same, predicted
	extra     float64 // of the time that the drafter took to read text since its last proposal
	seen      bool    // the target's choice was compared with it
	certain   bool    // drafting was measured more than once, so that the cost is no accident
}

// open reports whether a proposal may be asked for.
func (a *allowance) open() bool { return a.credit >= 0 }

// hope is how much more than predicted a proposal is taken to bring, in tokens, for without proposals nothing corrects
// a prediction. Where nothing comes of it, the credit lasts calibrate.Memory proposals or more.
func (a *allowance) hope() float64 { return a.credit / calibrate.Memory }

// due reports whether a proposal of a cost in tokens is to be tried, though it is not predicted to
// pay: such tries take no larger share of the time than the allowance. The first proposals are
// tries in any case, as many as make a time certain.
func (a *allowance) due(cost float64) bool {
	return a.open() && (a.proposals < majority || a.unseen*allowanceRate >= cost)
}

// wait is about how many plain rounds go by before the next proposal of a cost.
func (a *allowance) wait(cost float64) float64 {
	return max(-a.credit/allowanceRate, cost/allowanceRate-a.unseen)
}

// skip notes a round without a proposal, which emitted so many tokens.
func (a *allowance) skip(tokens int) {
	a.idle += float64(tokens)
	a.unseen += float64(tokens)
	a.credit = min(a.credit+allowanceRate*float64(tokens), mostCredit)
}

// book takes what came of a proposal.
func (a *allowance) book(o *outcome) {
	accepted, predicted := o.accepted, o.predicted
	if most := o.foreseen + mostCredit; predicted > most {
		accepted, predicted = accepted*most/predicted, most
	}
	keep := 1 - min(predicted, 1)/calibrate.Memory
	a.accepted, a.predicted = keep*a.accepted+accepted, keep*a.predicted+predicted
	a.over += (o.cost - o.foreseen - a.over) / float64(min(a.proposals+calibrate.PriorWeight, calibrate.Memory))
	a.proposals++
	n := float64(min(a.proposals, calibrate.PriorWeight))
	value := a.accepted/a.predicted*predicted - o.foreseen - a.over
	if !o.certain {
		value = max(value, -1)
	}
	value -= o.extra
	a.credit = min(a.credit+value+allowanceRate*(1+o.accepted), mostCredit)
	a.mean += (value - a.mean) / n
	a.cost += (o.foreseen - a.cost) / n
	a.idle = 0
	a.unseen += 1 + o.accepted
	if o.seen {
		a.unseen = 0
		a.seen++
	}
}
