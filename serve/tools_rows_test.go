package serve_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/grovellm/grove"
	"github.com/grovellm/grove/internal/testing/calltest"
	"github.com/grovellm/grove/serve"
)

// An earlier call without arguments has the arguments {} in the prompt.
func TestEmptyArguments(t *testing.T) {
	s := start(t, shallow(t, grove.Options{ChatTemplate: toolTemplates["hermes"]}), serve.Options{})
	for _, arguments := range []string{`""`, `" "`, "null", `"{}"`, "{}"} {
		a := object(t, fmt.Sprintf(`{"messages": [{"role": "user", "content": "x"}, {"role": "assistant", "content": null, "tool_calls": [
			{"id": "1", "type": "function", "function": {"name": "f", "arguments": %s}}]}]}`, arguments))
		b := s.post("/detokenize", map[string]any{"tokens": s.post("/tokenize", a)["tokens"]})
		if text := b["content"].(string); !strings.Contains(text, `"arguments": {}}`) {
			t.Errorf("%s: the prompt is %q", arguments, text)
		}
	}
}

// A template that writes no calls gets tools, earlier calls and results in the generic form, in
// every protocol, and a header says so.
func TestGenericTools(t *testing.T) {
	s := start(t, shallow(t, grove.Options{ChatTemplate: calltest.Plain["no-system"]}), serve.Options{})
	q := &question{turns: []turn{{"system", "Be brief."}, {"user", "x"}, {"call", "47"}, {"result", "done"}}, tools: true,
		choice: "first", max: 40}
	for _, d := range append(dialects, &chatDialect) {
		status, header, text := s.send("POST", d.path, jsonOf(with(d.body(q), "stream", false)))
		if warning := header.Get("X-Grove-Warning"); status != 200 || !strings.Contains(warning, "generic form") {
			t.Errorf("%s: status %d, warning %q: %s", d.path, status, warning, text)
		}
		q.tools = false
		if _, header, _ := s.send("POST", d.path, jsonOf(with(d.body(q), "stream", false))); header.Get(
			"X-Grove-Warning") != "" {
			t.Errorf("%s without tools: warning %q", d.path, header.Get("X-Grove-Warning"))
		}
		q.tools = true
	}
	body := with(chatDialect.body(q), "stream", false)
	prompt := s.post("/detokenize", map[string]any{"tokens": s.post("/tokenize", body)["tokens"]})["content"].(string)
	_, prompt, _ = strings.Cut(prompt, "<start_of_turn>user\n")
	for _, part := range []string{"<tools>\n", "</tools>", "Be brief.", "x<end_of_turn>", "<tool_call>\n" +
		`{"name": "first", "arguments": {"a": 47}}`,
		"<tool_response>\ndone\n</tool_response>"} {
		_, rest, found := strings.Cut(prompt, part)
		if !found {
			t.Fatalf("%q is not in its place: %q", part, prompt)
		}
		prompt = rest
	}
}

// If a template leaves out earlier calls and cannot be given them, they are refused by name.
func TestCallsThatTheTemplateLeavesOut(t *testing.T) {
	s := start(t, shallow(t, grove.Options{ChatTemplate: "{% for m in messages %}{% if m.role == 'user' %}{{ m.content }}{% endif %}{% endfor %}"}),
		serve.Options{})
	status, _, text := s.send("POST", "/v1/chat/completions", `{"messages": [{"role": "user", "content": "x"}, {"role": "assistant",
		"content": "", "tool_calls": [{"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]}]}`)
	if param := at(object(t, text), "error.param"); status != 400 || param != "messages[1].tool_calls" {
		t.Errorf("status %d: %s", status, text)
	}
}

// With tools and a response format, an answer is a call or matches the schema.
func TestToolsWithSchema(t *testing.T) {
	s := start(t, shallow(t, grove.Options{ChatTemplate: toolTemplates["hermes"]}), serve.Options{})
	tool := map[string]any{"type": "function", "function": map[string]any{"name": "f",
		"parameters": map[string]any{"type": "object", "properties": map[string]any{}}}}
	format := map[string]any{"type": "json_schema", "json_schema": map[string]any{"name": "n", "schema": map[string]any{
		"enum": []any{"yes", "no"}}}}
	for seed := range 6 {
		a := s.post("/v1/chat/completions", map[string]any{"messages": []any{map[string]any{"role": "user", "content": "x"}},
			"tools":           []any{tool},
			"response_format": format, "temperature": 1, "seed": seed, "max_tokens": 60})
		content, _ := at(a, "choices.0.message.content").(string)
		calls, _ := at(a, "choices.0.message.tool_calls").([]any)
		if len(calls) == 0 && content != `"yes"` && content != `"no"` {
			t.Errorf("%v", a)
		}
	}
}

