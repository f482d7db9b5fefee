package serve

import (
	"context"
	"regexp"
	"slices"
	"sync"
	"time"

	"github.com/grovellm/grove"
	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/callform"
	"github.com/grovellm/grove/internal/drafters/merge"
	"github.com/grovellm/grove/internal/drafters/registry"
	"github.com/grovellm/grove/internal/engine"
	"github.com/grovellm/grove/internal/inside"
	"github.com/grovellm/grove/tokenizer"
)

// call is the work that a request for completions asks for.
type call struct {
	model   *Model
	chat    bool
	prompts []prompt
	n       int // choices for each prompt
	request grove.Request
	options *options // the fields of the body

	promptPath, logprobsPath, toolsPath string // paths of the fields that are not in options

	constraint constraint         // on the output
	turnEnds   []string           // the strings of request.Stop that come from the chat template
	offered    map[string]offered // tools that the client knows by another name or kind
	marks      callform.Marks     // around reasoning
	answer     callform.Marks     // around the answer; without Begin if the prompt has that
	verbatim   bool               // reasoning stays in the content
	unthinking bool               // the answer leaves reasoning out
	earlier    int                // number of tool calls in the conversation

	oldFunctions bool // the answer has function_call in place of tool_calls

	echo bool // begin the text with the prompt
	bare bool // do not add the tokens that begin and end a text to prompts
	none bool // generate nothing: only the prompt's log-probabilities are wanted

	whole engine.Call // all choices

	stream, usage bool // send pieces as they come; send the usage at the end
	tokenIDs      bool // show the tokens of prompts and choices
	rounds        bool // send the rounds' trees with the pieces
	race          bool // choice 0 decodes plainly and choice 1 with the drafter, taking turns
}

// prompt is text, and the tokens that the model reads.
type prompt struct {
	text   string
	tokens []int32
}

// readRequest reads the body into the struct that to points at, and returns the model that its field names.
func (x *exchange) readRequest(to any, model *field[string]) (*Model, error) {
	if err := x.readBody(to); err != nil {
		return nil, err
	}
	m, err := x.useModel(model.value)
	if err != nil {
		return nil, err
	}
	return m, x.takeTurn(len(x.body))
}

// largeBody is a body of text whose tokens take time: 4 MB of spaces take seconds and 200 MB of memory.
const largeBody = 256 << 10

