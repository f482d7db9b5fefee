package serve

import "encoding/json"

// response is an answer to a chat or text completion, or a piece of one.
type response struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Created int64  `json:"created"`
	Model   string `json:"model"`
	Choices []any  `json:"choices"`
	Usage   any    `json:"usage,omitempty"`

	Prompt  []int32  `json:"prompt_token_ids,omitzero"` // of a conversation
	Timings *timings `json:"timings,omitempty"`
	Metrics *metric  `json:"metrics,omitempty"`
	Round   *round   `json:"round,omitempty"`
}

// choiceForm is how choices are shown.
type choiceForm interface {
	whole(p *piece) any
	pieces(p *piece) []any
}

// openAIForm presents OpenAI's completions.
type openAIForm struct {
	a      *answering
	head   response // the fields that all events begin with
	choice choiceForm
}

func newOpenAIForm(a *answering, id, object string, choice choiceForm) form {
	head := response{ID: id + a.id, Object: object, Created: a.began.Unix(), Model: a.call.model.Name}
	return &openAIForm{a, head, choice}
}

func (f *openAIForm) whole(list []piece) any {
	r := f.head
	for i := range list {
		r.Choices = append(r.Choices, f.choice.whole(&list[i]))
	}
	r.Prompt = f.a.call.conversationTokens()
	r.Usage = f.a.usage()
	r.Timings = f.a.timings()
	r.Metrics = f.a.metric()
	return &r
}

// conversationTokens returns the tokens of a conversation, if the answer shows tokens. Text
// completions, which may have several prompts, show them in their choices.
func (c *call) conversationTokens() []int32 {
	if !c.tokenIDs || !c.chat {
		return nil
	}
	return c.prompts[0].tokens
}

func (f *openAIForm) events(p *piece, last bool) (list []event) {
	choices := f.choice.pieces(p)
	if len(choices) == 0 && p.round != nil {
		choices = []any{nil}
	}
	usage := f.a.call.usage
	var soFar any = json.RawMessage("null")
	if usage && f.a.call.options.StreamOptions.value.ContinuousUsage {
		soFar = f.a.usage()
	}
	for i, choice := range choices {
		r := f.head
		r.Choices = []any{choice}
		if choice == nil {
			r.Choices = []any{}
		}
		if i == 0 {
			r.Round = p.round
		}
		if i == 0 && p.first {
			r.Prompt = f.a.call.conversationTokens()
		}
		if usage {
			r.Usage = soFar
		} else if last && i == len(choices)-1 {
			r.Timings, r.Metrics = f.a.timings(), f.a.metric()
		}
		list = append(list, event{data: &r})
	}
	if last && usage {
		r := f.head
		r.Choices = []any{}
		r.Usage = f.a.usage()
		r.Timings = f.a.timings()
		r.Metrics = f.a.metric()
		list = append(list, event{data: &r})
	}
	return list
}
