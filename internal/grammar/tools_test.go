package grammar

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/grovellm/grove/chat"
	"github.com/grovellm/grove/internal/callform"
	"github.com/grovellm/grove/internal/testing/calltest"
	"github.com/grovellm/grove/internal/testing/cases"
)

// formOf is how a template writes calls.
func formOf(t *testing.T, name string) *callform.Form {
	t.Helper()
	l, err := chat.Parse(calltest.Tokenizer(t, calltest.Templates[name], true), calltest.Templates[name])
	if err != nil {
		t.Fatal(err)
	}
	form, err := l.CallForm()
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return callform.Of(form)
}

// Text and calls of tools, as families of models write them.
func TestTools(t *testing.T) {
	tools := []Tool{{"add", `{"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}, "required": ["a", "b"]}`},
		{"now", `{"type": "object", "properties": {}}`}}
	add, now := `{"name": "add", "arguments": {"a": 1, "b": 2}}`, `{"name": "now", "arguments": {}}`
	hermes := func(call string) string { return "<tool_call>\n" + call + "\n</tool_call>" }
	listed := func(call string) string { return strings.TrimSuffix(call, "}") + `, "id": "abcdefghi"}` }
	solar := callform.Marks{Begin: "<|think|>", End: "<|end|><|begin|>assistant"}
	wrapped := callform.Marks{Begin: "<a>", End: "</a>"}
	for _, c := range []struct {
		form    string
		s       Source
		yes, no []string
	}{
		{"hermes", Source{}, []string{"", "Hello <tool>", hermes(add), "Well. " + hermes(add) + "\n" + hermes(now)},
			[]string{"<tool_call>", hermes(`{"name": "sub", "arguments": {}}`), hermes(`{"name": "add", "arguments": {"a": 1}}`)}},
		{"hermes", Source{Must: true, Single: true}, []string{hermes(now)}, []string{"", "x", hermes(add) + "\n" + hermes(now)}},
		{"hermes", Source{JSONSchema: `{"type": "array", "items": {"type": "null"}}`}, []string{"[null]", hermes(now)},
			[]string{"", "x", "null"}},
		{"hermes", Source{Regex: "a+", Thinking: true}, []string{"<think>b</think>aa", hermes(now)}, []string{"", "b"}},
		{"llama", Source{}, []string{"", "Hello {", `{"name": "now", "parameters": {}}`}, []string{"{", " {", now}},
		{"bare", Source{}, []string{"", "Hello", "no(", " now({})"}, []string{" now(", "now()", "now({})."}},
		{"llama-4", Source{}, []string{"", "Hello {", `{"name": "now", "parameters": {}}`,
			`Well.<|python_end|>{"name": "now", "parameters": {}}`, `<|python_start|><|python_end|>{"name": "now", "parameters": {}}`},
			[]string{"{", " {", now, `Well.<|python_end|>{"name": "sub", "parameters": {}}`, "<|python_end|>"}},
		{"minicpm", Source{Tools: []Tool{{"say", `{"properties": {"it": {"type": "string"}, "how": {"enum": ["low", 1]}}}`}}},
			[]string{"Well.<|calls_start|>\n```python\n" + `say(it="a\n\"b\"",how="low")` + "\nsay()\n```\n<|calls_end|>"},
			[]string{"<|calls_start|>\n```python\nsay(it='a')\n```\n<|calls_end|>",
				"<|calls_start|>\n```python\n" + `say(it="a` + "\n" + `")` + "\n```\n<|calls_end|>"}},
		{"mistral", Source{}, []string{"Hello", "[TOOL_CALLS][" + listed(add) + ", " + listed(now) + "]",
			"\xff[TOOL_CALLS]\xff[" + listed(add) + "]"},
			[]string{"[TOOL_CALLS]", "[TOOL_CALLS][]", "\xff[TOOL_CALLS]\xff", "[TOOL_CALLS][" + add + "]"}},
		{"hermes", Source{Thinking: true}, []string{"<think>b <tool_call>\nc</think>a", "<think>b</think>\n" + hermes(now),
			"<think>b\n" + hermes(now), "<think>b<tool_call>" + hermes(add)},
			[]string{"<think>b\n" + hermes("{}"), "<think>" + hermes(now) + "</think>",
				"<think>" + hermes(`{"name": "sub", "arguments": {}}`) + "</think>"}},
		{"mistral-args", Source{Must: true, Thinking: true}, []string{"[TOOL_CALLS]now[ARGS]{}",
			"<think>[TOOL]</think>\n[TOOL_CALLS]now[ARGS]{}", "<think>a\xff[TOOL_CALLS]\xffnow[ARGS]{}"},
			[]string{"<think></think>", "a", "<think>[TOOL_CALLS]</think>\n[TOOL_CALLS]now[ARGS]{}"}},
		{"llama", Source{Thinking: true, ThinkingNow: true}, []string{now + "</think>",
			`</think>{"name": "now", "parameters": {}}`},
			[]string{`{"name": "now", "parameters": {}}`}},
		{"qwen-coder", Source{Must: true}, []string{"<tool_call>\n<function=add>\n<parameter=a>\n1\n</parameter>\n<parameter=b>\n2\n</parameter>\n</function>\n</tool_call>",
			"<tool_call>\n<function=now>\n</function>\n</tool_call>", "<function=now>\n</function>\n</tool_call>"},
			[]string{hermes(now), "<tool_call>\n<function=add>\n</function>\n</tool_call>"}},
		{"gptoss", Source{}, []string{"\xff<|channel|>\xffanalysis\xff<|message|>\xffHm\xff<|end|>\xff\xff<|assistant|>\xff to=functions.now\xff<|channel|>\xffcommentary json\xff<|message|>\xff{}",
			"<|channel|>final<|message|>Hi", "\xff<|channel|>\xffcommentary to=functions.now <|constrain|>json\xff<|message|>\xff{}",
			"<|channel|>analysis to=functions.now <|constrain|>json<|message|>{}",
			"<|channel|>analysis<|message|>Hm<|end|><|assistant|>\xff<|channel|>\xffcommentary\xff<|message|>\xffWell.\xff<|end|>\xff\xff<|assistant|>\xff to=functions.now<|channel|>commentary json<|message|>{}",
			"<|channel|>commentary<|message|>Well.<|end|><|assistant|><|channel|>final<|message|>Hi"},
			[]string{"Hi", "<|channel|>commentary<|message|>Well."}},
		{"lfm", Source{Tools: []Tool{{"say", `{"properties": {"it": {"type": "string"}, "how": {"enum": ["low", 1]}}}`}}},
			[]string{`<|calls_start|>[say(it='a "b"')]<|calls_end|>`,
				`Well.<|calls_start|>[say(it="a\n\"b\"", how="low")]<|calls_end|>`},
			[]string{`<|calls_start|>[say(it=a)]<|calls_end|>`, `<|calls_start|>[say(how="high")]<|calls_end|>`}},
		{"qwen-coder", Source{Tools: []Tool{{"say", `{"properties": {"it": {"type": "string", "minLength": 1}}}`}}},
			[]string{"<function=say>\n<parameter=it>\n<b>1 << 2</b>\n</p\n</parameter>\n</function>\n</tool_call>"},
			[]string{"<function=say>\n<parameter=it>\n\n</parameter>\n</function>\n</tool_call>"}},
		{"qwen-coder", Source{Tools: []Tool{{"say", `{"properties": {"it": {"type": ["string", "null"], "minLength": 1}}}`}}},
			[]string{"<function=say>\n<parameter=it>\na<b\n</parameter>\n</function>\n</tool_call>",
				"<function=say>\n<parameter=it>\nnull\n</parameter>\n</function>\n</tool_call>",
				"<function=say>\n<parameter=it>\n12\n</parameter>\n</function>\n</tool_call>",
				"<function=say>\n<parameter=it>\nfunc f() <-chan T\n</parameter>\n</function>\n</tool_call>"},
			[]string{"<function=say>\n<parameter=it>\n\n</parameter>\n</function>\n</tool_call>"}},
		{"qwen-coder", Source{Tools: []Tool{{"say", `{"properties": {"it": {"type": ["string", "integer"], "maxLength": 4}}}`}}},
			[]string{"<function=say>\n<parameter=it>\nnull\n</parameter>\n</function>\n</tool_call>",
				"<function=say>\n<parameter=it>\n-5\n</parameter>\n</function>\n</tool_call>"},
			[]string{"<function=say>\n<parameter=it>\n-x\n</parameter>\n</function>\n</tool_call>",
				"<function=say>\n<parameter=it>\na<b>c\n</parameter>\n</function>\n</tool_call>"}},
		{"qwen-coder", Source{Tools: []Tool{{"say", `{"properties": {"it": {"type": "string", "minLength": 6, "maxLength": 12}}}`}}},
			[]string{"<function=say>\n<parameter=it>\n<b>\n</\n\n</parameter>\n</function>\n</tool_call>",
				"<function=say>\n<parameter=it>\n</paramete>é\n</parameter>\n</function>\n</tool_call>"},
			[]string{"<function=say>\n<parameter=it>\n<b>é<\n</parameter>\n</function>\n</tool_call>",
				"<function=say>\n<parameter=it>\n<b>12345<6789\n</parameter>\n</function>\n</tool_call>"}},
		{"qwen-coder", Source{Tools: []Tool{{"say", `{"properties": {"it": {"type": ["string", "null"], "pattern": "\\S"}}}`}}},
			[]string{"<function=say>\n<parameter=it>\n<b>1 << 2</b>\n</p\n</parameter>\n</function>\n</tool_call>"},
			[]string{"<function=say>\n<parameter=it>\n \n</parameter>\n</function>\n</tool_call>"}},
		{"qwen-coder", Source{Tools: []Tool{{"say", `{"properties": {"it": {"type": "string", "pattern": "^[^x]{1,90}$"}}}`}}},
			[]string{"<function=say>\n<parameter=it>\na > b\n</parameter>\n</function>\n</tool_call>"},
			[]string{"<function=say>\n<parameter=it>\nx\n</parameter>\n</function>\n</tool_call>"}},
		{"elements", Source{Must: true, Tools: []Tool{{"f", `{"type": "object", "properties": {"a": {"type": "string"},
			"l": {"type": "array", "maxItems": 2, "items": {"type": "object", "properties": {"k": {"enum": ["x", "y"]}},
			"required": ["k"]}}}, "required": ["a"]}`}}},
			[]string{elements("<a>1 < 2 </a>", "</a>"),
				elements("<a>", "</a>", "<l>", "<item>", "<k>x", "</k>", "</item>", "</l>"),
				elements("<a>b\n", "</a>", "<l>", "</l>")},
			[]string{elements(), elements("<a>b", "</b>"), elements("<a>b", "</a>", "<l>", "<item>", "</item>", "</l>"),
				elements("<a>b", "</a>", "<l>", "<item>", "<k>z", "</k>", "</item>", "</l>"),
				elements("<a>b", "</a>", "<l>"+`[{"k": "x"}]`, "</l>")}},
		{"elements", Source{Tools: []Tool{{"f", `{"type": "object", "additionalProperties": {"type": ["integer", "object"]}}`}}},
			[]string{"Well.", elements(), "Well. " + elements("<n>1", "</n>", "<o>", "<x-y>2", "</x-y>", "</o>")},
			[]string{elements("<n>a", "</n>"), elements("<a b>1", "</a b>")}},
		{"qwen-coder", Source{}, []string{"Well.\n<function=now>\n</function>\n</tool_call>\n<tool_call>\n<function=now>\n</function>\n</tool_call>"},
			[]string{"<function=x>", "<function=now>\n</function>\n</tool_call>\n<function=now>\n</function>\n</tool_call>"}},
		{"command-r", Source{}, []string{"Hello"}, []string{"Action: "}},
		{"gptoss", Source{NoThought: true}, []string{"<|channel|>final<|message|>Hi"},
			[]string{"<|channel|>analysis<|message|>Hm<|end|><|assistant|><|channel|>final<|message|>Hi"}},
		{"gptoss", Source{Must: true}, []string{"<|channel|>analysis<|message|>Hm<|end|><|assistant|> to=functions.now<|channel|>commentary json<|message|>{}"},
			[]string{"<|channel|>final<|message|>Hi", "<|channel|>commentary<|message|>Well.<|end|><|assistant|> to=functions.now<|channel|>commentary json<|message|>{}"}},
		{"gptoss", Source{Regex: "a"}, []string{"<|channel|>final<|message|>a"},
			[]string{"<|channel|>commentary<|message|>Well.<|end|><|assistant|><|channel|>final<|message|>a"}},
		{"", Source{Regex: "a+", Thinking: true, ThinkingNow: true}, []string{"Hm</think>\n\na", "</thin</think>aa"},
			[]string{"a", "</think>", "</think>a</think>a"}},
		{"hermes", Source{Marks: callform.AllMarks[3], Thinking: true}, []string{"\xff<|channel>\xffthought\na<channel|>b",
			"<|channel>thought\n\xff<channel|>\xff\n" + hermes(now)}, []string{"\xff<|channel>\xffb"}},
		{"", Source{Marks: solar, Answer: wrapped, Thinking: true}, []string{
			"\xff<|think|>\xffa\xff<|end|>\xff\xff<|begin|>\xffassistantb",
			"<|think|>a<|end|><|begin|>assistant\xff<a>\xffb\xff</a>\xff", "\xff<a>\xffb", "b\xff</a>\xff"},
			[]string{"\xff<|think|>\xffa\xff<|end|>\xffb", "b\xff<a>\xff"}},
		{"hermes", Source{Marks: solar, Answer: wrapped, Thinking: true}, []string{"b\xff</a>\xff",
			"\xff<|think|>\xffa\xff<|end|>\xff\xff<|begin|>\xffassistant" + hermes(now)}, []string{"\xff</a>\xffb"}},
	} {
		if c.s.Marks.End == "" {
			c.s.Marks = callform.AllMarks[0]
		}
		if c.form != "" {
			c.s.Form = formOf(t, c.form)
			if c.s.Tools == nil {
				c.s.Tools = tools
			}
		}
		g, err := c.s.Compile()
		if err != nil {
			t.Fatal(err)
		}
		for i, text := range append(c.yes, c.no...) {
			if got, err := g.Accepts(text); err != nil || got != (i < len(c.yes)) {
				t.Errorf("%s, %+v: %q: accepted %v, %v", c.form, c.s, text, got, err)
			}
		}
	}
}

