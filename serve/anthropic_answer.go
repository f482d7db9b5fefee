package serve

import (
	"encoding/json"

	"github.com/grovellm/grove"
)

// Answers of Anthropic's API.

// anthropicFailure is an error in Anthropic's form.
type anthropicFailure struct {
	Type      string         `json:"type"`
	Error     anthropicFault `json:"error"`
	RequestID string         `json:"request_id"`
}

type anthropicFault struct {
	Type    string `json:"type"`
	Message string `json:"message"`
}

func anthropicError(x *exchange, e *apiError) any {
	return anthropicFailure{"error", anthropicFault{anthropicType(e.Status), e.Message}, x.id}
}

// anthropicTypes are Anthropic's error types that have a status of their own.
var anthropicTypes = map[int]string{401: "authentication_error", 403: "permission_error", 404: "not_found_error",
	413: "request_too_large", 429: "rate_limit_error", 503: "overloaded_error", 504: "timeout_error"}

// anthropicType returns Anthropic's error type for a status.
func anthropicType(status int) string {
	if known := anthropicTypes[status]; known != "" {
		return known
	}
	if status < 500 {
		return "invalid_request_error"
	}
	return "api_error"
}

// messageForm is the form of Anthropic's messages.
type messageForm struct {
	a *answering
	blocks
}

func newMessageForm(a *answering) form { return &messageForm{a: a} }

// anthropicMessage is an answer. In message_start it is empty.
type anthropicMessage struct {
	ID      string `json:"id"`
	Type    string `json:"type"`
	Role    string `json:"role"`
	Model   string `json:"model"`
	Content []any  `json:"content"` // blocks
	messageEnd
	Usage messageUsage `json:"usage"`
}

type messageEnd struct {
	StopReason   *string `json:"stop_reason"`
	StopSequence *string `json:"stop_sequence"`
}

type messageUsage struct {
	Input     int `json:"input_tokens"` // without cache_read_input_tokens
	CacheMade int `json:"cache_creation_input_tokens"`
	CacheRead int `json:"cache_read_input_tokens"`
	Output    int `json:"output_tokens"`
}

// Blocks of an answer.
type (
	thinkingContent struct {
		Type      string `json:"type"`
		Thinking  string `json:"thinking"`
		Signature string `json:"signature"`
	}
	textContent struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	toolUse struct {
		Type   string          `json:"type"`
		ID     string          `json:"id"`
		Name   string          `json:"name"`
		Input  json.RawMessage `json:"input"`
		Caller toolCaller      `json:"caller"`
	}
	toolCaller struct {
		Type string `json:"type"`
	}
)

// Events of a stream.
type (
	messageStart struct {
		Type    string            `json:"type"`
		Message *anthropicMessage `json:"message"`
	}
	blockStart struct {
		Type  string `json:"type"`
		Index int    `json:"index"`
		Block any    `json:"content_block"`
	}
	blockDelta struct {
		Type  string     `json:"type"`
		Index int        `json:"index"`
		Delta blockPiece `json:"delta"`
	}
	blockPiece struct { // one of the last three is set
		Type     string  `json:"type"`
		Thinking *string `json:"thinking,omitempty"`
		Text     *string `json:"text,omitempty"`
		JSON     *string `json:"partial_json,omitempty"`
	}
	blockStop struct {
		Type  string `json:"type"`
		Index int    `json:"index"`
	}
	messageDelta struct {
		Type  string       `json:"type"`
		Delta messageEnd   `json:"delta"`
		Usage messageUsage `json:"usage"`
	}
	messageStop struct {
		Type string `json:"type"`
	}
)

func (f *messageForm) start() *anthropicMessage {
	return &anthropicMessage{ID: "msg_" + f.a.id, Type: "message", Role: "assistant", Model: f.a.call.model.Name,
		Content: []any{}, Usage: messageUsage{Input: len(f.a.call.prompts[0].tokens)}}
}

func (f *messageForm) end(p *piece) messageEnd {
	e := messageEnd{StopSequence: f.a.call.stopString(p.result)}
	reason := "end_turn"
	switch {
	case p.result.Finish == grove.FinishContext:
		reason = "model_context_window_exceeded"
	case p.finish == "length":
		reason = "max_tokens"
	case p.finish == "tool_calls":
		reason = "tool_use"
	case e.StopSequence != nil:
		reason = "stop_sequence"
	}
	e.StopReason = &reason
	return e
}

func (f *messageForm) usage() messageUsage {
	u := f.a.usage()
	cached := u.PromptDetails.Cached
	return messageUsage{Input: u.Prompt - cached, CacheRead: cached, Output: u.Completion}
}

// content returns a block with a text: the block's whole text, or none where the block begins.
func (b *block) content(text string) any {
	switch b.kind {
	case reasoningBlock:
		return thinkingContent{Type: "thinking", Thinking: text}
	case textBlock:
		return textContent{Type: "text", Text: text}
	}
	input := json.RawMessage("{}")
	if json.Valid([]byte(text)) { // a call that was cut short has incomplete arguments
		input = json.RawMessage(text)
	}
	return toolUse{Type: "tool_use", ID: b.call.ID, Name: b.call.Function.Name, Input: input, Caller: toolCaller{"direct"}}
}

// delta returns a text as an addition to a block.
func (b *block) delta(text string) blockPiece {
	switch b.kind {
	case reasoningBlock:
		return blockPiece{Type: "thinking_delta", Thinking: &text}
	case textBlock:
		return blockPiece{Type: "text_delta", Text: &text}
	}
	return blockPiece{Type: "input_json_delta", JSON: &text}
}

func (f *messageForm) whole(list []piece) any {
	m := f.start()
	f.add(&list[0])
	for _, b := range f.list {
		m.Content = append(m.Content, b.content(b.text))
	}
	m.messageEnd = f.end(&list[0])
	m.Usage = f.usage()
	return m
}

func (f *messageForm) events(p *piece, last bool) (list []event) {
	send := func(name string, data any) { list = append(list, event{name, data}) }
	if p.first {
		send("message_start", messageStart{"message_start", f.start()})
	}
	for _, s := range f.add(p) {
		switch s.kind {
		case opens:
			send("content_block_start", blockStart{"content_block_start", s.at, s.content("")})
		case adds:
			send("content_block_delta", blockDelta{"content_block_delta", s.at, s.delta(s.text)})
		case closes:
			send("content_block_stop", blockStop{"content_block_stop", s.at})
		}
	}
	if last {
		send("message_delta", messageDelta{"message_delta", f.end(p), f.usage()})
		send("message_stop", messageStop{"message_stop"})
	}
	return list
}
