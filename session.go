package grove

import (
	"cmp"
	"context"
	"crypto/rand"
	"iter"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/grovellm/grove/internal/callform"
	"github.com/grovellm/grove/internal/engine"
	"github.com/grovellm/grove/internal/inside"
	"github.com/grovellm/grove/internal/inside/lower"
	"github.com/grovellm/grove/internal/speculate"
	"github.com/grovellm/grove/tokenizer"
	"github.com/grovellm/grove/tree"
)

// Session is for generations that follow each other, such as the turns of a conversation. Generations of a model
// share the computed prefixes of their prompts; those of a session share only with each other, and Close drops the
// prefixes. The tokens are the same as without a session. One generation uses it at a time.
type Session struct {
	m    *Model
	name string // part of its requests' tenant
	busy atomic.Bool
}

// NewSession returns an empty session. Close it to return its memory to the model.
func (m *Model) NewSession() *Session {
	return &Session{m: m, name: "session " + rand.Text()}
}

// Close frees the session's memory. None of its generations may be running.
func (s *Session) Close() { s.m.engine.Forget(s.name) }

// Generate is Model.Generate within the session.
func (s *Session) Generate(ctx context.Context, prompt string, r Request) iter.Seq2[Chunk, error] {
	return s.alone(s.m.generateText(ctx, prompt, s.of(r)))
}

// GenerateTokens is Model.GenerateTokens within the session.
func (s *Session) GenerateTokens(ctx context.Context, prompt []int32, r Request) iter.Seq2[Chunk, error] {
	return s.alone(s.m.generate(ctx, prompt, s.of(r)))
}

// of makes a request part of the session.
func (s *Session) of(r Request) Request {
	r.session = s.name
	return r
}

// alone refuses a generation while another is running in the session.
func (s *Session) alone(chunks iter.Seq2[Chunk, error]) iter.Seq2[Chunk, error] {
	return func(yield func(Chunk, error) bool) {
		if !s.busy.CompareAndSwap(false, true) {
			yield(Chunk{}, errBusy)
			return
		}
		defer s.busy.Store(false)
		chunks(yield)
	}
}

// generateText tokenizes and generates.
func (m *Model) generateText(ctx context.Context, prompt string, r Request) iter.Seq2[Chunk, error] {
	return func(yield func(Chunk, error) bool) {
		tokens, err := m.Tokenize(prompt)
		if err != nil {
			yield(Chunk{}, err)
			return
		}
		m.generate(ctx, tokens, r)(yield)
	}
}

// generate submits a request to the engine and yields its chunks.
func (m *Model) generate(ctx context.Context, prompt []int32, r Request) iter.Seq2[Chunk, error] {
	return func(yield func(Chunk, error) bool) {
		if err := m.check(prompt, &r); err != nil {
			yield(Chunk{}, err)
			return
		}
		d, name, err := m.drafting.use(m, r.Drafter)
		if err != nil {
			yield(Chunk{}, err)
			return
		}
		constraint, err := m.constraint(&r)
		if err != nil {
			yield(Chunk{}, err)
			return
		}
		memory, leave, err := m.remembered(r.Tenant)
		if err != nil {
			yield(Chunk{}, err)
			return
		}
		defer leave()
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		r, prompt := r, slices.Clone(prompt) // the engine reads these for a while after the caller has gone
		r.PredictTokens = slices.Clone(r.PredictTokens)
		r.Sampling.LogitBias = m.biases(r.Sampling.LogitBias)
		if p := &r.Sampling; p.PenaltyLast == 0 && p.PenaltyFrom == 0 {
			p.PenaltyFrom = len(prompt)
		}
		g := &generation{m: m, r: &r, prompt: prompt, came: make(chan struct{}, 1)}
		q := engine.Request{Request: g.request(), Prompt: prompt, Priority: r.Priority,
			Tenant: cmp.Or(r.session, r.Tenant), Deadline: r.Deadline, Fresh: r.more.FreshPrompt, Private: r.session != "",
			Key: r.more.Key, Call: r.more.Call, Step: g.step, Done: g.done, Once: name == otherDrafters}
		q.Drafter = d
		q.Name = name
		if m.drafting.files != "" {
			q.Rows = name + "\n" + m.drafting.files
		}
		q.Grammar = constraint
		if memory != nil {
			q.Memory = memory.Matches
		}
		if r.more.Paced {
			q.Hold = g.holds
		}
		if err := m.engine.Submit(ctx, q); err != nil {
			yield(Chunk{}, err)
			return
		}
		g.deliver(ctx, yield)
		if memory != nil && g.delivered != nil {
			memory.add(prompt, g.delivered.Tokens)
		}
		if m.drafting.learned.due() {
			go m.saveLearned()
		}
	}
}

