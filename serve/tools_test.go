package serve_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/grovellm/grove"
	"github.com/grovellm/grove/internal/testing/calltest"
	"github.com/grovellm/grove/serve"
)

// toolTemplates are chat templates that write calls in different forms.
var toolTemplates = calltest.Templates

// Tool calls have the names and arguments that the request allows, whole and streamed, drafted and plain.
func TestTools(t *testing.T) {
	t.Parallel()
	tool := func(name, property string) map[string]any {
		return map[string]any{"type": "function", "function": map[string]any{"name": name, "description": "Does " + name,
			"parameters": map[string]any{
				"type": "object", "properties": map[string]any{property: map[string]any{"type": "integer"}},
				"required": []string{property}, "additionalProperties": false}}}
	}
	families := []string{"hermes", "generic", "qwen-coder", "mistral", "llama", "lfm", "elements"}
	if testing.Short() {
		families = families[:2]
	}
	for f, family := range families {
		template := toolTemplates[family]
		if family == "generic" {
			template = calltest.Plain["no-system"]
		}
		s := start(t, withHeads(t, grove.Options{ChatTemplate: template}), serve.Options{})
		for i, choice := range []any{"required", "required", map[string]any{"type": "function", "function": map[string]any{
			"name": "second"}}, "auto", "none"} {
			fields := map[string]any{"messages": []any{map[string]any{"role": "user", "content": "Add."}},
				"tools":       []any{tool("first", "a"), tool("second", "b")},
				"tool_choice": choice, "parallel_tool_calls": i != 1, "temperature": 1, "seed": i, "max_tokens": 120}
			var first string
			other := []string{"lookup", "eagle3"}[(f+i)/2%2]
			for d, drafter := range []string{"plain", other} { // the one or the other is streamed too
				fields["drafter"] = drafter
				whole := s.post("/v1/chat/completions", fields)
				calls, content := []any{}, ""
				if list, ok := at(whole, "choices.0.message.tool_calls").([]any); ok {
					calls = list
				}
				content, _ = at(whole, "choices.0.message.content").(string)
				finish := at(whole, "choices.0.finish_reason")
				got := content
				for _, call := range calls {
					name, arguments := at(call, "function.name"), at(call, "function.arguments").(string)
					got += fmt.Sprint(name, arguments)
					var v map[string]int
					property := map[any]string{"first": "a", "second": "b"}[name]
					if err := json.Unmarshal([]byte(arguments), &v); finish == "tool_calls" && (err != nil || len(v) != 1) {
						t.Errorf("%s: call of %v with %s, property %s", family, name, arguments, property)
					}
					if id, _ := at(call, "id").(string); id == "" || at(call, "type") != "function" {
						t.Errorf("%s: call %v", family, call)
					}
					if i == 2 && name != "second" {
						t.Errorf("%s: call of %v", family, name)
					}
				}
				if must := i < 3; must && (len(calls) == 0 && finish != "length" || content != "" ||
					(finish != "tool_calls" && finish != "length")) ||
					i == 1 && len(calls) > 1 || i == 4 && len(calls) > 0 {
					t.Errorf("%s, choice %v: %d calls, content %q, ended by %v", family, choice, len(calls), content, finish)
				}
				if d == (f+i)%2 {
					streamed, reason := streamedCalls(s, fields)
					if streamed != got || reason != finish {
						t.Errorf("%s, %s: streamed %q by %v, whole %q by %v", family, drafter, streamed, reason, got, finish)
					}
				}
				if first == "" {
					first = got
				}
				if got != first {
					t.Errorf("%s, %s: %q, plain %q", family, drafter, got, first)
				}
			}
		}
	}
}

// streamedCalls joins the content and the calls of a stream.
func streamedCalls(s *server, fields map[string]any) (text string, finish any) {
	type call struct{ name, arguments string }
	var calls []call
	for _, e := range s.events("/v1/chat/completions", fields) {
		if piece, ok := at(e, "choices.0.delta.content").(string); ok {
			text += piece
		}
		if list, ok := at(e, "choices.0.delta.tool_calls").([]any); ok {
			for _, d := range list {
				i := int(at(d, "index").(float64))
				if i == len(calls) {
					calls = append(calls, call{name: at(d, "function.name").(string)})
				}
				calls[i].arguments += at(d, "function.arguments").(string)
			}
		}
		if reason := at(e, "choices.0.finish_reason"); reason != nil {
			finish = reason
		}
	}
	for _, c := range calls {
		text += c.name + c.arguments
	}
	return text, finish
}

