package serve

import (
	"encoding/json"
	"net/http"
	"reflect"
)

// completions answers POST /v1/completions.
func (s *Server) completions(x *exchange) error {
	m, o, err := x.readModel()
	if err != nil {
		return err
	}
	c := x.readCall(o, m)
	o.read("echo", &c.echo)
	c.readTokens(o, s.o.MaxTokens, 16, "max_tokens", "max_completion_tokens")
	if best := c.n; o.read("best_of", &best) && best != c.n {
		o.fail("best_of", "%d: want %d, as n: this server does not rank choices", best, c.n)
	}
	if top := 0; o.read("logprobs", &top) {
		c.request.Logprobs = true
		c.request.TopLogprobs = top
		c.request.PromptLogprobs = c.echo
	}
	if err := c.readPrompts(o, "prompt", s.o.Prompts); err != nil {
		return err
	}
	return x.answer(c, newCompletionForm)
}

// readPrompts reads the prompts in a field: text, tokens, or a list of either.
func (c *call) readPrompts(o *object, field string, limit int) error {
	suffix := ""
	if field == "prompt" {
		o.read("suffix", &suffix)
	}
	if o.err != nil {
		return o.err
	}
	if !o.has(field) {
		return fieldError(field, "it is missing")
	}
	texts, lists := o.promptsIn(field)
	if o.err != nil {
		return o.err
	}
	if n := len(texts) + len(lists); n == 0 || n > limit {
		return fieldError(field, "%d prompts: want 1 to %d", n, limit)
	}
	for _, text := range texts {
		tokens, err := c.model.tokens(text)
		if suffix != "" {
			tokens, err = c.model.fill(text, suffix, nil)
		}
		if err != nil {
			return err
		}
		c.prompts = append(c.prompts, prompt{text, tokens})
	}
	if suffix != "" && len(lists) > 0 {
		return fieldError("suffix", "the prompt has tokens: give it as text")
	}
	for _, tokens := range lists {
		p := prompt{tokens: tokens}
		if t := c.model.Tokenizer(); t != nil && c.echo {
			p.text = t.Decode(tokens)
		}
		c.prompts = append(c.prompts, p)
	}
	return nil
}

// promptsIn reads the texts, or the lists of tokens, that a field has.
func (o *object) promptsIn(field string) (texts []string, lists [][]int32) {
	raw := o.fields[field]
	if text, ok := decode[string](raw); ok {
		return []string{text}, nil
	}
	const all = "a string, a list of strings, a list of tokens, or a list of lists of tokens"
	items, ok := decode[[]json.RawMessage](raw)
	if !ok {
		o.want(field, all)
	}
	if len(items) == 0 {
		return nil, nil
	}
	switch first := items[0]; {
	case first[0] == '"':
		return o.listOfStrings(field), nil
	case first[0] == '[':
		lists, ok = listsOf[int32](raw)
		if !ok {
			o.misfit(field, reflect.TypeFor[[][]int32]())
		}
	case first[0] == '-' || first[0] >= '0' && first[0] <= '9':
		tokens, ok := listOf[int32](raw)
		if !ok {
			o.misfit(field, reflect.TypeFor[[]int32]())
		}
		lists = [][]int32{tokens}
	default:
		o.fail(field+"[0]", "want a string, a token or a list of tokens, not %s", described(first))
	}
	return nil, lists
}

// tokens are those of a prompt of text.
func (m *Model) tokens(text string) ([]int32, error) {
	if m.Tokenizer() == nil {
		return nil, errNoTokenizer
	}
	return m.Tokenize(text)
}

var errNoTokenizer = newError(http.StatusBadRequest, "invalid_request_error", "no_tokenizer",
	"the model's file has no tokenizer: send prompts of tokens to /v1/completions")

// completionChoice is a choice of a text completion, or a piece of one.
type completionChoice struct {
	Index        int                 `json:"index"`
	Text         string              `json:"text"`
	Logprobs     *completionLogprobs `json:"logprobs"`
	FinishReason *string             `json:"finish_reason"`
	StopReason   *string             `json:"stop_reason,omitempty"`
}

// completionLogprobs are those of tokens, in lists of the same length.
type completionLogprobs struct {
	Tokens        []string             `json:"tokens"`
	TokenLogprobs []*float32           `json:"token_logprobs"`
	TopLogprobs   []map[string]float32 `json:"top_logprobs"`
	TextOffset    []int                `json:"text_offset"`
}

func (c *call) completionLogprobs(list []logprob) *completionLogprobs {
	if !c.request.Logprobs {
		return nil
	}
	all := &completionLogprobs{Tokens: []string{}, TokenLogprobs: []*float32{}, TopLogprobs: []map[string]float32{},
		TextOffset: []int{}}
	for _, l := range list {
		name := c.model.tokenName(l.Token)
		all.Tokens = append(all.Tokens, name)
		all.TextOffset = append(all.TextOffset, l.offset)
		if l.first { // nothing precedes it
			all.TokenLogprobs, all.TopLogprobs = append(all.TokenLogprobs, nil), append(all.TopLogprobs, nil)
			continue
		}
		value := finite(l.Logprob.Logprob)
		top := map[string]float32{name: value}
		for _, t := range l.Top {
			top[c.model.tokenName(t.Token)] = finite(t.Logprob)
		}
		all.TokenLogprobs, all.TopLogprobs = append(all.TokenLogprobs, &value), append(all.TopLogprobs, top)
	}
	return all
}

// completionForm is the form of choices of text completions.
type completionForm struct{ c *call }

func newCompletionForm(a *answering) form {
	return newOpenAIForm(a, "cmpl-", "text_completion", completionForm{a.call})
}

func (f completionForm) whole(p *piece) any {
	return completionChoice{Index: p.index, Text: p.content, Logprobs: f.c.completionLogprobs(p.probs),
		FinishReason: orNil(p.finish), StopReason: f.c.stopString(p.result)}
}

func (f completionForm) pieces(p *piece) (list []any) {
	if p.content != "" || len(p.probs) > 0 || p.result != nil {
		list = append(list, f.whole(p))
	}
	return list
}
