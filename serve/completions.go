package serve

import (
	"encoding/json"
	"net/http"

	"github.com/grovellm/grove/tokenizer"
)

// completionBody is the body of POST /v1/completions.
type completionBody struct {
	options
	several
	Prompt   field[promptList] `json:"prompt"`
	Suffix   field[string]     `json:"suffix"`
	Echo     bool              `json:"echo"`
	Logprobs field[int]        `json:"logprobs"`
	Special  field[bool]       `json:"add_special_tokens"`
}

// completions answers POST /v1/completions.
func (s *Server) completions(x *exchange) error {
	var b completionBody
	m, err := x.readRequest(&b, &b.Model)
	if err != nil {
		return err
	}
	c, err := x.newCall(m, &b.options, b.several)
	if err != nil {
		return err
	}
	c.promptPath = b.Prompt.path
	c.logprobsPath = b.Logprobs.path
	c.echo = b.Echo
	c.bare = !b.Special.or(true)
	if b.Logprobs.given {
		c.request.Logprobs = true
		c.request.TopLogprobs = b.Logprobs.value
		c.request.PromptLogprobs = c.echo
	}
	if err := c.setLength(s.o.MaxTokens, 16, &b.NPredict, &b.MaxTokens, &b.MaxCompletionTokens); err != nil {
		return err
	}
	if b.Suffix.value != "" {
		err = c.setGap(&b.Prompt, &b.Suffix)
	} else {
		err = c.setPrompts(&b.Prompt, s.o.Prompts, m.Context())
	}
	if err != nil {
		return err
	}
	return x.answer(c, newCompletionForm)
}

// promptList is text, tokens, or a list of either.
type promptList struct {
	texts []string
	lists [][]int32
}

func (p *promptList) readJSON(d *decoder, path string, raw json.RawMessage) error {
	if text, ok := decode[string](raw); ok {
		p.texts = []string{text}
		return nil
	}
	if raw[0] != '[' {
		return fieldError(path, "want a string, a list of strings, a list of tokens, or a list of lists of tokens, not %s",
			described(raw))
	}
	switch first, _ := cutValue(raw[1:]); {
	case len(first) == 0:
		return nil
	case first[0] == '"':
		return d.read(path, raw, &p.texts)
	case first[0] == '[':
		return d.read(path, raw, &p.lists)
	case first[0] == '-' || first[0] >= '0' && first[0] <= '9':
		p.lists = make([][]int32, 1)
		return d.read(path, raw, &p.lists[0])
	default:
		return fieldError(path+"[0]", "want a string, a token or a list of tokens, not %s", described(first))
	}
}

// setPrompts sets the prompts that a field holds. It refuses one that has more tokens than most by its bytes alone; 0
// means that there is no limit.
func (c *call) setPrompts(f *field[promptList], limit, most int) error {
	texts, lists := f.value.texts, f.value.lists
	if !f.given {
		return f.fail("the field is required")
	}
	if n := len(texts) + len(lists); n == 0 || n > limit {
		return f.fail("%d prompts: want 1 to %d", n, limit)
	}
	for _, text := range texts {
		if err := c.model.checkLength(text, most); err != nil {
			return err
		}
		tokens, err := c.model.tokens(text, !c.bare)
		if err != nil {
			return err
		}
		c.prompts = append(c.prompts, prompt{text, tokens})
	}
	for _, tokens := range lists {
		p := prompt{tokens: tokens}
		if t := c.model.Tokenizer(); t != nil && c.echo {
			p.text = t.Decode(tokens, tokenizer.DecodeOptions{})
		}
		c.prompts = append(c.prompts, p)
	}
	return nil
}

// setGap sets prompts that ask for the text between those of a field and a suffix.
func (c *call) setGap(f *field[promptList], suffix *field[string]) error {
	if len(f.value.lists) > 0 {
		return suffix.fail("the prompt is a list of tokens: give it as text")
	}
	if !f.given {
		return f.fail("the field is required")
	}
	for _, text := range f.value.texts {
		tokens, err := c.model.fill(text, suffix.value, nil)
		if err != nil {
			return err
		}
		c.prompts = append(c.prompts, prompt{text, tokens})
	}
	return nil
}

// tokens returns the tokens of a text prompt, with or without those that begin and end a text.
func (m *Model) tokens(text string, special bool) ([]int32, error) {
	if m.Tokenizer() == nil {
		return nil, errNoTokenizer
	}
	return m.tokensOf(text, special, true)
}

var errNoTokenizer = newError(http.StatusBadRequest, "invalid_request_error", "no_tokenizer",
	"the model's file has no tokenizer: send token ids as the prompt to /v1/completions")

// completionChoice is a choice of a text completion, or a piece of one.
type completionChoice struct {
	Index        int                 `json:"index"`
	Text         string              `json:"text"`
	Logprobs     *completionLogprobs `json:"logprobs"`
	FinishReason *string             `json:"finish_reason"`
	StopReason   any                 `json:"stop_reason"`
	TokenIDs     []int32             `json:"token_ids,omitzero"`
	Prompt       []int32             `json:"prompt_token_ids,omitzero"`
}

// completionLogprobs are the log-probabilities of tokens, as lists of equal length.
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

// completionForm presents the choices of text completions.
type completionForm struct{ c *call }

func newCompletionForm(a *answering) form {
	return newOpenAIForm(a, "cmpl-", "text_completion", completionForm{a.call})
}

func (f completionForm) whole(p *piece) any {
	c := completionChoice{Index: p.index, Text: p.content, Logprobs: f.c.completionLogprobs(p.probs),
		FinishReason: orNil(p.finish), StopReason: f.c.stopReason(p.result), TokenIDs: p.tokens}
	if f.c.tokenIDs && p.first {
		c.Prompt = f.c.prompts[p.index/f.c.n].tokens
	}
	return c
}

func (f completionForm) pieces(p *piece) (list []any) {
	if p.content != "" || len(p.probs) > 0 || len(p.tokens) > 0 || p.result != nil {
		list = append(list, f.whole(p))
	}
	return list
}
