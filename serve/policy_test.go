package serve_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/grovellm/grove"
	"github.com/grovellm/grove/serve"
)

// textBodies has a body for each endpoint that answers with text. A * stands for more fields.
var textBodies = map[string]string{
	"/v1/completions":           `{"prompt":"x",*"max_tokens":3}`,
	"/v1/chat/completions":      `{"messages":[{"role":"user","content":"x"}],*"max_tokens":3}`,
	"/v1/responses":             `{"input":"x",*"max_output_tokens":3}`,
	"/v1/messages":              `{"messages":[{"role":"user","content":"x"}],*"max_tokens":3}`,
	"/v1/messages/count_tokens": `{"messages":[{"role":"user","content":"x"}],*"max_tokens":3}`,
	"/api/chat":                 `{"messages":[{"role":"user","content":"x"}],*"stream":false}`,
	"/api/generate":             `{"prompt":"x",*"stream":false}`,
	"/infill":                   `{"input_prefix":"x",*"n_predict":3}`,
}

// In every protocol an unknown field is ignored, whatever its value, and a field that would change
// the output is refused by name, unless its value changes nothing.
func TestUnknownFields(t *testing.T) {
	t.Parallel()
	s := start(t, tinyWith(t, "tiny-qwen3", 256, grove.Options{Threads: 1, ChatTemplate: turnsTemplate}), serve.Options{})
	for path, body := range textBodies {
		send := func(fields string) (int, string) {
			status, _, text := s.send("POST", path, strings.Replace(body, "*", fields, 1))
			return status, text
		}
		plain, _ := send("")
		names := []string{"nobody_knows", "Temperature", "MIN_TOKENS", ""}
		for i, value := range []string{"true", "7", `"x"`, "[1]", `{"a":{"b":null}}`, "null"} {
			name := names[i%len(names)]
			if status, text := send(fmt.Sprintf("%q:%s,", name, value)); status != plain {
				t.Errorf("%s, %q %s: status %d, without it %d: %s", path, name, value, status, plain, text)
			}
		}
		for _, field := range []string{`"documents":[{}]`, `"use_beam_search":true`,
			`"typical_p":0.5`, `"chat_template":"x"`, `"skip_special_tokens":false`, `"prompt_logprobs":1`,
			`"lora":[{"id":0,"scale":0.5}]`, `"logprob_token_ids":[1]`, `"n_indent":4`, `"adaptive_target":0.5`} {
			name, _, _ := strings.Cut(strings.Trim(field, `"`), `"`)
			if status, text := send(field + ","); status != 400 || !strings.Contains(text, name+": this server does not support ") {
				t.Errorf("%s, %s: status %d: %s", path, field, status, text)
			}
		}
		for _, field := range []string{`"min_tokens":0`, `"stop_token_ids":[ ]`, `"documents":null`,
			`"use_beam_search":false`, `"typical_p":1.0`,
			`"lora":[]`, `"n_cmpl":1`, `"n_indent":0`, `"adaptive_target":-1.0`,
			`"skip_special_tokens":true`, `"mirostat":0.0`, `"min_tokens":3`,
			`"top_n_sigma":0`, `"top_n_sigma":-1.0`} {
			if status, text := send(field + ","); status != plain {
				t.Errorf("%s, %s: status %d, without it %d: %s", path, field, status, plain, text)
			}
		}
	}
}

