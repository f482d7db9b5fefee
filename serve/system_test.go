package serve_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/grovellm/grove"
	"github.com/grovellm/grove/serve"
)

const turns = "{% for m in messages %}{{ m.role }}={{ m.content }};{% endfor %}"

// Templates that differ in where they accept system messages.
var systemTemplates = map[string]string{
	"anywhere": turns,
	"head":     "{% for m in messages %}{% if m.role == 'system' and not loop.first %}{{ raise_exception('the system message must come first') }}{% endif %}{{ m.role }}={{ m.content }};{% endfor %}",
	"dropping": "{% if messages[0].role == 'system' %}system={{ messages[0].content }};{% endif %}{% for m in messages %}{% if m.role != 'system' %}{{ m.role }}={{ m.content }};{% endif %}{% endfor %}",
	"last":     "{% set ns = namespace(s='') %}{% for m in messages %}{% if m.role == 'system' %}{% set ns.s = m.content %}{% endif %}{% endfor %}system={{ ns.s }};{% for m in messages %}{% if m.role != 'system' %}{{ m.role }}={{ m.content }};{% endif %}{% endfor %}",
	"none":     "{% for m in messages %}{% if m.role == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}{{ m.role }}={{ m.content }};{% endfor %}",
	"strict": "{% for m in messages %}{% if m.role == 'system' %}{{ raise_exception('no system') }}{% endif %}{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}" +
		"{{ raise_exception('roles must alternate') }}{% endif %}{{ m.role }}={{ m.content }};{% endfor %}",
	"unseen": "{% for m in messages %}{% if m.role != 'system' %}{{ m.role }}={{ m.content }};{% endif %}{% endfor %}",
	"turns": "{% if messages[0].role == 'system' %}system={{ messages[0].content }};{% set rest = messages[1:] %}{% else %}{% set rest = messages %}{% endif %}" +
		"{% for m in rest %}{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('roles must alternate') }}{% endif %}{{ m.role }}={{ m.content }};{% endfor %}",
}

// No text of a conversation is lost or refused because of the position of its system messages, with any template.
func TestSystemMessages(t *testing.T) {
	t.Parallel()
	for name, template := range systemTemplates {
		s := start(t, shallow(t, grove.Options{ChatTemplate: template}), serve.Options{})
		for _, shape := range []string{"u", "su", "ssu", "us", "sus", "suas", "usau", "sssuasu", "dsu", "dduadu", "s",
			"uu", "suuau", "susu", "uuasu", "uaau", "suaaau"} {
			var messages []any
			var texts []string
			for i, c := range shape {
				role := map[rune]string{'u': "user", 's': "system", 'd': "developer", 'a': "assistant"}[c]
				text := fmt.Sprintf("text %d of the %s.", i, role)
				messages, texts = append(messages, map[string]any{"role": role, "content": text}), append(texts, text)
			}
			a := s.post("/tokenize", map[string]any{"messages": messages})
			prompt := s.post("/detokenize", map[string]any{"tokens": a["tokens"]})["content"].(string)
			for _, text := range texts {
				if strings.Count(prompt, text) != 1 {
					t.Errorf("%s, %s: %q is in the prompt %d times: %q", name, shape, text, strings.Count(prompt, text), prompt)
				}
			}
			if name == "anywhere" && strings.Count(prompt, ";") != len(shape) {
				t.Errorf("%s: %q has fewer messages than the conversation", shape, prompt)
			}
		}
	}
}

// The system text reaches the template from every protocol, wherever clients put it.
func TestSystemOfProtocols(t *testing.T) {
	s := start(t, shallow(t, grove.Options{ChatTemplate: systemTemplates["head"]}), serve.Options{})
	for _, c := range []struct{ path, body string }{
		{"/v1/messages", `{"max_tokens":2,"system":[{"type":"text","text":"A"},{"type":"text","text":"B"}],"messages":[{"role":"user","content":"C"},{"role":"system","content":"D"}]}`},
		{"/v1/responses", `{"max_output_tokens":2,"instructions":"A","input":[{"role":"developer","content":"B"},{"role":"developer","content":"D"},{"role":"user","content":"C"}]}`},
		{"/v1/chat/completions", `{"max_tokens":2,"messages":[{"role":"system","content":"A"},{"role":"developer","content":"B"},{"role":"user","content":"C"},{"role":"system","content":"D"}]}`},
		{"/api/chat", `{"stream":false,"options":{"num_predict":2},"messages":[{"role":"system","content":"A"},{"role":"user","content":"C"},{"role":"system","content":"D"}]}`},
	} {
		if status, _, text := s.send("POST", c.path, c.body); status != 200 {
			t.Errorf("%s: status %d, %s", c.path, status, text)
		}
	}
}

