package serve

import (
	"net/http"

	"github.com/grovellm/grove/tokenizer"
)

// Text between two others, with the tokens that some models have for it: llama.cpp's POST /infill,
// and the suffix of completions.

// infillBody is the body of POST /infill.
type infillBody struct {
	llamaBody
	Prefix string       `json:"input_prefix"`
	Suffix string       `json:"input_suffix"`
	Prompt string       `json:"prompt"` // how the text begins
	Extra  []infillFile `json:"input_extra"`
}

// infillFile is an additional file.
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
	c, err := x.newLlamaCall(m, &b.llamaBody)
	if err != nil {
		return err
	}
	tokens, err := m.fill(b.Prefix, b.Suffix, b.Extra)
	if err != nil {
		return err
	}
	c.prompts = []prompt{{tokens: append(tokens, m.Tokenizer().Encode(b.Prompt, tokenizer.EncodeOptions{})...)}}
	return x.answer(c, newLlamaForm)
}

// fill makes the prompt for the text between prefix and suffix, which follow the additional files.
func (m *Model) fill(prefix, suffix string, before []infillFile) ([]int32, error) {
	t := m.Tokenizer()
	if t == nil {
		return nil, errNoTokenizer
	}
	gap, ok := t.Infill(prefix, suffix)
	if !ok {
		return nil, newError(http.StatusBadRequest, "invalid_request_error", "no_infill",
			"the model has no tokens for fill-in-the-middle, such as <|fim_prefix|>: use a code model that has them")
	}
	var tokens []int32
	text := func(s string) { tokens = append(tokens, t.Encode(s, tokenizer.EncodeOptions{})...) }
	if t.AddBOS() {
		tokens = append(tokens, t.BOS())
	}
	separator, separates := fileSeparator(t)
	for _, file := range before {
		if separates {
			tokens = append(tokens, separator)
			text(file.Name + "\n" + file.Text.text())
		} else {
			text(file.Text.text() + "\n\n")
		}
	}
	if len(before) > 0 && separates {
		tokens = append(tokens, separator)
		text("\n")
	}
	return append(tokens, gap...), nil
}

// fileSeparator returns the token that begins an additional file.
func fileSeparator(t *tokenizer.Tokenizer) (id int32, ok bool) {
	for _, name := range []string{"<|file_sep|>", "<file_sep>"} {
		if id, ok := t.Find(name); ok && t.IsSpecial(id) {
			return id, true
		}
	}
	return 0, false
}
