package serve

import (
	"crypto/rand"
	"strings"
	"unicode/utf8"

	"github.com/grovellm/grove"
	"github.com/grovellm/grove/internal/callform"
	"github.com/grovellm/grove/internal/grammar"
)

// toolCall is a call in an answer. In a stream its arguments come in pieces, and its id and name
// with the first of them.
type toolCall struct {
	Index    *int           `json:"index,omitempty"`
	ID       string         `json:"id,omitempty"`
	Type     string         `json:"type,omitempty"`
	Function calledFunction `json:"function,omitzero"`
	Custom   *customCall    `json:"custom,omitempty"`
}

type calledFunction struct {
	Name      string `json:"name,omitempty"`
	Arguments string `json:"arguments"`
}

// reader parts the text of an answer, as it comes, into reasoning, content and calls of tools. The
// grammar of tools sees to it that calls have the form that it expects.
type reader struct {
	tools     *callform.Reader // nil where there are none
	form      *callform.Form
	calling   bool // the answer is calls alone
	marks     callform.Marks
	answer    callform.Marks
	opens     string // a call, which also ends reasoning
	reasoning bool   // the answer may begin with it
	verbatim  bool   // reasoning and all marks are content
	wrapped   bool   // the answer may end with a mark
	behind    bool   // the answer's marks count only behind reasoning
	again     bool   // reasoning may follow content: its marks are no text
	state     readerState
	trim      bool // spaces at the beginning of the content are left out
	held      string
	ending    string // of the content: it may be, or stand before, the mark that ends it
	taken     int    // characters of the text so far

	earlier, calls int  // in the conversation, and in the answer
	begins         int  // see parts
	said           bool // there is content
	thought        bool // the content ends with reasoning
}

type readerState int

const (
	atBeginning readerState = iota
	inReasoning
	inContent
)

// newReader makes the reader of a choice.
func (c *call) newReader() *reader {
	r := &reader{marks: c.marks, answer: c.answer, earlier: c.earlier, reasoning: c.request.Reasoning, verbatim: c.verbatim}
	r.wrapped = !r.verbatim && (strings.Contains(r.answer.End, "|") || r.answer.Begin == "" && r.answer.End != "")
	for _, a := range callform.Answers {
		r.behind = r.behind || r.answer == a.Marks
	}
	r.reasoning = r.reasoning && r.marks.Begin != callform.Channels.Begin // the form parts it
	r.again = r.reasoning && !r.verbatim && strings.Contains(r.marks.Begin, "|") && c.request.Tools == nil
	switch {
	case !c.chat:
		r.state = inContent
	case c.request.ReasoningOpen:
		r.state = inReasoning
	}
	if t := c.request.Tools; t != nil {
		r.form = callform.Of(t.Form)
		r.opens = r.form.Opens()
		r.calling = t.Required
		form := *r.form
		if c.request.JSONSchema+c.request.Regex != "" { // calls stand in the place of such an answer, not behind it
			form.After = nil
		}
		r.tools = form.NewReader(argumentKinds(t.List))
	}
	return r
}

// argumentKinds says which arguments of tools may be strings, or something else.
func argumentKinds(tools []grove.Tool) callform.Kinds {
	known := map[string]func(string) (bool, string){}
	return func(tool, argument string) (text bool, others string) {
		for _, t := range tools {
			if t.Name == tool && known[tool] == nil {
				known[tool] = grammar.ArgumentKinds(t.Parameters)
			}
		}
		if known[tool] == nil {
			return true, callform.OtherBegins
		}
		return known[tool](argument)
	}
}

// parts is what a piece of text brings.
type parts struct {
	reasoning, content string
	calls              []toolCall
	begins             int // characters of the choice's text before the first content, as far as is known
}

// add takes a piece of the text. done says that it is the last.
func (r *reader) add(text string, done bool) (p parts) {
	r.held += text
	r.taken += utf8.RuneCountInString(text)
	for r.step(&p, done) {
	}
	if !r.said {
		r.begins = r.taken - utf8.RuneCountInString(p.content+r.pending())
		r.said = p.content != ""
	}
	p.begins = r.begins
	return p
}

// pending is the end of the text that nothing was made of yet.
func (r *reader) pending() string {
	if r.tools == nil {
		return r.ending + r.held
	}
	return r.ending + callform.Held(r.tools) + r.held
}

// cut reports whether the answer so far ends within a call.
func (r *reader) cut() bool { return r.tools != nil && callform.Open(r.tools) }