// Fields of a message that the server does not know are the chat template's, in the protocols that have messages.
func TestUnknownFieldsOfMessages(t *testing.T) {
	s := start(t, tinyWith(t, "tiny-qwen3", 256, grove.Options{Threads: 1,
		ChatTemplate: "{% for m in messages %}{{ m.content }}{{ m.mood }}{% endfor %}"}), serve.Options{})
	count := func(path, mood string) any {
		message := `{"role":"user","content":"x"` + mood + `}`
		status, _, text := s.send("POST", path, `{"stream":false,"max_tokens":1,"options":{"num_predict":1},"messages":[`+message+`]}`)
		if status != 200 {
			t.Fatalf("%s: status %d: %s", path, status, text)
		}
		a := object(t, text)
		for _, place := range []string{"usage.prompt_tokens", "usage.input_tokens", "prompt_eval_count"} {
			if n, ok := at(a, place).(float64); ok {
				cached, _ := at(a, "usage.cache_read_input_tokens").(float64)
				return n + cached
			}
		}
		return nil
	}
	for _, path := range []string{"/v1/chat/completions", "/v1/messages", "/api/chat"} {
		short := count(path, "")
		if long := count(path, `,"mood":"a word that is long"`); short == nil || reflect.DeepEqual(short, long) {
			t.Errorf("%s: %v tokens with the field, %v without", path, long, short)
		}
	}
}

// The prompt of tools and of an earlier call is the same however a request orders their fields, and
// in every protocol.
func TestOneFormOfTools(t *testing.T) {
	m := shallow(t, grove.Options{ChatTemplate: "<tool_call>{{ tools | tojson }}{% for m in messages %}{{ m.role }}{{ m.content }}" +
		"{% for c in m.tool_calls %}{{ c | tojson }}{% endfor %}{% endfor %}"})
	s := start(t, m, serve.Options{})
	const parameters = `{"type":"object","properties":{"b":{},"a":{}}}`
	var first any
	for _, c := range []struct{ path, body, count string }{
		{"/v1/chat/completions", `"messages":[{"role":"user","content":"x"},{"role":"assistant","content":"","tool_calls":[{"id":"c","type":"function",
			"function":{"name":"f","arguments":"{\"b\": 1, \"a\": 2}"}}]},{"role":"tool","tool_call_id":"c","content":"r"}],
			"tools":[{"type":"function","function":{"name":"f","description":"d","parameters":` + parameters + `}}]`, "usage.prompt_tokens"},
		{"/v1/chat/completions", `"messages":[{"role":"user","content":"x"},{"role":"assistant","content":"","tool_calls":[{"function":
			{"arguments":{"b": 1, "a": 2},"name":"f"},"more":7,"id":"c"}]},{"role":"tool","tool_call_id":"c","content":"r"}],
			"tools":[{"function":{"strict":false,"parameters":` + parameters +
			`,"description":"d","name":"f"},"more":7}]`, "usage.prompt_tokens"},
		{"/v1/responses", `"input":[{"role":"user","content":"x"},{"type":"function_call","call_id":"c","arguments":"{\"b\": 1, \"a\": 2}","name":"f"},
			{"type":"function_call_output","call_id":"c","output":"r"}],
			"tools":[{"name":"f","description":"d","type":"function","parameters":` + parameters + `}]`, "usage.input_tokens"},
		{"/v1/messages/count_tokens", `"messages":[{"role":"user","content":"x"},{"role":"assistant","content":[{"type":"tool_use","name":"f","id":"c",
			"input":{"b": 1, "a": 2}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":"r"}]}],
			"tools":[{"input_schema":` + parameters + `,"name":"f","description":"d"}]`, "input_tokens"},
		{"/api/chat", `"messages":[{"role":"user","content":"x"},{"role":"assistant","content":"","tool_calls":[{"id":"c",
			"function":{"arguments":{"b": 1, "a": 2},"name":"f"}}]},{"role":"tool","tool_call_id":"c","content":"r"}],"stream":false,
			"tools":[{"function":{"name":"f","description":"d","parameters":` + parameters + `},"type":"function"}]`, "prompt_eval_count"},
	} {
		status, _, text := s.send("POST", c.path, `{"max_tokens":1,`+c.body+`}`)
		if status != 200 {
			t.Fatalf("%s: status %d: %s", c.path, status, text)
		}
		got := at(object(t, text), c.count)
		if first == nil {
			first = got
		}
		if got != first || got == nil {
			t.Errorf("%s: the prompt has %v tokens, want %v", c.path, got, first)
		}
	}
}
