package speculate

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/grammar"
	"github.com/grovellm/grove/internal/speculate/control"
	"github.com/grovellm/grove/internal/speculate/walk"
	"github.com/grovellm/grove/sample"
	"github.com/grovellm/grove/tree"
)

// Request describes a sequence.
type Request struct {
	Sampling  sample.Params
	MaxTokens int // tokens to emit at most; 0: until the context is full

	// How to speculate; what is not given is the loop's.
	Drafter      draft.Drafter
	Name         string // under which the Controller keeps what it learns of the drafter
	Budget       int    // nodes of a tree at most, root included; 1: plain decoding
	Accept       string // acceptance rule, Coupled or Rejection
	Uncontrolled bool   // every round drafts and verifies as much as the budget allows

	// End reports the tokens that end a text, such as the model's end-of-text token. Stop is asked
	// after each token emitted, in order, and ends the sequence with that token by returning true;
	// what was accepted beyond it is never emitted nor cached. Either may be nil.
	End, Stop func(token int32) bool

	// Logits, where given, is called with each token of the output, its place in the text, and the
	// logits that it was chosen from. With PromptLogits the same goes for the tokens of the prompt
	// from the second on, and Cache is empty. The slice lasts for the call.
	Logits       func(place int, token int32, logits []float32)
	PromptLogits bool

	// Grammar, where given, says which tokens the output may have: all others count as minus infinity before anything
	// else is done with logits. The tokens that End knows have no text in its vocabulary, and are allowed where the
	// grammar's text may end. The sequence ends with Stop where the grammar allows no more. The last Written tokens
	// of the prompt are output of an earlier sequence.
	Grammar *grammar.Constraint
	Written int

	Predicted []int32      // text that much of the output is expected to repeat; see draft.Options
	Memory    draft.Memory // texts of the past, which it may repeat too; may be nil

	// Cache, where given, holds rows of the prompt's beginning already, and stays the caller's. The target must have
	// made it. Kept is what the drafter computed of a text that begins like the prompt (Sequence.Keep), and stays the
	// caller's too. Without it the last of those rows are computed again if the drafter needs them.
	Cache Cache
	Kept  *Kept
}

// Finish says why a sequence is done.
type Finish string

const (
	Running Finish = ""        // it is not
	End     Finish = "end"     // a token that Request.End knows
	Stop    Finish = "stop"    // Request.Stop
	Length  Finish = "length"  // Request.MaxTokens
	Context Finish = "context" // the context is full
	Failed  Finish = "failed"  // see Sequence.Err
)

// Sequence is one text in the making.
type Sequence struct {
	loop    *Loop
	r       Request
	sampler *sample.Sampler
	history *sample.History // nil where no penalty looks at it
	cache   Cache
	group   *group      // of its drafter; nil: decoded plainly
	state   draft.State // the drafter's
	rule    rule
	form    form // of its grammar

	text      []int32 // prompt and output
	prompt    int     // length of the prompt
	fresh     int     // how many of text's last tokens came with the last step
	committed int     // rows that the drafter has been told of
	finish    Finish
	err       error
	stats     Stats

	step       int  // the loop's last step that it was listed in
	prefilling bool // that step computed rows of the prompt
	request    int  // its place among the group's requests, -1 for none
	depth      int  // of nodes that could still be emitted
	tree, cut  *tree.Tree
	index      []int32
	asked      []int32 // nodes whose logits are wanted
	walk       walk.Walk
	path       []int32 // nodes of the last round that were accepted, the root first
	origin     []int32 // of a drawn tree that was cut: its nodes' numbers in the drafter's

	turn     control.Turn // what the controller is told of it and decides
	proposed int          // nodes proposed in the step
	skipped  bool         // the drafter did not read the last rows

	started, first time.Time
}

