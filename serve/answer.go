package serve

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/grovellm/grove"
	"github.com/grovellm/grove/internal/inside"
)

// form is how an endpoint presents an answer.
type form interface {
	whole(list []piece) any             // the whole answer, each choice as one piece
	events(p *piece, last bool) []event // the events that a stream sends for a piece; none follow the last piece's
}

// event is one part of a stream: a JSON value, which server-sent events may name.
type event struct {
	name string
	data any
}

// piece is an increment of one choice of the answer. Protocols translate pieces.
type piece struct {
	index  int
	first  bool // the first of its choice
	parts       // reasoning, content and calls
	probs  []logprob
	tokens []int32       // with the token that ends the text; nil if tokens are not asked for
	finish string        // stop, length or tool_calls; empty while the choice goes on
	cut    bool          // the choice ended within a call
	result *grove.Result // nil while the choice goes on
	round  *round        // nil unless rounds are asked for
}

// part is a chunk of one choice, or the error that ends it.
type part struct {
	index int
	chunk grove.Chunk
	err   error

	clock    time.Duration // of the choice, since its first token
	verified *verified     // nil unless rounds are asked for
}

// choice is the state of one choice so far.
type choice struct {
	logprobs logprobs
	reader   *reader
	custom   customCalls
	begun    bool
	last     time.Time // when the last chunk came
	tokens   int       // so far
	list     []logprob
	result   *grove.Result
}

// answer generates what a call asks for, and sends it in the form that makeForm makes.
func (x *exchange) answer(c *call, makeForm func(*answering) form) error {
	for i := range c.prompts { // check all of them before any begins
		if err := inside.Check(c.model, c.prompts[i].tokens, &c.request); err != nil {
			return err
		}
	}
	if x.late(c.model) {
		return errLate
	}
	x.endTurn()
	ctx, end := x.limit()
	parts := c.generate(ctx)
	defer func() { // the generations end before the exchange does
		end(nil)
		for range parts {
		}
		x.figure.tokens = int(c.whole.Tokens.Load())
		for i := 0; c.whole.Queued() && i < len(c.prompts); i++ {
			x.figure.prompt += len(c.prompts[i].tokens)
		}
	}()
	a := &answering{exchange: x, ctx: ctx, call: c, choices: make([]choice, c.n*len(c.prompts))}
	for i := range a.choices {
		a.choices[i] = choice{logprobs: newLogprobs(c, c.prompts[i/c.n].text), reader: c.newReader(),
			custom: customCalls{offered: c.offered}}
	}
	a.form = makeForm(a)
	if c.stream {
		return a.stream(parts)
	}
	return a.collect(parts)
}

// limit makes the context of the request's work. It ends when the client disconnects, the server
// stops or the deadline passes; end ends it.
func (x *exchange) limit() (ctx context.Context, end context.CancelCauseFunc) {
	timed, endTime := context.WithDeadlineCause(x.r.Context(), x.deadline(), errTime)
	ctx, cancel := context.WithCancelCause(timed)
	release := context.AfterFunc(x.s.stopping, func() { cancel(errStopped) })
	return ctx, func(cause error) {
		cancel(cause)
		release()
		endTime()
	}
}

// generate runs all generations of a call concurrently. The channel is closed when they have ended,
// which is early if ctx ends.
func (c *call) generate(ctx context.Context) <-chan part {
	parts := make(chan part, 16)
	var running sync.WaitGroup
	lanes := 1 // choices that take turns
	if c.race {
		lanes = c.n
	}
	for i := 0; i < c.n*len(c.prompts); i += lanes {
		running.Go(func() {
			if err := c.tryRun(ctx, parts, i, lanes); err != nil {
				select {
				case parts <- part{index: i, err: err}:
				case <-ctx.Done():
				}
			}
		})
	}
	go func() {
		running.Wait()
		close(parts)
	}()
	return parts
}

// answering is an answer under way.
type answering struct {
	*exchange
	ctx     context.Context
	call    *call
	form    form
	choices []choice
}

var errEnded = errors.New("a generation ended without a result")

