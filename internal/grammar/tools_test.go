package grammar

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// Text and calls of tools, as each family of models writes them.
func TestTools(t *testing.T) {
	tools := []Tool{{"add", `{"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}, "required": ["a", "b"]}`}, {"now", `{"type": "object", "properties": {}}`}}
	add, now := `{"name": "add", "arguments": {"a": 1, "b": 2}}`, `{"name": "now", "arguments": {}}`
	hermes := func(call string) string { return "<tool_call>\n" + call + "\n</tool_call>" }
	for _, c := range []struct {
		s       Source
		yes, no []string
	}{
		{Source{Format: "hermes"}, []string{"", "Hello <tool>", hermes(add), "Well. " + hermes(add) + "\n" + hermes(now)},
			[]string{"<tool_call>", hermes(`{"name": "sub", "arguments": {}}`), hermes(`{"name": "add", "arguments": {"a": 1}}`)}},
		{Source{Format: "hermes", Must: true, Single: true}, []string{hermes(now)}, []string{"", "x", hermes(add) + "\n" + hermes(now)}},
		{Source{Format: "llama3"}, []string{"", "Hello {", `{"name": "now", "parameters": {}}`}, []string{"{", now}},
		{Source{Format: "mistral"}, []string{"Hello", "[TOOL_CALLS] [" + add + ", " + now + "]", "[TOOL_CALLS][" + add + "]",
			"\xff[TOOL_CALLS]\xff[" + add + "]"}, []string{"[TOOL_CALLS]", "[TOOL_CALLS] []", "\xff[TOOL_CALLS]\xff"}},
		{Source{Format: "mistral", Must: true, Thinking: true}, []string{"[TOOL_CALLS][" + add + "]", "<think>[TOOL_CALLS]</think>\n[TOOL_CALLS][" + now + "]"}, []string{"<think></think>", "a"}},
		{Source{Regex: "a+", Thinking: true, ThinkingNow: true}, []string{"Hm</think>\n\na", "</thin</think>aa"}, []string{"a", "</think>", "</think>a</think>a"}},
	} {
		if c.s.Regex == "" {
			c.s.Tools = tools
		}
		g, err := c.s.Compile()
		if err != nil {
			t.Fatal(err)
		}
		for i, text := range append(c.yes, c.no...) {
			if got, err := g.Accepts(text); err != nil || got != (i < len(c.yes)) {
				t.Errorf("%+v: %q: accepted %v, %v", c.s, text, got, err)
			}
		}
	}
}

// The arguments of a call are an object, whatever else a function's schema allows.
func TestArgumentsAreAnObject(t *testing.T) {
	for _, parameters := range []string{"", "{}", "true", `{"properties": {"a": {"type": "integer"}}, "required": ["a"]}`, `{"type": ["object", "null"]}`} {
		s := Source{Format: "llama3", Must: true, Tools: []Tool{{"f", parameters}}}
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
	s := Source{Format: "llama3", Must: true, Tools: []Tool{{"f", `{"type": "string"}`}}}
	if _, err := s.Compile(); err == nil {
		t.Error("arguments that are a string are taken")
	}
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