// takeTurn makes requests with many bytes, in the body or in stored responses, be prepared in turns, so that they leave
// processors and memory to others. A turn ends when the answer begins, or what it takes to make it.
func (x *exchange) takeTurn(bytes int) error {
	if bytes <= largeBody || x.inTurn {
		return nil
	}
	ctx, end := x.limit()
	defer end(nil)
	select {
	case x.s.turns <- struct{}{}:
		x.inTurn = true
		x.endTurn = sync.OnceFunc(func() { <-x.s.turns })
		return nil
	case <-x.s.draining.Done():
		return errStopped
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// useModel returns the model that a request names, loaded. It stays loaded until the exchange ends.
func (x *exchange) useModel(name string) (*Model, error) {
	if x.s.draining.Err() != nil {
		return nil, errStopped
	}
	ctx, cancel := context.WithDeadlineCause(x.r.Context(), x.deadline(), errTime)
	defer cancel()
	began := time.Now()
	m, release, err := x.s.models.use(ctx, name)
	x.load = time.Since(began)
	if err != nil {
		return nil, err
	}
	x.release()
	x.model, x.release = m.Name, release
	return m, nil
}

// newCall makes a call from a request's options and its number of choices. The caller sets the
// prompts.
func (x *exchange) newCall(m *Model, o *options, s several) (*call, error) {
	c := &call{model: m, options: o, n: s.N.or(1), stream: o.Stream.value, rounds: o.Rounds, race: s.Race.value,
		tokenIDs: s.TokenIDs}
	x.param = c.paramOf
	c.usage = o.StreamOptions.value.IncludeUsage
	limits := &x.s.o.Limits
	r := &c.request
	r.Stop = o.Stop.value
	r.IgnoreEnd = o.IgnoreEOS
	inside.RequestOptionsOf(r).Ends = o.StopTokenIDs.value
	inside.RequestOptionsOf(r).MinTokens = o.MinTokens.value
	switch {
	case c.n < 1 || c.n > limits.N:
		return nil, s.N.fail("%d: want 1 to %d", c.n, limits.N)
	case s.BestOf.or(c.n) != c.n:
		return nil, s.BestOf.fail("%d: want %d, the same as n: this server does not rank choices", s.BestOf.value, c.n)
	case len(r.Stop) > limits.Stops:
		return nil, o.Stop.fail("%d strings: want at most %d", len(r.Stop), limits.Stops)
	case len(o.StopTokenIDs.value) > mostStopTokens:
		return nil, o.StopTokenIDs.fail("%d tokens: want at most %d", len(o.StopTokenIDs.value), mostStopTokens)
	case o.MinTokens.value < 0:
		return nil, o.MinTokens.fail("%d: want 0 or more", o.MinTokens.value)
	case (c.rounds || c.race) && !c.stream:
		return nil, o.Stream.fail("rounds and race need stream: true")
	case c.race && c.n != 1:
		return nil, s.Race.fail("a race has two choices already: leave out n")
	case c.race:
		c.n = 2
	}
	var err error
	if r.Sampling, err = o.sampling(m.Tokenizer()); err != nil {
		return nil, err
	}
	if err := c.setDrafting(); err != nil {
		return nil, err
	}
	if c.constraint, err = o.constraint(); err != nil {
		return nil, err
	}
	r.Grammar = c.constraint.grammar
	r.JSONSchema = c.constraint.schema
	r.Regex = c.constraint.regex
	x.setOrder(o, r)
	return c, nil
}

// namesFile matches drafter options that name a file. A client must not open files of the server.
// Any white space may surround a name.
var namesFile = regexp.MustCompile(`\b(model|ranks|router)\W*=`)

// withOptions matches the names of drafters that have options.
var withOptions = regexp.MustCompile(`([A-Za-z0-9-]+)\s*:`)

// optionsOfProgram reports whether a drafter's text has options of a drafter that a program
// registered. Such options may mean anything.
func optionsOfProgram(text string) bool {
	for _, name := range withOptions.FindAllStringSubmatch(text, -1) {
		if slices.ContainsFunc(draft.Families(), func(f draft.Family) bool { return f.New != nil && f.Name == name[1] }) {
			return true
		}
	}
	return false
}

// mostDrafter bounds the bytes of a drafter's text: the model keeps it with what is learned about the drafter.
const mostDrafter = 512

// mostStopTokens bounds stop_token_ids: every token of the text is compared with all of them.
const mostStopTokens = 1024

// setDrafting sets how the text is drafted. Drafting does not change the text.
func (c *call) setDrafting() error {
	o := c.options
	r := &c.request
	r.Budget = o.Budget.value
	r.Drafter = c.model.Drafter
	named := o.Drafter.given && o.Drafter.value != "auto"
	if n := len(o.Drafter.value); n > mostDrafter {
		return o.Drafter.fail("a text of %d bytes: want at most %d", n, mostDrafter)
	}
	if named {
		r.Drafter = o.Drafter.value
	}
	if r.Drafter != c.model.Drafter {
		switch {
		case namesFile.MatchString(r.Drafter):
			return o.Drafter.fail("%q: its options must not name files: the server uses only the files that it was started with",
				r.Drafter)
		case optionsOfProgram(r.Drafter):
			return o.Drafter.fail("%q: a drafter that the server's own program adds takes no options from requests",
				r.Drafter)
		}
	}
	if p := &o.Prediction.value; o.Prediction.given {
		if kind := p.Type.or("content"); kind != "content" {
			return p.Type.fail("%q: want content", kind)
		}
		if t := c.model.Tokenizer(); t != nil {
			r.PredictTokens = t.Encode(p.Content.text(), tokenizer.EncodeOptions{})
		}
		if len(r.PredictTokens) > 0 {
			if err := c.predict(named); err != nil {
				return err
			}
		}
	}
	if !o.Speculate.or(true) {
		r.Drafter = registry.Plain
	}
	return nil
}

// predict makes any drafter draft from the request's predicted text as well. A request that names
// plain decoding still decodes plainly.
func (c *call) predict(named bool) error {
	r := &c.request
	if r.Drafter == "" || r.Drafter == registry.Plain {
		if !named {
			r.Drafter = "lookup"
		}
		return nil
	}
	both, err := merge.Adding("lookup", r.Drafter)
	if err != nil {
		return c.options.Drafter.fail("%v", err)
	}
	r.Drafter = both
	return nil
}

// readOnly makes the model read the prompt, and show no generated text.
func (c *call) readOnly() {
	c.none, c.whole.Unseen = true, true
	c.request.Drafter = registry.Plain
}

// setLength sets the most tokens that a choice may have: the first given field's value, or else
// def. 0 means no limit. most is the server's limit.
func (c *call) setLength(most, def int, fields ...*field[int]) error {
	n := def
	if at := slices.IndexFunc(fields, func(f *field[int]) bool { return f.given }); at >= 0 {
		n = fields[at].value
		switch {
		case n == -1: // no limit, as in llama.cpp and Ollama
			n = 0
		case n < 0 || n == 0 && !c.echo:
			return fields[at].fail("%d: want 1 or more, or -1 for no limit", n)
		case n == 0:
			n = 1
			c.readOnly()
		}
	}
	if most > 0 && (n == 0 || n > most) {
		n = most
	}
	if least := &c.options.MinTokens; n > 0 && least.value > n {
		return least.fail("%d: the answer may have only %d tokens", least.value, n)
	}
	c.request.MaxTokens = n
	return nil
}
