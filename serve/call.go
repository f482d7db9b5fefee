package serve

import (
	"context"
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/grovellm/grove"
	"github.com/grovellm/grove/internal/drafters/merge"
	"github.com/grovellm/grove/internal/drafters/registry"
	"github.com/grovellm/grove/tokenizer"
)

// call is what a request for completions asks for.
type call struct {
	model   *Model
	chat    bool
	prompts []prompt
	n       int // choices for each prompt
	request grove.Request

	constraint  constraint         // on the output
	turnEnds    []string           // of request.Stop, those that come from the chat template
	offered     map[string]offered // tools that the client knows by another name or kind
	longestName int                // of a tool
	verbatim    bool               // reasoning stays in the content

	cut          []*regexp.Regexp // lines of system's messages that are left out
	oldFunctions bool             // the answer has function_call in place of tool_calls

	echo bool // begin with the prompt
	none bool // generate nothing: the prompt's log-probabilities are wanted

	stream, usage bool // send pieces as they come; send the usage at the end
	rounds        bool // send the rounds' trees with the pieces
	race          bool // choice 0 decodes plainly, choice 1 with the drafter, in turn
}

// prompt is text, and the tokens that the model reads.
type prompt struct {
	text   string
	tokens []int32
}

// unlike says why a field is refused.
const unlike = "this server cannot do that: leave it out"

// changing are fields that would change the output and that this server does not know, with their
// values that change nothing.
var changing = map[string][]string{
	"functions":                  {"[]"},
	"function_call":              {`"none"`, `"auto"`},
	"modalities":                 {`["text"]`, "[]"},
	"audio":                      nil,
	"web_search_options":         nil,
	"use_beam_search":            {"false"},
	"length_penalty":             {"1", "1.0"},
	"min_tokens":                 {"0"},
	"stop_token_ids":             {"[]"},
	"bad_words":                  {"[]"},
	"include_stop_str_in_output": {"false"},
	"allowed_token_ids":          nil,
	"logits_processors":          {"[]"},
	"prompt_embeds":              nil,
	"mirostat":                   {"0"},
	"typical_p":                  {"1", "1.0"},
	"xtc_probability":            {"0", "0.0"},
	"dry_multiplier":             {"0", "0.0"},
	"dynatemp_range":             {"0", "0.0"},
	"top_n_sigma":                {"-1", "-1.0"},
	"chat_template":              {`""`},
	"documents":                  {"[]"},
	"truncate_prompt_tokens":     nil,
}

// readModel returns the body, and the model that its field "model" names.
func (x *exchange) readModel() (*Model, *object, error) {
	o, err := x.readBody()
	if err != nil {
		return nil, nil, err
	}
	var name string
	o.read("model", &name)
	if o.err != nil {
		return nil, nil, o.err
	}
	m, err := x.useModel(name)
	return m, o, err
}

// useModel returns the model that a request names, loaded. It stays so until the exchange ends.
func (x *exchange) useModel(name string) (*Model, error) {
	if x.s.draining.Err() != nil {
		return nil, errStopped
	}
	ctx, cancel := context.WithDeadlineCause(x.r.Context(), x.began.Add(x.s.o.Time), errTime)
	defer cancel()
	m, release, err := x.s.models.use(ctx, name)
	if err != nil {
		return nil, err
	}
	x.release()
	x.model, x.release = m.Name, release
	return m, nil
}

// readCall reads the fields that chat and text completions share. The other fields, and the
// prompts, are left to the caller.
func (x *exchange) readCall(o *object, m *Model) *call {
	c := &call{model: m, n: 1}
	x.param = func(field string) string { return o.nameOf(c.paramOf(field)) }
	for name, neutral := range changing {
		o.refuse(name, unlike, neutral...)
	}
	limits := &x.s.o.Limits
	o.read("n", &c.n)
	if c.n < 1 || c.n > limits.N {
		o.fail("n", "%d: want 1 to %d", c.n, limits.N)
	}
	o.read("stream", &c.stream)
	if in := o.object("stream_options"); in != nil {
		in.read("include_usage", &c.usage)
		if in.err != nil {
			o.err = in.err
		}
	}
	r := &c.request
	r.Stop = o.strings("stop")
	if len(r.Stop) > limits.Stops {
		o.fail("stop", "%d strings: want at most %d", len(r.Stop), limits.Stops)
	}
	o.read("ignore_eos", &r.IgnoreEnd)
	c.readSampling(o)
	c.readSpeculation(o)
	c.readConstraint(o)
	c.readRounds(o)
	x.readOrder(o, r)
	return c
}