// Earlier calls and their results go into the prompt, with arguments as an object.
func TestToolMessages(t *testing.T) {
	s := start(t, shallow(t, grove.Options{ChatTemplate: toolTemplates["hermes"]}), serve.Options{})
	a := s.post("/tokenize", map[string]any{"messages": []any{
		map[string]any{"role": "assistant", "content": "", "tool_calls": []any{map[string]any{"id": "1", "type": "function",
			"function": map[string]any{"name": "first", "arguments": `{"a": 4711}`}}}},
		map[string]any{"role": "tool", "tool_call_id": "1", "content": "done"},
	}})
	b := s.post("/detokenize", map[string]any{"tokens": a["tokens"]})
	if text := b["content"].(string); !strings.Contains(text, "4711") || !strings.Contains(text, "<|tool|>done") {
		t.Errorf("the prompt is %q", text)
	}
}

// A template that prints an earlier call prints one form of it, in which the arguments have the request's order and
// end where they were cut short, and /tokenize counts the tools.
func TestToolsInPrompt(t *testing.T) {
	s := start(t, shallow(t, grove.Options{ChatTemplate: "{% if tools %}{{ tools | tojson }}{% endif %}" +
		"{% for m in messages %}{{ m.role }}{{ m.content }}{% for c in m.tool_calls %}{{ c | tojson }}{% endfor %}{% endfor %}"}), serve.Options{})
	for _, c := range []struct{ call, want string }{
		{`{"type": "function", "id": "1", "function": {"name": "f", "arguments": "{\"b\": 1, \"a\": [2.50, \"<\"]}"}}`,
			`{"id": "1", "type": "function", "function": {"name": "f", "arguments": {"b": 1, "a": [2.5, "<"]}}}`},
		{`{"function": {"name": "f", "arguments": {"b": 1, "a": 2}}, "id": "1"}`,
			`{"id": "1", "type": "function", "function": {"name": "f", "arguments": {"b": 1, "a": 2}}}`},
		{`{"id": "1", "function": {"name": "f", "arguments": "{\"a\": [1, 2"}}`,
			`{"id": "1", "type": "function", "function": {"name": "f", "arguments": {"a": [1]}}}`},
	} {
		tools := `[{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]`
		for prefix, body := range map[string]string{"": "", tools: `, "tools": ` + tools} {
			status, _, text := s.send("POST", "/tokenize", `{"messages": [{"role": "assistant", "tool_calls": [`+
				c.call+`]}]`+body+`}`)
			if status != 200 {
				t.Fatal(text)
			}
			got := s.post("/detokenize", map[string]any{"tokens": object(t, text)["tokens"]})["content"]
			if want := prefix + "assistant" + c.want; got != want {
				t.Errorf("the prompt is %q, want %q", got, want)
			}
		}
	}
}

// Names of tools may have dots, as in MCP, and 128 characters in every protocol; earlier answers may be empty.
func TestNamesOfTools(t *testing.T) {
	s := start(t, shallow(t, grove.Options{ChatTemplate: toolTemplates["hermes"]}), serve.Options{})
	for _, name := range []string{"files.read", strings.Repeat("n", 128)} {
		a := s.post("/v1/chat/completions", map[string]any{"max_tokens": 400, "temperature": 0,
			"messages": []any{map[string]any{"role": "user", "content": "x"}, map[string]any{"role": "assistant", "content": nil},
				map[string]any{"role": "user", "content": "y"}}, "tool_choice": "required",
			"tools": []any{map[string]any{"type": "function", "function": map[string]any{"name": name,
				"parameters": json.RawMessage(`{"type":"object","properties":{},"additionalProperties":false}`)}}}})
		if got := at(a, "choices.0.message.tool_calls.0.function.name"); got != name {
			t.Errorf("%q: %v", name, a)
		}
	}
	for _, name := range []string{"", "a b", "a/b", "é", strings.Repeat("n", 129)} {
		status, _, text := s.send("POST", "/v1/messages", `{"max_tokens":2,"messages":[{"role":"user","content":"x"}],"tools":[{"name":"`+
			name+`","input_schema":{"type":"object"}}]}`)
		if status != 400 || !strings.Contains(text, "tools[0].name") {
			t.Errorf("%q: status %d: %s", name, status, text)
		}
	}
}
