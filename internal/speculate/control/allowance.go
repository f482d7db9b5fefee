package control

import "github.com/grovellm/grove/internal/drafters/calibrate"

// allowance limits what speculation may lose, whatever is predicted. It keeps a credit in tokens:
// what proposals of one kind have gained over plain decoding, plus allowanceRate for every token
// emitted, at most mostCredit. While the credit is negative, no such proposal is requested. So a
// drafter that never pays costs the first credit of one token, up to firstTrust tokens if it promises
// them, and a share allowanceRate of the time. A drafter that costs more is asked less often.
//
// A gain is booked as the predicted gain, scaled by the share of recent predictions that came true,
// less the predicted cost and the mean recent excess over it. On average that equals the actual gain,
// but most of the luck is left out.
//
// Worked example: drafting and verifying cost 0.5 tokens, and nothing is promised. The first two
// proposals use up the first credit; then one proposal is requested in every 0.5/0.004 = 125
// rounds.
type allowance struct {
	credit float64 // tokens
	mean   float64 // booked value of recent proposals, in tokens
	cost   float64 // of recent proposals, in tokens
	idle   float64 // tokens emitted since the last proposal
	unseen float64 // tokens emitted since the target's choice was compared with a proposal

	accepted, predicted float64 // sums of recently accepted and predicted tokens
	over                float64 // mean of costs beyond the predicted ones, in tokens
	proposals           int
	seen                int // proposals that the target's choice was compared with
}

const (
	allowanceRate = 0.004 // tokens that tries may cost for each token emitted
	mostCredit    = 4     // tokens: a drafter that becomes bad is soon stopped
	firstTrust    = 6     // tokens, predicted and accepted, that a drafter begins with
)

func newAllowance() allowance {
	return allowance{credit: 1, accepted: firstTrust, predicted: firstTrust}
}

// outcome is the result of one proposal, in tokens.
type outcome struct {
	accepted  float64
	predicted float64 // tokens accepted
	cost      float64 // of the time that drafting and verifying took
	foreseen  float64 // the same, predicted
	extra     float64 // of the time that the drafter took to read text since its last proposal
	seen      bool    // the target's choice was compared with it
	certain   bool    // the cost is no accident: drafting was measured more than once
}

// open reports whether a proposal may be requested.
func (a *allowance) open() bool { return a.credit >= 0 }

// hope returns how many tokens more than predicted a proposal is assumed to gain: without proposals nothing corrects a
// prediction. If they gain nothing, the credit lasts calibrate.Memory proposals or more.
func (a *allowance) hope() float64 { return a.credit / calibrate.Memory }

// due reports whether a proposal with a cost in tokens should be tried although it is not predicted
// to pay: such tries take no larger share of the time than allowanceRate. The first proposals, as
// many as make a time certain, are always tried.
func (a *allowance) due(cost float64) bool {
	return a.open() && (a.proposals < majority || a.unseen*allowanceRate >= cost)
}

// wait returns about how many plain rounds pass before the next proposal with a cost.
func (a *allowance) wait(cost float64) float64 {
	return max(-a.credit/allowanceRate, cost/allowanceRate-a.unseen)
}

// skip records a round without a proposal, and the number of tokens that it emitted.
func (a *allowance) skip(tokens int) {
	a.idle += float64(tokens)
	a.unseen += float64(tokens)
	a.credit = min(a.credit+allowanceRate*float64(tokens), mostCredit)
}

// book records the outcome of a proposal.
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
