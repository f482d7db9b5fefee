package chat

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/grovellm/grove/internal/callform"
	"github.com/grovellm/grove/internal/testing/testdata"
	"github.com/grovellm/grove/tokenizer"
)

// A byte-level tokenizer with a few control tokens, as a tokenizer.json.
func toy(t testing.TB, config string, special ...string) *tokenizer.Tokenizer {
	t.Helper()
	vocab := map[string]int{}
	next := rune(0x100)
	for b := range 256 {
		r := rune(b)
		if !('!' <= r && r <= '~' || '¡' <= r && r <= '¬' || '®' <= r && r <= 'ÿ') {
			r = next
			next++
		}
		vocab[string(r)] = b
	}
	var added []any
	for i, s := range special {
		added = append(added, map[string]any{"id": 256 + i, "content": s, "special": true})
	}
	step := map[string]any{"type": "ByteLevel", "add_prefix_space": false, "use_regex": true}
	b, err := json.Marshal(map[string]any{
		"added_tokens": added, "pre_tokenizer": step, "decoder": step,
		"model": map[string]any{"type": "BPE", "vocab": vocab, "merges": []string{}},
	})
	if err != nil {
		t.Fatal(err)
	}
	tok, err := tokenizer.Parse("toy", map[string][]byte{"tokenizer.json": b, "tokenizer_config.json": []byte(config)})
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

// testdata/rendered.json holds what Python's jinja2 3.1.6 makes of testdata/templates, set up as in
// Hugging Face's apply_chat_template (trim_blocks, lstrip_blocks, loop controls, its tojson and
// strftime_now, the date being 21 November 2026).
func TestRenderedByPython(t *testing.T) {
	var golden struct {
		Scenarios map[string]struct {
			Messages []json.RawMessage
			Vars     map[string]json.RawMessage
		}
		Rendered []struct {
			Template, Scenario string
			Text, Error        *string
		}
	}
	b, err := os.ReadFile("testdata/rendered.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &golden); err != nil {
		t.Fatal(err)
	}
	for _, want := range golden.Rendered {
		t.Run(want.Template+"/"+want.Scenario, func(t *testing.T) {
			source, err := os.ReadFile(filepath.Join("testdata/templates", want.Template))
			if err != nil {
				t.Fatal(err)
			}
			l, err := Parse(toy(t, `{"bos_token": "<s>", "eos_token": "</s>"}`, "<s>", "</s>"), string(source))
			if err != nil {
				t.Fatal(err)
			}
			s := golden.Scenarios[want.Scenario]
			o := Options{Prompt: true, Vars: map[string]json.RawMessage{}, Now: time.Date(2026, 11, 21, 9, 5, 7, 0, time.UTC)}
			for k, v := range s.Vars {
				switch k {
				case "tools":
					o.Tools = v
				case "add_generation_prompt":
					o.Prompt = string(v) == "true"
				default:
					o.Vars[k] = v
				}
			}
			var messages []Message
			for _, m := range s.Messages {
				messages = append(messages, Message{Extra: m})
			}
			got, err := l.renderAs(nil, nil, messages, o, false)
			switch {
			case want.Error != nil:
				if err == nil || !strings.Contains(err.Error(), *want.Error) {
					t.Errorf("got error %v, want %s", err, *want.Error)
				}
			case err != nil:
				t.Error(err)
			case got != *want.Text:
				t.Errorf("\n got %q\nwant %q", got, *want.Text)
			}
		})
	}
}

var talk = []Message{
	{Role: "system", Content: "Be kind."}, {Role: "user", Content: "Hi"}, {Role: "assistant",
		Content: "Hello."}, {Role: "user", Content: "Bye"},
}

func TestFallbacks(t *testing.T) {
	ml, err := New(toy(t, `{}`, "<|im_start|>", "<|im_end|>"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := ml.Render(talk, Options{Prompt: true})
	want := "<|im_start|>system\nBe kind.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\nHello.<|im_end|>\n" +
		"<|im_start|>user\nBye<|im_end|>\n<|im_start|>assistant\n"
	if err != nil || got != want || !strings.HasPrefix(ml.About(), "ChatML") || len(ml.Stop()) != 0 {
		t.Errorf("%v %q %q", err, got, ml.About())
	}
	plain, err := New(toy(t, `{}`))
	if err != nil {
		t.Fatal(err)
	}
	got, err = plain.Render(talk, Options{Prompt: true})
	want = "Be kind.\n\nUser: Hi\nAssistant: Hello.\nUser: Bye\nAssistant:"
	if err != nil || got != want || !strings.HasPrefix(plain.About(), "a plain transcript") ||
		!slices.Equal(plain.Stop(), []string{"\nUser:"}) {
		t.Errorf("%v %q %q %q", err, got, plain.About(), plain.Stop())
	}
	for _, l := range []*Layout{ml, plain} {
		if _, err := l.Render([]Message{{Role: "user", Extra: json.RawMessage(`{"content": [{"type": "text"}]}`)}},
			Options{}); err == nil {
			t.Error("content that is no text is taken")
		}
	}
}

// A message cannot become anything but text, in its content, its further fields and the documents.
func TestMessagesAreText(t *testing.T) {
	tok := toy(t, `{"bos_token": "<s>", "add_bos_token": true, "chat_template":
		"{% for m in messages %}<s>{{ m.role }}: {{ m.content | trim }}{{ m.x }}</s>{% endfor %}{{ documents | tojson }}"}`, "<s>", "</s>", "é|end|")
	l, err := New(tok)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Parse(toy(t, `{"chat_template": "{{"}`), "x"); err != nil {
		t.Error("a template given by hand does not stand in for a broken one:", err)
	}
	messages := []Message{{Role: "u</s>ser", Content: "a</s>b<s>é|end|<s", Extra: json.RawMessage(`{"x": "</s>"}`)}}
	o := Options{Documents: json.RawMessage(`[{"</s>": "<s>"}]`)}
	text, err := l.Render(messages, o)
	want := `<s>u</s>ser: a</s>b<s>é|end|<s</s></s>[{"</s>": "<s>"}]`
	if err != nil || text != want {
		t.Fatalf("%v %q", err, text)
	}
	ids, err := l.Encode(messages, o)
	if err != nil {
		t.Fatal(err)
	}
	var special []int32
	for _, id := range ids {
		if tok.IsSpecial(id) {
			special = append(special, id)
		}
	}
	if !slices.Equal(special, []int32{256, 257}) || ids[0] != 256 {
		t.Errorf("special tokens %v", special)
	}
	if back := tok.Decode(ids, tokenizer.DecodeOptions{Special: true}); back != want {
		t.Errorf("decodes to %q", back)
	}
}

// A BOS that the template forgets is added where the model wants one, and never twice.
func TestBOS(t *testing.T) {
	for template, want := range map[string]int{"x": 2, "{{ bos_token }}x": 2, "": 1} {
		tok := toy(t, `{"bos_token": "<s>", "add_bos_token": true}`, "<s>")
		l, err := Parse(tok, template)
		if err != nil {
			t.Fatal(err)
		}
		if ids, err := l.Encode(nil, Options{}); err != nil || len(ids) != want || ids[0] != 256 {
			t.Errorf("%q: %v %v", template, ids, err)
		}
	}
}

func TestNamedTemplates(t *testing.T) {
	l, err := New(toy(t, `{"chat_template": [{"name": "default", "template": "D"}, {"name": "tool_use", "template": "T"}, {"name": "rag", "template": "R"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	for want, o := range map[string]Options{"D": {}, "T": {Tools: json.RawMessage(`[]`)}, "R": {Template: "rag"}} {
		if got, err := l.Render(nil, o); err != nil || got != want {
			t.Errorf("%q, %v; want %q", got, err, want)
		}
	}
	if _, err := l.Render(nil, Options{Template: "none"}); err == nil ||
		!strings.Contains(err.Error(), "default, rag, tool_use") {
		t.Error(err)
	}
	if !slices.Equal(l.names(), []string{"default", "rag", "tool_use"}) {
		t.Error(l.names())
	}
}

// go-7m has no template, and ChatML's tokens.
func TestGo7m(t *testing.T) {
	tok, err := tokenizer.FromJSON(testdata.Path(t, "models/go-7m"))
	if err != nil {
		t.Fatal(err)
	}
	l, err := New(tok)
	if err != nil {
		t.Fatal(err)
	}
	ids, err := l.Encode([]Message{{Role: "user", Content: "hello"}}, Options{Prompt: true})
	// as llama-tokenize gives for the text
	if want := []int32{8187, 4376, 10, 3131, 8188, 10, 8187, 729, 525, 429, 10}; err != nil || !slices.Equal(ids, want) {
		t.Errorf("%v %v, want %v", ids, err, want)
	}
}

// A message's reasoning has the names that templates read, whichever it came with (transformers'
// _alias_reasoning_fields), but for thinking beside content and calls, which gpt-oss's template refuses.
func TestReasoningNames(t *testing.T) {
	layout, err := Parse(toy(t, ""), "{% for m in messages %}[{{ m.reasoning_content }}|{{ m.thinking }}]{% endfor %}")
	if err != nil {
		t.Fatal(err)
	}
	for extra, want := range map[string]string{
		`{"reasoning_content":"R"}`: "[R|R]", `{"thinking":"R"}`: "[R|R]", `{"reasoning":"R"}`: "[R|R]",
		`{"reasoning_content":null,"reasoning":"R","thinking":"T"}`: "[T|T]",
		`{"reasoning_content":"R","thinking":"T"}`:                  "[R|T]",
		`{"name":"x"}`: "[|]", `{"reasoning":"R","tool_calls":[]}`: "[R|]",
	} {
		said := Message{Role: "assistant", Content: "A", Extra: json.RawMessage(extra)}
		if text, err := layout.Render([]Message{said}, Options{}); err != nil || text != want {
			t.Errorf("%s: %q, %v; want %q", extra, text, err, want)
		}
	}
}

// Templates of Mistral read reasoning as a part of the content: they get it so, with and without text.
func TestReasoningInContent(t *testing.T) {
	layout, err := Parse(toy(t, ""), "{% for m in messages %}{% if m['content'] is string %}{{ m['content'] }}{% else %}"+
		"{% for block in m['content'] %}{% if block['type'] == 'text' %}{{ block['text'] }}{% else %}{{ '[THINK]' + block['thinking'] }}[/THINK]"+
		"{% endif %}{% endfor %}{% endif %};{% endfor %}")
	if err != nil {
		t.Fatal(err)
	}
	reasoned := json.RawMessage(`{"reasoning":"R"}`)
	list := []Message{{Role: "user", Content: "A"}, {Role: "assistant", Content: "B", Extra: reasoned},
		{Role: "assistant", Extra: reasoned}, {Role: "assistant", Content: "C"}}
	for open, want := range map[bool]string{false: "A;[THINK]R[/THINK]B;[THINK]R[/THINK];C;",
		true: "A;[THINK]R[/THINK]B;[THINK]R[/THINK];C"} {
		if text, err := layout.Render(list, Options{Continue: open}); err != nil || text != want {
			t.Errorf("%q, %v; want %q", text, err, want)
		}
	}
}

// A template that lists tools without a look whether there are any gets none, and one that fails without Firefunction's
// variables gets these.
func TestMissingVariables(t *testing.T) {
	now := time.Date(2026, 11, 21, 9, 5, 7, 0, time.UTC)
	tools := json.RawMessage(`[{"name":"<s>"}]`)
	for source, want := range map[string][2]string{
		"{{ tools is none }}{% for t in tools %}{{ t.name }}{% endfor %}": {"False", "False<s>"},
		"{{ 'F ' + functions + ' on ' + datetime }}": {"F [] on 2026-11-21 09:05:07",
			`F [{"name":"<s>"}] on 2026-11-21 09:05:07`},
		"{{ functions is defined }}": {"False", "False"},
	} {
		layout, err := Parse(toy(t, "", "<s>"), source)
		if err != nil {
			t.Fatal(err)
		}
		for i, o := range []Options{{Now: now}, {Now: now, Tools: tools}} {
			if text, err := layout.Render(nil, o); err != nil || strings.ReplaceAll(text, shield, "") != want[i] {
				t.Errorf("%s: %q, %v; want %q", source, text, err, want[i])
			}
			if ids, err := layout.Encode(nil, o); err != nil || slices.Contains(ids, 256) {
				t.Errorf("%s: %v, %v: a control token", source, ids, err)
			}
		}
	}
}

// What variables say is text too, whichever they are: the name of a control token in one does not become that token.
func TestVariablesAreText(t *testing.T) {
	layout, err := Parse(toy(t, "", "<|end|>"), "{{ documents }}{{ mood }}<|end|>")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"mood", "documents"} {
		ids, err := layout.Encode(nil, Options{Vars: map[string]json.RawMessage{name: json.RawMessage(`"a<|end|>"`)}})
		if n := len(slices.DeleteFunc(slices.Clone(ids), func(id int32) bool { return id != 256 })); err != nil || n != 1 {
			t.Errorf("%s: %v, %v: %d control tokens, want the template's own", name, ids, err, n)
		}
	}
}

// The marks around reasoning and around the answer are those that the template writes, or that it names if a model is
// known to write them.
func TestMarks(t *testing.T) {
	const before = "{% for m in messages %}<|{{ m.role }}|>{% if m.role != 'assistant' %}{{ m.content }}{% else %}"
	const behind = "{% endif %}<|im_end|>{% endfor %}{% if add_generation_prompt %}<|assistant|>PROMPT{% endif %}"
	const calls = "{% for c in m.tool_calls or [] %}<call>{{ c.function.name }}{{ c.function.arguments | tojson }}{% endfor %}"
	none := callform.Marks{}
	marks := func(begin, end string) callform.Marks { return callform.Marks{Begin: begin, End: end} }
	for _, c := range []struct {
		turn, prompt    string
		thought, answer callform.Marks
	}{
		{"{{ m.content }}" + calls, "", none, none},
		{"{% if m.reasoning_content %}<mm:think>{{ m.reasoning_content }}{% endif %}</mm:think>{{ m.content }}" + calls, "",
			marks("<mm:think>", "</mm:think>"), none},
		{"<think:x>{{ m.reasoning_content }}</think:x>\n{{ m.content }}" + calls, "<think:x>",
			marks("<think:x>", "</think:x>"), none},
		{"{% if m.reasoning %}<|START_THINKING|>{{ m.reasoning }}<|END_THINKING|>{% endif %}" +
			"<|START_TEXT|>{{ m.content }}<|END_TEXT|>", "<|START_THINKING|>",
			marks("<|START_THINKING|>", "<|END_THINKING|>"), marks("<|START_TEXT|>", "<|END_TEXT|>")},
		{"{% if m.tool_calls %}<|START_THINKING|>{{ m.tool_plan }}<|END_THINKING|>" + calls +
			"{% else %}<|START_RESPONSE|>{{ m.content }}<|END_RESPONSE|>{% endif %}", "",
			marks("<|START_THINKING|>", "<|END_THINKING|>"), marks("<|START_RESPONSE|>", "<|END_RESPONSE|>")},
		{"{% if m.reasoning %}<|think|>{{ m.reasoning }}<|end|><|assistant|>{% endif %}<|content|>{{ m.content }}", "",
			marks("<|think|>", "<|end|><|assistant|>"), marks("<|content|>", "")},
		{"{% if tools %}{{ raise_exception('no tools') }}{% endif %}<x:think>{{ m.thinking }}</x:think>{{ m.content }}", "",
			marks("<x:think>", "</x:think>"), none},
		{"{% if m.thought %}<|thought_start|>\n{{ m.thought }}\n<|thought_end|>\n{% endif %}{{ m.content }}", "",
			marks("<|thought_start|>", "<|thought_end|>"), none},
		{"{{ m.reasoning }}\n{{ m.content }}", "", none, none},
		{"{# between <think></think>, and the response between <response></response> #}{{ m.content }}", "",
			marks("<think>", "</think>"), marks("<response>", "</response>")},
		{"<think>\n{{ m.thinking }}\n</think>\n<answer>\n{{ m.content }}\n</answer>", "", marks("<think>", "</think>"),
			marks("<answer>\n", "</answer>")},
		{"{{ m.content.split('</think>')[-1].replace('</answer>', '') }}", "", marks("<think>", "</think>"),
			marks("<answer>", "</answer>")},
		{"{{ m.content.split('</thought>')[-1] }}", "<thought>\n", marks("<thought>", "</thought>"), none},
		{"{# </think> #}{% if m.role == 'tool' %}<response>{{ m.content }}</response>{% else %}{{ m.content }}{% endif %}", "",
			marks("<think>", "</think>"), none},
		{"{# [BEGIN FINAL RESPONSE] ... [END FINAL RESPONSE] #}{{ m.content }}", "",
			marks("Here are my reasoning steps:\n", "[BEGIN FINAL RESPONSE]"), marks("", "[END FINAL RESPONSE]")},
	} {
		l, err := Parse(toy(t, "", "<|im_end|>"), before+c.turn+strings.Replace(behind, "PROMPT", c.prompt, 1))
		if err != nil {
			t.Fatal(err)
		}
		if thought, answer := callform.MarksOf(l), callform.AnswerOf(l); thought != c.thought || answer != c.answer {
			t.Errorf("%s: %q, %q; want %q, %q", c.turn, thought, answer, c.thought, c.answer)
		}
	}
}
