package callform

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strings"

	"github.com/grovellm/grove/tokenizer"
)

// Template is a chat template whose calls are looked for.
type Template struct {
	Tokenizer *tokenizer.Tokenizer
	Control   []string // names of control tokens

	// Render renders what a user says, and the assistant's turn, a JSON object, or without one what introduces it.
	Render func(user string, assistant, tools []byte) (string, error)
}

// ErrNoCalls says that a chat template does not write calls of tools.
var ErrNoCalls = errors.New("the model's chat template does not know tools: it writes no calls")

// Find finds out how a template writes calls, by rendering conversations that have some. It tries
// the ways in which templates want to be given calls. Of those that work the one with the shortest
// text counts: templates print what they were not made for in addition.
func Find(t *Template) (best *Form, err error) {
	shortest := 0
	for _, p := range []probe{
		{content: `""`}, {content: "null"}, {content: `""`, text: true}, {content: "null", text: true},
		{content: `""`, named: true}, {content: "null", named: true},
	} {
		if best != nil && !best.printsDict() && (p.text && !best.TextArguments || p.named) {
			break
		}
		p.t = t
		form, size, failed := p.form()
		switch {
		case failed != nil: // the first that says most
			if err == nil || errors.Is(err, errNotRendered) || errors.Is(err, ErrNoCalls) && !errors.Is(failed, errNotRendered) {
				err = failed
			}
		case best == nil || size < shortest || best.printsDict() && form.Arguments.Object:
			best, shortest = form, size
		}
	}
	if best != nil {
		return best, nil
	}
	if !errors.Is(err, ErrNoCalls) {
		err = fmt.Errorf("the model's chat template writes calls in a form that grove does not know: %w", err)
	}
	return nil, err
}

// printsDict reports whether the arguments are an object as Python prints it: the template was made
// for arguments as text.
func (f *Form) printsDict() bool {
	return !f.Arguments.Object && f.Arguments.Nested.Quote == "'" && strings.HasSuffix(f.Arguments.Open.String(), "{'")
}

// formOf is a form as it is found, with texts in which idMark and indexMark stand.
type formOf struct {
	first, after, next, last, closes, text string
	open, none, between                    string
	alone                                  bool
	thought                                [2]string
	strings                                [][2]string
	quoted                                 bool // strings are values of JSON like others
	other                                  [2]string
	tag                                    string // of elements
}

// form finds the form, and how long the text of a call is.
func (p *probe) form() (*Form, int, error) {
	one, err := p.render(p.content, plainCall(0, 1))
	if err != nil {
		return nil, 0, err
	}
	head, rest, ok := strings.Cut(one, probeNames[0])
	if !ok {
		return nil, 0, ErrNoCalls
	}
	form := &Form{TextArguments: p.text, NullContent: p.content == "null", NamesInIDs: p.named}
	form.Arguments.Nested, form.Arguments.Words = JSON, JSON.Words
	var f formOf
	tail := ""
	f.open, tail, ok = cutObject(rest, 0)
	if ok {
		form.Arguments.Object = true
		if err := p.spaces(&form.Arguments.Nested); err != nil {
			return nil, 0, err
		}
	} else if tail, err = p.singly(&f, &form.Arguments, rest); err != nil {
		return nil, 0, err
	}
	if err := p.sections(&f, form.Arguments.Object, head, tail); err != nil {
		return nil, 0, err
	}
	if err := p.fill(form, &f); err != nil {
		return nil, 0, err
	}
	if form.HasID() {
		long := *p
		long.long = true
		_, err := long.render(p.content, plainCall(0, 1))
		form.ShortIDs = err != nil
	}
	return form, len(one), p.verify(form)
}

// emptyMarks are marks around no text, before a call that is an object of JSON.
var emptyMarks = regexp.MustCompile(`^(?:<[^<>\s]+>){2}\{`)