// Parts of a schema that cannot be enforced are relaxed with a warning, and refused if the function
// is strict. Anthropic's names are longer.
func TestRelaxedTools(t *testing.T) {
	t.Parallel()
	s := start(t, shallow(t, grove.Options{ChatTemplate: toolTemplates["hermes"]}), serve.Options{})
	for _, strict := range []bool{false, true} {
		parameters := json.RawMessage(`{"type": "object", "properties": {"a": {"type": "string", "pattern": "^\\bx"}, "b": {"type": "integer"}}, "required": ["b"]}`)
		body := jsonOf(map[string]any{"messages": []any{map[string]any{"role": "user", "content": "x"}},
			"max_tokens": 8, "tools": []any{
				map[string]any{"type": "function", "function": map[string]any{"name": "f", "strict": strict,
					"parameters": parameters}}}})
		status, header, text := s.send("POST", "/v1/chat/completions", body)
		if warned := strings.Contains(header.Get("X-Grove-Warning"), "#/properties/a"); warned == strict ||
			(status == 200) == strict {
			t.Errorf("strict %v: status %d, warning %q: %s", strict, status, header.Get("X-Grove-Warning"), text)
		}
	}
	for length, want := range map[int]int{128: 200, 129: 400} {
		body := jsonOf(map[string]any{"messages": []any{map[string]any{"role": "user", "content": "x"}},
			"max_tokens": 2, "tools": []any{map[string]any{"name": strings.Repeat("n", length),
				"input_schema": map[string]any{"type": "object"}}}})
		if status, _, text := s.send("POST", "/v1/messages", body); status != want {
			t.Errorf("a name of %d: status %d: %s", length, status, text)
		}
	}
}

// Every word for the choice of a tool is honoured: required and any give calls, none gives none.
func TestToolChoiceWords(t *testing.T) {
	t.Parallel()
	s := start(t, shallow(t, grove.Options{ChatTemplate: toolTemplates["hermes"]}), serve.Options{})
	const function = `"name":"f","parameters":{"type":"object","properties":{},"additionalProperties":false}`
	body := map[string]string{
		"/v1/chat/completions": `{"messages":[{"role":"user","content":"x"}],"max_tokens":60,"tools":[{"type":"function","function":{` + function + `}}],"tool_choice":`,
		"/v1/responses":        `{"input":"x","max_output_tokens":60,"tools":[{"type":"function",` + function + `}],"tool_choice":`,
		"/v1/messages": `{"messages":[{"role":"user","content":"x"}],"max_tokens":60,"tools":[{"name":"f","input_schema":{"type":"object","properties":{},"additionalProperties":false}}],` +
			`"tool_choice":`,
		"/api/chat": `{"messages":[{"role":"user","content":"x"}],"stream":false,"tools":[{"type":"function","function":{` + function +
			`}}],"options":{"num_predict":60},"tool_choice":`,
	}
	said := map[string]string{"/v1/chat/completions": `"tool_calls"`, "/v1/responses": `"function_call"`,
		"/v1/messages": `"tool_use"`, "/api/chat": `"tool_calls"`}
	for path, begin := range body {
		for choice, calls := range map[string]bool{"any": true, "required": true, "none": false} {
			word := jsonOf(choice)
			if path == "/v1/messages" {
				if choice == "required" {
					continue
				}
				word = jsonOf(map[string]any{"type": choice})
			}
			status, _, text := s.send("POST", path, begin+word+"}")
			if status != 200 || strings.Contains(text, said[path]) != calls {
				t.Errorf("%s, %s: status %d: %s", path, choice, status, text)
			}
		}
	}
}

// A response says whether several calls at once were possible, whatever was asked for.
func TestParallelCallsOfResponses(t *testing.T) {
	t.Parallel()
	const tools = `"tools":[{"type":"function","name":"f","parameters":{"type":"object","properties":{}}}]`
	for _, c := range []struct {
		template, body string
		parallel       bool
	}{
		{toolTemplates["hermes"], tools, true},
		{toolTemplates["hermes"], tools + `,"parallel_tool_calls":false`, false},
		{toolTemplates["hermes"], tools + `,"tool_choice":{"type":"function","name":"f"}`, false},
		{calltest.Plain["chatml"], tools, false},
		{calltest.Plain["chatml"], tools + `,"parallel_tool_calls":true`, true},
	} {
		s := start(t, shallow(t, grove.Options{ChatTemplate: c.template}), serve.Options{})
		status, _, text := s.send("POST", "/v1/responses", `{"input":"x","max_output_tokens":5,`+c.body+`}`)
		if status != 200 || object(t, text)["parallel_tool_calls"] != c.parallel {
			t.Errorf("%s: status %d: %s; want parallel_tool_calls %v", c.body, status, text, c.parallel)
		}
	}
}

