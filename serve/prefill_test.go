package serve_test

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/grovellm/grove"
	"github.com/grovellm/grove/internal/callform"
	"github.com/grovellm/grove/internal/testing/cases"
	"github.com/grovellm/grove/serve"
)

// turnsTemplate closes every turn, and takes white space away from contents.
const turnsTemplate = "{% for m in messages %}<{{ m.role }}>{{ m.content | trim }}</{{ m.role }}>\n{% endfor %}" +
	"{% if add_generation_prompt %}<assistant>{% endif %}"

// An assistant's answer at the end of a conversation is continued in every protocol that means it
// so, and if a request says so: the prompt ends where this answer ends. Otherwise the turn is
// closed and a new one begins.
func TestPrefill(t *testing.T) {
	m := shallow(t, grove.Options{ChatTemplate: turnsTemplate})
	s := start(t, m, serve.Options{})
	cases.Check(t, 8, func(rt *rapid.T) {
		question, begun := rapid.StringMatching(`[a-z]{1,8}`).Draw(rt, "question"), rapid.StringMatching(
			` ?[a-zé{" ]{0,7}[a-z]`).Draw(rt, "begun")
		space := rapid.SampledFrom([]string{"", " ", "\n"}).Draw(rt, "space")
		messages := []any{map[string]any{"role": "user", "content": question}, map[string]any{"role": "assistant",
			"content": begun + space}}
		open := "<user>" + question + "</user>\n<assistant>" + strings.TrimSpace(begun)
		closed := open + "</assistant>\n<assistant>"
		ask := func(prompt string) string {
			return at(s.post("/v1/completions", map[string]any{"prompt": prompt, "temperature": 0, "max_tokens": 12}),
				"choices.0.text").(string)
		}
		chat := map[string]any{"messages": messages, "temperature": 0, "max_tokens": 12}
		ollama := map[string]any{"messages": messages, "stream": false, "options": map[string]any{"temperature": 0,
			"num_predict": 12, "repeat_last_n": 0}}
		parts := with(chat, "messages", []any{messages[0], map[string]any{"role": "assistant",
			"content": []any{map[string]any{"type": "text", "text": begun + space}}}})
		for name, got := range map[string]struct{ prompt, text any }{
			"continue_final_message": {open, at(s.post("/v1/chat/completions", with(chat, "continue_final_message", true,
				"add_generation_prompt", false)), "choices.0.message.content")},
			"chat": {closed, at(s.post("/v1/chat/completions", chat), "choices.0.message.content")},
			"add_generation_prompt": {strings.TrimSuffix(closed, "<assistant>"),
				at(s.post("/v1/chat/completions", with(chat, "add_generation_prompt", false)), "choices.0.message.content")},
			"messages":          {open, at(s.post("/v1/messages", chat), "content.0.text")},
			"messages in parts": {open, at(s.post("/v1/messages", parts), "content.0.text")},
			"messages closed":   {closed, at(s.post("/v1/messages", with(chat, "continue_final_message", false)), "content.0.text")},
			"ollama":            {open, at(s.post("/api/chat", ollama), "message.content")},
		} {
			want := ask(got.prompt.(string))
			if got.text == nil { // without text there is no block
				got.text = ""
			}
			if got.text != want {
				rt.Fatalf("%s: %q after %q, want %q", name, got.text, got.prompt, want)
			}
		}
		tokens, err := m.Tokenize(open)
		if err != nil {
			rt.Fatal(err)
		}
		if n := s.post("/v1/messages/count_tokens", chat)["input_tokens"]; n != float64(len(tokens)) {
			rt.Fatalf("%v tokens, want %d", n, len(tokens))
		}
		if got := s.post("/tokenize", map[string]any{"messages": messages,
			"continue_final_message": true})["tokens"]; fmt.Sprint(got) != fmt.Sprint(tokens) {
			rt.Fatalf("tokens %v, want %v", got, tokens)
		}
	})
	status, _, text := s.send("POST", "/v1/chat/completions", `{"messages":[{"role":"assistant","content":"x"}],"continue_final_message":true,"add_generation_prompt":true}`)
	if status != 400 || !strings.Contains(text, "one of them") {
		t.Errorf("status %d: %s", status, text)
	}
}

