// Package batch has what grove's own drafters report about a batch of requests in addition to the trees.
package batch

import (
	"slices"
	"time"

	"github.com/grovellm/grove/draft"
)

// Proposals makes room for n proposals, all empty, in the memory of p.
func Proposals(p []draft.Proposal, n int) []draft.Proposal {
	p = slices.Grow(p[:0], n)[:n]
	clear(p)
	return p
}

// Share is one part's share of the last batch, in a drafter of several parts.
type Share struct {
	Levels int           // levels that took a pass of a network: the most of any request
	Time   time.Duration // of the part's Propose
}

// Shared is a drafter of several parts, whose costs the loop learns separately.
type Shared interface{ Shares() []Share }

// Guide is a guide for drafters of several parts. Part returns the guide of one part, which has its
// own levels and costs.
type Guide interface {
	draft.Guide
	Part(i int) draft.Guide
}

// Part returns the guide of part i, or g itself if g does not distinguish parts.
func Part(g draft.Guide, i int) draft.Guide {
	if p, is := g.(Guide); is {
		return p.Part(i)
	}
	return g
}
