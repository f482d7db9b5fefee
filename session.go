package grove

import (
	"context"
	"iter"
	"slices"
	"sync/atomic"

	"github.com/grovellm/grove/speculate"
	"github.com/grovellm/grove/tokenizer"
)

// Session is a place for generations that follow each other, such as the turns of a conversation: what the
// next prompt has in common with the last prompt and its answer is not computed again, neither by the
// model nor by a drafter that read it. The tokens are the same as without a session. One generation
// uses it at a time.
type Session struct {
	m     *Model
	cache speculate.Cache
	text  []int32 // what the cache holds
	loops map[method]*lane
	busy  atomic.Bool
}

// lane is a loop of the session, and what its drafter computed of the last text that it drafted.
type lane struct {
	*speculate.Loop
	kept *speculate.Kept
}

// NewSession returns an empty session. Close it to give its memory back to the model.
func (m *Model) NewSession() *Session { return &Session{m: m} }

// Close gives the session's memory back. No generation may be under way.
func (s *Session) Close() {
	if s.cache != nil {
		s.cache.Free()
	}
	for _, l := range s.loops {
		l.kept.Close()
	}
	*s = Session{m: s.m}
}

// Generate is Model.Generate within the session.
func (s *Session) Generate(ctx context.Context, prompt string, r Request) iter.Seq2[Chunk, error] {
	return s.generateText(ctx, prompt, r, false)
}

// GenerateTokens is Model.GenerateTokens within the session.
func (s *Session) GenerateTokens(ctx context.Context, prompt []int32, r Request) iter.Seq2[Chunk, error] {
	return s.generate(ctx, prompt, r, false)
}

// generateText tokenizes and generates. once frees the session at the end.
func (s *Session) generateText(ctx context.Context, prompt string, r Request, once bool) iter.Seq2[Chunk, error] {
	return func(yield func(Chunk, error) bool) {
		tokens, err := s.m.Tokenize(prompt)
		if err != nil {
			yield(Chunk{}, err)
			return
		}
		s.generate(ctx, tokens, r, once)(yield)
	}
}

func (s *Session) generate(ctx context.Context, prompt []int32, r Request, once bool) iter.Seq2[Chunk, error] {
	return func(yield func(Chunk, error) bool) {
		if !s.busy.CompareAndSwap(false, true) {
			yield(Chunk{}, errBusy)
			return
		}
		defer s.busy.Store(false)
		if once {
			defer s.Close()
		}
		if err := s.run(ctx, prompt, r, yield); err != nil {
			yield(Chunk{}, err)
		}
	}
}

// run generates. It returns an error only while yield still wants more.
func (s *Session) run(ctx context.Context, prompt []int32, r Request, yield func(Chunk, error) bool) error {
	if err := s.m.check(prompt, &r); err != nil {
		return err
	}
	loop, err := s.loop(method{r.Drafter, r.Accept, r.Uncontrolled})
	if err != nil {
		return err
	}
	if err := s.rewind(prompt); err != nil {
		return err
	}
	out, request := s.m.request(&r)
	request.Cache, request.Kept = s.cache, loop.kept
	seq, err := loop.Start(prompt, request)
	if err != nil {
		return err
	}
	defer seq.Close()
	defer func() {
		s.text = append(s.text[:0], seq.Text()[:s.cache.Len()]...)
		if kept, err := seq.Keep(); err == nil && kept != nil {
			loop.kept.Close()
			loop.kept = kept
		}
	}()

	for one := []*speculate.Sequence{seq}; ; {
		if err := loop.Step(ctx, one); err != nil {
			return err
		}
		if err := seq.Err(); err != nil {
			return err
		}
		if len(seq.Fresh()) == 0 {
			continue // a part of the prompt
		}
		c := Chunk{Tokens: slices.Clone(seq.Fresh())}
		if t, path := seq.Round(); t != nil {
			c.Drafted = len(path) - 1
			if r.OnRound != nil {
				r.OnRound(Round{Tree: t, Path: path, Next: c.Tokens[len(c.Tokens)-1], Budget: seq.Budget(), Stats: seq.Stats()})
			}
		}
		if seq.Finish() != speculate.Running {
			c.Result = result(seq, out)
		}
		c.Text, c.Pieces = out.take(c.Drafted)
		if !yield(c, nil) || c.Result != nil {
			return nil
		}
	}
}

