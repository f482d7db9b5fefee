package serve

import (
	"cmp"
	"encoding/json"
	"net/http"
	"regexp"
	"strings"
)

// OpenAI's POST /v1/responses. store.go keeps recent responses.

// responseBody is the body.
type responseBody struct {
	chatOptions
	oneChoice
	Input           field[inputItems] `json:"input"`
	Previous        field[string]     `json:"previous_response_id"`
	Instructions    field[content]    `json:"instructions"`
	Truncation      field[string]     `json:"truncation"`
	MaxOutputTokens field[int]        `json:"max_output_tokens"`
	Include         texts             `json:"include"`
	Text            responseText      `json:"text"`
	Reasoning       responseReasoning `json:"reasoning"`
	Tools           field[[]toolBody] `json:"tools"`
	ToolChoice      field[toolChoice] `json:"tool_choice"`
	Store           field[bool]       `json:"store"`
	Edits           contextEdits      `json:"context_management"`

	Conversation refused `json:"conversation" why:"this server keeps no conversations: use previous_response_id"`
	Background   refused `json:"background" neutral:"false" why:"this server does not run requests in the background: leave it out"`
	Prompt       refused `json:"prompt" why:"this server has no stored prompts: send the text as input"`
}

type responseText struct {
	Format field[textFormat] `json:"format"`
}

type textFormat struct {
	Type   field[string]          `json:"type"`
	Schema field[json.RawMessage] `json:"schema"`
}

type responseReasoning struct {
	Effort  string        `json:"effort"`
	Summary field[string] `json:"summary"`
}

// inputItems are the items of the input, which may be a text.
type inputItems []inputItem

func (l *inputItems) readJSON(d *decoder, path string, raw json.RawMessage) error {
	if text, isText := decode[string](raw); isText {
		item, _ := json.Marshal(struct {
			Role    string `json:"role"`
			Content string `json:"content"`
		}{"user", text})
		*l = make(inputItems, 1)
		return (*l)[0].readJSON(d, path, item)
	}
	return d.read(path, raw, (*[]inputItem)(l))
}

// inputItem is an item as it arrived, and its fields.
type inputItem struct {
	itemFields
	path string
	raw  json.RawMessage
}

type itemFields struct {
	Type      field[string]         `json:"type"`
	ID        field[string]         `json:"id"`
	Role      field[string]         `json:"role"`
	Content   field[messageContent] `json:"content"`
	Summary   content               `json:"summary"`
	CallID    string                `json:"call_id"`
	Name      string                `json:"name"`
	Namespace string                `json:"namespace"`
	Arguments string                `json:"arguments"`
	Input     string                `json:"input"`
	Output    field[messageContent] `json:"output"`
}

func (i *inputItem) readJSON(d *decoder, path string, raw json.RawMessage) error {
	*i = inputItem{path: path, raw: raw}
	return d.read(path, raw, &i.itemFields)
}

// isReference reports whether the item refers to one of an earlier response.
func (i *inputItem) isReference() bool {
	return i.Type.value == "item_reference" || i.Type.value == "" && !i.Role.given && i.ID.given
}

// responses answers POST /v1/responses.
func (s *Server) responses(x *exchange) error {
	var b responseBody
	c, err := x.readResponse(&b)
	if err != nil {
		return err
	}
	return x.answer(c, func(a *answering) form { return newResponseForm(a, &b) })
}

// inputCount is the answer to POST /v1/responses/input_tokens.
type inputCount struct {
	Object string `json:"object"`
	Input  int    `json:"input_tokens"`
}

// countInput answers POST /v1/responses/input_tokens.
func (s *Server) countInput(x *exchange) error {
	var b responseBody
	c, err := x.readResponse(&b)
	if err != nil {
		return err
	}
	return x.writeJSON(http.StatusOK, inputCount{"response.input_tokens", len(c.prompts[0].tokens)})
}

// readResponse reads the body of either endpoint, and makes its call.
func (x *exchange) readResponse(b *responseBody) (*call, error) {
	m, err := x.readRequest(b, &b.Model)
	if err != nil {
		return nil, err
	}
	items, err := b.items(x.s.stored, x.tenant, x.s.o.Body)
	if err != nil {
		return nil, err
	}
	bytes := 0
	for i := range items {
		bytes += len(items[i].raw)
	}
	if err := x.takeTurn(bytes); err != nil {
		return nil, err
	}
	v, err := b.conversation(items)
	if err != nil {
		return nil, err
	}
	return x.newChat(m, v)
}

