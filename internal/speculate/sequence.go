package speculate

import (
	"cmp"
	"fmt"
	"maps"
	"math"
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
	MinTokens int // tokens to emit before one that End accepts can be chosen

	// How to speculate; zero values mean the loop's.
	Drafter      draft.Drafter
	Name         string // the name under which the Controller keeps what it learns about the drafter
	Budget       int    // most nodes of a tree, root included; 1: plain decoding
	Accept       string // acceptance rule, Coupled or Rejection
	Uncontrolled bool   // every round drafts and verifies as much as the budget allows

	// End reports whether a token ends a text, such as the model's end-of-text token. Stop is called
	// with each emitted token, in order, and ends the sequence after that token by returning true.
	// Tokens accepted beyond it are neither emitted nor cached. Either may be nil.
	End, Stop func(token int32) bool

	// Logits, if not nil, is called with each token of the output, its place in the text, and the
	// logits that it was chosen from. With PromptLogits it is also called with the prompt's tokens
	// from the second on, and Cache must be empty. The slice is valid during the call.
	Logits       func(place int, token int32, logits []float32)
	PromptLogits bool

	// Grammar, if not nil, says which tokens the output may have: the logits of all others become minus infinity before
	// anything else is done with them. Tokens that End accepts have no text in the grammar's vocabulary. They are
	// allowed where the grammar's text may end. The sequence ends with Stop where the grammar allows no more. The last
	// Written tokens of the prompt are output of an earlier sequence.
	Grammar *grammar.Constraint
	Written int

	Predicted []int32      // text that much of the output is expected to repeat; see draft.Options
	Memory    draft.Memory // past texts that the output may repeat too; may be nil

	// Cache, if not nil, already has rows of the prompt's beginning, and stays the caller's. The target must have made
	// it. Kept is what the drafter computed of a text that begins like the prompt (Sequence.Keep). It stays the
	// caller's too. Without it the last of those rows are computed again if the drafter needs them.
	Cache Cache
	Kept  *Kept
}

// Finish says why a sequence is done.
type Finish string

const (
	Running Finish = ""        // it is not
	End     Finish = "end"     // a token that Request.End accepts
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
	early   *sample.Sampler // before MinTokens: chooses no token that ends the text; nil: there are none
	history *sample.History // nil if no penalty uses it
	cache   Cache
	group   *group      // of its drafter; nil: decoded plainly
	state   draft.State // the drafter's
	rule    rule
	form    form // of its grammar

	text      []int32 // prompt and output
	prompt    int     // length of the prompt
	fresh     int     // how many of text's last tokens came with the last step
	committed int     // rows that the drafter has received
	finish    Finish
	err       error
	stats     Stats

	step       int  // the loop's last step that it was listed in
	prefilling bool // that step computed rows of the prompt
	request    int  // its place among the group's requests, -1 for none
	depth      int  // of the deepest node that could still be emitted
	tree, cut  *tree.Tree
	index      []int32
	asked      []int32 // nodes whose logits are wanted
	walk       walk.Walk
	path       []int32 // nodes of the last round that were accepted, the root first
	origin     []int32 // of a drawn tree that was cut: its nodes' numbers in the drafter's tree

	turn     control.Turn // the controller's inputs and decisions
	proposed int          // nodes proposed in the step
	skipped  bool         // the drafter did not read the last rows

	started, first time.Time
}

// Start makes a sequence from a prompt, which must have a token and leave room for one in the context.
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
	early, err := earlySampler(&r, vocab)
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
		loop: l, r: r, sampler: sampler, early: early, cache: r.Cache,
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
	if s.cache != nil && s.cache.Len() >= len(prompt) { // compute the last row again: its logits are wanted
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
		if s.rule == l.typical { // accepted tokens are probable ones, whatever the noise chooses
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

// earlySampler returns the sampler of the first MinTokens tokens, or nil if no token is forbidden there.
func earlySampler(r *Request, vocab int) (*sample.Sampler, error) {
	if r.MinTokens == 0 || r.End == nil {
		return nil, nil
	}
	p := r.Sampling
	p.LogitBias = map[int32]float32{}
	maps.Copy(p.LogitBias, r.Sampling.LogitBias)
	for token := range int32(vocab) {
		if r.End(token) {
			p.LogitBias[token] = float32(math.Inf(-1))
		}
	}
	return sample.New(p, vocab)
}

// nextSampler returns the sampler of the next token.
func (s *Sequence) nextSampler() *sample.Sampler {
	if s.early != nil && len(s.text)-s.prompt+s.r.Written < s.r.MinTokens {
		return s.early
	}
	return s.sampler
}

// Ender is a draft.State that wants its sequence's final statistics. Ended is called before Close.
type Ender interface{ Ended(*Stats) }

// Close frees what the sequence holds. A cache that came with the request stays the caller's.
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

// Err returns the error that ended a sequence whose Finish is Failed.
func (s *Sequence) Err() error { return s.err }

// Text returns prompt and output. It may change with the next step, as may the results of the methods below.
func (s *Sequence) Text() []int32 { return s.text }

// Output returns the tokens emitted so far.
func (s *Sequence) Output() []int32 { return s.text[s.prompt:] }

// Fresh returns the tokens of the last step: none while the prompt is being read, then one, then those of a round. In a
// round all but the last were drafted nodes. So was the last if the sequence ended on it and it had a node.
func (s *Sequence) Fresh() []int32 { return s.text[len(s.text)-s.fresh:] }

// Finish returns whether the sequence is done, and why.
func (s *Sequence) Finish() Finish { return s.finish }

// Prefilling reports whether the last step read a part of the prompt.
func (s *Sequence) Prefilling() bool { return s.prefilling }

// Stats returns the sequence's own statistics.
func (s *Sequence) Stats() *Stats { return &s.stats }

// Cache returns the sequence's cache. Once the prompt has been read it has all rows of Text except the last token's.
func (s *Sequence) Cache() Cache { return s.cache }

// LimitTrees limits the nodes of trees from the next step on: from 1, for plain decoding, to Request.Budget.
func (s *Sequence) LimitTrees(nodes int) { s.turn.Budget = max(1, min(nodes, s.r.Budget)) }

// Budget returns how many nodes the controller allowed the last round's tree, root included; 1 if it decoded plainly.
func (s *Sequence) Budget() int { return s.turn.Nodes }

// Round returns the tree that the last step verified, and its accepted nodes, the root first. Both
// are nil while the prompt is being read.
func (s *Sequence) Round() (t *tree.Tree, path []int32) {
	if s.prefilling || s.fresh == 0 {
		return nil, nil
	}
	return s.tree, s.path
}
