package serve

import (
	"encoding/json"
	"net/http"
	"regexp"
	"strings"

	"github.com/grovellm/grove"
)

// Anthropic's API: POST /v1/messages and /v1/messages/count_tokens.

// messages answers POST /v1/messages.
func (s *Server) messages(x *exchange) error {
	c, err := x.readChat((*object).fromAnthropic)
	if err != nil {
		return err
	}
	return x.answer(c, newMessageForm)
}

// countTokens answers POST /v1/messages/count_tokens.
func (s *Server) countTokens(x *exchange) error {
	c, err := x.readChat((*object).fromAnthropic)
	if err != nil {
		return err
	}
	return x.writeJSON(http.StatusOK, map[string]int{"input_tokens": len(c.prompts[0].tokens)})
}

// anthropicTypes are Anthropic's types of errors by status.
var anthropicTypes = map[int]string{400: "invalid_request_error", 401: "authentication_error", 403: "permission_error",
	404: "not_found_error", 413: "request_too_large", 429: "rate_limit_error",
	503: "overloaded_error", 504: "timeout_error"}

// anthropicError is an error in Anthropic's form.
func anthropicError(x *exchange, e *Error) any {
	kind := anthropicTypes[e.Status]
	switch {
	case kind == "" && e.Status < 500:
		kind = "invalid_request_error"
	case kind == "":
		kind = "api_error"
	}
	fault := map[string]string{"type": kind, "message": e.Message}
	return map[string]any{"type": "error", "error": fault, "request_id": x.id}
}

// fromAnthropic makes the body of a chat completion of one of Anthropic's.
func (o *object) fromAnthropic() {
	o.oneChoice()
	o.refuse("mcp_servers", unlike, "[]")
	o.refuse("container", unlike)
	delete(o.fields, "logprobs")
	o.rename("stop_sequences", "stop")
	if in := o.object("metadata"); in != nil && in.has("user_id") {
		o.fields["user"] = in.fields["user_id"]
		o.name("user", "metadata.user_id")
	}
	if in := o.object("thinking"); in != nil {
		kind := ""
		in.read("type", &kind)
		if kind != "enabled" && kind != "disabled" && kind != "adaptive" {
			in.fail("type", "%q: want enabled, adaptive or disabled", kind)
		}
		o.setThinking(kind != "disabled")
		if kind == "enabled" && in.has("budget_tokens") {
			o.fields["reasoning_budget"] = in.fields["budget_tokens"]
			o.name("reasoning_budget", "thinking.budget_tokens")
		}
		o.err = firstOf(o.err, in.err)
	}
	if in := o.object("output_config"); in != nil {
		if format := in.object("format"); format != nil {
			o.anthropicFormat(format)
		}
		if effort := ""; in.read("effort", &effort) {
			o.setVariable("reasoning_effort", effort)
		}
		o.err = firstOf(o.err, in.err)
	}
	o.anthropicTools()

	var list []*object
	if o.has("system") {
		system := newObject("system")
		system.put("role", "system")
		system.put("content", strings.Join(o.texts("system"), "\n"))
		list = append(list, system)
	}
	for _, in := range o.objects("messages") {
		list = append(list, in.anthropicTurn()...)
	}
	if o.has("messages") && o.err == nil {
		o.continueAssistant(list)
		o.putList("messages", list)
	}
}

func (o *object) anthropicFormat(format *object) {
	kind := ""
	format.read("type", &kind)
	switch {
	case kind != "json_schema":
		format.fail("type", "%q: want json_schema", kind)
	case !format.has("schema"):
		format.fail("schema", "it is missing")
	default:
		o.setSchema(format.fields["schema"], format.path+"schema")
	}
	o.err = firstOf(o.err, format.err)
}

// anthropicTools translates the tools, and which of them may be called.
func (o *object) anthropicTools() {
	list := o.objects("tools")
	for _, in := range list {
		if kind := "custom"; in.read("type", &kind) && kind == "custom" { // which OpenAI calls a function
			delete(in.fields, "type")
		}
		in.rename("input_schema", "parameters")
	}
	if len(list) > 0 {
		o.putList("tools", list)
		o.offerTools(false)
	}
	in := o.object("tool_choice")
	if in == nil {
		return
	}
	kind := ""
	name := ""
	single := false
	in.read("type", &kind)
	in.read("name", &name)
	if in.read("disable_parallel_tool_use", &single) {
		o.put("parallel_tool_calls", !single)
	}
	switch kind {
	case "auto", "none":
		o.put("tool_choice", kind)
	case "any":
		o.put("tool_choice", "required")
	case "tool":
		o.setFunction(name, "tool_choice.name")
	default:
		in.fail("type", "%q: want auto, any, tool or none", kind)
	}
	o.err = firstOf(o.err, in.err)
}

