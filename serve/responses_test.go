package serve_test

import (
	"strings"
	"testing"

	"github.com/grovellm/grove"
	"github.com/grovellm/grove/serve"
)

// Fields that a response cannot honour are refused by name.
func TestResponseErrors(t *testing.T) {
	s := start(t, shallow(t, grove.Options{ChatTemplate: toolTemplates["hermes"]}), serve.Options{})
	const hello = `{"input":"x"`
	for body, param := range map[string]string{
		hello + `,"previous_response_id":"resp_1"}`:            "previous_response_id",
		hello + `,"conversation":"c"}`:                         "conversation",
		hello + `,"background":true}`:                          "background",
		hello + `,"max_output_tokens":-2}`:                     "max_output_tokens",
		hello + `,"text":{"format":{"type":"xml"}}}`:           "text.format.type",
		hello + `,"text":{"format":{"type":"json_schema"}}}`:   "text.format.schema",
		hello + `,"tools":[{"type":"function","name":"a b"}]}`: "tools[0].name",
		hello + `,"truncation":"some"}`:                        "truncation",
		hello + `,"tool_choice":{"type":"allowed_tools"}}`:     "tool_choice.mode",
		hello + `,"tool_choice":{"type":"web_search"}}`:        "tool_choice.type",
		hello + `,"tools":[{"type":"custom","name":"c","format":{"type":"grammar","syntax":"abnf","definition":"x"}}]}`: "tools[0].format.syntax",
		hello + `,"tools":[{"type":"custom","name":"c","format":{"type":"grammar","syntax":"regex"}}]}`:                 "tools[0].format.definition",
		hello + `,"top_logprobs":21}`:                                    "top_logprobs",
		`{"input":[{"type":"item_reference","id":"i"}]}`:                 "input[0].id",
		`{"input":[{"role":"user","content":[{"type":"input_image"}]}]}`: "input[0].content[0].type",
		`{}`: "input",
		`{"input":"` + strings.Repeat("long ", 5000) + `"}`: "input",
	} {
		status, _, text := s.send("POST", "/v1/responses", body)
		if status != 400 || at(object(t, text), "error.param") != param {
			t.Errorf("%.80s: status %d, %s; want %s", body, status, text, param)
		}
	}
	a := s.post("/v1/responses", map[string]any{"input": "x", "top_logprobs": 2, "max_output_tokens": 5,
		"ignore_eos": true, "metadata": map[string]any{"k": "v"}, "text": map[string]any{"verbosity": "low"},
		"tool_choice": "none",
		"tools":       []any{map[string]any{"type": "function", "name": "f", "description": "Does it."}}})
	if at(a, "text.format.type") != "text" || at(a, "text.verbosity") != "low" ||
		at(a, "tools.0.description") != "Does it." {
		t.Error(a["text"], a["tools"])
	}
	if at(a, "metadata.k") != "v" || a["store"] != true || len(at(a, "output.0.content.0.logprobs").([]any)) != 5 ||
		at(a, "incomplete_details.reason") != "max_output_tokens" {
		t.Error(a)
	}
}

// An answer limited to the tokens of its reasoning is only the reasoning; with one token fewer,
// all its tokens are reasoning.
func TestReasoningTokens(t *testing.T) {
	t.Parallel()
	s := start(t, withHeads(t, grove.Options{ChatTemplate: dialectReasoning}), serve.Options{})
	for budget := 1; budget < 12; budget += 3 {
		for _, on := range []bool{true, false} {
			body := map[string]any{"messages": []any{map[string]any{"role": "user", "content": "x"}}, "temperature": 0,
				"reasoning_budget": budget, "max_tokens": 40, "chat_template_kwargs": map[string]any{"enable_thinking": on}}
			of := func(max int) (reasoning, content string, count int) {
				a := s.post("/v1/chat/completions", with(body, "max_tokens", max))
				reasoning, _ = at(a, "choices.0.message.reasoning_content").(string)
				content, _ = at(a, "choices.0.message.content").(string)
				return reasoning, content, int(at(a, "usage.completion_tokens_details.reasoning_tokens").(float64))
			}
			reasoning, _, n := of(40)
			if (n > 0) != (reasoning != "") || on && n < budget {
				t.Fatalf("budget %d: %d tokens of reasoning %q", budget, n, reasoning)
			}
			if n == 0 {
				continue
			}
			if same, content, count := of(n); same != reasoning || content != "" || count != n {
				t.Errorf("budget %d, %d tokens: reasoning %q of %d, content %q; want %q", budget, n, same, count, content, reasoning)
			}
			if _, content, count := of(n - 1); content != "" || count != n-1 {
				t.Errorf("budget %d, %d tokens: %d of reasoning, content %q", budget, n-1, count, content)
			}
		}
	}
}

