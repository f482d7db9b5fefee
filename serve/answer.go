package serve

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/grovellm/grove"
)

// form is how an endpoint shows choices.
type form interface {
	id() string               // what the id of an answer begins with
	object(piece bool) string // the type of an answer, or of a piece of one

	// whole is a finished choice; pieces are what a stream sends of a choice, where r is not nil at
	// its end.
	whole(index int, text string, l []logprob, r *grove.Result) any
	pieces(index int, text string, l []logprob, r *grove.Result, first bool) []any
}

// response is an answer, or a piece of one.
type response struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Created int64  `json:"created"`
	Model   string `json:"model"`
	Choices []any  `json:"choices"`
	Usage   any    `json:"usage,omitempty"`

	Timings *timings `json:"timings,omitempty"`
	Metrics *metric  `json:"metrics,omitempty"`
	Round   *round   `json:"round,omitempty"`
}

// part is a chunk of one choice, or the error that ends it.
type part struct {
	index int
	chunk grove.Chunk
	err   error

	clock    time.Duration // of the choice so far, from its first token on
	verified *verified     // where rounds are asked for
}

// choice is what has come of one choice.
type choice struct {
	logprobs logprobs
	begun    bool
	last     time.Time // when the last chunk came
	list     []logprob
	result   *grove.Result
}

// answer generates what a call asks for, and sends it.
func (x *exchange) answer(c *call) error {
	timed, cancelTime := context.WithDeadlineCause(x.r.Context(), x.began.Add(x.s.o.Time), errTime)
	defer cancelTime()
	ctx, cancel := context.WithCancelCause(timed)
	defer context.AfterFunc(x.s.stopping, func() { cancel(errStopped) })()
	parts := c.generate(ctx)
	defer func() { // the generations have ended when the exchange does
		cancel(nil)
		for range parts {
		}
	}()
	f := form(completionForm{c})
	if c.chat {
		f = newChatForm(c)
	}
	a := &answering{exchange: x, ctx: ctx, call: c, form: f, choices: make([]choice, c.n*len(c.prompts))}
	for i := range a.choices {
		a.choices[i].logprobs = newLogprobs(c)
	}
	a.head = response{ID: f.id() + x.id, Object: f.object(c.stream), Created: x.began.Unix(), Model: c.model.Name}
	if c.stream {
		return a.stream(parts)
	}
	return a.collect(parts)
}

// generate runs all generations of a call side by side. The channel is closed when they have ended,
// which they do early when ctx ends.
func (c *call) generate(ctx context.Context) <-chan part {
	parts := make(chan part, 16)
	var running sync.WaitGroup
	lanes := 1 // choices that take turns
	if c.race {
		lanes = c.n
	}
	for i := 0; i < c.n*len(c.prompts); i += lanes {
		running.Go(func() { c.run(ctx, parts, i, lanes) })
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
	head    response // what all pieces begin with
	choices []choice
}

var errEnded = errors.New("a generation ended without a result")

// collect sends the answer whole.
func (a *answering) collect(parts <-chan part) error {
	for p := range parts {
		_, list, err := a.take(&p) // the result has the text
		if err != nil {
			return err
		}
		a.choices[p.index].list = append(a.choices[p.index].list, list...)
	}
	r := a.head
	for i := range a.choices {
		c := &a.choices[i]
		if c.result == nil {
			return a.early()
		}
		r.Choices = append(r.Choices, a.form.whole(i, a.echoed(i)+a.text(c.result), c.list, c.result))
	}
	r.Usage, r.Timings, r.Metrics = a.usage(), a.timings(), a.metric()
	return a.writeJSON(200, &r)
}

// early is the error of generations that ended without a result.
func (a *answering) early() error {
	if err := context.Cause(a.ctx); err != nil {
		return err
	}
	return errEnded
}

// echoed is what a choice's text begins with.
func (a *answering) echoed(index int) string {
	if !a.call.echo {
		return ""
	}
	return a.call.prompts[index/a.call.n].text
}

func (a *answering) text(r *grove.Result) string {
	if a.call.none {
		return ""
	}
	return r.Text
}

// take takes in a part: the text and the log-probabilities that it adds.
func (a *answering) take(p *part) (text string, list []logprob, err error) {
	switch {
	case p.err != nil && a.ctx.Err() != nil:
		return "", nil, context.Cause(a.ctx)
	case p.err != nil:
		return "", nil, p.err
	}
	c, chunk := &a.choices[p.index], &p.chunk
	now := time.Now()
	if n := len(chunk.Tokens); n > 0 {
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
	if c.result = chunk.Result; c.result != nil {
		a.finished(p.index, c.result)
	}
	return text, list, nil
}

// finished takes in what the log and the metrics say of a choice.
func (a *answering) finished(index int, r *grove.Result) {
	f := &a.figure
	if index%a.call.n == 0 {
		f.prompt += r.Stats.Prompt
		f.cached += r.Stats.Reused
	}
	f.tokens += r.Stats.Tokens
	f.finish = string(r.Finish)
	a.s.metrics.finished(a.model, r)
}

// finishReason is OpenAI's word for why a generation ended; nil while it goes on.
func finishReason(r *grove.Result) *string {
	if r == nil {
		return nil
	}
	reason := "length"
	if r.Finish == grove.FinishEnd || r.Finish == grove.FinishStop {
		reason = "stop"
	}
	return &reason
}

// stopReason is the stop string that ended a generation, if one did.
func stopReason(r *grove.Result) *string {
	if r == nil || r.Stop == "" {
		return nil
	}
	return &r.Stop
}