// step takes what it can of the text held. It returns true if a further step may take more.
func (r *reader) step(p *parts, done bool) bool {
	switch r.state {
	case atBeginning:
		return r.begin(done)
	case inReasoning:
		text, mark, rest, found := r.marks.Cut(r.held, r.opens)
		if done && !found {
			text += rest
			rest = ""
			r.held = ""
			r.content(p, true)
		}
		r.held = rest
		if r.verbatim {
			p.content += text + mark
		} else {
			p.reasoning += text
		}
		if found {
			r.state = atBeginning
			r.trim = !r.verbatim
			r.reasoning = false
		}
		return found
	}
	return r.answered(p, done)
}

// answered takes content up to a mark of reasoning: Gemma 4 and Apertus reason anew behind text, and Gemma 4 sometimes
// ends reasoning that it has not begun. The grammar of tools allows neither.
func (r *reader) answered(p *parts, done bool) (more bool) {
	at := len(r.held)
	mark := ""
	for _, m := range []string{r.marks.Begin, r.marks.End} {
		if i := strings.Index(r.held, m); r.again && i >= 0 && i < at {
			at = i
			mark = m
		}
	}
	if r.again && mark == "" && !done {
		at -= max(callform.Overlap(r.held, r.marks.Begin), callform.Overlap(r.held, r.marks.End))
	}
	rest := r.held[at+len(mark):]
	r.held = r.held[:at]
	r.content(p, done && mark == "")
	r.held += rest
	if mark == r.marks.Begin && mark != "" {
		r.state = inReasoning
	}
	return mark != ""
}

// content takes the text behind reasoning.
func (r *reader) content(p *parts, done bool) {
	text := r.held
	r.held = ""
	if r.tools == nil {
		r.write(p, text, done)
		return
	}
	thought, content, calls := r.tools.Add(text, done)
	if r.verbatim {
		p.content += thought
		r.thought = r.thought || thought != ""
		if r.thought && content != "" {
			content = "\n\n" + content
			r.thought = false
		}
	} else {
		p.reasoning += thought
	}
	if !r.calling { // what else there is began a call that was cut short
		r.write(p, content, done)
	}
	for _, d := range calls {
		index := d.Index
		call := toolCall{Index: &index, Function: calledFunction{Name: d.Name, Arguments: d.Arguments}}
		if d.Name != "" {
			call.ID, call.Type = callID(r.form, d.Name, r.earlier+index, rand.Text()), "function"
			r.calls++
		}
		p.calls = append(p.calls, call)
	}
}

// write adds to the content, up to the mark that ends it.
func (r *reader) write(p *parts, text string, done bool) {
	text = r.ending + text
	r.ending = ""
	if r.wrapped {
		before, behind, ended := strings.Cut(text, r.answer.End)
		switch {
		case ended:
			text = strings.TrimRight(before, " \n") + strings.TrimLeft(behind, " \n")
			r.wrapped = false
		case !done:
			given := len(strings.TrimRight(text[:len(text)-callform.Overlap(text, r.answer.End)], " \n"))
			r.ending = text[given:]
			text = text[:given]
		}
	}
	p.content += text
}

// begin finds out what the text begins with, spaces apart.
func (r *reader) begin(done bool) bool {
	text := strings.TrimLeft(r.held, " \n")
	begin, end := r.marks.Begin, r.marks.End
	answer := r.answer.Begin
	marked := answer != "" && !r.verbatim && (r.trim || !r.behind) && (r.tools == nil || len(r.form.Text) == 0)
	unclear := func(mark string) bool { return len(text) < len(mark) && strings.HasPrefix(mark, text) }
	switch {
	case !done && (text == "" || r.reasoning && (unclear(begin) || unclear(end)) || marked && unclear(answer)):
		return false
	case r.reasoning && strings.HasPrefix(text, begin):
		r.state = inReasoning
		if !r.verbatim {
			r.held = text[len(begin):]
		}
		return true
	case r.reasoning && strings.HasPrefix(text, end): // there is none
		r.state = inReasoning
		if !r.verbatim {
			r.held = text
		}
		return true
	case marked && strings.HasPrefix(text, answer):
		r.held = text[len(answer):]
		r.answer.Begin = ""
		r.wrapped = r.answer.End != ""
		r.trim = true
		return true
	case r.trim:
		r.held = text
	}
	r.state = inContent
	return true
}
