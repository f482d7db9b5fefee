package serve

import (
	"net/http"

	"github.com/grovellm/grove"
	"github.com/grovellm/grove/tokenizer"
)

// Text between two others, by the tokens that some models have for it: llama.cpp's POST /infill,
// and the suffix of completions.

// infillBody is the body of POST /infill.
type infillBody struct {
	options
	oneChoice
	Prefix   string       `json:"input_prefix"`
	Suffix   string       `json:"input_suffix"`
	Prompt   string       `json:"prompt"` // how the text begins
	Extra    []infillFile `json:"input_extra"`
	NPredict field[int]   `json:"n_predict"`
}

// infillFile is a further file.
type infillFile struct {
	Name string  `json:"filename"`
	Text content `json:"text"`
}

// infill answers POST /infill.
func (s *Server) infill(x *exchange) error {
	var b infillBody
	m, err := x.readRequest(&b, &b.Model)
	if err != nil {
		return err
	}
	c, err := x.newCall(m, &b.options, several{})
	if err != nil {
		return err
	}
	c.promptPath = "prompt"
	if b.NPredict.given && b.NPredict.value >= 0 { // below: no limit
		b.MaxTokens = b.NPredict
	}
	if err := c.setLength(x.s.o.MaxTokens, 0, &b.MaxTokens); err != nil {
		return err
	}
	tokens, err := m.fill(b.Prefix, b.Suffix, b.Extra)
	if err != nil {
		return err
	}
	c.prompts = []prompt{{tokens: append(tokens, m.Tokenizer().Encode(b.Prompt, tokenizer.EncodeOptions{})...)}}
	return x.answer(c, func(a *answering) form { return infillForm{a} })
}

// fill makes the prompt for the text between prefix and suffix, behind further files.
func (m *Model) fill(prefix, suffix string, before []infillFile) ([]int32, error) {
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
	for _, file := range before {
		if f.File >= 0 {
			tokens = append(tokens, f.File)
			text(file.Name + "\n" + file.Text.text())
		} else {
			text(file.Text.text() + "\n\n")
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
