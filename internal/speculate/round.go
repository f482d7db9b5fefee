// One sequence's part in a step.

package speculate

import (
	"fmt"
	"slices"
	"time"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/kernels/par"
)

// prepareChunk lays out the next rows of the prompt, at most most, and returns their number.
func (s *Sequence) prepareChunk(most int) int {
	have := s.cache.Len()
	if s.r.PromptLogits {
		most = min(most, s.loop.plan.LogitRows)
	}
	s.prefilling = true
	s.origin = s.origin[:0]
	s.tree.ResetChain(s.text[have:min(have+most, s.prompt)])
	s.turn.Prompt, s.turn.Rows = true, s.tree.Len()
	return s.turn.Rows
}

// prepareRound lays out the sequence's root.
func (s *Sequence) prepareRound() {
	s.prefilling = false
	s.origin = s.origin[:0]
	s.tree.Reset(s.text[s.cache.Len()])
	s.depth = s.room() - 1 // a round emits one more token than its path has levels
	s.turn.Prompt = false
	s.turn.Rows = 1
	s.turn.Depth = s.depth
}

// ask requests a tree under the root, if the plan wants one.
func (s *Sequence) ask() {
	s.request = -1
	if s.turn.Asked {
		g := s.group
		s.request = len(g.requests)
		g.requests = append(g.requests, draft.Request{
			State: s.state, Tree: s.tree, Budget: s.turn.Nodes, Depth: s.depth, Guide: s.turn.Guide(), Cache: s.cache,
		})
	}
}

// room returns how many tokens may still be emitted.
func (s *Sequence) room() int {
	room := s.loop.o.Context - len(s.text)
	if s.r.MaxTokens > 0 {
		room = min(room, s.r.MaxTokens-(len(s.text)-s.prompt))
	}
	return room
}

// tryPrepare prepares the tree for the pass: it checks the drafter's proposal and applies the grammar.
func (s *Sequence) tryPrepare() (err error) {
	defer func() { s.loop.panicked(err) }()
	defer par.Recover("speculate: the sequence's tree", &err)
	if err := s.settle(); err != nil || s.prefilling {
		return err
	}
	s.restrict()
	return nil
}

// settle checks the drafter's proposal, and cuts it down to what was requested.
func (s *Sequence) settle() error {
	if s.request < 0 {
		return nil
	}
	if err := s.tree.Check(s.loop.target.Vocab()); err != nil {
		return fmt.Errorf("speculate: the drafter's proposal: %w", err)
	}
	if root := s.text[len(s.text)-1]; s.tree.Token[0] != root {
		return fmt.Errorf("speculate: the drafter's proposal: its root is token %d: want %d, the last of the text",
			s.tree.Token[0], root)
	}
	p := &s.group.proposals[s.request]
	s.turn.Levels, s.turn.Drawn = p.Levels, p.Drawn != nil
	r := &s.group.requests[s.request]
	if s.tree.Len() > r.Budget || s.tree.MaxDepth() > r.Depth {
		if s.turn.Drawn { // keep the nodes drawn first: choosing by value would change the distribution
			s.asked = s.asked[:0]
			for i := 0; i < s.tree.Len() && len(s.asked) < r.Budget; i++ {
				if int(s.tree.Depth[i]) <= r.Depth {
					s.asked = append(s.asked, int32(i))
				}
			}
			s.pick(s.asked)
		} else {
			s.index = s.tree.Sub(s.cut, nil, r.Budget, r.Depth, s.index)
			s.tree, s.cut = s.cut, s.tree
		}
	}
	s.proposed = s.tree.Len() - 1
	return nil
}

// trim cuts the tree down to the nodes that the plan kept.
func (s *Sequence) trim() {
	if nodes := s.turn.Kept; len(nodes) > 0 && len(nodes) < s.tree.Len() {
		s.form.drafted, _ = slices.BinarySearch(nodes, int32(s.form.drafted))
		s.pick(nodes)
	}
}

// pick cuts the tree down to some nodes. For a drawn tree it records their numbers in the drafter's tree.
func (s *Sequence) pick(nodes []int32) {
	if s.turn.Drawn {
		if len(s.origin) == 0 {
			s.origin = append(s.origin, nodes...)
		} else {
			for to, from := range nodes {
				s.origin[to] = s.origin[from]
			}
			s.origin = s.origin[:len(nodes)]
		}
	}
	s.index = s.tree.Pick(s.cut, nodes, s.index)
	s.tree, s.cut = s.cut, s.tree
}

// list notes the nodes whose logits are wanted.
func (s *Sequence) list() {
	first, rows := 0, s.tree.Len()
	switch {
	case !s.prefilling || s.r.PromptLogits:
	case s.cache.Len()+rows == s.prompt:
		first = rows - 1
	default:
		first = rows
	}
	s.asked = appendFrom(s.asked[:0], first, rows)
}

// appendFrom appends the numbers from first to below end.
func appendFrom(dst []int32, first, end int) []int32 {
	for i := first; i < end; i++ {
		dst = append(dst, int32(i))
	}
	return dst
}