// biases returns a request's biases, and minus infinity for tokens that the model's files say are never sampled.
func (m *Model) biases(given map[int32]float32) map[int32]float32 {
	all := map[int32]float32{}
	maps.Copy(all, given)
	if m.m.Tokenizer != nil {
		for _, id := range lower.SpecialsOf(m.m.Tokenizer).Suppressed {
			all[id] = float32(math.Inf(-1))
		}
	}
	return all
}

// generation is one request on its way from the engine, which fills it, to the caller, who empties it.
type generation struct {
	m      *Model
	r      *Request
	prompt []int32

	// Used only by the engine's goroutine.
	out   output
	all   []int32 // emitted
	probs logprobs
	last  *delivery

	came  chan struct{} // signals that there is something new
	mu    sync.Mutex
	ready []delivery
	asked bool // the caller waits for a chunk
	ended bool
	err   error

	delivered *Result
}

// delivery is a chunk, and the round that it comes from if the caller wants to see it.
type delivery struct {
	chunk Chunk
	round *inside.Round
}

// step takes the results of an engine step.
func (g *generation) step(u *engine.Update) {
	var d delivery
	c := &d.chunk
	c.Tokens = slices.Clone(u.Tokens)
	if u.Tree != nil {
		c.Drafted = len(u.Path) - 1
		if g.r.more.OnRound != nil {
			stats := *u.Stats
			stats.Depths = slices.Clone(stats.Depths)
			d.round = &inside.Round{Tree: tree.New(0), Path: slices.Clone(u.Path), Next: c.Tokens[len(c.Tokens)-1],
				Budget: u.Budget, Stats: &stats}
			d.round.Tree.Copy(u.Tree)
		}
	}
	g.all = append(g.all, c.Tokens...)
	if u.Finish != speculate.Running {
		c.Result = g.result(u)
	}
	c.Text, c.Pieces = g.out.take(c.Drafted)
	if g.probs.prompt > 0 {
		c.PromptLogprobs, c.Logprobs = g.probs.take()
	}
	if g.r.PromptLogprobs && len(g.all) == len(c.Tokens) { // the first token has none
		c.PromptLogprobs = append([]TokenLogprobs{{Logprob: Logprob{Token: g.prompt[0]}}}, c.PromptLogprobs...)
	}
	if !g.r.Logprobs {
		c.Logprobs = nil
	}
	if c.Result != nil { // it is sent when the engine is done with the request
		g.last = &d
		return
	}
	g.put(func() { g.ready, g.asked = append(g.ready, d), false })
}

// holds reports whether the caller of a paced generation is busy.
func (g *generation) holds() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return !g.asked
}

// done records the end of the request. If it failed, the text that was held back is delivered too.
func (g *generation) done(err error) {
	if err != nil && g.last == nil {
		g.out.flush(true)
		if text, pieces := g.out.take(0); text != "" {
			g.last = &delivery{chunk: Chunk{Text: text, Pieces: pieces}}
		}
	}
	g.put(func() {
		if g.ended, g.err = true, err; g.last != nil {
			g.ready = append(g.ready, *g.last)
		}
	})
}

// put changes what is ready and wakes the caller.
func (g *generation) put(change func()) {
	g.mu.Lock()
	change()
	g.mu.Unlock()
	select {
	case g.came <- struct{}{}:
	default:
	}
}

// deliver yields deliveries until the end.
func (g *generation) deliver(ctx context.Context, yield func(Chunk, error) bool) {
	for {
		if g.r.more.Paced {
			g.mu.Lock()
			g.asked = true
			g.mu.Unlock()
			g.m.engine.Wake()
		}
		select {
		case <-g.came:
		case <-ctx.Done():
		}
		g.mu.Lock()
		ready, err := g.ready, g.err
		ended := g.ended
		g.ready = nil
		g.mu.Unlock()
		for _, d := range ready {
			if ctx.Err() != nil {
				break
			}
			if d.round != nil {
				g.r.more.OnRound(*d.round)
			}
			g.delivered = d.chunk.Result
			if !yield(d.chunk, nil) || d.chunk.Result != nil {
				return
			}
		}
		switch {
		case ctx.Err() != nil:
			yield(Chunk{}, context.Cause(ctx))
			return
		case ended:
			yield(Chunk{}, err)
			return
		}
	}
}

// check refuses requests that this model cannot serve.
func (m *Model) check(prompt []int32, r *Request) error {
	if err := r.validate(); err != nil {
		return err
	}
	if err := m.checkTokens("Prompt", prompt); err != nil {
		return err
	}
	if err := m.checkTokens("PredictTokens", r.PredictTokens); err != nil {
		return err
	}
	for token := range r.Sampling.LogitBias {
		if vocab := m.m.Config.Vocab; int(token) >= vocab {
			return optionf("Sampling.LogitBias", "token %d: this model's token ids go from 0 to %d", token, vocab-1)
		}
	}
	switch {
	case len(prompt) == 0:
		return optionf("Prompt", "the prompt has no tokens: give some text")
	case len(prompt) > m.Context(), len(prompt) == m.Context() && !(r.PromptLogprobs && r.MaxTokens == 1):
		return &ContextError{Need: len(prompt) + 1, Limit: m.Context()}
	case r.Predict != "" && r.PredictTokens != nil:
		return optionf("Predict", "PredictTokens is set too: set only one of them")
	case m.m.Tokenizer == nil && (len(r.Stop) > 0 || r.Predict != ""):
		return errNoTokenizer
	}
	return nil
}

