package serve

import (
	"crypto/rand"
	"regexp"
	"strings"
)

// toolCall is a call in an answer. In a stream its arguments come in pieces, and its id and name with the first of them.
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

// reader parts the text of an answer, as it comes, into reasoning, content and calls of tools. The grammar of tools sees to it that
// calls have the form that it expects.
type reader struct {
	marker    string // before calls; empty for none
	object    bool   // an answer that begins as an object is a call
	reasoning bool   // the answer may begin with <think>
	verbatim  bool   // reasoning and its marks are content
	state     readerState
	trim      bool // spaces at the beginning of the content are left out
	held      string

	calls  int
	depth  int  // of the arguments
	quoted bool // within a string of the arguments
	escape bool // behind a backslash there
}

type readerState int

const (
	atBeginning readerState = iota
	inReasoning
	inContent
	betweenCalls
	inArguments
)

// newReader makes the reader of a choice.
func (c *call) newReader() *reader {
	r := &reader{reasoning: c.request.Reasoning, verbatim: c.verbatim}
	switch {
	case !c.chat:
		r.state = inContent
	case c.request.ReasoningOpen:
		r.state = inReasoning
	}
	if t := c.request.Tools; t != nil {
		r.marker, r.object = map[string]string{"hermes": "<tool_call>", "mistral": "[TOOL_CALLS]"}[t.Format], t.Format == "llama3"
	}
	return r
}

// parts is what a piece of text brings.
type parts struct {
	reasoning, content string
	calls              []toolCall
}

// add takes a piece of the text. done says that it is the last.
func (r *reader) add(text string, done bool) (p parts) {
	r.held += text
	for r.step(&p, done) {
	}
	return p
}

// step takes what it can of the text held. It returns true if a further step may take more.
func (r *reader) step(p *parts, done bool) bool {
	switch r.state {
	case atBeginning:
		return r.begin(done)
	case inReasoning:
		text, found := r.until(thinkEnd, done)
		switch {
		case r.verbatim && found:
			p.content += text + thinkEnd
		case r.verbatim:
			p.content += text
		default:
			p.reasoning += text
		}
		if found {
			r.state, r.trim, r.reasoning = atBeginning, !r.verbatim, false
		}
		return found
	case inContent:
		text, found := r.until(r.marker, done)
		if p.content += text; found {
			r.state = betweenCalls
		}
		return found
	case betweenCalls:
		return r.nextCall(p)
	}
	return r.arguments(p)
}

const (
	thinkBegin = "<think>"
	thinkEnd   = "</think>"
)

// begin finds out what the text begins with, spaces apart.
func (r *reader) begin(done bool) bool {
	text := strings.TrimLeft(r.held, " \n")
	switch {
	case !done && (text == "" || r.reasoning && len(text) < len(thinkBegin) && strings.HasPrefix(thinkBegin, text)):
		return false
	case r.reasoning && strings.HasPrefix(text, thinkBegin):
		r.state = inReasoning
		if !r.verbatim {
			r.held = text[len(thinkBegin):]
		}
		return true
	case r.object && strings.HasPrefix(text, "{"):
		r.state = betweenCalls
		return true
	case r.trim:
		r.held = text
	}
	r.state = inContent
	return true
}

// until takes the text up to a marker, and the marker away. What may become the marker is held back.
func (r *reader) until(marker string, done bool) (text string, found bool) {
	if marker != "" {
		if text, r.held, found = strings.Cut(r.held, marker); found {
			return text, true
		}
		for n := min(len(marker)-1, len(text)); n > 0 && !done; n-- {
			if strings.HasSuffix(text, marker[:n]) {
				r.held = text[len(text)-n:]
				return text[:len(text)-n], false
			}
		}
		return text, false
	}
	text, r.held = r.held, ""
	return text, false
}

// opening is how a call begins.
var opening = regexp.MustCompile(`^\{"name": "([a-zA-Z0-9_-]+)", "(?:arguments|parameters)": `)

// nextCall looks for the beginning of a call behind what stands between calls.
func (r *reader) nextCall(p *parts) bool {
	_, call, found := strings.Cut(r.held, "{")
	if !found {
		return false
	}
	head := opening.FindStringSubmatch("{" + call)
	if head == nil {
		return false
	}
	index := r.calls
	p.calls = append(p.calls, toolCall{Index: &index, ID: "call_" + rand.Text()[:20], Type: "function", Function: calledFunction{Name: head[1]}})
	r.calls++
	r.held, r.state, r.depth, r.quoted, r.escape = ("{" + call)[len(head[0]):], inArguments, 0, false, false
	return true
}

// arguments takes the arguments of a call up to their end.
func (r *reader) arguments(p *parts) (ended bool) {
	n := 0
	for n < len(r.held) && !ended {
		switch b := r.held[n]; {
		case r.escape:
			r.escape = false
		case r.quoted:
			r.escape, r.quoted = b == '\\', b != '"'
		case b == '"':
			r.quoted = true
		case b == '{' || b == '[':
			r.depth++
		case b == '}' || b == ']':
			if r.depth--; r.depth < 0 { // the end of the call
				ended = true
				continue
			}
			ended = r.depth == 0
		}
		n++
	}
	if n > 0 {
		index := r.calls - 1
		if last := len(p.calls) - 1; last >= 0 && *p.calls[last].Index == index {
			p.calls[last].Function.Arguments += r.held[:n]
		} else {
			p.calls = append(p.calls, toolCall{Index: &index, Function: calledFunction{Arguments: r.held[:n]}})
		}
		r.held = r.held[n:]
	}
	if ended {
		r.state = betweenCalls
	}
	return ended
}
