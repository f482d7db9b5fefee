package serve

import (
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"unicode/utf8"

	"github.com/grovellm/grove/internal/inside"
	"github.com/grovellm/grove/tokenizer"
)

// tokenize answers POST /tokenize: "content" as llama.cpp's server has it, or "prompt" or
// "messages" as vLLM's has them.
func (s *Server) tokenize(x *exchange) error {
	m, t, o, err := x.readTokenizer()
	if err != nil {
		return err
	}
	var text string
	options := tokenizer.EncodeOptions{ParseSpecial: true}
	pieces, names := false, false
	o.read("parse_special", &options.ParseSpecial)
	o.read("with_pieces", &pieces)
	o.read("return_token_strs", &names)
	var tokens []int32
	switch {
	case o.read("content", &text):
		o.read("add_special", &options.AddSpecial)
	case o.read("prompt", &text):
		options.AddSpecial = true
		o.read("add_special_tokens", &options.AddSpecial)
	case o.has("messages"):
		layout, err := m.Layout()
		if err != nil {
			return err
		}
		prompt := o.readPromptEnd()
		o.read("chat_template_kwargs", &prompt.Vars)
		if len(o.objects("tools")) > 0 {
			prompt.Tools = o.fields["tools"]
		}
		messages := o.messages()
		cutLines(messages, s.o.CutLines)
		shapeCalls(o, messages, layout)
		if o.err != nil {
			return o.err
		}
		if tokens, err = layout.Encode(placeSystem(layout, messages, prompt), prompt); err != nil {
			return fieldError("messages", "%v", err)
		}
	default:
		o.fail("content", "it is missing")
	}
	switch {
	case o.err != nil:
		return o.err
	case tokens != nil: // of messages
	case options.AddSpecial && options.ParseSpecial: // as completions read it
		if tokens, err = m.Tokenize(text); err != nil {
			return err
		}
	default:
		tokens = t.Encode(text, options)
	}
	if tokens == nil {
		tokens = []int32{}
	}
	answer := struct {
		Tokens    any      `json:"tokens"`
		Count     int      `json:"count"`
		MaxTokens int      `json:"max_model_len"`
		Names     []string `json:"token_strs,omitempty"`
	}{Tokens: tokens, Count: len(tokens), MaxTokens: m.Context()}
	if pieces {
		list := make([]tokenPiece, len(tokens))
		for i, token := range tokens {
			list[i] = tokenPiece{token, pieceJSON(m.piece(token))}
		}
		answer.Tokens = list
	}
	if names {
		for _, token := range tokens {
			answer.Names = append(answer.Names, t.Text(token))
		}
	}
	return x.writeJSON(http.StatusOK, answer)
}

type tokenPiece struct {
	ID    int32 `json:"id"`
	Piece any   `json:"piece"`
}

// pieceJSON is a token's text, or the list of its bytes where they are no whole characters.
func pieceJSON(piece string) any {
	if utf8.ValidString(piece) {
		return piece
	}
	return bytesOf(piece)
}

// detokenize answers POST /detokenize, under the names of both servers.
func (s *Server) detokenize(x *exchange) error {
	m, t, o, err := x.readTokenizer()
	if err != nil {
		return err
	}
	tokens, ok := listOf[int32](o.fields["tokens"])
	if !ok {
		o.misfit("tokens", reflect.TypeFor[[]int32]())
	}
	for i, token := range tokens {
		if vocab := m.Target().Vocab; token < 0 || int(token) >= vocab {
			o.fail(fmt.Sprintf("tokens[%d]", i), "token %d: this model's go from 0 to %d", token, vocab-1)
		}
	}
	if o.err != nil {
		return o.err
	}
	text := strings.ToValidUTF8(t.DecodeWith(tokens, tokenizer.DecodeOptions{Special: true}), "\ufffd")
	return x.writeJSON(http.StatusOK, struct {
		Content string `json:"content"`
		Prompt  string `json:"prompt"`
	}{text, text})
}

func (x *exchange) readTokenizer() (*Model, *tokenizer.Tokenizer, *object, error) {
	m, o, err := x.readModel()
	if err != nil {
		return nil, nil, nil, err
	}
	t := m.Tokenizer()
	if t == nil {
		return nil, nil, nil, errNoTokenizer
	}
	return m, t, o, nil
}

// modelCard describes a model, with fields of OpenAI, vLLM and llama.cpp. Those of its contents are
// left out until it was loaded.
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

// card describes an entry.
func (s *Server) card(e *entry) modelCard {
	c := modelCard{ID: e.Name, Object: "model", Created: s.began.Unix(), Owner: "grove", Status: e.state()}
	if m := e.model; m != nil {
		config := inside.Target(m).Model.Config
		e.meta = &modelMeta{m.Context(), config.Vocab, config.Parameters(), m.WeightBytes()}
	}
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
	if err != nil {
		return err
	}
	return x.writeJSON(http.StatusOK, card)
}
