package serve

import (
	"net/http"

	"github.com/grovellm/grove"
	"github.com/grovellm/grove/tokenizer"
)

// Text between two others, by the tokens that some models have for it: llama.cpp's POST /infill,
// and the suffix of completions.

// infill answers POST /infill.
func (s *Server) infill(x *exchange) error {
	m, o, err := x.readModel()
	if err != nil {
		return err
	}
	o.oneChoice()
	if n := 0; o.read("n_predict", &n) && n >= 0 { // -1: no limit
		o.rename("n_predict", "max_tokens")
	}
	var prefix, suffix, begun string
	o.read("input_prefix", &prefix)
	o.read("input_suffix", &suffix)
	o.read("prompt", &begun)
	var before []string
	for _, in := range o.objects("input_extra") {
		name, text := "", in.text("text")
		in.read("filename", &name)
		before, o.err = append(before, name, text), firstOf(o.err, in.err)
	}
	c := x.readCall(o, m)
	c.readTokens(o, x.s.o.MaxTokens, 0, "max_tokens")
	if o.err != nil {
		return o.err
	}
	tokens, err := m.fill(prefix, suffix, before)
	if err != nil {
		return err
	}
	c.prompts = []prompt{{tokens: append(tokens, m.Tokenizer().Encode(begun, tokenizer.EncodeOptions{})...)}}
	return x.answer(c, func(a *answering) form { return infillForm{a} })
}

// fill makes the prompt for the text between prefix and suffix. before are names and texts of
// further files.
func (m *Model) fill(prefix, suffix string, before []string) ([]int32, error) {
	t := m.Tokenizer()
	if t == nil {
		return nil, errNoTokenizer
	}
	f, ok := t.FIM()
	if !ok {
		return nil, newError(http.StatusBadRequest, "invalid_request_error", "no_infill",
			"the model has no tokens that mark a gap to fill (such as <|fim_prefix|>): use a code model that does")
	}
	var tokens []int32
	text := func(s string) { tokens = append(tokens, t.Encode(s, tokenizer.EncodeOptions{})...) }
	if t.AddBOS() {
		tokens = append(tokens, t.BOS())
	}
	for i := 0; i < len(before); i += 2 {
		if f.File >= 0 {
			tokens = append(tokens, f.File)
			text(before[i] + "\n" + before[i+1])
		} else {
			text(before[i+1] + "\n\n")
		}
	}
	if len(before) > 0 && f.File >= 0 {
		tokens = append(tokens, f.File)
		text("\n")
	}
	tokens = append(tokens, f.Prefix)
	text(prefix)
	tokens = append(tokens, f.Suffix)
	text(suffix)
	return append(tokens, f.Middle), nil
}

// infillForm is the form of llama.cpp's answers.
type infillForm struct{ a *answering }

// infillAnswer is an answer, or a piece of one.
type infillAnswer struct {
	Content string `json:"content"`
	Stop    bool   `json:"stop"` // it is the end
	*infillEnd
}

type infillEnd struct {
	Model     string   `json:"model"`
	Predicted int      `json:"tokens_predicted"`
	Evaluated int      `json:"tokens_evaluated"`
	Cached    int      `json:"tokens_cached"`
	Truncated bool     `json:"truncated"`
	Type      string   `json:"stop_type"`
	Word      string   `json:"stopping_word"`
	Timings   *timings `json:"timings"`
}

func (f infillForm) end(p *piece) *infillEnd {
	u := f.a.usage()
	e := &infillEnd{Model: f.a.call.model.Name, Predicted: u.Completion, Evaluated: u.Prompt,
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

func (f infillForm) whole(list []piece) any {
	return infillAnswer{list[0].content, true, f.end(&list[0])}
}

func (f infillForm) events(p *piece, last bool) (list []event) {
	if p.content != "" {
		list = append(list, event{data: infillAnswer{Content: p.content}})
	}
	if last {
		list = append(list, event{data: infillAnswer{Stop: true, infillEnd: f.end(p)}})
	}
	return list
}