// conversation returns the request that a body makes, with the items of its input and of its earlier responses.
func (b *responseBody) conversation(items []inputItem) (*conversation, error) {
	v := &conversation{chatOptions: &b.chatOptions, path: b.Input.path}
	truncation := b.Truncation.or("disabled")
	if truncation != "auto" && truncation != "disabled" {
		return nil, b.Truncation.fail("%q: want auto or disabled", truncation)
	}
	b.Truncate.set(truncation == "auto")
	if b.MaxOutputTokens.given {
		b.MaxCompletionTokens = b.MaxOutputTokens
	}
	for _, what := range b.Include {
		if what == "message.output_text.logprobs" {
			b.Logprobs.set(true)
		}
	}
	if b.TopLogprobs.value > 0 {
		b.Logprobs.set(true)
	}
	if f := &b.Text.Format; f.given {
		format, err := f.value.constraint(f.path)
		if err != nil {
			return nil, err
		}
		b.format = format
	}
	b.setEffort(b.Reasoning.Effort)
	b.Edits.warn(&v.tools)
	if err := v.tools.offerAll(&b.Tools, false); err != nil {
		return nil, err
	}
	if err := v.tools.chooseResponse(&b.ToolChoice); err != nil {
		return nil, err
	}
	if text := b.Instructions.value.text(); text != "" {
		v.messages = append(v.messages, message{path: b.Instructions.path, role: "system", content: text})
	}
	said, err := messagesOf(items, &v.tools)
	v.messages = append(v.messages, said...)
	return v, err
}

// constraint returns the constraint that a format asks for.
func (f *textFormat) constraint(path string) (constraint, error) {
	switch f.Type.value {
	case "text":
		return constraint{}, nil
	case "json_object":
		return constraint{schema: anyObject, param: path}, nil
	case "json_schema":
		if !f.Schema.given {
			return constraint{}, f.Schema.fail("the field is required")
		}
		return constraint{schema: string(f.Schema.value), param: f.Schema.path}, nil
	}
	return constraint{}, f.Type.fail("%q: want text, json_object or json_schema", f.Type.value)
}

// chooseResponse applies the choice of tools in a request for a response.
func (t *toolset) chooseResponse(f *field[toolChoice]) error {
	c := &f.value
	switch {
	case !f.given:
		return nil
	case c.word != "":
		return t.chooseMode(c.word, f.path)
	}
	switch c.Type.value {
	case "allowed_tools":
		return t.chooseAllowed(&c.allowedTools, f.path)
	case "function", "custom":
		return t.chooseOne(t.nameOf(c.Namespace, c.Name.value), c.Name.path)
	}
	return c.Type.fail("%q: want function, custom or allowed_tools: this server runs no tools", c.Type.value)
}

// messagesOf turns items into messages. Reasoning, a text and calls of the assistant between two
// messages of the user become one message; a further text begins another, as in vLLM. Calls of
// tools that this server leaves out are left out too, with a warning to t.
func messagesOf(items []inputItem, t *toolset) (list []message, err error) {
	open := false                       // the last message is the assistant's, and is not complete
	var content, reason strings.Builder // of that message
	assistant := func(in *inputItem) *message {
		if !open {
			list = append(list, message{path: in.path, role: "assistant"})
			open = true
		}
		return &list[len(list)-1]
	}
	end := func() {
		if open {
			last := &list[len(list)-1]
			last.content, last.reasoning = content.String(), reason.String()
			content.Reset()
			reason.Reset()
		}
		open = false
	}
	add := func(m message) {
		end()
		list = append(list, m)
	}
	for i := range items {
		in := &items[i]
		said := &in.Content
		if in.Output.given {
			said = &in.Output
		}
		if len(said.value.thought) > 0 {
			return nil, said.fail("reasoning must be an item of its own")
		}
		switch kind := in.Type.or("message"); kind {
		case "message":
			role := in.Role.value
			switch role {
			case "assistant":
				if content.Len() > 0 {
					end()
				}
				turn := assistant(in)
				turn.unread = append(turn.unread, said.value.unread...)
				content.WriteString(said.value.lines())
			case "system", "developer", "user":
				add(message{path: in.path, role: role, content: said.value.lines(), unread: said.value.unread})
			default:
				return nil, in.Role.fail("%q: want system, developer, user or assistant", role)
			}
		case "reasoning":
			assistant(in)
			if reason.Len() > 0 {
				reason.WriteString("\n")
			}
			reason.WriteString(cmp.Or(said.value.lines(), in.Summary.lines()))
		case "function_call", "custom_tool_call":
			name := qualified(in.Namespace, in.Name)
			call := newCalledTool(in.CallID, name, argumentsOf(in.Arguments))
			if kind == "custom_tool_call" {
				call = newCustomCall(in.CallID, name, in.Input)
			}
			turn := assistant(in)
			turn.calls = append(turn.calls, call)
		case "function_call_output", "custom_tool_call_output":
			add(message{path: in.path, role: "tool", content: said.value.lines(), result: in.CallID, unread: said.value.unread})
		default:
			if otherCall.MatchString(kind) {
				t.leaveOut(&in.Type)
				continue
			}
			return nil, in.Type.fail("%q: want message, reasoning, item_reference, or a call to a function or custom tool"+
				" or its output", kind)
		}
	}
	end()
	return list, nil
}

// otherCall matches the types of items about tools other than functions and custom tools.
var otherCall = regexp.MustCompile(`_call(_output)?$|^mcp_|^tool_search_output$`)