// collect sends the answer in one piece.
func (a *answering) collect(parts <-chan part) error {
	for p := range parts {
		_, list, err := a.take(&p) // the result has the text
		if err != nil {
			return err
		}
		a.choices[p.index].list = append(a.choices[p.index].list, list...)
	}
	list := make([]piece, len(a.choices))
	for i := range a.choices {
		c := &a.choices[i]
		if c.result == nil {
			return a.early()
		}
		text := c.result.Text
		if a.call.none {
			text = ""
		}
		list[i] = a.piece(i, text, c.result.Tokens, c.list)
	}
	return a.writeJSON(200, a.form.whole(list))
}

// piece makes a piece from new output of a choice.
func (a *answering) piece(index int, text string, tokens []int32, probs []logprob) piece {
	c := &a.choices[index]
	p := piece{index: index, first: !c.begun, probs: probs, result: c.result}
	if a.call.tokenIDs {
		p.tokens = []int32{}
		if !a.call.none {
			p.tokens = append(p.tokens, tokens...)
		}
	}
	if p.first && a.call.echo {
		text = a.call.prompts[index/a.call.n].text + text
	}
	c.begun = true
	p.parts = c.reader.add(text, c.result != nil)
	if a.call.unthinking {
		p.reasoning = ""
	}
	c.custom.convert(p.calls)
	p.cut = c.result != nil && c.reader.cut()
	p.finish = finishReason(c.result, c.reader.calls > 0 && !p.cut)
	return p
}

// early returns the error of generations that ended without a result.
func (a *answering) early() error {
	if err := context.Cause(a.ctx); err != nil {
		return err
	}
	return errEnded
}

// take adds a part to its choice, and returns the text and the log-probabilities that it brings.
func (a *answering) take(p *part) (text string, list []logprob, err error) {
	switch {
	case p.err != nil && a.ctx.Err() != nil:
		return "", nil, context.Cause(a.ctx)
	case p.err != nil:
		return "", nil, p.err
	}
	c, chunk := &a.choices[p.index], &p.chunk
	now := time.Now()
	if n := len(chunk.Tokens); n > 0 && !a.call.none {
		c.tokens += n
		if a.figure.first == 0 {
			a.figure.first = now.Sub(a.began)
			a.s.metrics.first.WithLabelValues(a.model).Observe(a.figure.first.Seconds())
		} else if !c.last.IsZero() {
			a.s.metrics.between.WithLabelValues(a.model).Observe(now.Sub(c.last).Seconds())
		}
		c.last = now
	}
	list = c.logprobs.take(chunk)
	if !a.call.none {
		text = chunk.Text
	}
	c.result = chunk.Result
	if c.result != nil {
		a.finished(p.index, c.result)
	}
	return text, list, nil
}

// finished records a choice's result for the log and the metrics.
func (a *answering) finished(index int, r *grove.Result) {
	f := &a.figure
	if index%a.call.n == 0 {
		f.cached += r.Stats.Reused
	}
	f.finish = string(r.Finish)
	a.s.metrics.finished(a.model, r)
	s := inside.Stats(r)
	a.s.pace.add(s.Prefill + s.Decode)
}

// finishReason returns OpenAI's word for why a generation ended, or "" while it is running. It is
// tool_calls if the text has complete calls and was not cut short.
func finishReason(r *grove.Result, calls bool) string {
	switch {
	case r == nil:
		return ""
	case r.Finish != grove.FinishEnd && r.Finish != grove.FinishStop:
		return "length"
	case calls:
		return "tool_calls"
	}
	return "stop"
}

// stopString returns the request's stop string that ended a generation, or nil if none did.
func (c *call) stopString(r *grove.Result) *string {
	if r == nil || r.Stop == "" || slices.Contains(c.turnEnds, r.Stop) {
		return nil
	}
	return &r.Stop
}

// stopReason returns the stop string or the token of stop_token_ids that ended a generation, or nil if neither did. As
// in vLLM, the model's own end of text is nil even if the request lists it.
func (c *call) stopReason(r *grove.Result) any {
	if stop := c.stopString(r); stop != nil {
		return *stop
	}
	if r == nil || r.Finish != grove.FinishEnd {
		return nil
	}
	last, t := r.Tokens[len(r.Tokens)-1], c.model.Tokenizer()
	own := t != nil && last == t.EOS() && !c.request.IgnoreEnd
	if own || !slices.Contains(c.options.StopTokenIDs.value, last) {
		return nil
	}
	return last
}

// orNil returns nil for an empty string.
func orNil(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
