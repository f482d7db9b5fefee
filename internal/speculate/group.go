package speculate

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/drafters/batch"
	"github.com/grovellm/grove/internal/drafters/sequence"
	"github.com/grovellm/grove/internal/kernels/par"
	"github.com/grovellm/grove/internal/speculate/control"
)

// group is the sequences of a loop that share a drafter.
type group struct {
	drafter   draft.Drafter
	name      string
	control   *control.Group
	sequences int
	layers    []int // the drafter's taps
	taps      []int // the place of each of them among the loop's

	// The step under way.
	requests  []draft.Request
	proposals []draft.Proposal
	commits   []draft.Rows
	view      sequence.PassOf

	proposing, committing time.Duration
}

// join returns the group of a drafter, made for its first sequence.
func (l *Loop) join(d draft.Drafter, name string) *group {
	at := slices.IndexFunc(l.groups, func(g *group) bool { return g.drafter == d && g.name == name })
	if at < 0 {
		at = len(l.groups)
		l.groups = append(l.groups, &group{drafter: d, name: name, layers: d.Taps(), control: l.control.Join(name)})
		l.layOut()
	}
	g := l.groups[at]
	g.sequences++
	return g
}

// leave ends a sequence's part in the group.
func (l *Loop) leave(g *group) {
	g.sequences--
	if g.sequences == 0 && g.drafter != l.drafter {
		l.groups = slices.DeleteFunc(l.groups, func(o *group) bool { return o == g })
		l.layOut()
	}
}

// layOut joins the taps of all drafters, each layer once, and lists the groups for the controller.
func (l *Loop) layOut() {
	l.taps, l.parts = l.taps[:0], l.parts[:0]
	for _, g := range l.groups {
		l.parts = append(l.parts, g.control)
		l.taps, g.taps = sequence.JoinTaps(l.taps, g.layers)
	}
}

// begin prepares the group for a step.
func (g *group) begin(pass draft.Pass) {
	g.requests = g.requests[:0]
	g.commits = g.commits[:0]
	g.proposing = 0
	g.committing = 0
	g.view = sequence.PassOf{Pass: pass, Taps: g.taps}
}

// propose asks the drafter for the trees of all requests.
func (g *group) propose(ctx context.Context, now func() time.Time) (err error) {
	if len(g.requests) == 0 {
		return nil
	}
	defer par.Recover("speculate: the drafter's proposal", &err)
	began := now()
	g.proposals, err = g.drafter.Propose(ctx, g.requests)
	g.proposing = now().Sub(began)
	switch {
	case err != nil:
		return fmt.Errorf("speculate: the drafter's proposal: %w", err)
	case len(g.proposals) != len(g.requests):
		return fmt.Errorf("speculate: the drafter made %d proposals for %d requests: want one for each", len(g.proposals), len(g.requests))
	}
	return nil
}

// commit passes committed rows to the drafter.
func (g *group) commit(now func() time.Time) (err error) {
	if len(g.commits) == 0 {
		return nil
	}
	defer par.Recover("speculate: the drafter's commit", &err)
	began := now()
	err = g.drafter.Commit(g.commits)
	g.committing = now().Sub(began)
	if err != nil {
		return fmt.Errorf("speculate: the drafter's commit: %w", err)
	}
	return nil
}

// measure records for the controller how long the step's proposals and commits took.
func (g *group) measure() {
	c := g.control
	c.Drafting = g.proposing.Seconds()
	c.Reading = g.committing.Seconds()
	c.Read = 0
	c.Parts = nil
	for i := range g.commits {
		if r := &g.commits[i]; r.Next < 0 && !r.Skip {
			c.Read += len(r.Tokens)
		}
	}
	if d, has := g.drafter.(batch.Shared); has && len(g.requests) > 0 && len(g.proposals) > 0 {
		c.Parts = d.Shares()
	}
}