// method is how a request wants to be decoded.
type method struct {
	drafter      string
	accept       string
	uncontrolled bool
}

// loop returns the session's loop for a method, made when first asked for.
func (s *Session) loop(how method) (*lane, error) {
	if l := s.loops[how]; l != nil {
		return l, nil
	}
	d, err := s.m.drafter(how.drafter)
	if err != nil {
		return nil, err
	}
	l, err := speculate.New(speculate.Model(s.m.m), d, s.m.drafting.options(how))
	if err != nil {
		return nil, err
	}
	if s.loops == nil {
		s.loops = map[method]*lane{}
	}
	s.loops[how] = &lane{Loop: l}
	return s.loops[how], nil
}

// rewind cuts the cache down to what it has in common with the prompt.
func (s *Session) rewind(prompt []int32) error {
	if s.cache == nil {
		s.cache = speculate.Model(s.m.m).NewCache()
	}
	n := 0
	for n < len(prompt) && n < len(s.text) && prompt[n] == s.text[n] {
		n++
	}
	s.text = s.text[:n]
	return s.cache.Truncate(n)
}

// check refuses requests that this model cannot serve.
func (m *Model) check(prompt []int32, r *Request) error {
	if err := r.validate(); err != nil {
		return err
	}
	vocab := m.m.Config.Vocab
	for _, f := range []struct {
		name   string
		tokens []int32
	}{{"Prompt", prompt}, {"PredictTokens", r.PredictTokens}} {
		for i, token := range f.tokens {
			if token < 0 || int(token) >= vocab {
				return optionf(f.name, "token %d is %d: this model's go from 0 to %d", i, token, vocab-1)
			}
		}
	}
	for token := range r.Sampling.LogitBias {
		if int(token) >= vocab {
			return optionf("Sampling.LogitBias", "token %d: this model's tokens go from 0 to %d", token, vocab-1)
		}
	}
	switch {
	case len(prompt) == 0:
		return optionf("Prompt", "it has no tokens: give some text")
	case len(prompt) >= m.Context():
		return &ContextError{Need: len(prompt) + 1, Limit: m.Context()}
	case r.Predict != "" && r.PredictTokens != nil:
		return optionf("Predict", "PredictTokens is set as well: give one of them")
	case m.m.Tokenizer == nil && (len(r.Stop) > 0 || r.Predict != ""):
		return errNoTokenizer
	}
	return nil
}

// request is r as the loop takes it, and where its tokens become text.
func (m *Model) request(r *Request) (*output, speculate.Request) {
	out := &output{stopper: stopper{stops: r.Stop}}
	q := speculate.Request{Sampling: r.Sampling, MaxTokens: r.MaxTokens, Budget: r.Budget, Stop: out.push, Predicted: r.PredictTokens}
	if t := m.m.Tokenizer; t != nil {
		out.decoder = t.NewDecoder(tokenizer.DecodeOptions{Continue: true})
		if !r.IgnoreEnd {
			q.End = t.IsEOG
		}
		if r.Predict != "" {
			q.Predicted = t.Encode(r.Predict, tokenizer.EncodeOptions{})
		}
	}
	return out, q
}

// result is what a sequence that is done came to.
func result(seq *speculate.Sequence, out *output) *Result {
	r := &Result{Tokens: slices.Clone(seq.Output()), Finish: seq.Finish(), Stats: *seq.Stats()}
	r.Stats.Depths = slices.Clone(r.Stats.Depths)
	if r.Finish != FinishStop && out.flush() {
		r.Finish = FinishStop
	}
	r.Stop = out.stopper.found
	r.Text = out.all.String()
	return r
}
