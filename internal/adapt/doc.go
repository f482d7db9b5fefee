// Package adapt lets a drafter learn while it serves (paper 004 §3.4 and Appendix A.3), whatever trained drafter it is (package
// learn).
//
// Decoding goes on with one copy of the weights while another learns, on a goroutine of its own; what was learned is brought into
// use between passes. Nothing that decoding does waits for it, and no token depends on it: a drafter can only be slow, not wrong.
//
//	Adapter   the head that drafters use now, and when it changes; one for all drafters of a head
//	drafter   a draft.Drafter around another: takes feedback, and the newest head
//	bandit    skip, head or full, for each query: what an update may bring against what it costs
//	worker    updates, their outcome, and the way back when they made things worse
//	state     what survives a restart
//
// # What the paper leaves open
//
// A place counts as rejected where the walk down a verified tree stopped: there the target chose a token that the tree had not, or had no
// room for, though the drafter had looked at the place. There is at most one in a round. The signal of a query is the sum over its
// rounds of 1 − r, with r the probability that the drafter gave to the target's choice (equation 8).
//
// The paper takes an update's reward from the throughput of the queries that follow it. Throughput differs between queries by far more
// than one update changes, so here the reward is measured in pairs: the queries that follow are drafted again, with the head from
// before the update and with the one after it, and the accepted lengths compared on the very same rounds. From this relative gain the
// update's cost is taken off, in seconds of decoding lost for as long as the gain is expected to last; see Tuning.
//
// Numbers were chosen by measurement with grove's own target and heads; docs/adapt.md has the figures.
package adapt
