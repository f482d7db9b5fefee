// Package output computes logits: those of all tokens or of a shortlist (DynaSpec §4, FR-Spec),
// which may differ for each row of a pass.
//
// Input: the rows of a pass, under a norm, and for each row the head or a [Shortlist]. Output:
// [Logits]. A shortlist is a few runs of panels of an [OrderedHead], the rows of an output head in
// an order of our choosing: choosing tokens and multiplying are one kernel, and no weight moves.
//
// Read logits.go first, then head.go (heads by tokens and in another order) and shortlist.go.
package output
