// Package batch has what a drafter of grove's own says of a batch of requests beside the trees.
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

// Share is one part's share of the last batch, of a drafter of several parts.
type Share struct {
	Levels int           // that took a pass of a network: the most of any request
	Time   time.Duration // of the part's Propose
}

// Shared is a drafter of several parts, whose costs the loop learns apart.
type Shared interface{ Shares() []Share }

// Guide is a guide for drafters of several parts. Part is the guide of one, which has levels and costs
// apart from the others'.
type Guide interface {
	draft.Guide
	Part(i int) draft.Guide
}

// Part is the guide of part i: g itself where g does not tell parts apart.
func Part(g draft.Guide, i int) draft.Guide {
	if p, is := g.(Guide); is {
		return p.Part(i)
	}
	return g
}
