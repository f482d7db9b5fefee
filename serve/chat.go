package serve

import (
	"cmp"
	"encoding/json"
	"fmt"

	"github.com/grovellm/grove"
)

// chatBody is the body of POST /v1/chat/completions.
type chatBody struct {
	chatOptions
	several
	oldFunctions
	Messages   field[[]chatMessageBody] `json:"messages"`
	Tools      field[[]toolBody]        `json:"tools"`
	ToolChoice field[toolChoice]        `json:"tool_choice"`
	Effort     string                   `json:"reasoning_effort"`
	Reasoning  responseReasoning        `json:"reasoning"`         // where Ollama's clients send the effort
	Include    field[bool]              `json:"include_reasoning"` // vLLM's
	Echo       refused                  `json:"echo" neutral:"false"`

	Thinking       json.RawMessage `json:"thinking"`        // of DeepSeek, Z.ai and Moonshot: its type turns reasoning on or off
	EnableThinking json.RawMessage `json:"enable_thinking"` // of Alibaba: true or false
}

// chatMessageBody is a message. Its unknown fields go to the chat template.
type chatMessageBody struct {
	Role         field[string]         `json:"role"`
	Content      field[messageContent] `json:"content"`
	ToolCalls    field[[]chatCall]     `json:"tool_calls"`
	ToolCallID   string                `json:"tool_call_id"`
	Refusal      field[string]         `json:"refusal"`
	FunctionCall field[oldCalled]      `json:"function_call"`
	More         unknown
}

// chatCall is an earlier call: of a function, or of a custom tool.
type chatCall struct {
	ID       string `json:"id"`
	Function struct {
		Name      string        `json:"name"`
		Arguments callArguments `json:"arguments"`
	} `json:"function"`
	Custom field[customCall] `json:"custom"`
}

// chatCompletions answers POST /v1/chat/completions.
func (s *Server) chatCompletions(x *exchange) error {
	var b chatBody
	m, err := x.readRequest(&b, &b.Model)
	if err != nil {
		return err
	}
	v, err := b.conversation()
	if err != nil {
		return err
	}
	c, err := x.newChat(m, v)
	if err != nil {
		return err
	}
	c.unthinking = !b.Include.or(true)
	return x.answer(c, newChatForm)
}

// conversation returns the request that a body makes.
func (b *chatBody) conversation() (*conversation, error) {
	v := &conversation{chatOptions: &b.chatOptions, several: b.several, path: b.Messages.path}
	thinking, _ := decode[struct{ Type string }](b.Thinking)
	switch word := cmp.Or(thinking.Type, string(b.EnableThinking)); {
	case v.choosesThinking():
	case word == "enabled" || word == "true":
		v.setThinking(true)
	case word == "disabled" || word == "false":
		v.setThinking(false)
	}
	v.setEffort(cmp.Or(b.Effort, b.Reasoning.Effort))
	if err := v.tools.offerAll(&b.Tools, true); err != nil {
		return nil, err
	}
	if err := v.tools.chooseChat(&b.ToolChoice); err != nil {
		return nil, err
	}
	if err := v.offerOld(&b.oldFunctions, b.Tools.given); err != nil {
		return nil, err
	}
	if !b.Messages.given {
		return nil, b.Messages.fail("the field is required")
	}
	for i := range b.Messages.value {
		in := &b.Messages.value[i]
		m, err := in.message(fmt.Sprintf("%s[%d]", b.Messages.path, i))
		if err != nil {
			return nil, err
		}
		v.messages = append(v.messages, m)
	}
	return v, nil
}