// Start makes a sequence of a prompt, which must have a token and leave room for one in the context.
func (l *Loop) Start(prompt []int32, r Request) (*Sequence, error) {
	context, vocab := l.o.Context, l.target.Vocab()
	switch {
	case len(prompt) == 0:
		return nil, fmt.Errorf("speculate: the prompt has no tokens: give it at least one, such as the beginning-of-text token")
	case len(prompt) > context || len(prompt) == context && r.MaxTokens != 1: // the last token takes no place
		return nil, fmt.Errorf("speculate: the prompt has %d tokens and the context %d: shorten it, or open the model with a larger context", len(prompt), context)
	case r.PromptLogits && (r.Logits == nil || r.Cache != nil && r.Cache.Len() > 0):
		return nil, fmt.Errorf("speculate: PromptLogits is set: give Logits too, and no Cache with rows")
	case r.Written < 0 || r.Written > len(prompt):
		return nil, fmt.Errorf("speculate: Written is %d: want 0 to %d, the tokens of the prompt", r.Written,
			len(prompt))
	case r.MaxTokens < 0:
		return nil, fmt.Errorf("speculate: MaxTokens is %d: want 1 or more, or 0 for as many as the context holds",
			r.MaxTokens)
	}
	for _, part := range []struct {
		name   string
		tokens []int32
	}{{"the prompt", prompt}, {"Predicted", r.Predicted}} {
		for i, token := range part.tokens {
			if token < 0 || int(token) >= vocab {
				return nil, fmt.Errorf("speculate: token %d of %s is %d: want 0 to %d", i, part.name, token, vocab-1)
			}
		}
	}
	if r.Cache != nil {
		if err := l.target.CheckCache(r.Cache); err != nil {
			return nil, err
		}
	}
	sampler, err := sample.New(r.Sampling, vocab)
	if err != nil {
		return nil, err
	}
	r.Budget = cmp.Or(r.Budget, l.o.Budget)
	asked := r.Accept
	r.Accept = cmp.Or(r.Accept, l.o.Accept)
	if r.Accept == Typical && (asked != "" || r.Grammar != nil) {
		return nil, fmt.Errorf("speculate: the acceptance rule %s changes what is generated, and is for measurements without a grammar: want %s or %s",
			Typical, Coupled, Rejection)
	}
	if err := checkMethod(r.Budget, r.Accept); err != nil {
		return nil, err
	}
	if r.Drafter == nil {
		r.Drafter = l.drafter
	}
	r.Uncontrolled = r.Uncontrolled || l.o.Uncontrolled
	s := &Sequence{
		loop: l, r: r, sampler: sampler, cache: r.Cache,
		text: slices.Clone(prompt), prompt: len(prompt),
		tree: tree.New(0), cut: tree.New(0), rule: l.coupled,
		turn:    control.Turn{Uncontrolled: r.Uncontrolled, Budget: r.Budget},
		started: l.now(),
	}
	if r.Sampling.Temperature > 0 {
		s.turn.Class = control.Coupled
		switch r.Accept {
		case Rejection:
			s.turn.Class, s.rule = control.Rejecting, l.rejection
		case Typical:
			s.rule = l.typical
		}
	}
	if err := s.beginGrammar(); err != nil {
		return nil, err
	}
	if s.cache != nil && s.cache.Len() >= len(prompt) { // the last row's logits are wanted: compute it again
		if err := s.cache.Truncate(s.cache.Reach(len(prompt) - 1)); err != nil {
			return nil, err
		}
	}
	s.history = sample.NewHistory(&r.Sampling)
	for _, token := range prompt {
		s.history.Push(token)
	}
	if r.Drafter != nil && r.Budget > 1 && !l.broken[r.Drafter] {
		s.group = l.join(r.Drafter, r.Name)
		s.turn.Group = s.group.control
		drafting := r.Sampling
		if s.rule == l.typical { // what is accepted is probable, whatever the noise chooses
			drafting.Temperature = 0
		}
		if s.state, err = beginState(r.Drafter, draft.Options{
			Sampling: drafting, Predicted: r.Predicted, Memory: r.Memory, Sampled: s.turn.Class == control.Rejecting,
			Seed: drawSeed(r.Sampling.Seed),
		}); err != nil {
			l.leave(s.group)
			l.blame(r.Drafter, err)
			return nil, err
		}
	}
	if s.cache == nil {
		s.cache = l.target.NewCache()
	} else if s.state != nil {
		if err := s.resume(); err != nil {
			l.blame(r.Drafter, err)
			s.Close()
			return nil, err
		}
	}
	s.stats = Stats{Prompt: len(prompt), Reused: s.cache.Len()}
	l.stats.Add(&s.stats)
	return s, nil
}

// Ender is a draft.State that wants to know what its sequence came to. Ended is called before Close.
type Ender interface{ Ended(*Stats) }

// Close gives back what the sequence holds; a cache that came with the request stays the caller's.
func (s *Sequence) Close() {
	if s.loop == nil {
		return
	}
	if s.state != nil {
		s.loop.blame(s.group.drafter, s.endState())
	}
	if s.group != nil {
		s.loop.leave(s.group)
	}
	if s.r.Cache == nil && s.cache != nil {
		s.cache.Free()
	}
	s.loop = nil
	s.group = nil
	s.state = nil
	s.cache = nil
}

// fail ends the sequence with an error, if there is one.
func (s *Sequence) fail(err error) {
	if err != nil && s.err == nil {
		s.err, s.finish = err, Failed
	}
}

// Err is what ended a sequence that Failed.
func (s *Sequence) Err() error { return s.err }

// Text is prompt and output. It may change with the next step, as what the next methods return may.
func (s *Sequence) Text() []int32 { return s.text }

// Output is what has been emitted so far.
func (s *Sequence) Output() []int32 { return s.text[s.prompt:] }

// Fresh is what the last step emitted: nothing while the prompt is being read, then one token, then those of a round.
// In a round all but the last were drafted nodes; the last was too if the sequence ended on it and it had a node.
func (s *Sequence) Fresh() []int32 { return s.text[len(s.text)-s.fresh:] }

// Finish says whether the sequence is done, and why.
func (s *Sequence) Finish() Finish { return s.finish }

// Prefilling reports whether the last step read a part of the prompt.
func (s *Sequence) Prefilling() bool { return s.prefilling }

// Stats are the sequence's own.
func (s *Sequence) Stats() *Stats { return &s.stats }

// Cache holds the rows of Text but for its last token, once the prompt has been read.
func (s *Sequence) Cache() Cache { return s.cache }

// LimitTrees bounds the nodes of trees from the next step on: 1, for plain decoding, to Request.Budget.
func (s *Sequence) LimitTrees(nodes int) { s.turn.Budget = max(1, min(nodes, s.r.Budget)) }

// Budget is how many nodes the controller allowed the last round's tree, root included: 1 where it decoded plainly.
func (s *Sequence) Budget() int { return s.turn.Nodes }

// Round is the tree that the last step verified and the nodes of it that were accepted, the root
// first; nil while the prompt is being read.
func (s *Sequence) Round() (t *tree.Tree, path []int32) {
	if s.prefilling || s.fresh == 0 {
		return nil, nil
	}
	return s.tree, s.path
}