// A level of reasoning reaches the chat template from every protocol that has one, and none ends reasoning at once.
func TestReasoningEffort(t *testing.T) {
	s := start(t, shallow(t, grove.Options{ChatTemplate: "{{ reasoning_effort }}{% if enable_thinking is false %}off{% endif %}" +
		"{% if enable_thinking is defined and (enable_thinking != thinking or thinking != reasoning) %}{{ raise_exception('thinking') }}{% endif %}" +
		"{% if enable_thinking is defined and thinking_mode != ('enabled' if thinking else 'disabled') %}{{ raise_exception('mode') }}{% endif %}" +
		"{% for m in messages %}{{ m.content }}{% endfor %} </think> <think>"}), serve.Options{})
	messages := []any{map[string]any{"role": "user", "content": "x"}}
	for _, c := range []struct {
		path  string
		body  func(effort string) map[string]any
		usage string
	}{
		{"/v1/chat/completions", func(effort string) map[string]any {
			return map[string]any{"messages": messages, "max_tokens": 8, "reasoning_effort": effort}
		}, "usage.prompt_tokens"},
		{"/v1/chat/completions", func(effort string) map[string]any {
			return map[string]any{"messages": messages, "max_tokens": 8, "reasoning": map[string]any{"effort": effort}}
		}, "usage.prompt_tokens"},
		{"/v1/responses", func(effort string) map[string]any {
			return map[string]any{"input": "x", "max_output_tokens": 8, "reasoning": map[string]any{"effort": effort}}
		}, "usage.input_tokens"},
		{"/v1/messages", func(effort string) map[string]any {
			return map[string]any{"messages": messages, "max_tokens": 8, "output_config": map[string]any{"effort": effort}}
		}, "usage.input_tokens"},
	} {
		tokens := func(effort string) float64 {
			a := s.post(c.path, with(c.body(effort), "temperature", 0, "priority", 1))
			cached, _ := at(a, "usage.cache_read_input_tokens").(float64)
			return at(a, c.usage).(float64) + cached
		}
		if short, long := tokens("low"), tokens("low low low low"); short >= long {
			t.Errorf("%s: the prompt has %v tokens with one word, %v with four", c.path, short, long)
		}
	}
	for fields, reasons := range map[string]bool{`"reasoning_effort":"none"`: false, `"reasoning_effort":"low"`: true,
		`"thinking":{"type":"disabled"}`: false, `"thinking":{"type":"enabled"}`: true, `"thinking":{"type":"auto"}`: true,
		`"enable_thinking":false`: false, `"enable_thinking":true`: true, `"enable_thinking":"often","thinking":true`: true,
		`"enable_thinking":false,"chat_template_kwargs":{"thinking":true,"enable_thinking":true,"reasoning":true,"thinking_mode":"enabled"}`: true,
	} {
		status, _, text := s.send("POST", "/v1/chat/completions",
			`{"messages":[{"role":"user","content":"x"}],"max_tokens":8,`+fields+`}`)
		if status != 200 {
			t.Fatalf("%s: %s", fields, text)
		}
		if text, _ := at(object(t, text), "choices.0.message.reasoning_content").(string); (text != "") != reasons {
			t.Errorf("%s: reasoning %q", fields, text)
		}
	}
}