// readSampling reads how tokens are chosen. Defaults are OpenAI's.
func (c *call) readSampling(o *object) {
	s := &c.request.Sampling
	s.Temperature = 1
	o.read("temperature", &s.Temperature)
	if o.read("top_p", &s.TopP) && s.TopP == 0 {
		s.TopP = math.SmallestNonzeroFloat32 // for OpenAI that is the most probable token, for grove all tokens
	}
	if o.read("top_k", &s.TopK) && s.TopK == -1 {
		s.TopK = 0
	}
	o.read("min_p", &s.MinP)
	o.readFirst(&s.RepetitionPenalty, "repetition_penalty", "repeat_penalty")
	o.read("presence_penalty", &s.PresencePenalty)
	o.read("frequency_penalty", &s.FrequencyPenalty)
	if o.read("repeat_last_n", &s.PenaltyLast) {
		switch s.PenaltyLast {
		case -1:
			s.PenaltyLast = 0
		case 0:
			s.RepetitionPenalty = 0
			s.PresencePenalty = 0
			s.FrequencyPenalty = 0
		}
	}
	s.Seed = o.readSeed()
	var bias map[string]float32
	o.read("logit_bias", &bias)
	for id, add := range bias {
		token, err := strconv.ParseInt(id, 10, 32)
		if err != nil || token < 0 || !(add >= -100 && add <= 100) {
			o.fail("logit_bias", "%q: want a token's number, and -100 to 100 to add to its logit", id)
			return
		}
		if s.LogitBias == nil {
			s.LogitBias = make(map[int32]float32, len(bias))
		}
		s.LogitBias[int32(token)] = add
	}
}

// readSeed reads a seed, any whole number of 64 bits with a sign or without one. -1 is a random one.
func (o *object) readSeed() uint64 {
	if seed, ok := decode[uint64](o.fields["seed"]); ok {
		return seed
	}
	seed := int64(-1)
	o.read("seed", &seed)
	if seed == -1 {
		return rand.Uint64()
	}
	return uint64(seed)
}

// namesFile matches drafters' options that name a file. A client must not open files of the server.
// White space of any kind may stand around a name.
var namesFile = regexp.MustCompile(`\b(model|ranks|router)\W*=`)

// readSpeculation reads how the text is drafted, which does not change it.
func (c *call) readSpeculation(o *object) {
	r := &c.request
	named := o.read("drafter", &r.Drafter) && r.Drafter != "auto"
	if !named {
		r.Drafter = c.model.Drafter
	} else if namesFile.MatchString(r.Drafter) && r.Drafter != c.model.Drafter {
		o.fail("drafter", "%q: its options must not name files: the server opens those that it was started with",
			r.Drafter)
	}
	o.read("budget", &r.Budget)
	if in := o.object("prediction"); in != nil {
		kind := "content"
		in.read("type", &kind)
		text := in.text("content")
		switch {
		case in.err != nil:
			o.err = in.err
		case kind != "content":
			o.fail("prediction.type", "%q: want content", kind)
		case c.model.Tokenizer() != nil:
			r.PredictTokens = c.model.Tokenizer().Encode(text, tokenizer.EncodeOptions{})
		}
		if len(r.PredictTokens) > 0 {
			c.predict(o, named)
		}
	}
	speculate := true
	o.read("speculate", &speculate)
	if !speculate {
		r.Drafter = registry.Plain
	}
}

// predict makes the drafter one that also drafts from the text that a request predicts, whatever it is;
// a request that names plain decoding decodes plainly.
func (c *call) predict(o *object, named bool) {
	r := &c.request
	if r.Drafter == "" || r.Drafter == registry.Plain {
		if !named {
			r.Drafter = "lookup"
		}
		return
	}
	var err error
	if r.Drafter, err = merge.Adding("lookup", r.Drafter); err != nil {
		o.fail("drafter", "%v", err)
	}
}

// readTokens reads how many tokens a choice may have: the first of several names, or so many.
func (c *call) readTokens(o *object, limit, def int, names ...string) {
	n := def
	switch name := o.readFirst(&n, names...); {
	case name == "":
	case n == -1: // no limit, as for llama.cpp and Ollama
		n = 0
	case n < 0 || n == 0 && !c.echo:
		o.fail(name, "%d: want 1 or more, or -1 for no limit", n)
	case n == 0:
		n, c.none = 1, true
		c.request.Drafter = registry.Plain
	}
	if limit > 0 && (n == 0 || n > limit) {
		n = limit
	}
	c.request.MaxTokens = n
}

// textParts are the types of parts that are text; all but the first are those of responses.
var textParts = []string{"text", "input_text", "output_text", "summary_text", "reasoning_text",
	"refusal"}

// text reads a field that is a string, or a list of parts of type text.
func (o *object) text(name string) string { return strings.Join(o.texts(name), "") }

// texts are the parts of such a field.
func (o *object) texts(name string) (all []string) {
	raw := o.fields[name]
	if o.err != nil || !o.has(name) {
		return nil
	}
	if text, ok := decode[string](raw); ok {
		return []string{text}
	}
	if raw[0] != '[' {
		o.want(name, "a string or a list of text parts")
		return nil
	}
	for _, part := range o.objects(name) {
		kind, text := "text", ""
		part.read("type", &kind)
		if kind == "refusal" {
			part.rename("refusal", "text")
		}
		part.read("text", &text)
		if part.err == nil && !slices.Contains(textParts, kind) {
			part.fail("type", "%q: this server reads text only", kind)
		}
		if part.err != nil {
			o.err = part.err
			return nil
		}
		all = append(all, text)
	}
	return all
}