// If calls have the ids that the client sends, as in Kimi's template, ids contain the names of
// tools and are numbered through the conversation, so that no two are the same.
func TestNumberedIDs(t *testing.T) {
	t.Parallel()
	s := start(t, shallow(t, grove.Options{ChatTemplate: toolTemplates["kimi-ids"]}), serve.Options{})
	call := func(id string) map[string]any {
		return map[string]any{"role": "assistant", "content": "", "tool_calls": []any{map[string]any{"id": id,
			"type": "function", "function": map[string]any{"name": "f", "arguments": "{}"}}}}
	}
	body := map[string]any{"messages": []any{map[string]any{"role": "user", "content": "x"}, call("functions.f:0"),
		map[string]any{"role": "tool", "tool_call_id": "functions.f:0", "content": "y"}, call("b")},
		"tools": []any{map[string]any{"type": "function", "function": map[string]any{"name": "f",
			"parameters": map[string]any{"type": "object", "properties": map[string]any{}, "additionalProperties": false}}}},
		"tool_choice": "required", "parallel_tool_calls": false, "max_tokens": 80}
	if id := at(s.post("/v1/chat/completions", body), "choices.0.message.tool_calls.0.id"); id != "functions.f:2" {
		t.Errorf("the third call has the id %v", id)
	}
	prompt := s.post("/detokenize", map[string]any{"tokens": s.post("/tokenize", body)["tokens"]})["content"].(string)
	if !strings.Contains(prompt, "functions.f:0<") || !strings.Contains(prompt, "functions.f:1<") {
		t.Errorf("the prompt is %q", prompt)
	}
}

// Functions may lack a description, parameters and properties even if the template fails without
// them; other templates get functions as they are given.
func TestBareFunctions(t *testing.T) {
	t.Parallel()
	const shown = "{% for t in tools or [] %}// {{ '' + t.function.description }} " +
		"{{ t.function.parameters.properties | length }}\n{% endfor %}"
	hermes := toolTemplates["hermes"]
	for template, want := range map[string]string{shown + hermes: "//  0\n",
		hermes: `tool {"type": "function", "function": {"name": "f"`} {
		s := start(t, shallow(t, grove.Options{ChatTemplate: template}), serve.Options{})
		for _, fields := range []string{``, `,"description":null,"parameters":{}`,
			`,"description":"","parameters":{"type":"object"}`} {
			body := `{"messages":[{"role":"user","content":"x"}],"max_tokens":4,` +
				`"tools":[{"type":"function","function":{"name":"f"` + fields + `}}]}`
			status, _, text := s.send("POST", "/v1/chat/completions", body)
			tokens := s.post("/tokenize", object(t, body))["tokens"]
			prompt := s.post("/detokenize", map[string]any{"tokens": tokens})["content"].(string)
			if status != 200 || !strings.Contains(prompt, want) ||
				template == hermes && fields == "" && !strings.Contains(prompt, `"f"}}`) {
				t.Errorf("%s: status %d: %s; the prompt is %q", fields, status, text, prompt)
			}
		}
	}
}

// Values of several types and defaults that are no texts reach templates that take them; others get plainer ones.
func TestPlainerFunctions(t *testing.T) {
	t.Parallel()
	const body = `{"messages":[{"role":"user","content":"x"}],"tools":[{"type":"function","function":{"name":"f","description":"D.",
		"parameters":{"type":"object","properties":{"z":{"type":["null","string"]},"default":{"type":["integer","null"],"default":-1.5},
		"a":{"type":"string","default":"\"default\":1"}}}}}]}`
	const each = "{% for k, v in (tools or [])[0].function.parameters.properties.items() %}"
	const text = "{{ k ~ '|' + v.type + v.get('default', '') }};{% endfor %}"
	const list = "{{ k ~ v.type ~ v.default }};{% endfor %}"
	for template, want := range map[string]string{each + text: `a|string"default":1;default|integer-1.5;z|string;`,
		each + list: `astring"default":1;default['integer', 'null']-1.5;z['null', 'string'];`} {
		template = "{% if tools %}" + template + "{% endif %}" + toolTemplates["lfm"]
		s := start(t, shallow(t, grove.Options{ChatTemplate: template}), serve.Options{})
		tokens := s.post("/tokenize", object(t, body))["tokens"]
		prompt := s.post("/detokenize", map[string]any{"tokens": tokens})["content"].(string)
		if !strings.HasPrefix(prompt, want) {
			t.Errorf("the prompt is %q, want %q", prompt, want)
		}
	}
}