// message returns the message that a body at path makes.
func (b *chatMessageBody) message(path string) (message, error) {
	said := &b.Content.value
	m := message{path: path, role: b.Role.value, content: said.lines(), reasoning: said.thought.text(),
		result: b.ToolCallID, more: b.More, unread: said.unread}
	for i := range b.ToolCalls.value {
		m.calls = append(m.calls, b.ToolCalls.value[i].called())
	}
	if old := &b.FunctionCall; old.given && !b.ToolCalls.given {
		m.calls = append(m.calls, newCalledTool("", old.value.Name, argumentsOf(old.value.Arguments)))
	}
	if b.Refusal.given && !b.Content.given {
		m.content = b.Refusal.value
	}
	if m.role == "function" {
		m.role = "tool"
	}
	switch {
	case m.role == "":
		return m, b.Role.fail("want system, user or assistant")
	case m.reasoning != "" && m.role != "assistant":
		return m, b.Content.fail("only the assistant's messages may have reasoning")
	case !b.Content.given && m.role != "assistant" && m.role != "tool": // an answer and a result may have been empty
		return m, b.Content.fail("the field is required")
	}
	return m, nil
}

// called returns an earlier call in the form of chat templates.
func (b *chatCall) called() calledTool {
	if b.Custom.given {
		return newCustomCall(b.ID, b.Custom.value.Name, b.Custom.value.Input)
	}
	return newCalledTool(b.ID, b.Function.Name, argumentsOf(string(b.Function.Arguments)))
}

// chooseChat applies a chat completion's choice of tools.
func (t *toolset) chooseChat(f *field[toolChoice]) error {
	c := &f.value
	switch {
	case !f.given:
		return nil
	case c.Allowed.given:
		return t.chooseAllowed(&c.Allowed.value, f.path)
	case c.Custom.given:
		name := &c.Custom.value.Name
		return t.chooseOne(t.nameOf("", name.value), name.path)
	case c.Function.given:
		name := &c.Function.value.Name
		return t.chooseOne(name.value, name.path)
	case c.Name.given: // as in responses and in Anthropic's API, whose forms some clients send
		return t.chooseOne(t.nameOf("", c.Name.value), c.Name.path)
	case c.word == "" && c.Type.given && c.Type.value != "function":
		return t.chooseMode(c.Type.value, f.path)
	case c.word == "":
		return fieldError(f.path+".function.name", "the field is required")
	}
	return t.chooseMode(c.word, f.path)
}

// chatChoice is a choice of a chat completion.
type chatChoice struct {
	Index        int           `json:"index"`
	Message      chatMessage   `json:"message"`
	Logprobs     *chatLogprobs `json:"logprobs"`
	FinishReason *string       `json:"finish_reason"`
	StopReason   any           `json:"stop_reason"`
	TokenIDs     []int32       `json:"token_ids,omitzero"`
}

// reasoned is reasoning under the names that clients read: llama.cpp's, and that of vLLM and Ollama.
type reasoned struct {
	ReasoningContent string `json:"reasoning_content,omitempty"`
	Reasoning        string `json:"reasoning,omitempty"`
}

type chatMessage struct {
	Role    string  `json:"role"`
	Content *string `json:"content"` // null if there are only calls
	reasoned
	ToolCalls []toolCall `json:"tool_calls,omitempty"`
	Refusal   *string    `json:"refusal"`

	FunctionCall *calledFunction `json:"function_call,omitempty"` // the old form of a call
}

// chatPiece is a piece of a choice.
type chatPiece struct {
	Index        int           `json:"index"`
	Delta        chatDelta     `json:"delta"`
	Logprobs     *chatLogprobs `json:"logprobs"`
	FinishReason *string       `json:"finish_reason"`
	StopReason   any           `json:"stop_reason"`
	TokenIDs     []int32       `json:"token_ids,omitzero"`
}

type chatDelta struct {
	Role    string  `json:"role,omitempty"`
	Content *string `json:"content,omitempty"`
	reasoned
	ToolCalls []toolCall `json:"tool_calls,omitempty"`

	FunctionCall *calledFunction `json:"function_call,omitempty"`
}

type chatLogprobs struct {
	Content []chatLogprob `json:"content"`
	Refusal *string       `json:"refusal"`
}

