// Package output computes logits: those of all tokens or of a shortlist (DynaSpec §4, FR-Spec), of
// each row of a pass another.
//
// In come the rows of a pass, under a norm, and for each the head or a [Shortlist]. Out come
// [Logits]. A shortlist is a few runs of panels of an [OrderedHead], the rows of an output head in
// an order of our choosing: choosing tokens and multiplying are one kernel, and no weight moves.
//
// Read logits.go first, then head.go (heads by tokens and in another order) and shortlist.go.
package output
