package serve_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/grovellm/grove"
	"github.com/grovellm/grove/serve"
)

// kinds of tools that other servers run. No list of names is needed: this server runs none.
var serverTools = []string{"web_search", "web_search_preview", "web_search_20250305", "local_shell", "shell",
	"apply_patch", "file_search",
	"code_interpreter", "image_generation", "mcp", "computer", "computer_use_preview", "tool_search", "bash_20250124",
	"text_editor_20250728", "computer_20250124", "some_day"}

// A list with tools that the server would have to run is answered: a header and the log name them,
// and the other tools can be called.
func TestServerTools(t *testing.T) {
	t.Parallel()
	s := start(t, shallow(t, grove.Options{ChatTemplate: toolTemplates["hermes"]}), serve.Options{})
	for i, kind := range serverTools {
		for path, c := range map[string]struct{ function, body string }{
			"/v1/chat/completions": {`{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{},"additionalProperties":false}}}`,
				`"messages":[{"role":"user","content":"x"}],"max_tokens":60,"tool_choice":"required","parallel_tool_calls":false`},
			"/v1/responses": {`{"type":"function","name":"f","parameters":{"type":"object","properties":{},"additionalProperties":false}}`,
				`"input":"x","max_output_tokens":60,"tool_choice":"required","parallel_tool_calls":false`},
			"/v1/messages": {`{"name":"f","input_schema":{"type":"object","properties":{},"additionalProperties":false}}`,
				`"messages":[{"role":"user","content":"x"}],"max_tokens":60,"tool_choice":{"type":"any","disable_parallel_tool_use":true}`},
		} {
			status, header, text := s.send("POST", path, `{`+c.body+`,"tools":[{"type":"`+kind+
				`","name":"n","server_label":"l"},`+c.function+`]}`)
			warning := header.Get("X-Grove-Warning")
			if status != 200 || !strings.Contains(text, `"name":"f"`) || !strings.Contains(warning, "tools[0].type") ||
				!strings.Contains(warning, kind) {
				t.Errorf("%s, %s: status %d, warning %q, %s", path, kind, status, warning, text)
			}
			if !strings.Contains(s.log.String(), kind) {
				t.Errorf("%s: the log does not name it", kind)
			}
			if (i+len(path))%3 > 0 { // one protocol, in turn
				continue
			}
			for choice, want := range map[string]int{`"auto"`: 200, `"required"`: 400} { // of none, none can be called
				body := regexp.MustCompile(`"tool_choice":.*`).ReplaceAllString(c.body, `"tool_choice":`+choice)
				if path == "/v1/messages" {
					body = strings.Replace(body, choice, map[string]string{`"auto"`: `{"type":"auto"}`,
						`"required"`: `{"type":"any"}`}[choice], 1)
				}
				if status, _, text := s.send("POST", path, `{`+body+`,"tools":[{"type":"`+kind+`","name":"n"}]}`); status != want {
					t.Errorf("%s, %s alone, %s: status %d, %s", path, kind, choice, status, text)
				}
			}
		}
	}
}

// responseEvents returns the events of a stream, which may only have types that fit a call.
func (s *server) responseEvents(fields map[string]any) (list []map[string]any) {
	s.Helper()
	body, _ := json.Marshal(with(fields, "stream", true))
	status, _, text := s.send("POST", "/v1/responses", string(body))
	if status != 200 {
		s.Fatalf("status %d: %s", status, text)
	}
	for line := range strings.SplitSeq(text, "\n") {
		if data, ok := strings.CutPrefix(line, "data: "); ok {
			list = append(list, object(s, data))
		}
	}
	return list
}