// tryAccept is accept, with panics of the caller's functions as errors of the sequence.
func (s *Sequence) tryAccept(number int) (err error) {
	defer func() { s.loop.panicked(err) }()
	defer par.Recover("speculate: the sequence's acceptance", &err)
	return s.accept(number)
}

// accept takes the pass's results; number is the sequence's number in the pass. It emits tokens,
// commits rows, and records the commit for the drafter. From the root on, the rule chooses the
// target's token at each node, and the walk goes on as long as a child carries it.
func (s *Sequence) accept(number int) error {
	l := s.loop
	s.walk.Start(s.tree)
	s.path = s.path[:0]
	next := int32(-1)
	if s.prefilling {
		s.path = appendFrom(s.path, 0, s.tree.Len())
	} else {
		if r, ok := s.rule.(*typical); ok {
			r.plan(s, func(node int) []float32 { return l.pass.Logits(number, node) })
		}
		for {
			var err error
			next, err = s.choose(l.pass.Logits(number, s.walk.Node()), s.walk.Nodes())
			if err != nil {
				return err
			}
			if s.finish != Running || !s.walk.Follow(next) {
				break
			}
		}
		s.path = s.tree.Path(s.walk.Node(), s.path)
		s.count()
	}
	if err := s.cache.Commit(s.path); err != nil {
		return err
	}
	from := s.cache.Len() - len(s.path)
	if s.state != nil {
		s.skipped = s.turn.Skips(l.control)
		s.group.commits = append(s.group.commits, draft.Rows{
			State: s.state, Tokens: slices.Clip(s.text[from:s.cache.Len()]),
			Tree: s.tree, Nodes: s.path, Next: next,
			Pass: &s.group.view, Sequence: number, Skip: s.skipped,
		})
	}
	if s.prefilling && s.r.PromptLogits {
		for i := range s.asked {
			if place := from + i + 1; place < s.prompt {
				s.r.Logits(place, s.text[place], l.pass.Logits(number, i))
			}
		}
	}
	if s.prefilling && s.cache.Len() == s.prompt { // its last row gives the first token
		s.cache.KeepState()
		if _, err := s.choose(l.pass.Logits(number, len(s.asked)-1), nil); err != nil {
			return err
		}
		l.delta = Stats{Tokens: 1, Depths: l.delta.Depths[:0]}
		s.stats.Add(&l.delta)
		l.stats.Add(&l.delta)
	}
	return nil
}

// choose emits the target's own token. nodes are the tree's nodes that the walk stands on.
func (s *Sequence) choose(logits []float32, nodes []int32) (int32, error) {
	var token int32
	var err error
	if s.r.Grammar != nil {
		token, err = s.chooseAllowed(logits, nodes)
	} else {
		token, err = s.rule.next(s, logits, nodes)
	}
	if err != nil {
		return 0, err
	}
	if s.r.Logits != nil {
		s.r.Logits(len(s.text), token, logits)
	}
	s.emit(token)
	return token, nil
}

// emit adds a token to the text and checks whether it is the last.
func (s *Sequence) emit(token int32) {
	s.text = append(s.text, token)
	s.fresh++
	s.history.Push(token)
	switch {
	case s.r.End != nil && s.r.End(token):
		s.finish = End
	case s.r.Stop != nil && s.r.Stop(token), s.form.path != nil && s.form.path.Complete():
		s.finish = Stop
	case s.r.MaxTokens > 0 && len(s.text)-s.prompt >= s.r.MaxTokens:
		s.finish = Length
	case len(s.text) >= s.loop.o.Context:
		s.finish = Context
	}
}

// count adds the round to the statistics.
func (s *Sequence) count() {
	l := s.loop
	d := &l.delta
	*d = Stats{Depths: d.Depths[:0], Rounds: 1, Tokens: s.fresh, Committed: s.fresh, Proposed: s.proposed,
		Drafted: s.tree.Len() - 1, Accepted: len(s.path) - 1}
	if s.state != nil && d.Drafted == 0 {
		d.Plain = 1
	}
	for _, depth := range s.tree.Depth[1:] {
		at := d.at(int(depth) - 1)
		at.Drafted, at.Offered = at.Drafted+1, 1
	}
	for i := range s.path[1:] {
		at := d.at(i)
		at.Accepted, at.Tried = 1, 1
	}
	parents := s.tree.Parent
	if s.finish == Running && slices.ContainsFunc(s.walk.Nodes(), func(n int32) bool { return slices.Contains(parents, n) }) {
		d.at(len(s.path) - 1).Tried = 1 // and rejected
	}
	s.stats.Add(d)
	l.stats.Add(d)
	s.countForced()
}

// clock records when tokens arrived.
func (s *Sequence) clock(now time.Time) {
	if s.fresh == 0 {
		return
	}
	if s.first.IsZero() {
		s.first = now
		s.stats.First = now.Sub(s.started)
	}
	s.stats.Decode = now.Sub(s.first)
}
