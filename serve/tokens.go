package serve

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/grovellm/grove/internal/inside"
	"github.com/grovellm/grove/internal/inside/lower"
	"github.com/grovellm/grove/tokenizer"
)

// tokenizeBody is the body of POST /tokenize: "content" as in llama.cpp's server, or "prompt" or
// "messages" as in vLLM.
type tokenizeBody struct {
	chatBody
	Content          field[string] `json:"content"`
	AddSpecial       bool          `json:"add_special"`
	Prompt           field[string] `json:"prompt"`
	AddSpecialTokens field[bool]   `json:"add_special_tokens"`
	ParseSpecial     field[bool]   `json:"parse_special"`
	WithPieces       bool          `json:"with_pieces"`
	ReturnNames      bool          `json:"return_token_strs"`
}

// tokenList is the answer.
type tokenList struct {
	Tokens    any      `json:"tokens"` // ids, alone or with their pieces
	Count     int      `json:"count"`
	MaxTokens int      `json:"max_model_len"`
	Names     []string `json:"token_strs,omitempty"`
}

// tokenize answers POST /tokenize.
func (s *Server) tokenize(x *exchange) error {
	var b tokenizeBody
	m, t, err := x.readTokenizer(&b, &b.Model)
	if err != nil {
		return err
	}
	var tokens []int32
	parse := b.ParseSpecial.or(true)
	switch {
	case b.Content.given:
		tokens, err = m.tokensOf(b.Content.value, b.AddSpecial, parse)
	case b.Prompt.given:
		tokens, err = m.tokensOf(b.Prompt.value, b.AddSpecialTokens.or(true), parse)
	case b.Messages.given:
		tokens, err = m.conversationTokens(&b.chatBody, s.o.CutLines)
	default:
		err = b.Content.fail("the field is required")
	}
	if err != nil {
		return err
	}
	if tokens == nil {
		tokens = []int32{}
	}
	answer := tokenList{Tokens: tokens, Count: len(tokens), MaxTokens: m.Context()}
	if b.WithPieces {
		list := make([]tokenPiece, len(tokens))
		for i, token := range tokens {
			list[i] = tokenPiece{token, pieceJSON(m.piece(token))}
		}
		answer.Tokens = list
	}
	if b.ReturnNames {
		for _, token := range tokens {
			answer.Names = append(answer.Names, t.Text(token))
		}
	}
	return x.writeJSON(http.StatusOK, answer)
}

// tokensOf returns the tokens of text, with or without those that begin and end it; parse reads special tokens' names.
func (m *Model) tokensOf(text string, special, parse bool) ([]int32, error) {
	if special && parse { // as completions read it
		return m.Tokenize(text)
	}
	return m.Tokenizer().Encode(text, tokenizer.EncodeOptions{AddSpecial: special, ParseSpecial: parse}), nil
}

// conversationTokens returns the tokens of a conversation's prompt.
func (m *Model) conversationTokens(b *chatBody, cut []*regexp.Regexp) ([]int32, error) {
	layout, err := m.Layout()
	if err != nil {
		return nil, err
	}
	v, err := b.conversation()
	if err != nil {
		return nil, err
	}
	options, err := v.promptEnd()
	if err != nil {
		return nil, err
	}
	if v.tools.mode != "none" {
		options.Tools = v.tools.shown(layout)
	}
	messages, err := v.layOut(layout, cut)
	if err != nil {
		return nil, err
	}
	tokens, err := encodeFitted(layout, messages, options)
	if err != nil {
		return nil, fieldError(v.path, "%v", err)
	}
	return tokens, nil
}

type tokenPiece struct {
	ID    int32 `json:"id"`
	Piece any   `json:"piece"`
}

// pieceJSON returns a token's text, or a list of its bytes if they are not whole characters.
func pieceJSON(piece string) any {
	if utf8.ValidString(piece) {
		return piece
	}
	return bytesOf(piece)
}

// detokenizeBody is the body of POST /detokenize.
type detokenizeBody struct {
	Model  field[string]  `json:"model"`
	Tokens field[[]int32] `json:"tokens"`
}

// detokenized is the answer, under the names of both servers.
type detokenized struct {
	Content string `json:"content"`
	Prompt  string `json:"prompt"`
}

// detokenize answers POST /detokenize.
func (s *Server) detokenize(x *exchange) error {
	var b detokenizeBody
	m, t, err := x.readTokenizer(&b, &b.Model)
	if err != nil {
		return err
	}
	if !b.Tokens.given {
		return b.Tokens.fail("the field is required: give a list of tokens")
	}
	for i, token := range b.Tokens.value {
		if vocab := inside.Target(m).Vocab; token < 0 || int(token) >= vocab {
			return fieldError(fmt.Sprintf("%s[%d]", b.Tokens.path, i), "token %d: the model has ids 0 to %d", token, vocab-1)
		}
	}
	text := strings.ToValidUTF8(t.Decode(b.Tokens.value, tokenizer.DecodeOptions{Special: true}), "\ufffd")
	return x.writeJSON(http.StatusOK, detokenized{text, text})
}

