package chat

import (
	"fmt"
	"strings"
	"time"

	"github.com/grovellm/grove/internal/jinja"
)

// The generic form of tools is for chat templates that write no calls, or write them in a form that
// grove does not know. Before such a template sees a conversation, tools become text of the system,
// calls text of the assistant, and results text of the user.

// genericText writes these texts. part says which; content, what a message says, may be a list of parts.
const genericText = `
{%- macro text(content) -%}
{%- if content is string -%}{{ content }}
{%- else -%}{%- for part in content or [] -%}{{ part.text or '' }}{%- endfor -%}
{%- endif -%}
{%- endmacro -%}

{%- if part == 'tools' -%}
{{ 'You can call functions. Each line between <tools> and </tools> describes one of them in JSON:\n<tools>\n' }}
{%- for tool in tools -%}{{ (tool.function or tool) | tojson }}{{ '\n' }}{%- endfor -%}
{{ '</tools>\nTo call a function, write its name and its arguments as JSON between <tool_call> and </tool_call>, as here:\n'
 ~ '<tool_call>\n{"name": "FUNCTION", "arguments": {"ARGUMENT": "VALUE"}}\n</tool_call>\n'
 ~ 'Write nothing behind it: you are told the result between <tool_response> and </tool_response>, and answer then. Where no function is needed, answer without a call.' }}

{%- elif part == 'calls' -%}
{{ text(content) }}
{%- for call in calls -%}
{%- set f = call.function or call -%}
{{ '\n' if text(content) or not loop.first }}<tool_call>{{ '\n{"name": "' ~ f.name ~ '", "arguments": ' }}
{{- f.arguments if f.arguments is string else (f.arguments or {}) | tojson }}{{ '}\n' }}</tool_call>
{%- endfor -%}

{%- elif part == 'result' -%}
<tool_response>{{ '\n' ~ text(content) ~ '\n' }}</tool_response>

{%- elif part == 'lfm' -%}
{{ text(content) ~ '<|tool_call_start|>[' }}
{%- for call in calls -%}
{%- set f = call.function or call -%}
{{ f.name ~ '(' }}
{%- for name, value in (f.arguments or {}).items() -%}
{{ name ~ '=' }}
{{- "'" ~ value ~ "'" if value is string else value | tojson if value is mapping else value }}{{ ', ' if not loop.last }}
{%- endfor -%}
{{ ')' }}{{ ', ' if not loop.last }}
{%- endfor -%}
{{ ']<|tool_call_end|>' }}

{%- elif part == 'granite' -%}
{{ text(content) ~ '<|tool_call|>[' }}
{%- for call in calls -%}
{%- set f = call.function or call -%}
{{ '{"name": "' ~ f.name ~ '", "arguments": ' }}
{{- f.arguments if f.arguments is string else (f.arguments or {}) | tojson }}{{ '}' }}{{ ', ' if not loop.last }}
{%- endfor -%}
{{ ']' }}

{%- elif part == 'name' -%}
{{ (calls.function or calls).name }}

{%- elif part == 'arguments' -%}
{%- set f = calls.function or calls -%}
{{ f.arguments if f.arguments is string else (f.arguments or {}) | tojson }}

{%- else -%}
{{ text(content) }}
{%- endif -%}`

// generic writes conversations in the generic form, or calls alone as their model does.
type generic struct {
	prog   *jinja.Template
	calls  ownCalls // how calls are written
	own    bool     // tools and results are left to the chat template
	system bool     // the chat template shows what the system says
}

// ownCalls is how a model writes calls whose chat template writes tools and results, and calls only where they are
// content: the part of genericText for them. A word of the template, and a control token, tell the model.
// With name, each call is a message, with the name of its tool in that field. results is the role of results.
type ownCalls struct{ part, word, mark, name, results string }

// allOwnCalls are LFM 2's, Granite 3's, SmolLM3's and GLM-4-0414's.
var allOwnCalls = []ownCalls{
	{part: "lfm", word: "tools", mark: "<|tool_call_start|>"},
	{part: "granite", word: "<|tool_call|>", mark: "<|tool_call|>"},
	{part: "calls", word: "xml_tools"},
	{part: "arguments", word: "metadata", mark: "<|observation|>", name: "metadata", results: "observation"},
}

