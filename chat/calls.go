package chat

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/grovellm/grove/internal/callform"
)

// CallForm is the format of a model's tool calls. Its zero value is not usable: Layout.CallForm returns one.
type CallForm struct{ form *callform.Form }

func init() {
	callform.Of = func(form any) *callform.Form {
		if f := form.(*CallForm); f != nil {
			return f.form
		}
		return nil
	}
}

// CallReader splits an assistant's turn as it comes: Add(text, done) returns reasoning, content and calls.
type CallReader = callform.Reader

// CallDelta is a streamed part of call number Index: Name and ID come with the first part, then pieces of Arguments.
type CallDelta = callform.Delta

// NewReader returns a reader of calls in this format. kinds says whether the schema of a tool's
// argument allows text, and whether it allows other values; both if nothing is known.
func (f *CallForm) NewReader(kinds func(tool, argument string) (text, other bool)) *CallReader {
	if kinds == nil {
		return f.form.NewReader(nil)
	}
	return f.form.NewReader(func(tool, argument string) (bool, string) {
		text, other := kinds(tool, argument)
		return text, map[bool]string{true: callform.OtherBegins}[other]
	})
}

// CallForm detects the format of the model's calls by rendering conversations with calls through
// its chat template. If the template leaves calls out, or writes them in a format that grove does
// not know, the format is generic. The error says why the template does not allow even that.
func (l *Layout) CallForm() (*CallForm, error) {
	l.calls.Do(func() { l.callForm, l.callErr = l.findCallForm() })
	return l.callForm, l.callErr
}

// findCallForm finds the form that the template writes, or the model's own or the generic one within the template.
func (l *Layout) findCallForm() (*CallForm, error) {
	form, err := callform.Find(l.callTemplate(nil))
	if err == nil {
		return &CallForm{form}, nil
	}
	says := func(word string) bool {
		return slices.ContainsFunc(l.templates, func(t named) bool { return strings.Contains(t.source, word) })
	}
	var ways []*generic
	const name = "qzname" // which no template has
	offered, _ := l.callTemplate(nil).Render("", nil, []byte(`[{"type": "function", "function": {"name": "`+name+
		`", "description": "", "parameters": {"type": "object", "properties": {}}}}]`))
	for _, o := range allOwnCalls {
		if strings.Contains(offered, name) && says(o.word) && (o.mark == "" || slices.Contains(l.control, o.mark)) {
			ways = append(ways, l.newGeneric(o, true))
		}
	}
	for _, g := range append(ways, l.newGeneric(ownCalls{part: "calls"}, false)) {
		if form, failed := callform.Find(l.callTemplate(g)); failed == nil {
			l.generic = g
			form.Generic = !g.own
			return &CallForm{form}, nil
		}
	}
	return nil, err
}

// callTemplate is the layout as package callform looks at it. g writes the calls; nil: the template.
func (l *Layout) callTemplate(g *generic) *callform.Template {
	return &callform.Template{Tokenizer: l.tok, Control: l.control, Render: func(user string, assistant,
		tools []byte) (string, error) {
		messages := []Message{{Role: "user", Content: user}}
		if assistant != nil {
			messages = append(messages, Message{Role: "assistant", Extra: json.RawMessage(assistant)})
		}
		o := Options{Prompt: assistant == nil, Tools: json.RawMessage(tools)}
		return l.renderAs(func() *generic { return g }, nil, messages, o, false)
	}}
}
