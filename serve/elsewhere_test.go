package serve_test

import (
	"strings"
	"testing"

	"github.com/grovellm/grove"
	"github.com/grovellm/grove/serve"
)

// A conversation begun with a server that runs tools goes on without their calls: a header names them.
func TestCallsRunElsewhere(t *testing.T) {
	s := start(t, shallow(t, grove.Options{ChatTemplate: toolTemplates["hermes"]}), serve.Options{})
	answer := map[string]string{"/v1/responses": `{"type":"message","role":"assistant","content":[{"type":"output_text","text":"a"}]}`,
		"/v1/messages": `{"type":"text","text":"a","citations":[{"type":"web_search_result_location","url":"u"}]}`}
	for path, items := range map[string][]string{
		"/v1/responses": {`{"type":"web_search_call","id":"w","status":"completed","action":{"type":"search","query":"x"}}`,
			`{"type":"mcp_list_tools","id":"m","server_label":"s","tools":[]}`, `{"type":"file_search_call","id":"f","results":null}`,
			`{"type":"mcp_call","id":"m","server_label":"s","name":"n","arguments":"{}","output":"o"}`,
			`{"type":"code_interpreter_call","id":"c","code":"1","outputs":[]}`,
			`{"type":"image_generation_call","id":"i","result":""}`,
			`{"type":"local_shell_call","id":"l","call_id":"c","action":{"type":"exec","command":["ls"],"env":{}}}`,
			`{"type":"local_shell_call_output","id":"c","output":"x"}`,
			`{"type":"shell_call","call_id":"c","action":{"commands":["ls"]}}`,
			`{"type":"shell_call_output","call_id":"c","output":[{"stdout":"x","stderr":"","outcome":{"type":"exit","exit_code":0}}]}`,
			`{"type":"apply_patch_call","call_id":"c","operation":{"type":"delete_file","path":"a"},"status":"completed"}`,
			`{"type":"apply_patch_call_output","call_id":"c","status":"completed","output":"ok"}`},
		"/v1/messages": {`{"type":"server_tool_use","id":"s","name":"web_search","input":{"query":"x"}}`,
			`{"type":"web_search_tool_result","tool_use_id":"s","content":[{"type":"web_search_result","title":"t","url":"u"}]}`,
			`{"type":"bash_code_execution_tool_result","tool_use_id":"s","content":{"type":"bash_code_execution_result","stdout":"o"}}`,
			`{"type":"mcp_tool_use","id":"s","name":"n","server_name":"m","input":{}}`,
			`{"type":"mcp_tool_result","tool_use_id":"s","is_error":false,"content":[{"type":"text","text":"x"}]}`},
	} {
		count := func(items ...string) (tokens any, warnings []string) {
			list := strings.Join(append(items, answer[path]), ",")
			body := `{"input":[{"role":"user","content":"q"},` + list + `,{"role":"user","content":"r"}]}`
			where := path + "/input_tokens"
			if path == "/v1/messages" {
				where = path + "/count_tokens"
				body = `{"messages":[{"role":"user","content":"q"},{"role":"assistant","content":[` + list + `]},{"role":"user","content":"r"}]}`
			}
			status, header, text := s.send("POST", where, body)
			if status != 200 {
				t.Errorf("%s: status %d: %s", list, status, text)
				return nil, nil
			}
			return object(t, text)["input_tokens"], header.Values("X-Grove-Warning")
		}
		want, _ := count()
		got, warnings := count(items...)
		if got != want || len(warnings) != len(items) {
			t.Errorf("%s: %v tokens, want %v; warnings %q", path, got, want, warnings)
		}
		for _, item := range items {
			_, kind, _ := strings.Cut(item, `"type":"`)
			kind, _, _ = strings.Cut(kind, `"`)
			if got, warnings := count(item); got != want || len(warnings) != 1 || !strings.Contains(warnings[0], kind) {
				t.Errorf("%s: %v tokens, want %v; warnings %q", item, got, want, warnings)
			}
		}
	}
	for _, kind := range []string{"compaction", "some_day"} {
		status, _, text := s.send("POST", "/v1/responses", `{"input":[{"type":"`+kind+`","encrypted_content":"x"}]}`)
		if status != 400 || !strings.Contains(text, "input[0].type") {
			t.Errorf("%s: status %d: %s", kind, status, text)
		}
	}
}

