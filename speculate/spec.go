// Package spec is the loop of tree speculation: propose, verify, accept, commit, for one or many
// sequences in one pass of the target.
//
// A round of a sequence starts at its root, the last token of its text, whose row the target has not computed yet.
// The drafter grows a tree under the root; one pass computes logits for every node; the acceptance rule
// walks down from the root, choosing the target's own token at each node it visits, as long as a child carries
// it. Every token chosen is emitted: those that were drafted, and the bonus token, for which there was no node.
// The cache keeps the rows of the path walked, by compaction; the bonus token is the next root.
// Without a drafter, or where it proposes nothing, the tree is its root and this is plain decoding.
//
// How much is proposed and verified, if anything, is the Controller's to decide: what pays.
//
// The tokens are those of plain decoding, whatever is proposed and decided, because a token is a function of its
// context alone: the same logits to the bit for the same context (docs/design.md, law 1), and a sampler whose
// noise depends on the seed, the position and the token (package sample). That is the acceptance rule "coupled"; under
// "rejection" they have the same distribution (see rejection).
//
// The package never asks which drafter it has.
package speculate

import (
	"context"
	"fmt"
	"time"

	"github.com/grovellm/grove/draft"
)

// Options of a loop.
type Options struct {
	Budget int // nodes of a tree at most, root included, for requests that name none; 0: DefaultBudget
	Chunk  int // rows of a prompt in one pass at most; 0: DefaultChunk

	Accept string // acceptance rule, Coupled or Rejection; empty: Coupled

	Controller   *Controller // decides how much to speculate; nil: the loop makes its own
	Uncontrolled bool        // no controller: every round drafts and verifies as much as its budget allows
}

// What options are where they are 0.
const (
	DefaultBudget = 64  // a bound: the controller verifies what pays
	DefaultChunk  = 512 // enough rows for products to run at their peak
)

// Loop runs sequences over one target with one drafter. One goroutine uses it, and its sequences, at a time.
type Loop struct {
	target  Target
	drafter draft.Drafter
	sampler draft.Sampler // the drafter, where it is one and the rule asks for draws
	o       Options
	taps    []int
	pass    Pass
	control *Controller // nil: uncontrolled
	stats   Stats
	now     func() time.Time

	atZero, above rule // at temperature 0, and above

	// The step under way.
	step     int
	live     []*Sequence // the sequences that take part
	plan     plan
	delta    Stats // what one sequence's round adds
	rows     []Rows
	requests []draft.Request
	commits  []draft.Rows
}

// New returns a loop. drafter may be nil: every sequence is then decoded plainly.
func New(target Target, drafter draft.Drafter, o Options) (*Loop, error) {
	switch {
	case o.Budget < 0:
		return nil, fmt.Errorf("speculate: Budget is %d: want 1 (plain decoding) or more, or 0 for the default of %d", o.Budget, DefaultBudget)
	case o.Chunk < 0:
		return nil, fmt.Errorf("speculate: Chunk is %d: want 1 or more, or 0 for the default of %d", o.Chunk, DefaultChunk)
	}
	if o.Budget == 0 {
		o.Budget = DefaultBudget
	}
	if o.Chunk == 0 {
		o.Chunk = DefaultChunk
	}
	above, err := newRule(o.Accept, target.Vocab())
	if err != nil {
		return nil, err
	}
	l := &Loop{target: target, drafter: drafter, o: o, pass: target.NewPass(), now: time.Now, atZero: coupledRule{}, above: above}
	if drafter != nil {
		l.taps = drafter.Taps()
	}
	if o.Accept == Rejection {
		l.sampler, _ = drafter.(draft.Sampler)
	}
	if drafter != nil && !o.Uncontrolled {
		if l.control = o.Controller; l.control == nil {
			l.control = NewController()
		}
	}
	return l, nil
}

// Stats are the sums over all steps of the loop; a step's time counts once, however many sequences it had.
func (l *Loop) Stats() *Stats { return &l.stats }

// Step takes every sequence that is not done one pass further, all in the same pass: a chunk of its prompt, or a
// round. Sequence.Fresh has the tokens this yielded. No sequence may be listed twice.
//
// When Step fails because ctx ended, or in proposing or verifying, nothing has changed, and the next Step
// goes on from there. After another error the sequences can only be closed.
func (l *Loop) Step(ctx context.Context, sequences []*Sequence) error {
	began := l.now()
	l.live, l.rows, l.requests, l.commits = l.live[:0], l.rows[:0], l.requests[:0], l.commits[:0]
	l.step++
	for i, s := range sequences {
		switch {
		case s.loop != l:
			return fmt.Errorf("speculate: sequence %d belongs to another loop, or is closed", i)
		case s.step == l.step:
			return fmt.Errorf("speculate: sequence %d is listed twice", i)
		}
		s.step = l.step
		s.fresh = 0
		if s.finish == Running {
			l.live = append(l.live, s)
			s.prepare()
		}
	}
	if len(l.live) == 0 {
		return nil
	}
	l.plan.begin(l)
	proposing := l.now()
	proposed := proposing
	if len(l.requests) > 0 {
		if err := l.drafter.Propose(ctx, l.requests); err != nil {
			return fmt.Errorf("speculate: the drafter's proposal: %w", err)
		}
		proposed = l.now()
	}
	for _, s := range l.live {
		if err := s.settle(); err != nil {
			return err
		}
	}
	l.plan.cut(l, proposed.Sub(proposing))
	for _, s := range l.live {
		s.list()
		l.rows = append(l.rows, Rows{Cache: s.cache, Tree: s.tree, Logits: s.asked})
	}
	verifying := l.now()
	if err := l.pass.Run(ctx, l.rows, l.taps); err != nil {
		return err
	}
	verified := l.now()
	for i, s := range l.live {
		if err := s.accept(i); err != nil {
			return err
		}
	}
	telling := l.now()
	told := telling
	if len(l.commits) > 0 {
		if err := l.drafter.Commit(l.commits); err != nil {
			return fmt.Errorf("speculate: the drafter's commit: %w", err)
		}
		told = l.now()
	}
	l.plan.learn(l, proposed.Sub(proposing), verified.Sub(verifying), told.Sub(telling), told.Sub(verified))
	l.time(proposed.Sub(proposing)+told.Sub(telling), verified.Sub(verifying), began)
	return nil
}

// time charges the step to the sequences that waited for it, and once to the loop.
func (l *Loop) time(draft, verify time.Duration, began time.Time) {
	now := l.now()
	all := now.Sub(began)
	rounds := false
	for _, s := range l.live {
		s.clock(now)
		if s.prefilling {
			s.stats.Prefill += all
			continue
		}
		s.stats.time(draft, verify, all)
		rounds = true
	}
	if rounds {
		l.stats.time(draft, verify, all)
	} else {
		l.stats.Prefill += all
	}
}