// elements is a call of f with arguments of some tags, and texts behind them.
func elements(parts ...string) string {
	parts = append(append([]string{"<calls>\n", `<invoke name="f">`}, parts...), "</invoke>\n", "</calls>")
	return "]:tag:[" + strings.Join(parts, "]:tag:[")
}

// The arguments of a call are an object, whatever else a function's schema allows.
func TestArgumentsAreAnObject(t *testing.T) {
	form := formOf(t, "llama")
	for _, parameters := range []string{"", "{}", "true", `{"properties": {"a": {"type": "integer"}}, "required": ["a"]}`,
		`{"type": ["object", "null"]}`} {
		s := Source{Form: form, Must: true, Tools: []Tool{{"f", parameters}}}
		g, err := s.Compile()
		if err != nil {
			t.Fatal(err)
		}
		for arguments, want := range map[string]bool{`{"a": 1}`: true, "5": false, "null": false, `"x"`: false, "[]": false} {
			if got, err := g.Accepts(`{"name": "f", "parameters": ` + arguments + "}"); err != nil || got != want {
				t.Errorf("%s: %s: accepted %v, %v", parameters, arguments, got, err)
			}
		}
	}
	for _, name := range []string{"llama", "qwen-coder"} {
		s := Source{Form: formOf(t, name), Must: true, Tools: []Tool{{"f", `{"type": "string"}`}}}
		if _, err := s.Compile(); err == nil {
			t.Error("arguments that are a string are taken")
		}
	}
}