// A namespace's tools can be called, calls carry the namespace, and return to the prompt under the
// name that was offered. A custom tool's call is text, which matches a regular expression if one is
// given; the pieces of a stream are that text.
func TestToolsOfOtherKinds(t *testing.T) {
	t.Parallel()
	s := start(t, shallow(t, grove.Options{ChatTemplate: "{{ tools | tojson }} <tool_call> {% for m in messages %}{{ m.role }}: {{ m.content }}" +
		"{% for c in m.tool_calls %}{{ c.function.name }}({{ c.function.arguments | tojson }}){% endfor %}\n{% endfor %}assistant: "}), serve.Options{})
	empty := map[string]any{"type": "object", "properties": map[string]any{}, "additionalProperties": false}
	function := func(name string) map[string]any {
		return map[string]any{"type": "function", "name": name, "parameters": empty}
	}
	custom := func(name string, format any) map[string]any {
		return map[string]any{"type": "custom", "name": name, "format": format, "description": "Text."}
	}
	long := strings.Repeat("n", 60)
	tools := []any{function("plain"), custom("note", nil),
		custom("date", map[string]any{"type": "grammar", "syntax": "regex", "definition": `\d{4}-"?\\é\n`}),
		custom("patch", map[string]any{"type": "grammar", "syntax": "lark", "definition": "start: /x/"}),
		map[string]any{"type": "namespace", "name": "crm__", "description": "D.",
			"tools": []any{function("plain"), custom("memo", nil), function(long)}}}
	for i, c := range []struct{ name, namespace, kind, pattern string }{
		{"plain", "", "function_call", `^\{\}$`},
		{"note", "", "custom_tool_call", `(?s)`},
		{"date", "", "custom_tool_call", `^\d{4}-"?\\é\n$`},
		{"patch", "", "custom_tool_call", `(?s)`},
		{"plain", "crm__", "function_call", `^\{\}$`},
		{"memo", "crm__", "custom_tool_call", `(?s)`},
		{long, "crm__", "function_call", `^\{\}$`},
	} {
		kind := map[string]string{"function_call": "function", "custom_tool_call": "custom"}[c.kind]
		choice := map[string]any{"type": kind, "name": c.name}
		if c.namespace != "" {
			choice["namespace"] = c.namespace
		}
		fields := map[string]any{"input": "x", "tools": tools, "tool_choice": choice, "max_output_tokens": 150,
			"temperature": 1, "seed": i}
		a := s.post("/v1/responses", fields)
		call := at(a, "output.0").(map[string]any)
		text, _ := call["arguments"].(string)
		if c.kind == "custom_tool_call" {
			text, _ = call["input"].(string)
		}
		namespace, _ := call["namespace"].(string)
		if call["type"] != c.kind || call["name"] != c.name || namespace != c.namespace || call["call_id"] == "" ||
			a["status"] == "completed" && !regexp.MustCompile(c.pattern).MatchString(text) {
			t.Errorf("%v: %v", c, a["output"])
		}
		streamed, done := "", ""
		for _, e := range s.responseEvents(fields) {
			switch e["type"] {
			case "response.function_call_arguments.delta", "response.custom_tool_call_input.delta":
				streamed += e["delta"].(string)
			case "response.function_call_arguments.done":
				done = e["arguments"].(string)
			case "response.custom_tool_call_input.done":
				done = e["input"].(string)
			}
		}
		if streamed != text || done != text {
			t.Errorf("%v: streamed %q and %q, whole %q", c, streamed, done, text)
		}
		// The call and its output go back.
		output := map[string]any{"type": c.kind + "_output", "call_id": call["call_id"], "output": "the result"}
		fields["input"] = []any{map[string]any{"role": "user", "content": "x"}, call, output}
		if b := s.post("/v1/responses", with(fields, "tool_choice", "none")); b["status"] == "" {
			t.Error(b)
		}
	}
	// Two tools with the same name cannot be distinguished.
	body, _ := json.Marshal(map[string]any{"input": "x", "tools": []any{custom("a", nil), custom("a", nil)}})
	if status, _, text := s.send("POST", "/v1/responses", string(body)); status != 400 ||
		at(object(t, text), "error.param") != "tools[1].name" {
		t.Errorf("status %d, %s", status, text)
	}
}

// Chat completions have custom tools in a form of their own, in the request, in the answer, in
// streams and in later requests.
func TestCustomToolsOfChats(t *testing.T) {
	t.Parallel()
	s := start(t, shallow(t, grove.Options{ChatTemplate: toolTemplates["hermes"]}), serve.Options{})
	for i, pattern := range []string{`[a-c]{3}"`, `\\[\n\t"]{2}é`, `🙂x`} {
		fields := map[string]any{"messages": []any{map[string]any{"role": "user", "content": "x"}},
			"max_tokens": 80, "seed": i,
			"tools": []any{map[string]any{"type": "custom", "custom": map[string]any{"name": "note",
				"format": map[string]any{"type": "grammar", "grammar": map[string]any{"syntax": "regex", "definition": pattern}}}}},
			"tool_choice": map[string]any{"type": "custom", "custom": map[string]any{"name": "note"}}}
		a := s.post("/v1/chat/completions", fields)
		call := at(a, "choices.0.message.tool_calls.0").(map[string]any)
		text, _ := at(call, "custom.input").(string)
		if call["type"] != "custom" || at(call, "custom.name") != "note" || call["function"] != nil ||
			!regexp.MustCompile("^"+pattern+"$").MatchString(text) {
			t.Errorf("%s: %v", pattern, a)
		}
		streamed := ""
		for _, e := range s.events("/v1/chat/completions", fields) {
			piece, _ := at(e, "choices.0.delta.tool_calls.0.custom.input").(string)
			streamed += piece
		}
		if streamed != text {
			t.Errorf("streamed %q, whole %q", streamed, text)
		}
		fields["messages"] = append(fields["messages"].([]any), at(a, "choices.0.message"),
			map[string]any{"role": "tool", "tool_call_id": call["id"], "content": "ok"})
		tokens := s.post("/tokenize", map[string]any{"messages": fields["messages"]})["tokens"]
		prompt := s.post("/detokenize", map[string]any{"tokens": tokens})["content"].(string)
		if want := `{"name": "note", "arguments": {"input": `; !strings.Contains(prompt, want) {
			t.Errorf("the prompt is %q, want %q in it", prompt, want)
		}
	}
}