// The beginning of a continued answer decides whether reasoning is under way.
func TestPrefillReasoning(t *testing.T) {
	s := start(t, shallow(t, grove.Options{ChatTemplate: turnsTemplate + "{# </think> #}"}), serve.Options{})
	for begun, want := range map[string]string{"<think>\nLet me": "thinking", "<think>a</think>b": "text", "So": "text"} {
		a := s.post("/v1/messages", map[string]any{"messages": []any{map[string]any{"role": "user", "content": "x"},
			map[string]any{"role": "assistant", "content": begun}}, "temperature": 0, "max_tokens": 5})
		if got := at(a, "content.0.type"); got != want {
			t.Errorf("after %q: %v", begun, a)
		}
	}
}

// reasoningWith returns dialectReasoning with other marks around reasoning.
func reasoningWith(marks callform.Marks) string {
	return strings.NewReplacer("<think>", marks.Begin, "</think>", marks.End).Replace(dialectReasoning)
}

// A budget ends reasoning that stays in the content at the same point as separate reasoning,
// whichever marks the model's template has.
func TestReasoningInContent(t *testing.T) {
	for _, marks := range callform.AllMarks {
		if marks == callform.Channels { // see TestChannels
			continue
		}
		o := grove.Options{Threads: 1, ChatTemplate: reasoningWith(marks)}
		s := start(t, tinyWith(t, "tiny-qwen3", 512, o), serve.Options{})
		cases.Check(t, 6, func(rt *rapid.T) {
			open := rapid.Bool().Draw(rt, "open")
			body := map[string]any{"messages": []any{map[string]any{"role": "user",
				"content": rapid.StringMatching(`[a-z é語]{1,12}`).Draw(rt, "text")}},
				"temperature": 1.5, "seed": rapid.IntRange(0, 1000).Draw(rt, "seed"), "max_tokens": 80,
				"reasoning_budget":     rapid.IntRange(0, 20).Draw(rt, "budget"),
				"chat_template_kwargs": map[string]any{"enable_thinking": open}}
			apart := at(s.post("/v1/chat/completions", body), "choices.0.message")
			content := at(s.post("/v1/chat/completions", with(body, "reasoning_format", "none")),
				"choices.0.message.content").(string)
			streamed := assemble(t, s.events("/v1/chat/completions", with(body, "reasoning_format", "none")), 1)[0].text
			reasoning, _ := at(apart, "reasoning_content").(string)
			text, _ := at(apart, "content").(string)
			thought, rest, ended := strings.Cut(content, marks.End)
			if begun, ok := strings.CutPrefix(strings.TrimLeft(thought, " \n"), marks.Begin); ok {
				thought = begun
			}
			if !ended {
				thought, rest = "", content
			}
			if streamed != content || thought != reasoning || open != ended ||
				strings.TrimLeft(rest, " \n") != strings.TrimLeft(text, " \n") {
				rt.Fatalf("content %q, streamed %q; apart reasoning %q, content %q", content, streamed, reasoning, text)
			}
		})
	}
}

// Marks that the template alone tells of are left out of answers, around reasoning and around the answer, whole and
// streamed; those around an answer that is continued too.
func TestMarksOfTemplate(t *testing.T) {
	template := strings.NewReplacer("<think>\n", "<x:think>", "{# </think> #}", "").Replace(dialectReasoning)
	template = strings.Replace(template, "{{ m.content }}", "{% if m.role != 'assistant' %}{{ m.content }}{% else %}"+
		"{% if m.reasoning %}<x:think>{{ m.reasoning }}</x:think>{% endif %}<a>{{ m.content }}</a>{% endif %}", 1)
	s := start(t, tinyWith(t, "tiny-qwen3", 512, grove.Options{Threads: 1, ChatTemplate: template}), serve.Options{})
	for _, open := range []bool{true, false} {
		body := map[string]any{"messages": []any{map[string]any{"role": "user", "content": "x"}}, "seed": 1, "max_tokens": 60,
			"temperature": 1.5, "reasoning_budget": 9, "chat_template_kwargs": map[string]any{"enable_thinking": open},
			"grammar": `root ::= "<a>Hi</a>"`}
		message := at(s.post("/v1/chat/completions", body), "choices.0.message")
		thought, _ := at(message, "reasoning_content").(string)
		streamed := assemble(t, s.events("/v1/chat/completions", body), 1)[0].text
		if at(message, "content") != "Hi" || streamed != "Hi" || (thought != "") != open || strings.Contains(thought, "<") {
			t.Errorf("open %v: %v, streamed %q", open, message, streamed)
		}
	}
	a := s.post("/v1/messages", map[string]any{"messages": []any{map[string]any{"role": "user", "content": "x"},
		map[string]any{"role": "assistant", "content": "So"}}, "max_tokens": 40, "grammar": `root ::= " be it</a>"`})
	if text := at(a, "content.0.text"); text != " be it" {
		t.Errorf("continued: %v", a)
	}
}

