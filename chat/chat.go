// Package chat turns a conversation into the text, and the tokens, that a model was trained on: by the
// chat template in the model's files (Jinja, as Hugging Face and llama.cpp use it), or by a common
// layout if there is none.
//
// Messages are plain text: names of control tokens in a message do not become control tokens.
package chat

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/grovellm/grove/internal/callform"
	"github.com/grovellm/grove/internal/inside/lower"
	"github.com/grovellm/grove/internal/jinja"
	"github.com/grovellm/grove/tokenizer"
)

// A Message is one turn of a conversation.
type Message struct {
	Role    string // system, user, assistant, tool, or another that the template knows
	Content string

	// Extra is a JSON object with further fields (name, tool_calls, reasoning_content …), which the
	// template sees in their order. A role or content in it overrides the one above.
	Extra json.RawMessage
}

// Options say how a conversation is rendered.
type Options struct {
	Prompt bool // end with the beginning of the assistant's answer (add_generation_prompt)
	// instead: end with the last message's content, to be continued (continue_final_message)
	Continue bool

	Tools     json.RawMessage            // JSON array of the tools on offer
	Documents json.RawMessage            // JSON array of documents for the template
	Vars      map[string]json.RawMessage // further variables of the template, such as enable_thinking

	Template string    // which of several templates; "" chooses the one that fits
	Now      time.Time // the date that a template prints; zero for today
}

// A Layout formats conversations for one model. It may be used from any number of goroutines.
type Layout struct {
	tok       *tokenizer.Tokenizer
	templates []named
	about     string
	stop      []string
	control   []string // names of control tokens, to be shielded

	calls    sync.Once // finds how calls are written
	callForm *CallForm
	callErr  error
	generic  *generic // nil where the template writes them

	marks           sync.Once
	thought, answer callform.Marks
}

type named struct {
	name   string
	source string
	prog   *jinja.Template
}

// New makes the layout of a tokenizer's model. If the model has no template, the layout is ChatML
// if the vocabulary has its tokens, and otherwise a plain transcript; About says which.
func New(tok *tokenizer.Tokenizer) (*Layout, error) {
	l := layout(tok, "the model's own chat template")
	templates := tok.Templates()
	for _, name := range slices.Sorted(maps.Keys(templates)) {
		if err := l.add(name, templates[name]); err != nil {
			return nil, fmt.Errorf("%s: %w", lower.SourceOf(tok), err)
		}
	}
	if len(l.templates) == 0 {
		l.fallback()
	}
	return l, nil
}

// Parse makes a layout from a template's text, for a model whose file has no template or a wrong one.
func Parse(tok *tokenizer.Tokenizer, source string) (*Layout, error) {
	l := layout(tok, "a chat template given explicitly")
	return l, l.add("default", source)
}

func layout(tok *tokenizer.Tokenizer, about string) *Layout {
	l := &Layout{tok: tok, about: about}
	for id := range int32(tok.VocabSize()) {
		if tok.IsSpecial(id) && utf8.RuneCountInString(tok.Text(id)) > 1 { // there is no inside of one character
			l.control = append(l.control, tok.Text(id))
		}
	}
	return l
}

func (l *Layout) add(name, source string) error {
	prog, err := jinja.Compile(source)
	if err != nil {
		return fmt.Errorf("chat template %q: %w", name, err)
	}
	l.templates = append(l.templates, named{name, source, prog})
	return nil
}

// About describes the layout to the user.
func (l *Layout) About() string { return l.about }

// Stop are strings that end the assistant's turn if no token does.
func (l *Layout) Stop() []string { return append([]string(nil), l.stop...) }

// names are the templates to choose from.
func (l *Layout) names() []string {
	names := make([]string, len(l.templates))
	for i, t := range l.templates {
		names[i] = t.name
	}
	return names
}

func init() {
	callform.MarksOf = func(layout any) callform.Marks { return layout.(*Layout).findMarks().thought }
	callform.AnswerOf = func(layout any) callform.Marks { return layout.(*Layout).findMarks().answer }
	lower.TemplateOf = func(layout any) string {
		l := layout.(*Layout)
		return l.templates[max(0, slices.Index(l.names(), "default"))].source
	}
}

// findMarks finds what stands around reasoning and around the answer: marks that templates name, or those they write.
func (l *Layout) findMarks() *Layout {
	l.marks.Do(func() {
		named := func(word string) bool {
			return slices.ContainsFunc(l.templates, func(t named) bool { return strings.Contains(t.source, word) })
		}
		l.thought, l.answer = callform.FindMarks(l.callTemplate(nil))
		for _, m := range slices.Backward(callform.AllMarks) {
			if named(m.End) {
				l.thought = m
			}
		}
		for _, a := range callform.Answers {
			if l.answer.Begin == "" && l.thought.End == a.Known[0] && named(a.Known[1]) {
				l.answer = a.Marks
			}
		}
		if l.thought == callform.Channels { // the form knows them
			l.answer = callform.Marks{}
		}
	})
	return l
}

// pick finds a template by name; with none asked for, tool_use where there are tools, or the default.
func (l *Layout) pick(o Options) (*jinja.Template, error) {
	want := []string{o.Template}
	if o.Template == "" {
		want = []string{"default", l.templates[0].name}
		if len(o.Tools) > 0 {
			want = append([]string{"tool_use"}, want...)
		}
	}
	for _, name := range want {
		for _, t := range l.templates {
			if t.name == name {
				return t.prog, nil
			}
		}
	}
	return nil, fmt.Errorf("the model has no chat template %q, only %s", o.Template, strings.Join(l.names(), ", "))
}