// A line that differs between sessions can be removed: two sessions then have the same prompt,
// and nothing else is removed.
func TestCutLines(t *testing.T) {
	o := serve.Options{CutLines: []*regexp.Regexp{regexp.MustCompile(`^x-anthropic-billing-header:`)}}
	s := start(t, shallow(t, grove.Options{ChatTemplate: turns}), o)
	prompt := func(session string) any {
		return s.post("/v1/messages/count_tokens", map[string]any{
			"system": []any{map[string]any{"type": "text", "text": "x-anthropic-billing-header: v=" + session},
				map[string]any{"type": "text", "text": "You are kind.\nDo not say x-anthropic-billing-header: v."}},
			"messages": []any{map[string]any{"role": "user",
				"content": "x-anthropic-billing-header: is kept in what users say"}}})["input_tokens"]
	}
	if a, b := prompt("1"), prompt("2.1.37.0d9; and more of that"); a != b {
		t.Errorf("%v tokens and %v", a, b)
	}
	a := s.post("/tokenize", map[string]any{"messages": []any{map[string]any{"role": "system",
		"content": "a\nx-anthropic-billing-header: z\r\nb"},
		map[string]any{"role": "user", "content": "x-anthropic-billing-header: u"}}})
	const want = "system=a\nb;user=x-anthropic-billing-header: u;"
	if text := s.post("/detokenize", map[string]any{"tokens": a["tokens"]})["content"]; text != want {
		t.Errorf("the prompt is %q, want %q", text, want)
	}
}

// A result that is an error says so in the prompt, once.
func TestErrorResults(t *testing.T) {
	s := start(t, shallow(t, grove.Options{ChatTemplate: turns}), serve.Options{})
	count := func(content any, failed bool) any {
		return s.post("/v1/messages/count_tokens", map[string]any{"messages": []any{map[string]any{"role": "user",
			"content": []any{map[string]any{"type": "tool_result", "tool_use_id": "1", "content": content,
				"is_error": failed}}}}})["input_tokens"]
	}
	for content, said := range map[string]string{"no such file": "Error: no such file", "": "Error:",
		"<tool_use_error>gone": "<tool_use_error>gone",
		"ERROR 7":              "ERROR 7", "erroneous": "Error: erroneous"} {
		if failed, as := count(content, true), count(said, false); failed != as {
			t.Errorf("%q as an error has %v tokens, %q %v", content, failed, said, as)
		}
	}
}

// Text of users after a tool's result is joined with the result, if the template accepts no further turn there.
func TestTextBehindResult(t *testing.T) {
	template := "{% set ns = namespace(n=0) %}{% for m in messages %}{% if m.role == 'user' or m.role == 'assistant' and not m.tool_calls %}" +
		"{% if (m.role == 'user') != (ns.n % 2 == 0) %}{{ raise_exception('turns') }}{% endif %}{% set ns.n = ns.n + 1 %}{% endif %}{% endfor %}"
	for template, want := range map[string]string{template: "<|tool|>done\n\nAnd this.",
		"": "<|tool|>done<|im_end|>\n<|user|>And this."} {
		s := start(t, shallow(t, grove.Options{ChatTemplate: template + toolTemplates["mistral-args"]}), serve.Options{})
		for path, body := range map[string]string{
			"/v1/chat/completions": `{"messages":[{"role":"user","content":"x"},{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"a","content":"done"},{"role":"user","content":"And this."}],"max_tokens":2}`,
			"/v1/messages":         `{"messages":[{"role":"user","content":"x"},{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"done"},{"type":"text","text":"And this."}]}],"max_tokens":2}`,
		} {
			if status, _, text := s.send("POST", path, body); status != 200 {
				t.Errorf("%s: status %d: %s", path, status, text)
			}
			if path == "/v1/messages" {
				continue
			}
			tokens := s.post("/tokenize", object(t, body))["tokens"]
			prompt := s.post("/detokenize", map[string]any{"tokens": tokens})["content"].(string)
			if !strings.Contains(prompt, want) {
				t.Errorf("the prompt is %q, want %q in it", prompt, want)
			}
		}
	}
}

