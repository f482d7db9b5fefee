package serve

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/grovellm/grove"
	"github.com/grovellm/grove/chat"
	"github.com/grovellm/grove/internal/callform"
	"github.com/grovellm/grove/internal/testing/calltest"
	embedded "github.com/grovellm/grove/models"
	"github.com/grovellm/grove/tokenizer"
)

// callForm returns the form in which a template of calltest writes calls.
func callForm(t *testing.T, name string) *chat.CallForm {
	t.Helper()
	layout, err := chat.Parse(calltest.Tokenizer(t, calltest.Templates[name], false), calltest.Templates[name])
	if err != nil {
		t.Fatal(err)
	}
	form, err := layout.CallForm()
	if err != nil {
		t.Fatal(err)
	}
	return form
}

// callOf is call, a name that cases use for something else.
type callOf = call

// However a text is cut into pieces, a reader finds the same reasoning, content and calls in it.
func TestReader(t *testing.T) {
	call := func(arguments string) string { return `{"name": "f", "arguments": ` + arguments + "}" }
	for _, c := range []struct {
		format         string
		think, open    bool
		text           string
		reason, answer string
		calls          []string
	}{
		{"", false, false, " Hello <think>", "", " Hello <think>", nil},
		{"", true, false, "<think>\nHm.\n</think>\n\nHello", "\nHm.\n", "Hello", nil},
		{"", true, true, "Hm <thin</think>Hello", "Hm <thin", "Hello", nil},
		{"", true, false, " Hello", "", " Hello", nil},
		{"hermes", true, false, "<think>a<tool_call></think>\nWell <tool_\n<tool_call>\n" +
			call(`{"a": "}\"{", "b": [1, {}]}`) + "\n</tool_call>\n<tool_call>\n" + call("{}") + "\n</tool_call>",
			"a<tool_call>", "Well <tool_", []string{`{"a": "}\"{", "b": [1, {}]}`, "{}"}},
		{"hermes", true, true, "a<tool_call>b\n<tool_call>\n" + call("{}") + "\n</tool_call>",
			"a<tool_call>b\n", "", []string{"{}"}},
		{"qwen-coder", true, false, "<think>a\n<tool_call>\n<function=f>\n</function>\n</tool_call>", "a\n", "", []string{"{}"}},
		{"hermes", true, true, "a\n<tool_call>\n{\"na", "a\n<tool_call>\n{\"na", "", nil},
		{"mistral-args", false, false, `[TOOL_CALLS]f[ARGS]{}[TOOL_CALLS]f[ARGS]{"x": "]"}`, "", "",
			[]string{"{}", `{"x": "]"}`}},
		{"qwen-coder", false, false, "<tool_call>\n<function=f>\n<parameter=a>\n\"x\ny\"\n</parameter>\n</function>\n</tool_call>", "", "",
			[]string{`{"a": "\"x\ny\""}`}},
		{"elements", false, false, "A]:tag[ ]:tag:[<calls>\n]:tag:[<invoke name=\"f\">]:tag:[<a>b </a> ]:tag:[ \"]:tag:[</a>]:tag:[<l>" +
			"]:tag:[<item>1]:tag:[</item>\n]:tag:[<item>]:tag:[<a>x]:tag:[</a>]:tag:[<b>true]:tag:[</b>]:tag:[</item>]:tag:[</l>" +
			"]:tag:[</invoke>\n]:tag:[<invoke name=\"f\">]:tag:[</invoke>\n]:tag:[</calls>", "", "A]:tag[",
			[]string{`{"a": "b </a> ]:tag:[ \"", "l": [1, {"a": "x", "b": true}]}`, "{}"}},
		{"gptoss", false, false, "<|channel|>analysis<|message|>Hm<|end|><|assistant|><|channel|>final<|message|>Hi", "Hm", "Hi", nil},
		{"gptoss", false, false, "<|channel|>analysis<|message|>Hm<|end|><|assistant|> to=functions.f<|channel|>commentary json<|message|>{}", "Hm", "", []string{"{}"}},
		{"gptoss", false, false, "<|channel|>analysis<|message|>Hm<|end|><|assistant|><|channel|>commentary to=functions.f <|constrain|>json<|message|>{}",
			"Hm", "", []string{"{}"}},
		{"gptoss", false, false, "<|channel|>analysis to=functions.f <|constrain|>json<|message|>{}", "", "", []string{"{}"}},
		{"gptoss", false, false, "<|channel|>analysis<|message|>Hm<|end|><|assistant|><|channel|>commentary<|message|>Well.<|end|><|assistant|> to=functions.f<|channel|>commentary json<|message|>{}",
			"Hm", "Well.", []string{"{}"}},
		{"gptoss", false, false, "<|channel|>commentary<|message|>Well.<|end|><|assistant|><|channel|>final<|message|>Hi", "", "Well.\n\nHi", nil},
		{"gptoss", false, false, "<|channel|>commentary<|message|>Well.<|en", "", "Well.<|en", nil},
		{"gptoss", false, false, "<|channel|>comm", "", "", nil},
		{"gptoss", false, false, "<|channel|>anal", "", "", nil},
		{"gptoss", false, false, "<|channel|>analysis<|message|>Hm<|end|><|assis", "Hm", "", nil},
		{"gptoss", false, false, "<|channel|>analysis<|message|>Hm<|end|><|assistant|><|channel|>", "Hm", "", nil},
		{"gptoss", false, false, "<|channel|>final<|message|>Hi <|channel|>analysis to=functions.f <|constrain|>json<|message|>{}",
			"", "Hi", []string{"{}"}},
		{"functionary-2", false, false, "all\nHi\nthere", "", "Hi\nthere", nil},
		{"functionary-2", false, false, "all\na >>> b>>>>>f\n{}", "", "a >>> b>>", []string{"{}"}},
		{"qwen-coder", false, false, "Well <func\n<function=f>\n<parameter=a>\nx\n</parameter>\n</function>\n</tool_call>\n" +
			"<tool_call>\n<function=f>\n</function>\n</tool_call>", "", "Well <func", []string{`{"a": "x"}`, "{}"}},
		{"qwen-coder", false, false, "<function=f>\n</function>\n</tool_call>", "", "", []string{"{}"}},
		{"lfm", false, false, `A<|calls_start|>[f(a="x\n')]", b="1", c='\n')]<|calls_end|>`, "", "A",
			[]string{`{"a": "x\n')]", "b": "1", "c": "\\n"}`}},
		{"minicpm", false, false, "A<|calls_start|>\n```python\n" + `f(a="x\n')\"",b=[1,{"c": null}],d=1)` +
			"\nf()\n```\n<|calls_end|>", "", "A", []string{`{"a": "x\n')\"", "b": [1, {"c": null}], "d": 1}`, "{}"}},
		{"llama-4", false, false, `{"name": "f", "parameters": {}}{"name": "f", "parameters": {"a": 1}}`, "", "",
			[]string{"{}", `{"a": 1}`}},
		{"llama-4", false, false, `<|python_start|><|python_end|>{"name": "f", "parameters": {}}`, "", "", []string{"{}"}},
		{"llama-4", false, false, `A {"name": <|python_end|>{"name": "f", "parameters": {}}`, "", `A {"name":`, []string{"{}"}},
		{"llama", false, false, `{"name": "f", "parameters": {"a": null}}`, "", "", []string{`{"a": null}`}},
		{"llama", false, false, `A {"name": "f"`, "", `A {"name": "f"`, nil},
		{"hermes", false, false, "A\n<tool_call>\n{\"na", "", "A", nil},
		{"hermes", false, false, "<tool_call>\n" + `{"name": "f", "argu`, "", "", nil},
		{"hermes", false, false, "A <tool_ca", "", "A <tool_ca", nil},
		{"hermes", false, false, "<tool_call>\n" + `{"name": "f", "arguments": {"a": "cut`, "", "", []string{`{"a": "cut`}},
	} {
		var form *chat.CallForm
		if c.format != "" {
			form = callForm(t, c.format)
		}
		rapid.Check(t, func(t *rapid.T) {
			k := &callOf{chat: true, marks: callform.AllMarks[0]}
			k.request = grove.Request{Reasoning: c.think, ReasoningOpen: c.open}
			if c.format == "functionary-2" {
				k.answer.Begin = "all\n"
			}
			if form != nil {
				k.request.Tools = &grove.Tools{Form: form, List: []grove.Tool{
					{Name: "f", Parameters: `{"properties": {"a": {"type": "string"}}}`}}}
			}
			k.verbatim = c.format != "gptoss" && rapid.Bool().Draw(t, "verbatim")
			r := k.newReader()
			var reason, answer string
			calls := []string{}
			for rest := c.text; ; {
				n := rapid.IntRange(0, len(rest)).Draw(t, "piece")
				p := r.add(rest[:n], n == len(rest))
				reason, answer = reason+p.reasoning, answer+p.content
				for _, call := range p.calls {
					if *call.Index == len(calls) {
						calls = append(calls, "")
					}
					calls[*call.Index] += call.Function.Arguments
				}
				rest = rest[n:]
				if rest == "" {
					break
				}
			}
			wantReason, wantAnswer := c.reason, c.answer
			if k.verbatim && c.reason != "" { // everything except the calls, unchanged
				last := c.answer
				if last == "" {
					last = c.reason
				}
				wantReason, wantAnswer = "", c.text[:strings.Index(c.text, last)+len(last)]
			}
			if reason != wantReason || answer != wantAnswer || strings.Join(calls, ";") != strings.Join(c.calls, ";") {
				t.Fatal(fmt.Sprintf("%q: reasoning %q, content %q, calls %q", c.text, reason, answer, calls))
			}
		})
	}
}