// Chats have reasoning under llama.cpp's name and under that of vLLM and Ollama, whole and in each piece of a stream.
func TestReasoningNames(t *testing.T) {
	s := start(t, tinyWith(t, "tiny-qwen3", 512, grove.Options{Threads: 1, ChatTemplate: dialectReasoning}), serve.Options{})
	body := map[string]any{"messages": []any{map[string]any{"role": "user", "content": "x"}}, "seed": 1, "max_tokens": 40,
		"reasoning_budget": 9, "chat_template_kwargs": map[string]any{"enable_thinking": true}}
	whole := at(s.post("/v1/chat/completions", body), "choices.0.message")
	streamed := ""
	for _, e := range s.events("/v1/chat/completions", body) {
		d := at(e, "choices.0.delta")
		text, _ := at(d, "reasoning_content").(string)
		streamed += text
		if at(d, "reasoning") != at(d, "reasoning_content") {
			t.Errorf("a piece: %v", d)
		}
	}
	if streamed == "" || at(whole, "reasoning_content") != streamed || at(whole, "reasoning") != streamed {
		t.Errorf("%v, streamed %q", whole, streamed)
	}
	body["include_reasoning"] = false
	bare := at(s.post("/v1/chat/completions", body), "choices.0.message")
	if at(bare, "reasoning") != nil || at(bare, "content") != at(whole, "content") {
		t.Errorf("without reasoning: %v, want the content of %v", bare, whole)
	}
	for _, e := range s.events("/v1/chat/completions", body) {
		if at(e, "choices.0.delta.reasoning") != nil {
			t.Errorf("a piece without reasoning: %v", e)
		}
	}
}

// A budget for reasoning also works under the names of llama.cpp and vLLM, unless reasoning is off.
func TestBudgetNames(t *testing.T) {
	t.Parallel()
	s := start(t, tinyWith(t, "tiny-qwen3", 512, grove.Options{Threads: 1, ChatTemplate: dialectReasoning}), serve.Options{})
	const chat = `{"messages":[{"role":"user","content":"x"}],"ignore_eos":true,"max_tokens":40,"seed":1,"reasoning_effort":`
	tokens := func(fields string) any {
		status, _, text := s.send("POST", "/v1/chat/completions", chat+fields+"}")
		if status == 400 {
			return at(object(t, text), "error.param")
		}
		return at(object(t, text), "usage.completion_tokens_details.reasoning_tokens")
	}
	for _, name := range []string{"reasoning_budget_tokens", "thinking_budget_tokens", "thinking_token_budget"} {
		for _, value := range []string{"0", "5", "-1", "null", "-2"} {
			want := tokens(`"high","reasoning_budget":` + value)
			if value == "-2" {
				want = name
			}
			if got := tokens(`"high","` + name + `":` + value); got != want {
				t.Errorf("%s %s: %v, want %v", name, value, got, want)
			}
			if got, want := tokens(`"none","`+name+`":3`), tokens(`"none"`); got != want {
				t.Errorf("%s without reasoning: %v, want %v", name, got, want)
			}
		}
	}
	if tokens(`"high","reasoning_budget":5`) == tokens(`"high"`) {
		t.Error("a budget changes nothing")
	}
}