// As many tools as agents offer have a grammar in every form, with reasoning too.
func TestManyTools(t *testing.T) {
	var properties []string
	for i, schema := range []string{`{"type": "string"}`, `{"type": "string", "maxLength": 2000}`, `{"type": "string"}`,
		`{"type": ["string", "null"]}`, `{"type": "integer", "minimum": -9007199254740991, "maximum": 9007199254740991}`,
		`{"enum": ["open", "closed", "all"]}`, `{"type": "boolean"}`, `{"type": "array", "items": {"type": "string"}}`,
		`{"type": "string", "format": "uri"}`, `{"type": "array", "items": {"type": "object", "properties": {"content": ` +
			`{"type": "string"}, "status": {"enum": ["pending", "completed"]}}, "required": ["content", "status"]}}`} {
		properties = append(properties, fmt.Sprintf(`"property_%d": %s`, i, schema))
	}
	s := Source{Thinking: true, Marks: callform.AllMarks[0]}
	for i := range 128 {
		own := fmt.Sprintf(`"own_%d": {"type": "string"}`, i)
		parameters := `{"type": "object", "properties": {` + strings.Join(append(properties, own), ", ") + "}}"
		s.Tools = append(s.Tools, Tool{fmt.Sprintf("mcp__server__tool_%d", i), parameters})
	}
	for _, name := range []string{"hermes", "gptoss", "qwen-coder", "glm", "minimax", "elements", "dsml",
		"cdata", "lfm", "gemma"} {
		s.Form = formOf(t, name)
		if _, err := s.Compile(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Where a name alone begins a call, text does not begin with the name of a tool and what stands behind it.
func TestCallsThatBeginWithNames(t *testing.T) {
	word := func(text string) callform.Text { return callform.Text{{Kind: callform.Literal, Text: text}} }
	s := Source{Tools: []Tool{{"add", ""}}, Form: &callform.Form{Next: word("<a>"),
		Arguments: callform.Arguments{Object: true, Open: word("\n"), Nested: callform.JSON}}}
	g, err := s.Compile()
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]bool{"": true, "\nadd it": true, "Well.\nadd\n": true, "add\n{}<a>add\n{}": true,
		"add\n": false, "add\nand": false, "add\n{}<a>": false} {
		if got, err := g.Accepts(text); err != nil || got != want {
			t.Errorf("%q: accepted %v, %v, want %v", text, got, err, want)
		}
	}
}

// templates are the templates of calls: our own, and those in the folder GROVE_TEMPLATES.
func templates(t *testing.T) map[string]string {
	all := maps.Clone(calltest.Templates)
	maps.Copy(all, calltest.Plain)
	files, err := filepath.Glob(filepath.Join(os.Getenv("GROVE_TEMPLATES"), "*.jinja"))
	if os.Getenv("GROVE_TEMPLATES") == "" || err != nil || len(files) == 0 {
		t.Log("GROVE_TEMPLATES names no folder of *.jinja files: our own templates alone are tried")
		return all
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all[filepath.Base(file)] = string(text)
	}
	return all
}

// properties are the arguments of the tools of the tests below, by name: their schemas.
var callProperties = [][2]string{ // in the order of their names, in which some templates write them
	{"count", `{"type": "integer"}`}, {"deep", `{"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "array", "items": {"type": "boolean"}}}, "required": ["a"]}`},
	{"list", `{"type": "array", "items": {"type": ["string", "integer", "null"]}}`}, {"maybe", `{"type": ["string", "null"]}`},
	{"none", `{"type": "null"}`}, {"ratio", `{"type": "number"}`}, {"sure", `{"type": "boolean"}`}, {"text",
		`{"type": "string"}`},
	{"unit", `{"enum": ["km", "mi <x>"]}`},
}

func callTools() []Tool {
	var pairs []string
	for _, p := range callProperties {
		pairs = append(pairs, quote(p[0])+": "+p[1])
	}
	all := `{"type": "object", "properties": {` + strings.Join(pairs, ", ") + `}, "additionalProperties": false}`
	return []Tool{{"all_of-them", all}, {"nothing", ""}}
}

// drawValue draws a value of a schema of callProperties.
func drawValue(t *rapid.T, name string) any {
	text := rapid.OneOf(rapid.SampledFrom([]string{"", "km", "a \"quoted\" 'word'", "two\nlines\n", " spaced ",
		"<b>&amp;</b>", "</tool_call>", "</parameter>",
		"[1, 2]", "null", "7", "\\d\\n", "日本 é \U0001f600", "}", "]]>", "', b='", "<tool_call>\n{"}), rapid.StringMatching(
		`[a-zé<>/{}"'\\ \n:,]{0,12}`))
	switch name {
	case "text":
		return text.Draw(t, "text")
	case "unit":
		return rapid.SampledFrom([]any{"km", "mi <x>"}).Draw(t, "unit")
	case "count":
		return rapid.Int64Range(-1000, 1<<40).Draw(t, "count")
	case "ratio":
		return float64(rapid.IntRange(-8000, 8000).Draw(t, "ratio")) / 16
	case "sure":
		return rapid.Bool().Draw(t, "sure")
	case "list":
		return rapid.SliceOfN(rapid.OneOf(rapid.Map(text, func(s string) any { return s }), rapid.Just[any](nil),
			rapid.Just[any](3)), 0, 3).Draw(t, "list")
	case "deep":
		return map[string]any{"a": text.Draw(t, "a"), "b": []any{true, false}}
	case "maybe":
		return rapid.SampledFrom([]any{nil, "word", "nullable", "x", "12", "[x]", "- a", "\"\"\"", "nil<T>"}).Draw(t, "maybe")
	}
	return nil
}

// spaced is a value in JSON with spaces as Python writes it.
func spaced(v any) string {
	var parts []string
	switch v := v.(type) {
	case string:
		return quote(v)
	case []any:
		for _, item := range v {
			parts = append(parts, spaced(item))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			parts = append(parts, quote(name)+": "+spaced(v[name]))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	}
	text, _ := json.Marshal(v)
	return string(text)
}

type calledOf struct {
	name      string
	arguments map[string]any
}

// parsed reads a text in pieces.
func parsed(f *callform.Form, text string, piece func(left int) int) (content string, calls []calledOf, err error) {
	kinds := func(tool, argument string) (bool, string) {
		for _, t := range callTools() {
			if t.Name == tool {
				return ArgumentKinds(t.Parameters)(argument)
			}
		}
		return true, callform.OtherBegins
	}
	r := f.NewReader(kinds)
	var raw []string
	for rest := text; ; {
		n := piece(len(rest))
		_, c, deltas := r.Add(rest[:n], n == len(rest))
		content += c
		for _, d := range deltas {
			if d.Name != "" {
				calls, raw = append(calls, calledOf{name: d.Name}), append(raw, "")
			}
			raw[d.Index] += d.Arguments
		}
		rest = rest[n:]
		if rest == "" {
			break
		}
	}
	for i := range calls {
		if err := json.Unmarshal([]byte(raw[i]), &calls[i].arguments); err != nil {
			return content, calls, fmt.Errorf("%s: %w", raw[i], err)
		}
	}
	return content, calls, nil
}

// patternOf is a regular expression of a part of the text of calls.
func patternOf(t callform.Text) string {
	out := ""
	for _, p := range t {
		out += regexp.QuoteMeta(p.Text) + map[callform.PartKind]string{callform.ID: "[a-zA-Z0-9]{9}",
			callform.Index: "[0-9]"}[p.Kind]
	}
	return out
}

// A call that a template writes is one that the grammar allows, and is read back as it was, wherever the text is cut.
func TestRenderedCallsAreReadBack(t *testing.T) {
	known, generic := 0, 0
	for name, template := range templates(t) {
		l, err := chat.Parse(calltest.Tokenizer(t, template, false), template)
		if err != nil {
			t.Logf("%s: %v", name, err)
			continue
		}
		form, err := l.CallForm()
		if err != nil {
			t.Logf("%s: %v", name, err)
			if calltest.Templates[name]+calltest.Plain[name] != "" {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		f := callform.Of(form)
		if f.Generic {
			generic++
		}
		if own := calltest.Templates[name] != ""; f.Generic && own || !f.Generic && calltest.Plain[name] != "" {
			t.Errorf("%s: the form is generic: %v", name, f.Generic)
		}
		known++
		s := Source{Tools: callTools(), Form: f}
		g, err := s.Compile()
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		t.Run(name, func(t *testing.T) { cases.Check(t, 50, func(t *rapid.T) { checkRendered(t, l, f, g) }) })
	}
	t.Logf("calls of %d templates are read back, of %d in the generic form", known, generic)
}

func checkRendered(t *rapid.T, l *chat.Layout, f *callform.Form, g *Grammar) {
	var want []calledOf
	var list []string
	n := 1
	if len(f.Closes) > 0 { // such a template ends the calls before the third
		n = rapid.IntRange(1, 2).Draw(t, "calls")
	} else if len(f.Next) > 0 {
		n = rapid.IntRange(1, 3).Draw(t, "calls")
	}
	for i := range n {
		c := calledOf{"nothing", map[string]any{}}
		pairs := []string{}
		if rapid.Bool().Draw(t, "tool") {
			c.name = "all_of-them"
			for _, p := range callProperties {
				if !rapid.Bool().Draw(t, "given") {
					continue
				}
				v := drawValue(t, p[0])
				text := spaced(v)
				if s, ok := v.(string); ok && !canStand(f, s) || f.Arguments.Nested.Tag != "" && isUnclear(v) {
					continue
				}
				pairs = append(pairs, quote(p[0])+": "+text)
				c.arguments[p[0]] = v
			}
		}
		text, _ := json.Marshal(c.arguments)
		c.arguments = nil
		_ = json.Unmarshal(text, &c.arguments)
		arguments := "{" + strings.Join(pairs, ", ") + "}"
		if f.TextArguments {
			arguments = quote(arguments)
		}
		id := fmt.Sprintf("abcdefgh%d", i)
		if f.NamesInIDs {
			id = fmt.Sprintf("functions.%s:%d", c.name, i)
		}
		want = append(want, c)
		list = append(list, fmt.Sprintf(`{"id": %q, "type": "function", "function": {"name": %q, "arguments": %s}}`, id, c.name, arguments))
	}
	content := `""`
	if f.NullContent {
		content = "null"
	}
	text, err := l.Render([]chat.Message{{Role: "user", Content: "qzuser"}, {Role: "assistant",
		Extra: json.RawMessage(`{"content": ` + content + `, "tool_calls": [` + strings.Join(list, ", ") + `]}`)}},
		chat.Options{Tools: json.RawMessage(`[{"type": "function", "function": {"name": "other", "description": "x", "parameters": {"type": "object", "properties": {"x": {"type": "string", "description": "x"}}}}}]`)})
	if err != nil {
		t.Fatal(err)
	}
	text = text[strings.LastIndex(text, "qzuser")+len("qzuser"):]
	begin := regexp.MustCompile(patternOf(f.First) + want[0].name).FindStringIndex(text)
	if begin == nil {
		t.Fatalf("%q has no call", text)
	}
	written, ok := "", false
	ends := patternOf(f.Last) + "(?:" + patternOf(f.Closes) + ")?"
	if len(f.Last)+len(f.Closes) == 0 {
		ends = `</s>|<\|im_end\|>|<\|call\|>|<\|return\|>|<\|eot_id\|>|$`
	}
	found := regexp.MustCompile(ends).FindAllStringIndex(text, -1)
	for _, end := range slices.Backward(found) { // the longest that is allowed
		if at := end[1]; at > begin[1] && !ok {
			if len(f.Last) == 0 {
				at = end[0]
			}
			written = text[begin[0]:at]
			if ok, err = g.Accepts(written); err != nil {
				t.Fatal(err)
			}
			ok = ok || spread.MatchString(written)
		}
	}
	if !ok {
		t.Fatalf("the grammar does not allow %q", written)
	}
	_, got, err := parsed(f, written, func(left int) int { return rapid.IntRange(0, left).Draw(t, "piece") })
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Fatalf("%q is read back as %v, want %v: %v", written, got, want, err)
	}
}

// isUnclear reports whether an element is not read back as the value that it was: null, which MiniMax M3's template
// leaves out, and a string of a list that may be another value.
func isUnclear(v any) bool {
	list, _ := v.([]any)
	return v == nil || slices.ContainsFunc(list, func(item any) bool {
		s, ok := item.(string)
		return item == nil || ok && callform.LooksOther(s, callform.OtherBegins, callform.JSON.Words)
	})
}

// spread matches what is read and not written: JSON on several lines, and lists in Python's
// notation beside objects in JSON.
var spread = regexp.MustCompile(`: \{\n +"|=\[.*('|None)`)

// canStand reports whether a form can write a string so that it is read back: not where it has what ends the string.
func canStand(f *callform.Form, text string) bool {
	for i, form := range f.Arguments.Strings {
		for _, stop := range stops(form, f) {
			if strings.Contains(text+form.Close.String(), stop) {
				return false
			}
		}
		if i > 0 && strings.HasPrefix(text, strings.TrimPrefix(form.Assign.String(), f.Arguments.Strings[0].Assign.String())) {
			return false
		}
	}
	return true
}

// What a grammar of calls allows is read as calls that fit the tools.
func TestSampledCallsAreRead(t *testing.T) {
	for name, template := range templates(t) {
		l, err := chat.Parse(calltest.Tokenizer(t, template, false), template)
		if err != nil {
			continue
		}
		form, err := l.CallForm()
		if err != nil {
			continue
		}
		f := callform.Of(form)
		s := Source{Tools: callTools(), Form: f, Must: true}
		g, err := s.Compile()
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		r := rand.New(rand.NewPCG(1, 2))
		for range 25 {
			text, err := g.Sample(r.IntN, 150)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			text = strings.ReplaceAll(text, "\xff", "") // of control tokens, as their names are decoded
			content, calls, err := parsed(f, text, func(left int) int { return left })
			if err != nil || len(calls) == 0 || content != "" {
				t.Errorf("%s: %q is read as text %q and %v: %v", name, text, content, calls, err)
				break
			}
			for _, c := range calls {
				if wrong := misfit(c); wrong != "" {
					t.Errorf("%s: %q is read as %v: %s", name, text, c, wrong)
				}
			}
		}
	}
}

// misfit says which argument does not fit its schema.
func misfit(c calledOf) string {
	if c.name == "nothing" {
		return ""
	}
	kinds := map[string][]string{"text": {"string"}, "unit": {"string"}, "count": {"float64"}, "ratio": {"float64"},
		"sure": {"bool"}, "none": {"<nil>"},
		"list": {"[]interface {}"}, "deep": {"map[string]interface {}"}, "maybe": {"string", "<nil>"}}
	for name, v := range c.arguments {
		if !slices.Contains(kinds[name], fmt.Sprintf("%T", v)) || name == "unit" && v != "km" && v != "mi <x>" {
			return name
		}
	}
	return ""
}

// without matches exactly the texts that do not contain the word.
func TestWithout(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		letters := rapid.SampledFrom([]rune("abc"))
		word := rapid.StringOfN(letters, 1, 5, -1).Draw(t, "word")
		text := rapid.StringOfN(letters, 0, 12, -1).Draw(t, "text")
		var rules grammar
		g, err := rules.compile(rules.add("root", rules.without(word)))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := g.Accepts(text); err != nil || got == strings.Contains(text, word) {
			t.Fatalf("%q in %q: accepted %v, %v", word, text, got, err)
		}
	})
}

// Strings written without change have the lengths that a schema wants, whatever else they contain.
func TestLengthsOfPlainStrings(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		letters := rapid.SampledFrom([]rune("<>é\nnul"))
		stop := rapid.StringOfN(letters, 1, 5, -1).Draw(t, "stop")
		text := rapid.StringOfN(letters, 0, 12, -1).Draw(t, "text")
		least := rapid.IntRange(0, 10).Draw(t, "least")
		most := least + rapid.IntRange(0, 10).Draw(t, "more")
		if rapid.IntRange(0, 3).Draw(t, "unlimited") == 0 {
			most = unlimited
		}
		r := &raw{stops: []string{stop}, others: rapid.SampledFrom([]string{"", "n", "n<", ">"}).Draw(t, "others")}
		c := newSchemas()
		s := &shape{kind: isString, least: least, most: most}
		g, err := c.g.compile(c.g.add("root", c.plainString(s, r)))
		if err != nil {
			t.Fatal(err)
		}
		n := len([]rune(text))
		want := n >= least && (most == unlimited || n <= most) && !strings.Contains(text, stop) &&
			!callform.LooksOther(text, r.others, r.words)
		if got, err := g.Accepts(text); err != nil || got != want {
			t.Fatalf("%q, %+v: %q: accepted %v, %v", stop, s, text, got, err)
		}
	})
}
