package serve

import (
	"net/http"

	"github.com/grovellm/grove"
)

// Endpoints of llama.cpp's server that OpenAI's API does not have: POST /completion and GET /props;
// infill.go has POST /infill.

// llamaBody has the fields that llama.cpp's requests for text share.
type llamaBody struct {
	options
	oneChoice
	NProbs       field[int] `json:"n_probs"`
	Logprobs     field[int] `json:"logprobs"` // another name for it
	Sampled      refused    `json:"post_sampling_probs" neutral:"false"`
	ReturnTokens bool       `json:"return_tokens"`
}

// newLlamaCall makes the call of such a request, with llama.cpp's defaults. The caller sets the prompt.
func (x *exchange) newLlamaCall(m *Model, b *llamaBody) (*call, error) {
	b.Temperature.setDefault(0.8)
	b.TopK.setDefault(40)
	b.TopP.setDefault(0.95)
	b.MinP.setDefault(0.05)
	b.RepeatLastN.setDefault(64)
	c, err := x.newCall(m, &b.options, several{TokenIDs: b.ReturnTokens})
	if err != nil {
		return nil, err
	}
	c.promptPath = "prompt"
	probs := &b.NProbs
	if !probs.given {
		probs = &b.Logprobs
	}
	c.logprobsPath = probs.path
	c.request.Logprobs = probs.value != 0
	c.request.TopLogprobs = probs.value
	switch n := b.NPredict.value; {
	case b.NPredict.given && n == 0: // the client only wants the prompt in the cache
		c.readOnly()
		b.MaxTokens.set(1)
	case b.NPredict.given && n > 0: // less than 0: no limit
		b.MaxTokens = b.NPredict
	}
	return c, c.setLength(x.s.o.MaxTokens, 0, &b.MaxTokens)
}

// llamaCompletionBody is the body of POST /completion.
type llamaCompletionBody struct {
	llamaBody
	Prompt field[promptList] `json:"prompt"`
}

// llamaCompletion answers POST /completion.
func (s *Server) llamaCompletion(x *exchange) error {
	var b llamaCompletionBody
	m, err := x.readRequest(&b, &b.Model)
	if err != nil {
		return err
	}
	c, err := x.newLlamaCall(m, &b.llamaBody)
	if err != nil {
		return err
	}
	if err := c.setPrompts(&b.Prompt, 1, m.Context()); err != nil {
		return err
	}
	return x.answer(c, newLlamaForm)
}

// llamaProps is the answer to GET /props for a model.
type llamaProps struct {
	Settings   llamaSettings   `json:"default_generation_settings"`
	Alias      string          `json:"model_alias"`
	Modalities llamaModalities `json:"modalities"`
	Template   string          `json:"chat_template"`
	BOS        string          `json:"bos_token"`
	EOS        string          `json:"eos_token"`
}

type llamaSettings struct {
	Context int `json:"n_ctx"`
}

type llamaModalities struct {
	Vision bool `json:"vision"`
	Audio  bool `json:"audio"`
}

// props answers GET /props for the model that the query names, or else the first one. It loads the model.
func (s *Server) props(x *exchange) error {
	m, err := x.useModel(x.r.URL.Query().Get("model"))
	if err != nil {
		return err
	}
	a := llamaProps{Settings: llamaSettings{m.Context()}, Alias: m.Name}
	if m.Tokenizer() != nil {
		a.BOS, a.EOS = m.tokenNamed(m.Tokenizer().BOS()), m.tokenNamed(m.Tokenizer().EOS())
		a.Template = m.template()
	}
	return x.writeJSON(http.StatusOK, &a)
}

// llamaForm presents llama.cpp's answers.
type llamaForm struct{ a *answering }

func newLlamaForm(a *answering) form { return llamaForm{a} }

// llamaAnswer is an answer, or a piece of one.
type llamaAnswer struct {
	Content string  `json:"content"`
	Tokens  []int32 `json:"tokens,omitzero"`
	Stop    bool    `json:"stop"` // this is the end
	*llamaEnd
	Probs []llamaProb `json:"completion_probabilities,omitzero"`
}

type llamaProb struct {
	ID int32 `json:"id"`
	tokenLogprob
	Top []llamaProb `json:"top_logprobs,omitzero"` // of a token of the text
}

func (f llamaForm) probs(list []logprob) (all []llamaProb) {
	c := f.a.call
	for _, l := range list {
		one := llamaProb{l.Token, c.tokenLogprob(l.Logprob), []llamaProb{}}
		for _, t := range l.Top {
			one.Top = append(one.Top, llamaProb{t.Token, c.tokenLogprob(t), nil})
		}
		all = append(all, one)
	}
	return all
}

type llamaEnd struct {
	Model     string   `json:"model"`
	Predicted int      `json:"tokens_predicted"`
	Evaluated int      `json:"tokens_evaluated"`
	Cached    int      `json:"tokens_cached"`
	Truncated bool     `json:"truncated"`
	Type      string   `json:"stop_type"`
	Word      string   `json:"stopping_word"`
	Timings   *timings `json:"timings"`
}

func (f llamaForm) end(p *piece) *llamaEnd {
	u := f.a.usage()
	e := &llamaEnd{Model: f.a.call.model.Name, Predicted: u.Completion, Evaluated: u.Prompt,
		Cached: u.PromptDetails.Cached, Timings: f.a.timings()}
	switch p.result.Finish {
	case grove.FinishEnd:
		e.Type = "eos"
	case grove.FinishStop:
		e.Type, e.Word = "word", p.result.Stop
	default:
		e.Type = "limit"
	}
	return e
}

func (f llamaForm) whole(list []piece) any {
	return llamaAnswer{list[0].content, list[0].tokens, true, f.end(&list[0]), f.probs(list[0].probs)}
}

func (f llamaForm) events(p *piece, last bool) (list []event) {
	if p.content != "" || len(p.tokens)+len(p.probs) > 0 {
		list = append(list, event{data: llamaAnswer{Content: p.content, Tokens: p.tokens, Probs: f.probs(p.probs)}})
	}
	if last {
		list = append(list, event{data: llamaAnswer{Stop: true, llamaEnd: f.end(p)}})
	}
	return list
}