// checkTokens refuses tokens that the model does not have.
func (m *Model) checkTokens(field string, tokens []int32) error {
	vocab := m.m.Config.Vocab
	for i, token := range tokens {
		if token < 0 || int(token) >= vocab {
			return optionf(field, "token %d is %d: this model's ids go from 0 to %d", i, token, vocab-1)
		}
	}
	return nil
}

// request returns the generation as a request to the decoding loop.
func (g *generation) request() speculate.Request {
	r := g.r
	g.out.stopper.stops = slices.Concat(r.Stop, r.turnEnds)
	marks, _ := g.m.marks()
	g.out.thought.marks = marks
	g.out.hides = g.m.hides(r)
	if r.Tools != nil {
		form := callform.Of(r.Tools.Form)
		g.out.thought.opens = form.Opens()
		g.out.thought.preamble = callform.Marks{Begin: form.Preamble.Assign.String(), End: form.Preamble.Close.String()}
	}
	answer := r.Grammar+r.JSONSchema+r.Regex != "" && r.Tools == nil // an answer under such a constraint has no channels
	switch {
	case !r.Reasoning || r.StopInReasoning || marks == callform.Channels && answer:
	case r.ReasoningOpen, marks == callform.Channels:
		g.out.thought.state = isReasoning
	default:
		g.out.thought.state = mayReason
	}
	q := speculate.Request{
		Sampling: r.Sampling, MaxTokens: r.MaxTokens, Budget: r.Budget, Accept: r.more.Accept, Uncontrolled: r.Uncontrolled,
		Stop: g.out.push, Predicted: r.PredictTokens,
	}
	if t := g.m.m.Tokenizer; t != nil {
		g.out.decoder = t.NewDecoder(tokenizer.DecodeOptions{Continue: true, Special: true})
		if !r.IgnoreEnd {
			q.End = t.IsEOG
		}
		if r.Predict != "" {
			q.Predicted = t.Encode(r.Predict, tokenizer.EncodeOptions{})
		}
	}
	q.Predicted = q.Predicted[:min(len(q.Predicted), g.m.Context())] // while a drafter reads it, all requests wait
	if own := q.End; len(r.more.Ends) > 0 {
		q.End = func(token int32) bool { return own != nil && own(token) || slices.Contains(r.more.Ends, token) }
	}
	q.MinTokens, g.out.least = r.more.MinTokens, r.more.MinTokens
	if r.Logprobs || r.PromptLogprobs {
		g.probs = logprobs{top: r.TopLogprobs, prompt: len(g.prompt)}
		q.Logits, q.PromptLogits = g.probs.add, r.PromptLogprobs
	}
	return q
}

// hides returns which tokens a request's text leaves out: control tokens, except those of the marks of reasoning and,
// since the grammar of tools allows no others, those of calls.
func (m *Model) hides(r *Request) func(token int32) bool {
	shown := ""
	if r.Reasoning {
		thought, answer := m.marks()
		shown = thought.Begin + thought.End + answer.Begin + answer.End
		if thought == callform.Channels {
			shown += "<|end|><|start|>"
		}
	}
	t := m.m.Tokenizer
	return func(token int32) bool {
		stray := r.Tools == nil && !strings.Contains(shown, t.Text(token))
		return t.IsSpecial(token) && (stray || slices.Contains(r.hidden, token))
	}
}

// result returns the result of the generation.
func (g *generation) result(u *engine.Update) *Result {
	r := &Result{Tokens: g.all, Finish: u.Finish, all: *u.Stats}
	r.all.Depths = slices.Clone(r.all.Depths)
	r.Stats = Stats{Prompt: u.Stats.Prompt, Reused: u.Stats.Reused, Tokens: u.Stats.Tokens, Rounds: u.Stats.Rounds,
		Drafted: u.Stats.Drafted, Accepted: u.Stats.Accepted, Prefill: u.Stats.Prefill, First: u.Stats.First,
		Decode: u.Stats.Decode}
	cut := u.Finish == FinishLength || u.Finish == FinishContext
	if g.out.stopper.found == "" && g.out.flush(cut) {
		r.Finish = FinishStop
	}
	r.Stop = g.out.stopper.found
	r.Text = g.out.all.String()
	return r
}