// anthropicTurn translates a message, of which results of tools become messages of their own.
func (o *object) anthropicTurn() (list []*object) {
	if len(o.fields["content"]) == 0 || o.fields["content"][0] != '[' {
		return []*object{o}
	}
	turn := func() *object {
		m := newObject(o.path[:len(o.path)-1])
		m.fields["role"] = o.fields["role"]
		return m
	}
	said := turn()
	text := ""
	reasoning := ""
	calls := []calledTool{}
	given := false
	flush := func() {
		if given {
			said.put("content", text)
			list = append(list, said)
		}
	}
	for _, in := range o.objects("content") {
		kind := ""
		in.read("type", &kind)
		switch kind {
		case "text":
			text, given = text+in.text("text"), true
		case "thinking":
			reasoning += in.text("thinking")
		case "redacted_thinking": // nobody but its author can read it
		case "tool_use":
			id, name := "", ""
			in.read("id", &id)
			in.read("name", &name)
			calls, given = append(calls, newCalledTool(id, name, in.fields["input"])), true
		case "tool_result":
			result := newObject(in.path[:len(in.path)-1])
			result.put("role", "tool")
			result.put("content", in.resultText())
			result.fields["tool_call_id"] = in.fields["tool_use_id"]
			flush()
			list = append(list, result)
			said = turn()
			text = ""
			given = false
		default:
			in.fail("type", "%q: this server reads text, thinking, tool_use and tool_result", kind)
		}
		o.err = firstOf(o.err, in.err)
	}
	if reasoning != "" {
		said.put("reasoning_content", reasoning)
	}
	if len(calls) > 0 {
		said.put("tool_calls", calls)
	}
	given = given || len(list) == 0
	if given {
		flush()
	}
	list[0].err = firstOf(list[0].err, o.err)
	return list
}

// resultText is the text of a tool's result. Chat templates know no errors, so the text says that it is one.
func (o *object) resultText() string {
	text, failed := o.text("content"), false
	o.read("is_error", &failed)
	if failed && !saysError.MatchString(text) {
		text = strings.TrimSpace("Error: " + text)
	}
	return text
}

// saysError matches a text that calls itself an error, such as <tool_use_error>.
var saysError = regexp.MustCompile(`(?i)^\W*(\w*_)?error\b`)

// messageForm is the form of Anthropic's messages.
type messageForm struct {
	a *answering
	blocks
}

func newMessageForm(a *answering) form { return &messageForm{a: a} }

// message is an answer. That of message_start is empty.
type message struct {
	ID      string           `json:"id"`
	Type    string           `json:"type"`
	Role    string           `json:"role"`
	Model   string           `json:"model"`
	Content []map[string]any `json:"content"`
	messageEnd
	Usage messageUsage `json:"usage"`
}

type messageEnd struct {
	StopReason   *string `json:"stop_reason"`
	StopSequence *string `json:"stop_sequence"`
}

type messageUsage struct {
	Input     int `json:"input_tokens"` // those of cache_read_input_tokens apart
	CacheMade int `json:"cache_creation_input_tokens"`
	CacheRead int `json:"cache_read_input_tokens"`
	Output    int `json:"output_tokens"`
}

func (f *messageForm) start() *message {
	return &message{ID: "msg_" + f.a.id, Type: "message", Role: "assistant", Model: f.a.call.model.Name,
		Content: []map[string]any{}, Usage: messageUsage{Input: len(f.a.call.prompts[0].tokens)}}
}

func (f *messageForm) end(p *piece) messageEnd {
	reason := map[string]string{"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use"}[p.finish]
	e := messageEnd{&reason, f.a.call.stopString(p.result)}
	switch {
	case e.StopSequence != nil && p.finish == "stop":
		reason = "stop_sequence"
	case p.result.Finish == grove.FinishContext:
		reason = "model_context_window_exceeded"
	}
	return e
}

func (f *messageForm) usage() messageUsage {
	u := f.a.usage()
	cached := u.PromptDetails.Cached
	return messageUsage{Input: u.Prompt - cached, CacheRead: cached, Output: u.Completion}
}

// content is a block; without its text where it begins.
func (b *block) content(whole bool) map[string]any {
	text := ""
	if whole {
		text = b.text
	}
	switch b.kind {
	case reasoningBlock:
		return map[string]any{"type": "thinking", "thinking": text, "signature": ""}
	case textBlock:
		return map[string]any{"type": "text", "text": text}
	}
	input := json.RawMessage("{}")
	if whole && json.Valid([]byte(text)) { // a call that was cut short has no whole arguments
		input = json.RawMessage(text)
	}
	return map[string]any{"type": "tool_use", "id": b.call.ID, "name": b.call.Function.Name, "input": input,
		"caller": map[string]string{"type": "direct"}}
}

func (f *messageForm) whole(list []piece) any {
	m := f.start()
	f.add(&list[0])
	for _, b := range f.list {
		m.Content = append(m.Content, b.content(true))
	}
	m.messageEnd, m.Usage = f.end(&list[0]), f.usage()
	return m
}

func (f *messageForm) events(p *piece, last bool) (list []event) {
	send := func(name string, fields map[string]any) {
		fields["type"] = name
		list = append(list, event{name, fields})
	}
	if p.first {
		send("message_start", map[string]any{"message": f.start()})
	}
	for _, s := range f.add(p) {
		switch s.kind {
		case opens:
			send("content_block_start", map[string]any{"index": s.at, "content_block": s.content(false)})
		case adds:
			kind := [...]string{"thinking_delta", "text_delta", "input_json_delta"}[s.block.kind]
			field := [...]string{"thinking", "text", "partial_json"}[s.block.kind]
			delta := map[string]string{"type": kind, field: s.text}
			send("content_block_delta", map[string]any{"index": s.at, "delta": delta})
		case closes:
			send("content_block_stop", map[string]any{"index": s.at})
		}
	}
	if last {
		send("message_delta", map[string]any{"delta": f.end(p), "usage": f.usage()})
		send("message_stop", map[string]any{})
	}
	return list
}
