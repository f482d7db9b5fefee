package grammar

import (
	"fmt"
	"regexp"

	"github.com/grovellm/grove/internal/callform"
)

// ToolError reports that the arguments of a tool cannot be held to its schema.
type ToolError struct {
	Tool string
	Err  error
}

func (e *ToolError) Error() string { return fmt.Sprintf("the parameters of %s: %v", e.Tool, e.Err) }
func (e *ToolError) Unwrap() error { return e.Err }

// Source defines what an output must match: one of the first three fields is set, or calls of tools are allowed.
type Source struct {
	Grammar, JSONSchema, Regex string

	// With Form, the output is text and calls of tools, or calls and text that matches JSONSchema or Regex.
	Tools  []Tool
	Form   *callform.Form // how the model writes a call
	Must   bool           // at least one call, and no other text
	Single bool           // at most one call

	// Thinking lets the output begin with reasoning between Marks. ThinkingNow means that it has
	// begun in the prompt. If only Thinking is set, any text may follow; if nothing is set, the
	// output is text without reasoning.
	Thinking, ThinkingNow bool
	Marks                 callform.Marks
	Answer                callform.Marks // may be around text
	NoThought             bool           // the form's channel of reasoning is empty

	closed bool // the reasoning ends after a character
}

// Closed returns the source for the last character of reasoning that is cut off, and for the text after it.
func (s Source) Closed() *Source {
	s.Thinking = true
	s.ThinkingNow = true
	s.closed = true
	return &s
}

// Tool is a function that a model may call, with the JSON schema of its arguments.
type Tool struct {
	Name       string
	Parameters string // empty for any object
}

// Compile builds the automaton of the source.
func (s *Source) Compile() (*Grammar, error) {
	var g *grammar
	var root int
	var err error
	begun := nothing() // a call within reasoning, which it ends
	switch {
	case s.Form != nil:
		g, root, begun, err = s.readTools()
	case s.Grammar != "":
		g, root, err = readGBNF(s.Grammar)
	case s.JSONSchema != "":
		g, root, err = readSchema(s.JSONSchema)
	case s.Regex != "":
		g, root, err = readRegex(s.Regex)
	default:
		g = new(grammar)
		text := anyText()
		if !s.Thinking {
			text = g.without(s.Marks.Begin)
		}
		root = g.add("any text", seq(maybe(g.markers(s.Answer.Begin)), text, maybe(g.markers(s.Answer.End))))
	}
	if err != nil {
		return nil, err
	}
	if s.Thinking {
		from := len(g.rules)
		ends := []string{s.Marks.End}
		if !begun.isNothing() {
			ends = append(ends, s.Form.Opens())
		}
		thought := g.without(ends...)
		g.thought = [2]int{from, len(g.rules)}
		if s.closed {
			thought, begun = chars(allChars...), nothing()
		}
		answer := seq(g.markers(s.Marks.End), repeat(literal("\n"), 0, 2), refer(root))
		output := seq(thought, alt(answer, begun))
		if !s.ThinkingNow {
			output = alt(seq(g.markers(s.Marks.Begin), output), refer(root))
		}
		root = g.add("the output", output)
	}
	return g.compile(root)
}

// special begins and ends the name of a control token in a vocabulary. This byte never occurs in text.
const special = 0xff

// ControlPiece returns the text of a control token in a vocabulary: only grammars that name the token allow it.
func ControlPiece(name string) []byte {
	return append(append([]byte{special}, name...), special)
}

// marker matches a text that may also be the name of a control token.
func (g *grammar) marker(text string) *expr {
	return alt(literal(text), &expr{op: opControl, name: text})
}

// markers matches a text whose words in brackets may also be names of control tokens.
func (g *grammar) markers(text string) *expr {
	e := seq()
	from := 0
	for _, at := range bracketed.FindAllStringIndex(text, -1) {
		e.kids = append(e.kids, literal(text[from:at[0]]), g.marker(text[at[0]:at[1]]))
		from = at[1]
	}
	e.kids = append(e.kids, literal(text[from:]))
	return e
}

var bracketed = regexp.MustCompile(`<[^<>]+>|\[[^\[\]]+\]`)