// newGeneric makes the generic form of a layout with its calls. own says that it is only of calls.
func (l *Layout) newGeneric(calls ownCalls, own bool) *generic {
	prog, err := jinja.Compile(genericText)
	if err != nil {
		panic(err) // the text above compiles
	}
	const said = "qzcontent" // which no template has
	shown, err := l.renderAs(nil, nil, []Message{{Role: "system", Content: said}, {Role: "user", Content: "qzuser"}},
		Options{}, false)
	return &generic{prog, calls, own, err == nil && strings.Contains(shown, said)}
}

func (g *generic) write(part string, content, list jinja.Value) (string, error) {
	vars := map[string]jinja.Value{"part": part, "content": content, "calls": list, "tools": list}
	text, err := g.prog.Render(vars, time.Time{})
	if err != nil {
		return "", fmt.Errorf("tools in grove's generic format: %w", err)
	}
	return text, nil
}

// hasCalls reports whether a conversation has tools, calls or results.
func hasCalls(messages []*jinja.Dict, tools jinja.Value) bool {
	for _, m := range messages {
		if m.Get("role") == "tool" || hasItems(m.Get("tool_calls")) {
			return true
		}
	}
	return hasItems(tools)
}

func hasItems(v jinja.Value) bool {
	list, ok := v.(*jinja.List)
	return ok && len(list.Items) > 0
}

// rewrite makes a conversation without tools of one that has them.
func (g *generic) rewrite(messages []*jinja.Dict, tools jinja.Value) (out []*jinja.Dict, err error) {
	inResults := false // the last message of out is the user's, and begins with results
	for _, m := range messages {
		role, content := m.Get("role"), m.Get("content")
		calls := m.Get("tool_calls")
		text := ""
		switch {
		case g.own && role != "assistant":
			if role == "tool" && g.calls.results != "" {
				m = m.Without("role")
				m.Set("role", g.calls.results)
			}
			out = append(out, m)
			continue
		case role == "assistant" && hasItems(calls) && g.calls.name != "":
			if out, err = g.apart(out, m); err != nil {
				return nil, err
			}
			continue
		case role == "tool":
			text, err = g.write("result", content, nil)
		case role == "user" && inResults:
			text, err = g.write("text", content, nil)
		case role == "assistant" && hasItems(calls):
			text, err = g.write(g.calls.part, content, calls)
			m = m.Without("tool_calls")
			m.Set("content", text)
		}
		if err != nil {
			return nil, err
		}
		switch {
		case inResults && (role == "tool" || role == "user"):
			last := out[len(out)-1]
			last.Set("content", last.Get("content").(string)+"\n"+text)
			inResults = role == "tool"
			continue
		case role == "tool":
			m = jinja.NewDict()
			m.Set("role", "user")
			m.Set("content", text)
		}
		inResults = role == "tool"
		out = append(out, m)
	}
	if !hasItems(tools) || g.own {
		return out, nil
	}
	return g.describe(out, tools)
}

// apart appends a turn's text, if it has some, and its calls as messages.
func (g *generic) apart(out []*jinja.Dict, turn *jinja.Dict) ([]*jinja.Dict, error) {
	calls := turn.Get("tool_calls").(*jinja.List)
	turn = turn.Without("tool_calls")
	if said := turn.Get("content"); said != nil && said != "" {
		out = append(out, turn)
	}
	for _, call := range calls.Items {
		text, err := g.write(g.calls.part, nil, call)
		if err != nil {
			return nil, err
		}
		m := turn.Without("content")
		m.Set("content", text)
		name, err := g.write("name", nil, call)
		if err != nil {
			return nil, err
		}
		m.Set(g.calls.name, name)
		out = append(out, m)
	}
	return out, nil
}

// describe adds the tools to what the system says. Where the template does not show that, the
// user's first message begins with them.
func (g *generic) describe(messages []*jinja.Dict, tools jinja.Value) ([]*jinja.Dict, error) {
	described, err := g.write("tools", nil, tools)
	if err != nil {
		return nil, err
	}
	for i, m := range messages {
		role := m.Get("role")
		if role != "system" && (role != "user" || g.system) {
			continue
		}
		said, err := g.write("text", m.Get("content"), nil)
		if err != nil {
			return nil, err
		}
		first, second := said, described
		if role == "user" {
			first, second = described, said
		}
		m = m.Without("content")
		m.Set("content", strings.Trim(first+"\n\n"+second, "\n"))
		messages[i] = m
		return messages, nil
	}
	m := jinja.NewDict()
	m.Set("role", "system")
	if !g.system {
		m.Set("role", "user")
	}
	m.Set("content", described)
	return append([]*jinja.Dict{m}, messages...), nil
}