// An answer that matches a schema may show a call in a string; calls stand in its place.
func TestCallsInStructure(t *testing.T) {
	const call = `<function=f>{"x": 1}</function>`
	c := &callOf{chat: true, marks: callform.AllMarks[0]}
	c.request = grove.Request{JSONSchema: "{}", Reasoning: true, Tools: &grove.Tools{Form: callForm(t, "functionary"),
		List: []grove.Tool{{Name: "f"}}}}
	for text, calls := range map[string]int{`"` + call + `"`: 0, "<think>a</think>\n[\"" + call + "\"]": 0, call: 1,
		"<think>a</think>\n" + call: 1, "<think>a" + call: 1} {
		p := c.newReader().add(text, true)
		if len(p.calls) != calls || (p.content == "") != (calls > 0) || !strings.HasSuffix(text, p.content) {
			t.Errorf("%q: content %q, calls %+v", text, p.content, p.calls)
		}
	}
}

// The marks around an answer are no part of it, and neither is one that ends reasoning that never began.
func TestMarkedAnswers(t *testing.T) {
	type marks = callform.Marks
	think, response := callform.AllMarks[0], callform.Answers[0].Marks
	gemma := callform.AllMarks[3]
	cohere := marks{Begin: "<|START_THINKING|>", End: "<|END_THINKING|>"}
	text := marks{Begin: "<|START_TEXT|>", End: "<|END_TEXT|>"}
	solar := marks{Begin: "<|think|>", End: "<|end|><|begin|>assistant"}
	content := marks{Begin: "<|content|>"}
	const call = "<tool_call>\n" + `{"name": "f", "arguments": {}}` + "\n</tool_call>"
	for _, c := range []struct {
		marks, answer marks
		open          bool
		text          string
		reason, want  string
		calls         int
	}{
		{think, marks{}, false, "\n</think>\n\nHi </think>", "", "Hi </think>", 0},
		{think, marks{}, false, "</thin", "", "</thin", 0},
		{think, response, false, "<think>a</think>\n<response>\nHi\n</response>\n", "a", "Hi", 0},
		{think, response, false, "<think>a</think>Hi <response>x</response>", "a", "Hi <response>x</response>", 0},
		{think, response, false, "<response>x</response>", "", "<response>x</response>", 0},
		{think, response, false, "<think>a</think><response>x</resp\n", "a", "x</resp\n", 0},
		{think, marks{Begin: "<answer>\n", End: "</answer>"}, false, "<answer>\nHi\n</answer>", "", "Hi", 0},
		{cohere, text, true, "a<|END_THINKING|><|START_TEXT|>Hi\nyou<|END_TEXT|>", "a", "Hi\nyou", 0},
		{cohere, text, false, "<|START_TEXT|>Hi<|END_TEXT|>", "", "Hi", 0},
		{cohere, text, true, "a<|END_THINKING|>Hi<|END_TEXT|>", "a", "Hi", 0},
		{cohere, text, true, "a<|END_THINKING|>" + call, "a", "", 1},
		{cohere, text, true, "a<|END_THINKING|><|START_TEXT|>Hi<|END_TEXT|>" + call, "a", "Hi", 1},
		{gemma, marks{}, false, "<|channel>thought<channel|>Hi<channel|>", "", "Hi", 0},
		{gemma, marks{}, false, "<|channel>thought\na<channel|>Hi <|channel>thought\nb<channel|>\nyou<channel", "\na\nb", "Hi you<channel", 0},
		{gemma, marks{}, false, "Hi <tool<|channel>thought\nb<chan", "\nb<chan", "Hi <tool", 0},
		{gemma, marks{}, false, "Hi" + strings.Replace(call, "{}", `{"a": "<channel|>"}`, 1), "", "Hi", 1},
		{cohere, text, false, "<|START_TEXT|>Hi" + strings.Replace(call, "{}", `{"a": " <|END_TEXT|> "}`, 1), "", "Hi", 1},
		{cohere, marks{End: text.End}, false, "there<|END_TEXT|>", "", "there", 0},
		{solar, content, false, "<|think|>a<|end|><|begin|>assistant<|content|>Hi", "a", "Hi", 0},
		{solar, content, false, "<|content|>Hi <|content|>", "", "Hi <|content|>", 0},
	} {
		form := callForm(t, "hermes")
		rapid.Check(t, func(t *rapid.T) {
			k := &callOf{chat: true, marks: c.marks, answer: c.answer}
			k.request = grove.Request{Reasoning: true, ReasoningOpen: c.open}
			k.verbatim = c.calls == 0 && rapid.Bool().Draw(t, "verbatim")
			if c.calls > 0 || c.marks != gemma && rapid.Bool().Draw(t, "tools") {
				k.request.Tools = &grove.Tools{Form: form, List: []grove.Tool{{Name: "f"}}}
			}
			r := k.newReader()
			var p parts
			arguments := ""
			for rest, done := c.text, false; !done; {
				n := rapid.IntRange(0, len(rest)).Draw(t, "piece")
				done = n == len(rest)
				next := r.add(rest[:n], done)
				rest = rest[n:]
				p.reasoning += next.reasoning
				p.content += next.content
				for _, call := range next.calls {
					arguments += call.Function.Arguments
				}
			}
			if k.verbatim {
				if p.reasoning != "" || strings.TrimSpace(p.content) != strings.TrimSpace(c.text) {
					t.Fatalf("%q: reasoning %q, content %q", c.text, p.reasoning, p.content)
				}
				return
			}
			if p.reasoning != c.reason || strings.TrimRight(p.content, "\n") != strings.TrimRight(c.want, "\n") ||
				r.calls != c.calls || !strings.Contains(c.text, arguments) {
				t.Fatalf("%q: reasoning %q, content %q, %d calls, arguments %q", c.text, p.reasoning, p.content, r.calls, arguments)
			}
		})
	}
}

