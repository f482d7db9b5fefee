package speculate

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/grovellm/grove/draft"
)

// group is the sequences of a loop that share a drafter.
type group struct {
	drafter   draft.Drafter
	name      string
	record    *drafterRecord
	sequences int
	taps      []int // of each of the drafter's taps: its place among the loop's

	// The step under way.
	know      knowledge
	requests  []draft.Request
	proposals []draft.Proposal
	commits   []draft.Rows
	view      tapView

	proposing, committing time.Duration
}

// join returns the group of a drafter, made for its first sequence.
func (l *Loop) join(d draft.Drafter, name string) *group {
	at := slices.IndexFunc(l.groups, func(g *group) bool { return g.drafter == d && g.name == name })
	if at < 0 {
		at = len(l.groups)
		l.groups = append(l.groups, &group{drafter: d, name: name, record: l.control.drafter(name)})
		l.layOutTaps()
	}
	g := l.groups[at]
	g.sequences++
	return g
}

// leave ends a sequence's part in the group.
func (l *Loop) leave(g *group) {
	if g.sequences--; g.sequences == 0 && g.drafter != l.drafter {
		l.groups = slices.DeleteFunc(l.groups, func(o *group) bool { return o == g })
		l.layOutTaps()
	}
}

// layOutTaps makes the loop's taps those of all drafters, each layer once.
func (l *Loop) layOutTaps() {
	l.taps = l.taps[:0]
	for _, g := range l.groups {
		g.taps = g.taps[:0]
		for _, layer := range g.drafter.Taps() {
			at := slices.Index(l.taps, layer)
			if at < 0 {
				at = len(l.taps)
				l.taps = append(l.taps, layer)
			}
			g.taps = append(g.taps, at)
		}
	}
}

// tapView shows a drafter the taps that it asked for, in its own order.
type tapView struct {
	draft.Pass
	taps []int
}

func (v *tapView) Tap(t, sequence, node int) []float32 {
	return v.Pass.Tap(v.taps[t], sequence, node)
}

// begin readies the group for a step.
func (g *group) begin(pass draft.Pass) {
	g.requests, g.commits, g.proposing, g.committing = g.requests[:0], g.commits[:0], 0, 0
	g.view = tapView{pass, g.taps}
}

// propose asks the drafter for the trees of all requests.
func (g *group) propose(ctx context.Context, now func() time.Time) (err error) {
	if len(g.requests) == 0 {
		return nil
	}
	began := now()
	g.proposals, err = g.drafter.Propose(ctx, g.requests)
	g.proposing = now().Sub(began)
	switch {
	case err != nil:
		return fmt.Errorf("speculate: the drafter's proposal: %w", err)
	case len(g.proposals) != len(g.requests):
		return fmt.Errorf("speculate: the drafter made %d proposals for %d requests", len(g.proposals), len(g.requests))
	}
	return nil
}

// commit tells the drafter what was committed.
func (g *group) commit(now func() time.Time) error {
	if len(g.commits) == 0 {
		return nil
	}
	began := now()
	err := g.drafter.Commit(g.commits)
	g.committing = now().Sub(began)
	if err != nil {
		return fmt.Errorf("speculate: the drafter's commit: %w", err)
	}
	return nil
}
