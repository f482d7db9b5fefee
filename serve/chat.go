package serve

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/grovellm/grove"
	"github.com/grovellm/grove/chat"
	"github.com/grovellm/grove/tokenizer"
)

// chatCompletions answers POST /v1/chat/completions.
func (s *Server) chatCompletions(x *exchange) error {
	c, err := x.readChat((*object).fromChat)
	if err != nil {
		return err
	}
	return x.answer(c, newChatForm)
}

// fromChat brings what OpenAI's chat completions have in several forms to one.
func (o *object) fromChat() {
	effort := ""
	o.read("reasoning_effort", &effort)
	o.setEffort(effort)
	o.fromOldFunctions()
	o.offerTools(true)
	if _, isWord := decode[string](o.fields["tool_choice"]); isWord || !o.has("tool_choice") {
		return
	}
	in := o.object("tool_choice")
	if in == nil {
		return
	}
	if allowed := in.object("allowed_tools"); allowed != nil {
		o.readAllowed(allowed)
	} else if custom := in.object("custom"); custom != nil {
		name := ""
		custom.read("name", &name)
		o.setFunction(name, "tool_choice.custom.name")
	}
	o.err = firstOf(o.err, in.err)
}

// readChat reads a conversation to answer. translate puts fields of a chat completion in the place
// of others.
func (x *exchange) readChat(translate func(*object)) (*call, error) {
	m, o, err := x.readModel()
	if err != nil {
		return nil, err
	}
	translate(o)
	return x.readConversation(o, m)
}

// readConversation reads the body of a chat completion.
func (x *exchange) readConversation(o *object, m *Model) (*call, error) {
	o.refuse("suffix", unlike, `""`)
	c := x.readCall(o, m)
	c.chat = true
	c.offered = o.offered
	c.oldFunctions = o.oldFunctions
	c.cut = x.s.o.CutLines
	c.readLimits(o, x.s.o.MaxTokens)
	c.longestName = max(x.protocol.longestName, 64)
	err := c.readMessages(o)
	x.warn(o.warnings)
	return c, err
}

// readLimits reads how many tokens there may be, and which log-probabilities are wanted, as chats
// have it.
func (c *call) readLimits(o *object, most int) {
	c.readTokens(o, most, 0, "max_completion_tokens", "max_tokens")
	o.read("logprobs", &c.request.Logprobs)
	if o.read("top_logprobs", &c.request.TopLogprobs) && c.request.TopLogprobs > 0 && !c.request.Logprobs {
		o.fail("top_logprobs", "it needs logprobs: true")
	}
}

// readMessages makes the prompt of a conversation, by the model's chat template.
func (c *call) readMessages(o *object) error {
	messages := o.messages()
	cutLines(messages, c.cut)
	options := o.readPromptEnd()
	truncate := false // what does not fit into the context is left out
	o.read("truncate", &truncate)
	o.read("chat_template_kwargs", &options.Vars)
	if o.err != nil {
		return o.err
	}
	if c.model.Tokenizer() == nil {
		return errNoTokenizer
	}
	layout, err := c.model.Layout()
	if err != nil {
		return err
	}
	shapeCalls(o, messages, layout)
	c.readTools(o, layout, &options)
	if o.err != nil {
		return o.err
	}
	tokens, leftOut, err := encode(layout, messages, options, truncate, c.model.Context())
	if leftOut > 0 {
		o.warn("messages", "the conversation is longer than the context: the oldest %d messages are left out", leftOut)
	}
	if err != nil {
		return fieldError("messages", "%v", err)
	}
	c.prompts = []prompt{{tokens: tokens}}
	begun := ""
	if options.Continue {
		begun = messages[len(messages)-1].Content
	}
	if err := c.readReasoning(o, layout, begun); err != nil {
		return err
	}
	for _, end := range layout.Stop() {
		if !slices.Contains(c.request.Stop, end) {
			c.request.Stop, c.turnEnds = append(c.request.Stop, end), append(c.turnEnds, end)
		}
	}
	return nil
}

// readPromptEnd reads how the prompt of a conversation ends: with what introduces an answer, or
// with the last message, which is gone on with.
func (o *object) readPromptEnd() (options chat.Options) {
	options.Prompt = true
	named := o.read("add_generation_prompt", &options.Prompt)
	o.read("continue_final_message", &options.Continue)
	if options.Continue && named && options.Prompt {
		o.fail("continue_final_message", "add_generation_prompt is true as well: give one of them")
	}
	return options
}

// continueAssistant has a last message of the assistant gone on with, where the protocol means that
// and the request does not say otherwise. Calls of tools cannot be gone on with.
func (o *object) continueAssistant(list []*object) {
	if len(list) == 0 || o.has("continue_final_message") || o.has("add_generation_prompt") {
		return
	}
	last := list[len(list)-1]
	if role, _ := decode[string](last.fields["role"]); role == "assistant" && !last.has("tool_calls") {
		o.put("continue_final_message", true)
	}
}

