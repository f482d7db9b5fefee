package serve

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// Anthropic's API: POST /v1/messages and /v1/messages/count_tokens.

// messagesBody is the body of both.
type messagesBody struct {
	chatOptions
	oneChoice
	System        field[content]         `json:"system"`
	Messages      field[[]turnBody]      `json:"messages"`
	StopSequences field[texts]           `json:"stop_sequences"`
	Thinking      field[thinkingBody]    `json:"thinking"`
	OutputConfig  outputConfig           `json:"output_config"`
	OutputFormat  field[anthropicFormat] `json:"output_format"` // the earlier place of its format
	Tools         field[[]anthropicTool] `json:"tools"`
	ToolChoice    field[anthropicChoice] `json:"tool_choice"`
	Metadata      struct {
		UserID field[string] `json:"user_id"`
	} `json:"metadata"`
	ContextManagement struct {
		Edits contextEdits `json:"edits"`
	} `json:"context_management"`
	MCPServers refused `json:"mcp_servers" neutral:"[]"`
	Container  refused `json:"container"`
}

// contextEdits are ways in which a server may shorten a conversation that becomes long.
type contextEdits []struct {
	Type field[string] `json:"type"`
}

// warn says that conversations stay as they are. Which reasoning of earlier turns stays is up to the chat template.
func (l contextEdits) warn(t *toolset) {
	for _, edit := range l {
		if kind := edit.Type.value; !strings.HasPrefix(kind, "clear_thinking_") {
			t.warnings = append(t.warnings,
				warning(edit.Type.path, "%q: this server does not shorten conversations so: it is ignored", kind))
		}
	}
}

type thinkingBody struct {
	Type   field[string] `json:"type"`
	Budget field[int]    `json:"budget_tokens"`
}

type outputConfig struct {
	Effort field[string]          `json:"effort"`
	Format field[anthropicFormat] `json:"format"`
}

type anthropicFormat struct {
	Type   field[string]          `json:"type"`
	Schema field[json.RawMessage] `json:"schema"`
}

type anthropicTool struct {
	Type        field[string]          `json:"type"`
	Name        field[string]          `json:"name"`
	Description field[string]          `json:"description"`
	InputSchema field[json.RawMessage] `json:"input_schema"`
	Strict      bool                   `json:"strict"`
}

type anthropicChoice struct {
	Type            field[string] `json:"type"`
	Name            field[string] `json:"name"`
	DisableParallel field[bool]   `json:"disable_parallel_tool_use"`
}

// messages answers POST /v1/messages.
func (s *Server) messages(x *exchange) error {
	c, err := x.readMessages()
	if err != nil {
		return err
	}
	return x.answer(c, newMessageForm)
}

// tokenCount is the answer to POST /v1/messages/count_tokens.
type tokenCount struct {
	Input int `json:"input_tokens"`
}

// countTokens answers POST /v1/messages/count_tokens.
func (s *Server) countTokens(x *exchange) error {
	c, err := x.readMessages()
	if err != nil {
		return err
	}
	return x.writeJSON(http.StatusOK, tokenCount{len(c.prompts[0].tokens)})
}

func (x *exchange) readMessages() (*call, error) {
	var b messagesBody
	m, err := x.readRequest(&b, &b.Model)
	if err != nil {
		return nil, err
	}
	v, err := b.conversation()
	if err != nil {
		return nil, err
	}
	return x.newChat(m, v)
}

// conversation returns the request that a body makes.
func (b *messagesBody) conversation() (*conversation, error) {
	v := &conversation{chatOptions: &b.chatOptions, path: b.Messages.path}
	b.Logprobs.value = false // answers have no field for them
	b.TopLogprobs.value = 0
	if b.StopSequences.given {
		b.Stop = b.StopSequences
	}
	if b.Metadata.UserID.given {
		b.User = b.Metadata.UserID.value
	}
	if t := &b.Thinking.value; b.Thinking.given {
		switch kind := t.Type.value; kind {
		case "enabled", "adaptive", "disabled":
			b.setThinking(kind != "disabled")
			if kind == "enabled" && t.Budget.given {
				b.ReasoningBudget = t.Budget
			}
		default:
			return nil, t.Type.fail("%q: want enabled, adaptive or disabled", kind)
		}
	}
	if effort := &b.OutputConfig.Effort; effort.given {
		b.setVariable("reasoning_effort", effort.value)
	}
	format := &b.OutputConfig.Format
	if !format.given {
		format = &b.OutputFormat
	}
	if f := &format.value; format.given {
		switch {
		case f.Type.value != "json_schema":
			return nil, f.Type.fail("%q: want json_schema", f.Type.value)
		case !f.Schema.given:
			return nil, f.Schema.fail("the field is required")
		}
		b.format = constraint{schema: string(f.Schema.value), param: f.Schema.path}
	}
	b.ContextManagement.Edits.warn(&v.tools)
	b.offer(&v.tools)
	if err := b.choose(v); err != nil {
		return nil, err
	}
	if !b.Messages.given {
		return nil, b.Messages.fail("the field is required")
	}
	if b.System.given {
		v.messages = append(v.messages, message{path: b.System.path, role: "system", content: b.System.value.lines()})
	}
	begun := len(v.messages)
	for i := range b.Messages.value {
		in := &b.Messages.value[i]
		list, err := in.messages(fmt.Sprintf("%s[%d]", b.Messages.path, i), &v.tools)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(in.Content.value, func(b turnBlock) bool { return b.compacts() }) {
			v.messages = v.messages[:begun]
		}
		v.messages = append(v.messages, list...)
		if in.Content.value.cited() {
			v.tools.warnings = append(v.tools.warnings, warning(in.Content.path, "answers have no citations"))
		}
	}
	v.continueAssistant()
	return v, nil
}

// offer offers the tools of a body. It leaves out tools that Anthropic's server would run.
func (b *messagesBody) offer(t *toolset) {
	t.path = b.Tools.path
	for i := range b.Tools.value {
		in := &b.Tools.value[i]
		if in.Type.or("custom") != "custom" {
			t.leaveOut(&in.Type)
			continue
		}
		f := functionBody{Name: in.Name, Description: in.Description, Parameters: in.InputSchema, Strict: in.Strict}
		t.list = append(t.list, f)
	}
}

// choose applies a body's choice of tools.
func (b *messagesBody) choose(v *conversation) error {
	f := &b.ToolChoice
	if !f.given {
		return nil
	}
	c := &f.value
	if c.DisableParallel.given {
		b.ParallelToolCalls.set(!c.DisableParallel.value)
	}
	switch c.Type.value {
	case "auto", "none", "any":
		return v.tools.chooseMode(c.Type.value, f.path)
	case "tool":
		return v.tools.chooseOne(c.Name.value, c.Name.path)
	}
	return c.Type.fail("%q: want auto, any, tool or none", c.Type.value)
}