// readTokenizer reads a body as readRequest does, and returns the model and its tokenizer.
func (x *exchange) readTokenizer(to any, model *field[string]) (*Model, *tokenizer.Tokenizer, error) {
	m, err := x.readRequest(to, model)
	if err != nil {
		return nil, nil, err
	}
	t := m.Tokenizer()
	if t == nil {
		return nil, nil, errNoTokenizer
	}
	return m, t, nil
}

// tokenizerInfo is vLLM's description of a tokenizer, which lm-eval reads.
type tokenizerInfo struct {
	BOS      *string `json:"bos_token"`
	EOS      *string `json:"eos_token"`
	PAD      *string `json:"pad_token"`
	UNK      *string `json:"unk_token"`
	AddBOS   bool    `json:"add_bos_token"`
	Template *string `json:"chat_template"`
	Length   int     `json:"model_max_length"`
}

// tokenizerInfo answers GET /tokenizer_info for the model that the query names, or else the first
// one. It loads the model.
func (s *Server) tokenizerInfo(x *exchange) error {
	m, err := x.useModel(x.r.URL.Query().Get("model"))
	if err != nil {
		return err
	}
	t := m.Tokenizer()
	if t == nil {
		return errNoTokenizer
	}
	special := lower.SpecialsOf(t)
	return x.writeJSON(http.StatusOK, &tokenizerInfo{BOS: orNil(m.tokenNamed(t.BOS())), EOS: orNil(m.tokenNamed(t.EOS())),
		PAD: orNil(m.tokenNamed(special.PAD)), UNK: orNil(m.tokenNamed(special.UNK)), AddBOS: t.AddBOS(),
		Template: orNil(m.template()), Length: m.Context()})
}

// tokenNamed returns a token's name, or "" if there is none.
func (m *Model) tokenNamed(token int32) string {
	if token < 0 {
		return ""
	}
	return m.Tokenizer().Text(token)
}

// template returns the chat template that lays out conversations, or "" if it is refused.
func (m *Model) template() string {
	layout, err := m.Layout()
	if err != nil {
		return ""
	}
	return lower.TemplateOf(layout)
}

// modelCard describes a model, with fields of OpenAI, vLLM and llama.cpp. It omits fields about its
// contents until it has been loaded.
type modelCard struct {
	ID      string     `json:"id"`
	Object  string     `json:"object"`
	Created int64      `json:"created"`
	Owner   string     `json:"owned_by"`
	Status  modelState `json:"status"`
	Context int        `json:"max_model_len,omitempty"`
	Meta    *modelMeta `json:"meta,omitempty"`
}

type modelMeta struct {
	Context    int   `json:"n_ctx"`
	Vocab      int   `json:"n_vocab"`
	Parameters int64 `json:"n_params"`
	Size       int   `json:"size"`
}

func newModelMeta(m *Model) *modelMeta {
	t := inside.Target(m).Model
	return &modelMeta{m.Context(), t.Config.Vocab, t.Config.Parameters(), t.WeightBytes()}
}

// card describes an entry.
func (s *Server) card(e *entry) modelCard {
	c := modelCard{ID: e.Name, Object: "model", Created: s.began.Unix(), Owner: "grove", Status: e.state()}
	c.Meta = e.meta
	if c.Meta != nil {
		c.Context = c.Meta.Context
	}
	return c
}

// listModels answers GET /v1/models.
func (s *Server) listModels(x *exchange) error {
	if err := s.ready(); err != nil {
		return err
	}
	list := []modelCard{}
	s.models.each(func(e *entry) { list = append(list, s.card(e)) })
	if asksAsAnthropic(x.r) {
		return x.writeJSON(http.StatusOK, newAnthropicModels(list))
	}
	return x.writeJSON(http.StatusOK, struct {
		Object string      `json:"object"`
		Data   []modelCard `json:"data"`
	}{"list", list})
}

// oneModel answers GET /v1/models/{id}.
func (s *Server) oneModel(x *exchange) error {
	if err := s.ready(); err != nil {
		return err
	}
	var card modelCard
	err := s.models.view(s.models.named, x.r.PathValue("id"), func(e *entry) { card = s.card(e) })
	switch {
	case err != nil:
		return err
	case asksAsAnthropic(x.r):
		return x.writeJSON(http.StatusOK, card.asAnthropic())
	}
	return x.writeJSON(http.StatusOK, card)
}