// fill puts the texts into the form, parted at control tokens.
func (p *probe) fill(form *Form, f *formOf) (err error) {
	part := func(text string) Text {
		parts, wrong := p.t.callText(text)
		if wrong != nil && err == nil {
			err = wrong
		}
		return parts
	}
	a := &form.Arguments
	form.CallsAlone = f.alone
	form.First = part(f.first).trimmed()
	form.Last = part(f.last)
	form.Text = part(f.text)
	if next, ended := p.t.callText(f.next); ended == nil { // where every call ends the turn there is one
		form.Next = next
	}
	form.After, form.Closes = part(f.after).trimmed(), part(f.closes)
	form.Thought = Value{part(f.thought[0]), part(f.thought[1])}
	a.Open = part(f.open)
	a.None = part(f.none)
	a.Between = part(f.between)
	for _, s := range f.strings {
		if !f.quoted {
			a.Strings = append(a.Strings, Value{part(s[0]), part(s[1])})
		}
	}
	a.Other = Value{part(f.other[0]), part(f.other[1])}
	first := strings.TrimLeft(f.first, space)
	bare := strings.TrimLeft(strings.TrimPrefix(first, form.First.Mark()), space)
	if strings.HasPrefix(bare, "<function=") { // Qwen3-Coder often leaves out the tag around the first
		form.Also = []Opening{{part(bare), a.Open}}
	}
	if marks := emptyMarks.FindString(first); marks != "" { // Llama 4 leaves out marks around no text
		form.Also = append(form.Also, Opening{part(strings.TrimPrefix(first, marks[:len(marks)-1])), a.Open})
	}
	if f.thought[0] == Channels.Begin { // gpt-oss itself names the function behind the channel, which is either
		form.Preamble = Value{part("<|channel|>commentary<|message|>"), form.Thought.Close}
		for _, channel := range []string{"commentary", "analysis"} {
			first := part("<|channel|>" + channel + " to=functions.")
			form.Also = append(form.Also, Opening{first, part(" <|constrain|>json<|message|>")})
		}
	}
	return err
}

// callText parts a text at control tokens and marks. A token that ends the text cannot be in it.
func (t *Template) callText(text string) (out Text, err error) {
	literal := func(s string) {
		if s != "" {
			out = append(out, Part{Literal, s})
		}
	}
	from := 0
	for at := 0; at < len(text); {
		p, n := Part{}, 0
		switch {
		case strings.HasPrefix(text[at:], idMark):
			p, n = Part{Kind: ID}, len(idMark)
		case strings.HasPrefix(text[at:], indexMark):
			p, n = Part{Kind: Index}, len(indexMark)
		default:
			for _, name := range t.Control {
				if len(name) > n && strings.HasPrefix(text[at:], name) {
					p, n = Part{Token, name}, len(name)
				}
			}
		}
		if n == 0 {
			at++
			continue
		}
		if id, ok := t.Tokenizer.Find(p.Text); p.Kind == Token && ok && t.Tokenizer.IsEOG(id) {
			return nil, fmt.Errorf("%s, which ends the text, stands in a call", p.Text)
		}
		literal(text[from:at])
		out = append(out, p)
		at += n
		from = at
	}
	literal(text[from:])
	return out, nil
}

// verify reads rendered calls back.
func (p *probe) verify(form *Form) error {
	values := []string{`"a \"b\"\n'c' é"`, "-7", `{"qza": [true, {"qzb": null, "qzc": 1.5}], "qzd": "e f"}`,
		"true", "null", `[]`, `"7"`}
	if form.Arguments.Nested.Tag != "" { // which have no null
		values = []string{values[0], values[1], `{"qza": [true, {"qzc": 1.5}], "qzd": "e f"}`, "true", "[[2]]", "false", `"7"`}
	}
	calls := []probeCall{plainCall(0, 0)}
	for i, v := range values {
		calls[0].arguments = append(calls[0].arguments, fmt.Sprintf("qzk%d", i), v)
	}
	if len(form.Next) > 0 {
		calls = append(calls, plainCall(1, 2))
	}
	text, err := p.render(p.content, calls...)
	if err != nil {
		return err
	}
	first := form.First.String()
	if form.First.Mark() == "" || len(form.First) == 0 {
		_, text, _ = strings.Cut(text, probeNames[0])
		text = strings.NewReplacer("INDEX", "0", "ID", "qzid00001").Replace(first) + probeNames[0] + text
	} else {
		mark := form.First.Mark()
		if form.Arguments.Nested.Tag != "" { // each tag has the mark
			mark = first
		}
		text = text[strings.LastIndex(text[:strings.Index(text, probeNames[0])], mark):]
	}
	text = strings.ReplaceAll(text, idMark, "qzid00001")
	kinds := func(_, argument string) (bool, string) {
		if strings.Contains(argument, Within) {
			return true, OtherBegins
		}
		i := strings.IndexByte("0123456", argument[len(argument)-1])
		return i < 0 || values[i][0] == '"', ""
	}
	_, _, got := form.NewReader(kinds).Add(text, true)
	if len(got) != len(calls) {
		return fmt.Errorf("of %d calls %d are read back", len(calls), len(got))
	}
	for i, c := range calls {
		var want, have any
		_ = json.Unmarshal([]byte(c.object()), &want)
		if json.Unmarshal([]byte(got[i].Arguments), &have) != nil || !reflect.DeepEqual(want, have) ||
			got[i].Name != probeNames[c.tool] {
			return fmt.Errorf("arguments %s are read back as %s", c.object(), got[i].Arguments)
		}
	}
	return nil
}