// Render returns the conversation as text. Encoded with EncodeOptions.ParseSpecial, it lets messages, tools and
// documents name control tokens, which Encode does not.
func (l *Layout) Render(messages []Message, o Options) (string, error) {
	return l.renderOpen(messages, o, false)
}

// Encode returns the conversation as tokens, beginning with BOS if the model expects one.
func (l *Layout) Encode(messages []Message, o Options) ([]int32, error) {
	text, err := l.renderOpen(messages, o, true)
	if err != nil {
		return nil, err
	}
	ids := lower.EncodeShielded(l.tok, text, shield)
	if bos := l.tok.BOS(); l.tok.AddBOS() && bos >= 0 && (len(ids) == 0 || ids[0] != bos) {
		ids = append([]int32{bos}, ids...)
	}
	return ids, nil
}

// render renders a conversation as the template does, or where it writes no calls in the generic form.
func (l *Layout) render(messages []Message, o Options, guard bool) (string, error) {
	var calls *CallForm
	if callform.MarksOf(l) == callform.Channels {
		calls, _ = l.CallForm()
	}
	return l.renderAs(l.findGeneric, calls, messages, o, guard)
}

// findGeneric is the generic form; nil where the template writes calls.
func (l *Layout) findGeneric() *generic {
	_, _ = l.CallForm()
	return l.generic
}

// renderAs renders a conversation by the template, with calls in the generic form that find returns.
// A nil find, or a nil form, leaves them to the template. calls is the form of calls if text before them has a mark of
// its own, as in gpt-oss. It calls none of findMarks and findCallForm, which render with it.
func (l *Layout) renderAs(find func() *generic, calls *CallForm, messages []Message, o Options,
	guard bool) (string, error) {
	c := converter{calls: calls, blocks: slices.ContainsFunc(l.templates, func(t named) bool {
		return strings.Contains(t.source, "block['thinking']") && !strings.Contains(t.source, "reasoning_content")
	})}
	if guard {
		c.control = l.control
	}
	dicts := make([]*jinja.Dict, len(messages))
	for i, m := range messages {
		var err error
		if dicts[i], err = c.message(m); err != nil {
			return "", fmt.Errorf("message %d: %w", i+1, err)
		}
	}
	tools, err := c.given("tools", o.Tools)
	if err != nil {
		return "", err
	}
	documents, err := c.given("documents", o.Documents)
	if err != nil {
		return "", err
	}
	if find != nil && hasCalls(dicts, tools) {
		if g := find(); g != nil {
			if dicts, err = g.rewrite(dicts, tools); err != nil {
				return "", err
			}
			if !g.own {
				o.Tools, tools = nil, nil
			}
		}
	}
	prog, err := l.pick(o)
	if err != nil {
		return "", err
	}
	list := &jinja.List{Items: make([]jinja.Value, len(dicts))}
	for i, d := range dicts {
		list.Items[i] = d
	}
	vars := map[string]jinja.Value{
		"add_generation_prompt": o.Prompt, "tools": tools, "documents": documents,
		"xml_tools": tools, // SmolLM3's
	}
	special := lower.SpecialsOf(l.tok)
	for name, id := range map[string]int32{"bos_token": l.tok.BOS(), "eos_token": l.tok.EOS(), "unk_token": special.UNK,
		"pad_token": special.PAD} {
		if id >= 0 {
			vars[name] = l.tok.Text(id)
		}
	}
	for name, raw := range o.Vars {
		if vars[name], err = c.decode(raw); err != nil {
			return "", fmt.Errorf("template variable %s: %w", name, err)
		}
	}
	vars["messages"] = list // whose texts are guarded
	now := o.Now
	if now.IsZero() {
		now = time.Now()
	}
	text, err := prog.Render(vars, now)
	if err != nil { // some templates list tools even if there are none; Firefunction's wants these variables
		functions := "[]"
		if tools == nil {
			vars["tools"] = &jinja.List{}
		} else {
			functions = c.text(string(o.Tools))
		}
		for name, value := range map[string]string{"functions": functions, "datetime": now.Format(time.DateTime)} {
			if _, given := vars[name]; !given {
				vars[name] = value
			}
		}
		if again, failed := prog.Render(vars, now); failed == nil {
			text, err = again, nil
		}
	}
	if err != nil {
		return "", fmt.Errorf("chat template: %w", err)
	}
	if form := callform.Of(c.calls); form != nil { // reasoning before a preamble may be empty
		text = strings.ReplaceAll(text, form.Thought.Assign.String()+form.Thought.Close.String(), "")
	}
	return text, nil
}

// shield, put inside the name of a control token, makes it text again; see tokenizer.EncodeOptions.
// It is two of Unicode's noncharacters, which stand for nothing and are taken out of messages.
const shield = "\ufdd0\ufdd1"

// guarded shields the names of control tokens in text.
func guarded(text string, control []string) string {
	text = strings.ReplaceAll(text, shield, "")
	for _, name := range control {
		if strings.Contains(text, name) {
			_, k := utf8.DecodeRuneInString(name)
			text = strings.ReplaceAll(text, name, name[:k]+shield+name[k:])
		}
	}
	return text
}

var errNotObject = errors.New("not a JSON object")