// Stop strings end the answer, not the reasoning before it. If reasoning is part of
// the content, they can end it.
func TestStopsAndReasoning(t *testing.T) {
	template := reasoningWith(callform.AllMarks[3])
	s := start(t, tinyWith(t, "tiny-qwen3", 512, grove.Options{Threads: 1, ChatTemplate: template}), serve.Options{})
	cases.Check(t, 20, func(rt *rapid.T) {
		body := map[string]any{"messages": []any{map[string]any{"role": "user",
			"content": rapid.StringMatching(`[a-z]{1,12}`).Draw(rt, "text")}},
			"seed": rapid.IntRange(0, 1000).Draw(rt, "seed"), "max_tokens": 30, "reasoning_budget": 10, "ignore_eos": true,
			"chat_template_kwargs": map[string]any{"enable_thinking": true}}
		free := at(s.post("/v1/chat/completions", body), "choices.0.message")
		reasoning, _ := at(free, "reasoning_content").(string)
		content := at(free, "content").(string)
		stop := rapid.SampledFrom(strings.Split(reasoning+content+"x", "")).Draw(rt, "stop")
		got := at(s.post("/v1/chat/completions", with(body, "stop", stop)), "choices.0.message")
		want, _, _ := strings.Cut(content, stop)
		if at(got, "reasoning_content") != reasoning || at(got, "content") != want {
			rt.Fatalf("stop %q: %v, want reasoning %q, content %q", stop, got, reasoning, want)
		}
		whole := at(s.post("/v1/chat/completions", with(body, "reasoning_format", "none")),
			"choices.0.message.content").(string)
		want, _, _ = strings.Cut(whole, stop)
		if got := at(s.post("/v1/chat/completions", with(body, "reasoning_format", "none", "stop", stop)),
			"choices.0.message.content"); got != want {
			rt.Fatalf("stop %q: %q, want %q", stop, got, want)
		}
	})
}

// Reasoning and answers of a model that marks them by channels are separated without tools too.
// Stop strings and structured output apply to the answer.
func TestChannels(t *testing.T) {
	t.Parallel()
	o := grove.Options{Threads: 1, ChatTemplate: toolTemplates["gptoss"]}
	s := start(t, tinyWith(t, "tiny-qwen3", 512, o), serve.Options{})
	reasoned := 0
	for seed := range 12 {
		body := map[string]any{"messages": []any{map[string]any{"role": "user", "content": "x"}},
			"temperature": 1.5, "seed": seed, "max_tokens": 150, "logit_bias": map[string]any{"60": 4}, "return_token_ids": true}
		whole := s.post("/v1/chat/completions", body)
		text := s.post("/detokenize", map[string]any{"tokens": at(whole, "choices.0.token_ids")})["content"].(string)
		reasoning, _ := at(whole, "choices.0.message.reasoning_content").(string)
		content, _ := at(whole, "choices.0.message.content").(string)
		streamed := assemble(t, s.events("/v1/chat/completions", body), 1)[0].text
		if strings.Contains(reasoning+content, "<|channel|>") || streamed != content ||
			!strings.HasPrefix(text, "<|channel|>") ||
			!strings.HasPrefix(text, callform.Channels.Begin+reasoning) && reasoning != "" || !strings.Contains(text, content) {
			t.Errorf("%q: reasoning %q, content %q, streamed %q", text, reasoning, content, streamed)
		}
		if tokens := at(whole, "usage.completion_tokens_details.reasoning_tokens"); (reasoning != "") != (tokens != 0.) {
			t.Errorf("%q: %v tokens of reasoning", reasoning, tokens)
		}
		if reasoning != "" {
			reasoned++
		}
		stopped := at(s.post("/v1/chat/completions", with(body, "stop", []string{"<", "a"})), "choices.0.message")
		want := content
		if at := strings.IndexAny(content, "<a"); at >= 0 {
			want = content[:at]
		}
		thought, _ := at(stopped, "reasoning_content").(string)
		if thought != reasoning || at(stopped, "content") != want {
			t.Errorf("%q, %q: stopped %v", reasoning, content, stopped)
		}
		chosen := at(s.post("/v1/chat/completions", with(body, "guided_choice", []string{"yes", "no"})), "choices.0.message")
		if answer := at(chosen, "content"); answer != "" && answer != "yes" && answer != "no" {
			t.Errorf("a choice: %v", chosen)
		}
	}
	without := s.post("/v1/chat/completions", map[string]any{
		"messages":         []any{map[string]any{"role": "user", "content": "x"}},
		"reasoning_effort": "none", "max_tokens": 60, "seed": 1, "temperature": 1.5})
	if thought := at(without, "choices.0.message.reasoning_content"); thought != nil {
		t.Errorf("without effort: reasoning %q", thought)
	}
	if reasoned == 0 || reasoned == 12 {
		t.Errorf("%d of 12 answers have reasoning", reasoned)
	}
}
