// What a drafter has of a prefix: taken over from another sequence, or made again.

package speculate

import (
	"context"
	"fmt"
	"slices"

	"github.com/grovellm/grove/draft"
)

// Kept is what a loop's drafter computed of a text, for sequences of that loop whose prompts begin
// like it.
type Kept struct {
	loop  *Loop
	state draft.State
	text  []int32
}

// Keep returns what the drafter computed of the sequence's text so far, nil where the drafter
// shares nothing. It shares memory with the sequence and may outlive it. The caller closes it.
func (s *Sequence) Keep() (*Kept, error) {
	l := s.loop
	if _, ok := l.drafter.(draft.Resumer); !ok || s.state == nil || s.behind() {
		return nil, nil
	}
	state, err := l.drafter.Begin(draft.Options{})
	if err != nil {
		return nil, fmt.Errorf("speculate: the drafter's new sequence: %w", err)
	}
	draft.Resume(l.drafter, state, s.told, s.state, s.told)
	return &Kept{l, state, slices.Clone(s.text[:s.told])}, nil
}

// Close gives back what k holds. k may be nil.
func (k *Kept) Close() {
	if k != nil {
		k.state.Close()
	}
}

// common is the number of tokens at the beginning of both texts that are the same.
func common(a, b []int32) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// resume prepares the drafter for a text that begins with the rows in the cache. Rows whose taps
// the drafter needs are dropped from the cache, and computed again with the rest of the prompt; not
// where they are more than the tokens to come, which could not make up for the time.
func (s *Sequence) resume() error {
	l, n := s.loop, s.cache.Len()
	if s.skipped = l.plan.skips(s); s.skipped || n == 0 {
		return nil
	}
	var from draft.State
	same := 0
	if k := s.r.Kept; k != nil {
		if k.loop != l {
			return fmt.Errorf("speculate: Kept is of another loop: want what a sequence of this loop kept")
		}
		from, same = k.state, common(k.text, s.text)
	}
	first := draft.Resume(l.drafter, s.state, n, from, same)
	if s.r.MaxTokens > 0 && n-first > s.r.MaxTokens {
		return nil
	}
	return s.cache.Truncate(first)
}

// behind reports whether there are rows in the cache that the drafter has not been told of.
func (s *Sequence) behind() bool { return s.state != nil && s.told < s.cache.Len() }

// tell tells the drafter of rows that came with a cache, a chunk of each sequence's. Sequences that
// have more such rows take no further part in the step.
func (l *Loop) tell(ctx context.Context) error {
	l.commits = l.commits[:0]
	for _, s := range l.live {
		if s.behind() {
			to := min(s.cache.Len(), s.told+l.o.Chunk)
			l.commits = append(l.commits, draft.Rows{State: s.state, Tokens: s.text[s.told:to], Next: -1, Skip: s.skipped})
		}
	}
	if len(l.commits) == 0 {
		return nil
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	began := l.now()
	if err := l.drafter.Commit(l.commits); err != nil {
		return fmt.Errorf("speculate: the drafter's commit: %w", err)
	}
	took := l.now().Sub(began)
	l.live = slices.DeleteFunc(l.live, func(s *Sequence) bool {
		if !s.behind() {
			return false
		}
		s.told = min(s.cache.Len(), s.told+l.o.Chunk)
		if s.behind() {
			s.stats.Prefill += took
		}
		return s.behind()
	})
	if len(l.live) == 0 {
		l.stats.Prefill += took
	}
	l.commits = l.commits[:0]
	return nil
}