// A chat completion's choice of tools may have the forms of the other protocols, and a tool's result may be empty.
func TestChoicesOfOtherProtocols(t *testing.T) {
	s := start(t, shallow(t, grove.Options{ChatTemplate: toolTemplates["hermes"]}), serve.Options{})
	tools := []any{}
	for _, name := range toolNames {
		tools = append(tools, map[string]any{"type": "function", "function": map[string]any{"name": name,
			"parameters": map[string]any{"type": "object", "properties": map[string]any{}, "additionalProperties": false}}})
	}
	call := map[string]any{"id": "c", "type": "function", "function": map[string]any{"name": "first", "arguments": "{}"}}
	fields := map[string]any{"max_tokens": 60, "temperature": 0, "tools": tools, "parallel_tool_calls": false,
		"messages": []any{map[string]any{"role": "user", "content": "x"}, map[string]any{"role": "assistant",
			"tool_calls": []any{call}}, map[string]any{"role": "tool", "tool_call_id": "c", "content": nil}}}
	for _, c := range []struct{ choice, like any }{{map[string]any{"type": "auto"}, "auto"},
		{map[string]any{"type": "none"}, "none"}, {map[string]any{"type": "any"}, "required"},
		{map[string]any{"type": "required"}, "required"}, {map[string]any{"type": "function", "name": "second"}, nil},
		{map[string]any{"type": "tool", "name": "second"}, nil}} {
		if c.like == nil {
			c.like = map[string]any{"type": "function", "function": map[string]any{"name": "second"}}
		}
		got := at(s.post("/v1/chat/completions", with(fields, "tool_choice", c.choice)), "choices.0.message")
		want := at(s.post("/v1/chat/completions", with(fields, "tool_choice", c.like)), "choices.0.message")
		ids := strings.NewReplacer(jsonOf(at(got, "tool_calls.0.id")), "", jsonOf(at(want, "tool_calls.0.id")), "")
		if ids.Replace(jsonOf(got)) != ids.Replace(jsonOf(want)) {
			t.Errorf("%v: %v, want %v", c.choice, got, want)
		}
	}
	status, _, text := s.send("POST", "/v1/chat/completions", jsonOf(with(fields, "tool_choice", map[string]any{"type": "x"})))
	if status != 400 || !strings.Contains(text, "tool_choice") {
		t.Errorf("status %d: %s", status, text)
	}
}

// Reasoning may be parts of an earlier answer, as in Mistral's API and LangChain, or a field of its own.
func TestReasoningInParts(t *testing.T) {
	s := start(t, shallow(t, grove.Options{ChatTemplate: "{% for m in messages %}<{{ m.role }}>{{ m.reasoning_content }}|{{ m.content }}" +
		"{% endfor %}"}), serve.Options{})
	status, _, text := s.send("POST", "/v1/chat/completions",
		`{"messages":[{"role":"user","content":[{"type":"thinking","thinking":"hm"}]}]}`)
	if status != 400 || !strings.Contains(text, "messages[0].content: only") {
		t.Errorf("a user's reasoning: status %d: %s", status, text)
	}
	for content, want := range map[string]string{
		`"a"`: "|a", `"a","reasoning_content":"hm"`: "hm|a",
		`[{"type":"thinking","thinking":"hm"},{"type":"text","text":"a"}]`:                              "hm|a",
		`[{"type":"thinking","thinking":[{"type":"text","text":"h"},{"type":"text","text":"m"}]},"a"]`:  "",
		`[{"type":"thinking","thinking":[{"type":"text","text":"h"},{"type":"text","text":"m"}]}]`:      "hm|",
		`[{"type":"reasoning","reasoning":"hm"},{"type":"text","text":"a"},{"type":"text","text":"b"}]`: "hm|a\nb",
		`[{"type":"some_part"}]`: "",
	} {
		status, _, text := s.send("POST", "/tokenize", `{"messages":[{"role":"assistant","content":`+content+`}]}`)
		if want == "" {
			if status != 400 {
				t.Errorf("%s: status %d", content, status)
			}
			continue
		}
		got := s.post("/detokenize", map[string]any{"tokens": object(t, text)["tokens"]})["content"]
		if got != "<assistant>"+want {
			t.Errorf("%s: the prompt is %q", content, got)
		}
	}
}
