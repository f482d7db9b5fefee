// A drafter's rows of a prefix: taken over from another sequence, or computed again.

package speculate

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/drafters/sequence"
	"github.com/grovellm/grove/internal/kernels/par"
	"github.com/grovellm/grove/internal/nn"
)

// Kept is what a drafter computed of a text, for sequences of that drafter whose prompts begin like it.
type Kept struct {
	loop    *Loop
	drafter draft.Drafter
	state   draft.State
	text    []int32
}

// Keep returns what the drafter computed of the sequence's text so far; nil if there is no drafter, or it has not yet
// read that text. It shares memory with the sequence and may outlive it. The caller closes it.
func (s *Sequence) Keep() (k *Kept, err error) {
	if s.state == nil || s.behind() {
		return nil, nil
	}
	d := s.group.drafter
	defer func() { s.loop.blame(d, err) }()
	defer par.Recover("speculate: the drafter's copy of a sequence", &err)
	state, err := d.Begin(draft.Options{})
	if err != nil {
		return nil, fmt.Errorf("speculate: the drafter's new sequence: %w", err)
	}
	d.Resume(state, s.committed, s.state, s.committed)
	return &Kept{s.loop, d, state, slices.Clone(s.text[:s.committed])}, nil
}

// NewKept returns an empty Kept of a drafter, and the cache for its rows, to be read from files: row i depends on the
// tokens up to i+1. Both are nil if files cannot keep the drafter's rows. The loop must not step meanwhile.
func (l *Loop) NewKept(d draft.Drafter) (k *Kept, rows *nn.Cache, err error) {
	r, ok := d.(sequence.Reader)
	if !ok || l.broken[d] {
		return nil, nil, nil
	}
	defer func() { l.blame(d, err) }()
	defer par.Recover("speculate: the drafter's new sequence", &err)
	state, err := d.Begin(draft.Options{})
	if err != nil {
		return nil, nil, err
	}
	k = &Kept{loop: l, drafter: d, state: state}
	if text := r.TextOf(state); text.IsPlain() {
		return k, text.Cache, nil
	}
	k.Close()
	return nil, nil, nil
}

// Adopt sets the text of the rows that were put into the cache of NewKept; it has one token more than rows.
func (k *Kept) Adopt(text []int32) {
	k.text = text
	k.drafter.(sequence.Reader).TextOf(k.state).Adopt()
}

// Rows returns the drafter's rows, in the form that NewKept takes and in a cache of the caller's, and the text; nil if
// files cannot keep them. k may be nil.
func (k *Kept) Rows() (*nn.Cache, []int32) {
	if k == nil {
		return nil, nil
	}
	if r, ok := k.drafter.(sequence.Reader); ok {
		if text := r.TextOf(k.state); text.IsPlain() && text.Cache.Len() > 0 {
			return text.Cache.Fork(), k.text
		}
	}
	return nil, nil
}

// Close frees what k holds. k may be nil.
func (k *Kept) Close() {
	if k != nil {
		k.loop.blame(k.drafter, closeState(k.state))
	}
}

// CommonPrefix returns how many tokens at the beginning of both texts are the same.
func CommonPrefix(a, b []int32) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// resume prepares the drafter for a text that begins with the rows in the cache. Rows whose taps the drafter needs are
// dropped from the cache, and computed again with the rest of the prompt, unless the controller says that this costs
// more than it gains, or rows before them were freed. In those cases the drafter's text begins after the cache.
func (s *Sequence) resume() (err error) {
	defer par.Recover("speculate: the drafter's new sequence", &err)
	l := s.loop
	d := s.group.drafter
	n := s.cache.Len()
	s.skipped = s.turn.Skips(l.control)
	if s.skipped || n == 0 {
		return nil
	}
	var from draft.State
	same := 0
	if k := s.r.Kept; k != nil {
		if k.drafter != d {
			return fmt.Errorf("speculate: Kept is of another drafter: want what a sequence of this drafter kept")
		}
		from, same = k.state, CommonPrefix(k.text, s.text)
	}
	first := d.Resume(s.state, n, from, same)
	if first == n {
		return nil
	}
	tokens := cmp.Or(s.r.MaxTokens, l.o.Context)
	if s.cache.Reach(first) != first || !s.turn.Recalls(l.control, n-first, tokens, s.group.sequences) {
		return nil
	}
	return s.cache.Truncate(first)
}

// behind reports whether the cache has rows that the drafter has not received.
func (s *Sequence) behind() bool { return s.state != nil && s.committed < s.cache.Len() }

// tell passes rows that came with a cache to the drafters, one chunk of each sequence. Sequences
// with more such rows stay behind, and take no further part in the step.
func (l *Loop) tell(ctx context.Context, sequences []*Sequence) error {
	all := true // no sequence can take part
	for _, s := range sequences {
		if s.finish != Running || !s.behind() {
			all = all && s.finish != Running
			continue
		}
		to := min(s.cache.Len(), s.committed+l.o.Chunk)
		all = all && to < s.cache.Len()
		s.group.commits = append(s.group.commits, draft.Rows{State: s.state,
			Tokens: slices.Clip(s.text[s.committed:to]), Next: -1, Skip: s.skipped})
	}
	for _, g := range l.groups {
		if len(g.commits) == 0 {
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		err := g.commit(l.now)
		l.blame(g.drafter, err)
		for _, s := range sequences {
			if s.group != g || s.finish != Running || !s.behind() {
				continue
			}
			s.fail(err)
			s.committed = min(s.cache.Len(), s.committed+l.o.Chunk)
			if s.behind() {
				s.stats.Prefill += g.committing
			}
		}
		if all {
			l.stats.Prefill += g.committing
		}
		g.commits, g.committing = g.commits[:0], 0
	}
	return nil
}