// A call that ends reasoning is not counted with it, nor is the beginning of its mark.
func TestReasoningTokensBeforeCalls(t *testing.T) {
	m, err := grove.OpenGGUF("embedded", embedded.Target(), grove.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	tok := m.Tokenizer()
	const call = "<tool_call>\n{\"name\": \"f\", \"arguments\": {}}\n</tool_call>"
	for _, open := range []bool{true, false} {
		c := &callOf{chat: true, marks: callform.AllMarks[0], model: &Model{Model: m}}
		c.request = grove.Request{Reasoning: true, ReasoningOpen: open, Tools: &grove.Tools{Form: callForm(t, "hermes")}}
		begin := map[bool]string{false: "<think>"}[open]
		for text, end := range map[string]int{begin + "a <b" + call: len(begin) + 4, begin + call: len(begin),
			begin + "a\n</think>\n" + call: len(begin) + 10, begin + "a <tool_": len(begin) + 8} {
			tokens := tok.Encode(text, tokenizer.EncodeOptions{})
			want := 0
			for at := 0; at < end; want++ {
				at += len(tok.Decode(tokens[want:want+1], tokenizer.DecodeOptions{Special: true}))
			}
			if n := c.reasoningTokens(tokens); n != want {
				t.Errorf("%q: %d tokens, want %d", text, n, want)
			}
		}
	}
}

// Reasoning in the content stands apart from the answer, where the channels that mark both are left out.
func TestChannelsInContent(t *testing.T) {
	c := &callOf{chat: true, marks: callform.Channels, verbatim: true}
	c.request = grove.Request{Tools: &grove.Tools{Form: callForm(t, "gptoss"), List: []grove.Tool{{Name: "f"}}}}
	const thought = "<|channel|>analysis<|message|>Hm<|end|><|assistant|>"
	for text, want := range map[string]string{thought + "<|channel|>final<|message|>Hi": "Hm\n\nHi", thought: "Hm",
		"<|channel|>final<|message|>Hi": "Hi", thought + " to=functions.f<|channel|>commentary json<|message|>{}": "Hm"} {
		r := c.newReader()
		content := ""
		for i := range len(text) {
			content += r.add(text[i:i+1], i == len(text)-1).content
		}
		if whole := c.newReader().add(text, true).content; content != want || whole != want {
			t.Errorf("%q: content %q, in pieces %q", text, whole, content)
		}
	}
}