// readReasoning finds out whether the model may reason before it answers: its chat template knows
// the mark of reasoning's end, and the answer, of which the text begun is in the prompt, has not
// gone past it. A prompt may have begun reasoning.
func (c *call) readReasoning(o *object, layout *chat.Layout, begun string) error {
	format, budget := "auto", -1
	o.read("reasoning_format", &format)
	o.read("reasoning_budget", &budget)
	if o.err != nil {
		return o.err
	}
	open := strings.LastIndex(begun, thinkBegin) > strings.LastIndex(begun, thinkEnd)
	if !layout.Mentions(thinkEnd) || strings.TrimSpace(begun) != "" && !open {
		return nil
	}
	r := &c.request
	c.verbatim = format == "none"
	if c.verbatim && (budget < 0 || r.Grammar+r.JSONSchema+r.Regex != "") { // the content is what must match
		return nil
	}
	r.Reasoning, r.StopInReasoning = true, c.verbatim
	if budget == 0 {
		r.ReasoningBudget = -1
	} else if budget > 0 {
		r.ReasoningBudget = budget
	}
	tokens := c.prompts[0].tokens
	text := c.model.Tokenizer().DecodeWith(tokens[max(0, len(tokens)-8):], tokenizer.DecodeOptions{Special: true})
	r.ReasoningOpen = open || strings.HasSuffix(strings.TrimSpace(text), thinkBegin)
	return nil
}

// messages reads a conversation. Fields that are no role and no content are the chat template's to
// read.
func (o *object) messages() (list []grove.Message) {
	if !o.has("messages") {
		o.fail("messages", "it is missing")
	}
	all := o.objects("messages")
	if len(all) == 0 {
		o.fail("messages", "there are none: give at least one, of role user")
	}
	if o.err != nil {
		return nil
	}
	for _, in := range all {
		var m grove.Message
		in.fromOldMessage()
		in.read("role", &m.Role)
		if m.Role == "" {
			in.fail("role", "want system, user or assistant")
		}
		m.Content = in.text("content")
		if !in.has("content") && !in.has("tool_calls") {
			in.fail("content", "it is missing")
		}
		if in.err != nil {
			o.err = in.err
			return nil
		}
		if m.Role == "developer" { // OpenAI's name, which templates do not know
			m.Role = "system"
		}
		if in.has("tool_calls") {
			in.fields["tool_calls"] = openCalls(in.fields["tool_calls"])
		}
		delete(in.fields, "role")
		delete(in.fields, "content")
		if len(in.fields) > 0 {
			m.Extra, _ = json.Marshal(in.fields)
		}
		list = append(list, m)
	}
	return list
}

// chatChoice is a choice of a chat completion.
type chatChoice struct {
	Index        int           `json:"index"`
	Message      chatMessage   `json:"message"`
	Logprobs     *chatLogprobs `json:"logprobs"`
	FinishReason *string       `json:"finish_reason"`
	StopReason   *string       `json:"stop_reason,omitempty"`
}

type chatMessage struct {
	Role      string     `json:"role"`
	Content   *string    `json:"content"` // null where there are calls alone
	Reasoning string     `json:"reasoning_content,omitempty"`
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
	StopReason   *string       `json:"stop_reason,omitempty"`
}

type chatDelta struct {
	Role      string     `json:"role,omitempty"`
	Content   *string    `json:"content,omitempty"`
	Reasoning *string    `json:"reasoning_content,omitempty"`
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

// tokenLogprob is a token with its log-probability. A token's bytes may be a part of a character.
type tokenLogprob struct {
	Token   string  `json:"token"`
	Logprob float32 `json:"logprob"`
	Bytes   []int   `json:"bytes"`
}

func (c *call) tokenLogprob(l grove.Logprob) tokenLogprob {
	piece := c.model.piece(l.Token)
	return tokenLogprob{Token: piece, Logprob: finite(l.Logprob), Bytes: bytesOf(piece)}
}

// bytesOf are the bytes of a text as JSON has them.
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

// chatForm is the form of choices of chat completions.
type chatForm struct{ c *call }

func newChatForm(a *answering) form {
	object := "chat.completion"
	if a.call.stream {
		object = "chat.completion.chunk"
	}
	return newOpenAIForm(a, "chatcmpl-", object, chatForm{a.call})
}

func (f chatForm) whole(p *piece) any {
	m := chatMessage{Role: "assistant", Content: &p.content, Reasoning: p.reasoning, ToolCalls: shownCalls(p.calls)}
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
		FinishReason: orNil(f.c.oldFinish(p.finish)), StopReason: f.c.stopString(p.result)}
}

func (f chatForm) pieces(p *piece) (list []any) {
	if p.first {
		list = append(list, chatPiece{Index: p.index, Delta: chatDelta{Role: "assistant", Content: new(string)}})
	}
	if p.reasoning != "" {
		list = append(list, chatPiece{Index: p.index, Delta: chatDelta{Reasoning: &p.reasoning}})
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
			StopReason: f.c.stopString(p.result)})
	}
	return list
}