// Only one of the allowed tools is called, in both forms of the field.
func TestAllowedTools(t *testing.T) {
	t.Parallel()
	s := start(t, shallow(t, grove.Options{ChatTemplate: toolTemplates["hermes"]}), serve.Options{})
	schema := json.RawMessage(`{"type":"object","properties":{},"additionalProperties":false}`)
	var flat, wrapped []any
	for i := range 4 {
		f := map[string]any{"name": fmt.Sprint("f", i), "parameters": schema}
		wrapped = append(wrapped, map[string]any{"type": "function", "function": f})
		flat = append(flat, with(f, "type", "function"))
	}
	for seed := range 6 {
		list := []any{map[string]any{"type": "function", "name": "f1"}, map[string]any{"type": "web_search"},
			map[string]any{"type": "function", "name": "f3"}}
		a := s.post("/v1/responses", map[string]any{"input": "x", "tools": flat, "seed": seed, "max_output_tokens": 200,
			"tool_choice": map[string]any{"type": "allowed_tools", "mode": "required", "tools": list}})
		for _, item := range a["output"].([]any) {
			if name := at(item, "name"); name != "f1" && name != "f3" {
				t.Errorf("called %v", item)
			}
		}
		chosen := []any{map[string]any{"type": "function", "function": map[string]any{"name": "f2"}}}
		a = s.post("/v1/chat/completions", map[string]any{"messages": []any{map[string]any{"role": "user", "content": "x"}},
			"tools": wrapped, "seed": seed, "max_tokens": 60,
			"tool_choice": map[string]any{"type": "allowed_tools",
				"allowed_tools": map[string]any{"mode": "required", "tools": chosen}}})
		if name := at(a, "choices.0.message.tool_calls.0.function.name"); name != "f2" {
			t.Errorf("called %v", name)
		}
	}
	for mode, want := range map[string]int{"auto": 200, "required": 400, "some": 400} { // none may be called
		body := `{"input":"x","max_output_tokens":4,"tools":[{"type":"function","name":"f"}],"tool_choice":{"type":"allowed_tools","mode":"` + mode + `","tools":[]}}`
		if status, _, text := s.send("POST", "/v1/responses", body); status != want {
			t.Errorf("%s of none: status %d, %s", mode, status, text)
		}
	}
}

// OpenAI's first form of tools is answered in that form, whole and streamed, and read in later requests.
func TestOldFunctions(t *testing.T) {
	t.Parallel()
	s := start(t, withHeads(t, grove.Options{ChatTemplate: toolTemplates["hermes"]}), serve.Options{})
	functions := []any{map[string]any{"name": "first", "parameters": json.RawMessage(schemaOfTools)},
		map[string]any{"name": "second", "parameters": json.RawMessage(schemaOfTools)}}
	for _, name := range toolNames {
		fields := map[string]any{"messages": []any{map[string]any{"role": "user", "content": "x"}}, "functions": functions,
			"function_call": map[string]any{"name": name}, "max_tokens": 60, "temperature": 0}
		a := s.post("/v1/chat/completions", fields)
		message := at(a, "choices.0.message").(map[string]any)
		call, _ := message["function_call"].(map[string]any)
		var arguments map[string]int
		if at(a, "choices.0.finish_reason") != "function_call" || message["tool_calls"] != nil || call["name"] != name ||
			json.Unmarshal([]byte(call["arguments"].(string)), &arguments) != nil {
			t.Fatal(a)
		}
		got := ""
		for _, e := range s.events("/v1/chat/completions", fields) {
			for _, field := range []string{"name", "arguments"} {
				piece, _ := at(e, "choices.0.delta.function_call."+field).(string)
				got += piece
			}
		}
		if got != name+call["arguments"].(string) {
			t.Errorf("streamed %q, whole %v", got, call)
		}
		message["content"] = nil
		messages := []any{map[string]any{"role": "user", "content": "x"}, message, map[string]any{"role": "function",
			"name": name, "content": "the result"}}
		tokens := s.post("/tokenize", map[string]any{"messages": messages})["tokens"]
		prompt := s.post("/detokenize", map[string]any{"tokens": tokens})["content"].(string)
		if !strings.Contains(prompt, fmt.Sprint(arguments["a"])) || !strings.Contains(prompt, "the result") {
			t.Errorf("the prompt is %q", prompt)
		}
		for choice, want := range map[string]int{"auto": 200, "none": 200, "some": 400} {
			body, _ := json.Marshal(with(fields, "messages", messages, "function_call", choice))
			if status, _, text := s.send("POST", "/v1/chat/completions", string(body)); status != want || want == 400 &&
				at(object(t, text), "error.param") != "function_call" {
				t.Errorf("%s: status %d, %s", choice, status, text)
			}
		}
	}
}