// An empty answer, as of a stopped generation, is left out if the template refuses it.
func TestEmptyAnswers(t *testing.T) {
	const refuses = "{% for m in messages %}{% if m.role == 'assistant' and not m.content %}{{ raise_exception('empty') }}{% endif %}{% endfor %}"
	for before, want := range map[string]string{refuses: "<|user|>x\n\ny", "": "<|assistant|><|im_end|>\n<|user|>y"} {
		s := start(t, shallow(t, grove.Options{ChatTemplate: before + toolTemplates["hermes"]}), serve.Options{})
		tokens := s.post("/tokenize", object(t, `{"messages":[{"role":"user","content":"x"},{"role":"assistant","content":""},
			{"role":"user","content":"y"}]}`))["tokens"]
		prompt := s.post("/detokenize", map[string]any{"tokens": tokens})["content"].(string)
		if !strings.Contains(prompt, want) {
			t.Errorf("the prompt is %q, want %q in it", prompt, want)
		}
	}
}

// A system message that the template shows before a last message of the user alone stays in the prompt behind results.
func TestSystemBehindResult(t *testing.T) {
	template := strings.NewReplacer("{{ m.content or '' }}", "{% if m.role == 'user' and loop.last and messages[0].role == 'system' %}"+
		"{{ messages[0].content }};{% endif %}{{ m.content or '' if m.role != 'system' }}").Replace(toolTemplates["mistral-args"])
	s := start(t, shallow(t, grove.Options{ChatTemplate: template}), serve.Options{})
	const begin = `{"messages":[{"role":"system","content":"Be kind."},{"role":"user","content":"x"}`
	for body, want := range map[string]string{begin: "<|user|>Be kind.;x<", begin + `,{"role":"assistant","tool_calls":[{"id":"a",
		"type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"a","content":"done"}`: "<|user|>Be kind.\n\nx<"} {
		tokens := s.post("/tokenize", object(t, body+"]}"))["tokens"]
		prompt := s.post("/detokenize", map[string]any{"tokens": tokens})["content"].(string)
		if !strings.Contains(prompt, want) {
			t.Errorf("the prompt is %q, want %q in it", prompt, want)
		}
	}
}

// Parts of a message are lines of it, and an answer's further texts are messages, as in vLLM.
func TestSeveralTexts(t *testing.T) {
	s := start(t, shallow(t, grove.Options{ChatTemplate: turns}), serve.Options{})
	parts := func(kind string) string {
		return fmt.Sprintf(`[{"type":"%s","text":"a"},{"type":"%[1]s","text":"b"}]`, kind)
	}
	for _, c := range []struct{ path, body, want string }{
		{"/v1/responses/input_tokens", `{"input":[{"role":"user","content":` + parts("input_text") + `}]}`, "user=a\nb;"},
		{"/v1/responses/input_tokens", `{"input":[{"role":"user","content":"x"},{"role":"assistant","content":"a"},` +
			`{"type":"message","role":"assistant","content":` + parts("output_text") + `},{"role":"user","content":"y"}]}`,
			"user=x;assistant=a;assistant=a\nb;user=y;"},
		{"/v1/messages/count_tokens", `{"messages":[{"role":"user","content":` + parts("text") + `}]}`, "user=a\nb;"},
		{"/v1/messages/count_tokens", `{"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":` +
			parts("text") + `}]}]}`, "user=<tool_response>\na\nb\n</tool_response>;"},
		{"/tokenize", `{"messages":[{"role":"user","content":` + parts("text") + `},{"role":"assistant","content":"c"},` +
			`{"role":"assistant","content":"d"}]}`, "user=a\nb;assistant=c;assistant=d;"},
	} {
		want := s.post("/tokenize", map[string]any{"prompt": c.want})
		got := s.post(c.path, object(t, c.body))
		if got["tokens"] != nil && fmt.Sprint(got["tokens"]) != fmt.Sprint(want["tokens"]) ||
			got["tokens"] == nil && got["input_tokens"] != want["count"] {
			t.Errorf("%s of %s: %v, want %v", c.path, c.body, got, want)
		}
	}
}