// callText matches a part of the text of calls.
func (g *grammar) callText(t callform.Text) *expr {
	e := seq()
	for _, p := range t {
		switch p.Kind {
		case callform.Literal:
			e.kids = append(e.kids, literal(p.Text))
		case callform.Token:
			e.kids = append(e.kids, g.marker(p.Text))
		case callform.ID:
			e.kids = append(e.kids, repeat(chars(charSet{{'a', 'z'}, {'A', 'Z'}, {'0', '9'}}...),
				callform.IDLength, callform.IDLength))
		case callform.Index:
			e.kids = append(e.kids, repeat(digits('0', '9'), 1, 3))
		}
	}
	return e
}

// without matches texts that contain none of some words.
func (g *grammar) without(words ...string) *expr { return g.unlike(containing(words)) }

// unlike matches texts that match none of some expressions.
func (g *grammar) unlike(none []*expr) *expr {
	c := &schemas{g: *g, most: maxApplied}
	e, _ := c.intersection([]*expr{anyText()}, none, unchanged)
	*g = c.g
	return e
}

// space matches white space before and after calls, which templates write and models may leave out.
func space(most int) *expr { return repeat(oneOf(" \n"), 0, most) }

// readTools makes the grammar of text and calls. within is the calls that may begin within reasoning, if any.
func (s *Source) readTools() (g *grammar, root int, within *expr, err error) {
	f := s.Form
	c := newSchemas()
	g = &c.g
	calls, behind := alt(), alt()
	within = nothing()
	var none []*expr           // what text is not, for it would be calls
	made := map[string]*expr{} // calls by the text after their names
	for _, f := range f.Ways() {
		if len(s.Tools) == 0 {
			break
		}
		open := f.Arguments.Open.String()
		one := made[open]
		if one == nil {
			call := alt()
			for _, tool := range s.Tools {
				arguments, err := c.readArguments(tool.Parameters, f)
				if err != nil {
					return nil, 0, nil, &ToolError{tool.Name, err}
				}
				call.kids = append(call.kids, seq(literal(tool.Name), arguments))
			}
			one = g.rule("a call", call)
			made[open] = one
		}
		rest := seq(g.callText(f.Last), maybe(g.callText(f.Closes)), space(1))
		if !s.Single && len(f.Next) > 0 {
			rest = seq(star(seq(g.callText(f.Next), one)), rest)
		}
		rest = g.rule("the end of calls", rest)
		calls.kids = append(calls.kids, seq(space(2), g.callText(f.First), one, rest))
		if mark := f.After.Mark(); mark != "" {
			behind.kids = append(behind.kids, seq(g.callText(f.After), one, rest))
			none = append(none, containing([]string{mark})...)
		} else { // such calls begin the output
			begins := literal(f.First.String()[:min(1, len(f.First))])
			if len(f.First) == 0 {
				begins = alt()
				for _, tool := range s.Tools {
					begins.kids = append(begins.kids, literal(tool.Name+open))
				}
			}
			none = append(none, seq(star(oneOf(" \t\r\n")), begins, anyText()))
		}
	}
	if len(behind.kids) > 0 && f.Opens() != "" {
		within = behind.kids[0]
	}
	var text *expr
	c.notation = callform.JSON
	switch {
	case s.Must:
	case s.JSONSchema != "":
		rule, err := c.read(s.JSONSchema)
		if err != nil {
			return nil, 0, nil, err
		}
		text = refer(rule)
	case s.Regex != "":
		e, err := regex(s.Regex)
		if err != nil {
			return nil, 0, nil, err
		}
		text = e
	default:
		text = seq(g.unlike(none), maybe(behind))
	}
	e := calls
	if !s.Must {
		e.kids = append(e.kids, seq(g.callText(f.Text), text, maybe(g.markers(s.Answer.End))))
	}
	before := func(v callform.Value, allowed bool) {
		if len(v.Assign) > 0 && allowed {
			e = seq(star(seq(g.callText(v.Assign), g.without(v.Close.String()), g.callText(v.Close))), e)
		}
	}
	before(f.Preamble, len(s.Tools) > 0 && !s.Must && s.JSONSchema+s.Regex == "")
	before(f.Thought, !s.NoThought)
	return g, g.add("text and calls", e), within, nil
}
