package chat_test

import (
	"testing"

	"github.com/grovellm/grove/chat"
	"github.com/grovellm/grove/internal/testing/calltest"
)

// A program finds how a model writes calls, and reads them out of what it writes.
func TestCallsOfOthers(t *testing.T) {
	source := calltest.Templates["hermes"]
	layout, err := chat.Parse(calltest.Tokenizer(t, source, false), source)
	if err != nil {
		t.Fatal(err)
	}
	form, err := layout.CallForm()
	if err != nil {
		t.Fatal(err)
	}
	var r *chat.CallReader = form.NewReader(func(tool, argument string) (text, other bool) { return true, true })
	var all chat.CallDelta
	text := ""
	for i, piece := range []string{"It is\n<tool_", "call>\n{\"name\": \"now\", \"argu",
		"ments\": {\"zone\": \"UTC\"}}\n</tool_call>"} {
		_, content, calls := r.Add(piece, i == 2)
		text += content
		for _, c := range calls {
			all.Index = c.Index
			all.Name += c.Name
			all.Arguments += c.Arguments
			all.ID += c.ID
		}
	}
	if want := (chat.CallDelta{Name: "now", Arguments: `{"zone": "UTC"}`}); all != want || text != "It is" {
		t.Errorf("text %q and %+v, want %+v", text, all, want)
	}
}