type chatLogprob struct {
	tokenLogprob
	TopLogprobs []tokenLogprob `json:"top_logprobs"`
}

// tokenLogprob is a token with its log-probability. A token's bytes may be only part of a character.
type tokenLogprob struct {
	Token   string  `json:"token"`
	Logprob float32 `json:"logprob"`
	Bytes   []int   `json:"bytes"`
}

func (c *call) tokenLogprob(l grove.Logprob) tokenLogprob {
	piece := c.model.piece(l.Token)
	return tokenLogprob{Token: piece, Logprob: finite(l.Logprob), Bytes: bytesOf(piece)}
}

// bytesOf returns the bytes of a text as JSON represents them.
func bytesOf(text string) []int {
	list := make([]int, len(text))
	for i, b := range []byte(text) {
		list[i] = int(b)
	}
	return list
}

func (c *call) chatLogprobs(list []logprob) *chatLogprobs {
	if !c.request.Logprobs {
		return nil
	}
	all := &chatLogprobs{Content: []chatLogprob{}}
	for _, l := range list {
		one := chatLogprob{tokenLogprob: c.tokenLogprob(l.Logprob), TopLogprobs: []tokenLogprob{}}
		for _, t := range l.Top {
			one.TopLogprobs = append(one.TopLogprobs, c.tokenLogprob(t))
		}
		all.Content = append(all.Content, one)
	}
	return all
}

// chatForm presents the choices of chat completions.
type chatForm struct{ c *call }

func newChatForm(a *answering) form {
	object := "chat.completion"
	if a.call.stream {
		object = "chat.completion.chunk"
	}
	return newOpenAIForm(a, "chatcmpl-", object, chatForm{a.call})
}

func (f chatForm) whole(p *piece) any {
	m := chatMessage{Role: "assistant", Content: &p.content, reasoned: reasoned{p.reasoning, p.reasoning},
		ToolCalls: shownCalls(p.calls)}
	for i := range m.ToolCalls {
		m.ToolCalls[i].Index = nil
	}
	if p.content == "" && len(p.calls) > 0 {
		m.Content = nil
	}
	m.FunctionCall = f.c.oldCall(p.calls)
	if m.FunctionCall != nil {
		m.ToolCalls = nil
	}
	return chatChoice{Index: p.index, Message: m, Logprobs: f.c.chatLogprobs(p.probs),
		FinishReason: orNil(f.c.oldFinish(p.finish)), StopReason: f.c.stopReason(p.result), TokenIDs: p.tokens}
}

func (f chatForm) pieces(p *piece) (list []any) {
	if p.first {
		list = append(list, chatPiece{Index: p.index, Delta: chatDelta{Role: "assistant", Content: new(string)}})
	}
	if p.reasoning != "" {
		list = append(list, chatPiece{Index: p.index, Delta: chatDelta{reasoned: reasoned{p.reasoning, p.reasoning}}})
	}
	if p.content != "" || len(p.probs) > 0 {
		list = append(list, chatPiece{Index: p.index, Delta: chatDelta{Content: &p.content},
			Logprobs: f.c.chatLogprobs(p.probs)})
	}
	for i := range shownCalls(p.calls) {
		d := chatDelta{ToolCalls: p.calls[i : i+1]}
		if old := f.c.oldCall(d.ToolCalls); old != nil {
			d = chatDelta{FunctionCall: old}
		}
		list = append(list, chatPiece{Index: p.index, Delta: d})
	}
	if p.result != nil {
		list = append(list, chatPiece{Index: p.index, FinishReason: orNil(f.c.oldFinish(p.finish)),
			StopReason: f.c.stopReason(p.result)})
	}
	if len(p.tokens) > 0 {
		last := chatPiece{Index: p.index} // of tokens whose text is held back
		if n := len(list); n > 0 {
			last = list[n-1].(chatPiece)
			list = list[:n-1]
		}
		last.TokenIDs = p.tokens
		list = append(list, last)
	}
	return list
}
