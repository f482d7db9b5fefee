// Package adapt lets a drafter with a trained head learn while it serves (SpecBlock, section 3.4
// and Appendix A.3). Package learn trains the head.
//
// Decoding uses one copy of the weights while another, the student's, learns on a goroutine of its
// own. Decoding never waits for it, and no token depends on it: a drafter can be slow, but not
// wrong.
//
//	Adapter   the head that drafters use now, and when it changes; one for all drafters of a head
//	drafter   a draft.Drafter around another: it takes feedback, and the newest head
//	judged    the default policy: weights come into use when they were judged better
//	account   how much decoding time learning may cost, and how much it did
//	bandit    the paper's policy: skip, head or full, for each query
//	worker    updates, judgements, and the way back
//	state     what survives a restart
//
// A position counts as rejected where the walk down a verified tree stopped: there the target chose
// a token that the tree did not have, though the drafter had looked at the position. There is at
// most one in a round. The signal of a query is the sum over its rounds of 1 − r, where r is the
// probability that the drafter gave to the target's choice (equation 8).
//
// docs/adapt.md has the numbers that the paper leaves open, and what they were measured on.
//
// Input: the rows that a drafter receives, round by round ([draft.Rows]). Output: newer weights of
// its head, and a file of what was learned. Read adapter.go first, then drafter.go and worker.go.
package adapt