// Calls and results without ids, as Ollama's clients send them, get some if the template prints
// them: results get those of the calls, in order.
func TestCallsWithoutIDs(t *testing.T) {
	t.Parallel()
	const strict = "{% for m in messages %}{% for c in m.tool_calls or [] %}{% if c.id | length != 9 %}{{ raise_exception('ids') }}{% endif %}{% endfor %}" +
		"{% if m.role == 'tool' %}{% if m.tool_call_id | length != 9 %}{{ raise_exception('ids') }}{% endif %}of {{ m.tool_call_id }};{% endif %}{% endfor %}"
	s := start(t, shallow(t, grove.Options{ChatTemplate: strict + toolTemplates["mistral-ids"]}), serve.Options{})
	body := object(t, `{"messages":[{"role":"user","content":"x"},{"role":"assistant","content":"","tool_calls":[{"function":{"name":"f","arguments":{}}},
		{"function":{"name":"g","arguments":{}}}]},{"role":"tool","tool_name":"f","content":"1"},{"role":"tool","tool_name":"g","content":"2"}],
		"stream":false,"options":{"num_predict":2}}`)
	if status, _, text := s.send("POST", "/api/chat", jsonOf(body)); status != 200 {
		t.Errorf("status %d: %s", status, text)
	}
	prompt := s.post("/detokenize", map[string]any{"tokens": s.post("/tokenize", body)["tokens"]})["content"].(string)
	of := regexp.MustCompile(`of (\w{9});of (\w{9});`).FindStringSubmatch(prompt)
	if of == nil || of[1] == of[2] || !strings.Contains(prompt, "f[CALL_ID]"+of[1]) ||
		!strings.Contains(prompt, "g[CALL_ID]"+of[2]) {
		t.Errorf("the prompt is %q", prompt)
	}
}

// Several earlier calls of one answer become turns with one call each if the template takes no more, as Llama 3's, or
// shows no more, as gpt-oss's.
func TestSeveralEarlierCalls(t *testing.T) {
	t.Parallel()
	shows := strings.Replace(toolTemplates["llama"], "m.tool_calls | length > 1", "false", 1)
	shows = strings.Replace(shows, "in m.tool_calls %}", "in m.tool_calls[:1] %}", 1)
	for _, template := range []string{toolTemplates["llama"], shows} {
		s := start(t, shallow(t, grove.Options{ChatTemplate: template}), serve.Options{})
		for _, ids := range [][2]string{{`"id":"p",`, `"id":"q",`}, {}} {
			call := func(i int) string {
				return fmt.Sprintf(`{%s"function":{"name":"f","arguments":{"a":%d}}}`, ids[i], i+1)
			}
			result := func(i int, text string) string {
				id := strings.Replace(ids[i], "id", "tool_call_id", 1)
				return `{"role":"tool",` + id + `"content":"` + text + `"}`
			}
			body := object(t, `{"messages":[{"role":"user","content":"x"},{"role":"assistant","content":"Well.","tool_calls":[`+
				call(0)+","+call(1)+"]},"+result(1, "second")+","+result(0, "first")+`,{"role":"user","content":"y"}]}`)
			want := []string{"Well.", `{"a": 1}`, "first", `{"a": 2}`, "second", "y<"}
			if ids[0] == "" { // in order
				want = []string{"Well.", `{"a": 1}`, "second", `{"a": 2}`, "first", "y<"}
			}
			prompt := s.post("/detokenize", map[string]any{"tokens": s.post("/tokenize", body)["tokens"]})["content"].(string)
			rest := prompt
			for _, part := range want {
				_, behind, found := strings.Cut(rest, part)
				if !found {
					t.Errorf("%s is not in its place: %q", part, prompt)
				}
				rest = behind
			}
			if strings.Count(prompt, "Well.") != 1 {
				t.Errorf("the prompt is %q", prompt)
			}
		}
	}
}

// A template that leaves out calls next to text, as some of DeepSeek's do, gets the calls.
func TestCallsWithText(t *testing.T) {
	t.Parallel()
	template := strings.Replace(toolTemplates["deepseek-r1"], "{% if m.tool_calls %}",
		"{% if m.tool_calls and m.content is none %}", 1)
	s := start(t, shallow(t, grove.Options{ChatTemplate: template}), serve.Options{})
	body := object(t, `{"messages":[{"role":"user","content":"x"},{"role":"assistant","content":"Well.","tool_calls":[{"id":"a",
		"type":"function","function":{"name":"f","arguments":"{\"a\": 4711}"}}]},{"role":"tool","tool_call_id":"a","content":"1"}]}`)
	prompt := s.post("/detokenize", map[string]any{"tokens": s.post("/tokenize", body)["tokens"]})["content"].(string)
	if !strings.Contains(prompt, "4711") {
		t.Errorf("the prompt is %q", prompt)
	}
}
