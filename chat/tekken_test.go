package chat

import (
	"encoding/json"
	"os"
	"slices"
	"testing"

	"github.com/grovellm/grove/internal/callform"
	"github.com/grovellm/grove/tokenizer"
)

// Conversations for Mistral's tekken.json, which has no chat template, get the tokens of mistral-common, and calls the
// form of their version. tokenizer/testdata/makejson.py made the golden values.
func TestTekkenLayouts(t *testing.T) {
	var golden struct {
		Tekken   struct{ File map[string]json.RawMessage }
		Specials json.RawMessage
		Layouts  []struct {
			Version  string
			Messages []json.RawMessage
			Tools    json.RawMessage
			IDs      []int32
		}
	}
	b, err := os.ReadFile("../tokenizer/testdata/makejson.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &golden); err != nil {
		t.Fatal(err)
	}
	layouts := map[string]*Layout{}
	for _, c := range []struct{ version, first, between, think string }{
		{"v3", `[TOOL_CALLS][{"name": "`, `", "arguments": `, ""}, {"v7", `[TOOL_CALLS][{"name": "`, `", "arguments": `, ""},
		{"v11", "[TOOL_CALLS]", "[CALL_ID][ARGS]", "[THINK]"}, {"v13", "[TOOL_CALLS]", "[ARGS]", "[THINK]"},
	} {
		file := golden.Tekken.File
		var config map[string]any
		if err := json.Unmarshal(file["config"], &config); err != nil {
			t.Fatal(err)
		}
		config["version"] = c.version
		file["config"], _ = json.Marshal(config)
		if c.think != "" {
			file["special_tokens"] = golden.Specials
		}
		b, err := json.Marshal(file)
		if err != nil {
			t.Fatal(err)
		}
		tok, err := tokenizer.Parse("folder", map[string][]byte{"tekken.json": b})
		if err != nil {
			t.Fatal(err)
		}
		l, err := New(tok)
		if err != nil {
			t.Fatal(err)
		}
		layouts[c.version] = l
		form, err := l.CallForm()
		if err != nil {
			t.Fatal(err)
		}
		first, between := callText(form.form.First), callText(form.form.Arguments.Open)
		if first != c.first || between != c.between || form.form.ShortIDs != (c.version != "v13") {
			t.Errorf("%s: calls begin with %q, and arguments with %q: want %q and %q", c.version, first, between, c.first, c.between)
		}
		if begin := callform.MarksOf(l).Begin; begin != c.think {
			t.Errorf("%s: reasoning begins with %q: want %q", c.version, begin, c.think)
		}
	}
	for i, want := range golden.Layouts {
		var messages []Message
		for _, m := range want.Messages {
			messages = append(messages, Message{Extra: m})
		}
		got, err := layouts[want.Version].Encode(messages, Options{Prompt: true, Tools: want.Tools})
		if err != nil {
			t.Fatal(i, err)
		}
		if !slices.Equal(got, want.IDs) {
			text, _ := layouts[want.Version].Render(messages, Options{Prompt: true, Tools: want.Tools})
			t.Errorf("conversation %d, %s: %q\n got %v\nwant %v", i, want.Version, text, got, want.IDs)
		}
	}
}

// callText is a part of the form of calls without ids.
func callText(parts callform.Text) (text string) {
	for _, p := range parts {
		if p.Kind != callform.ID {
			text += p.Text
		}
	}
	return text
}
