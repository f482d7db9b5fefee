package grammar

import (
	"fmt"
	"net/url"
	"strings"
)

// Source is what an output must match: one of the first four fields is set.
type Source struct {
	Grammar, JSONSchema, Regex string

	Tools  []Tool // the output is text and calls of tools
	Format string // how the model writes a call: a name of ToolFormats
	Must   bool   // at least one call, and no other text
	Single bool   // at most one call

	// Thinking lets the output begin with reasoning that ends with "</think>". ThinkingNow says that it has begun in the prompt.
	// Where nothing but Thinking is set, any text may follow; where nothing is set, the output is text without reasoning.
	Thinking, ThinkingNow bool

	closed bool // the reasoning ends after a character
}

// Closed is the source of the last character of reasoning that is cut off, and of what follows.
func (s Source) Closed() *Source {
	s.Thinking, s.ThinkingNow, s.closed = true, true, true
	return &s
}

// Tool is a function that a model may call, with the JSON schema of its arguments.
type Tool struct {
	Name       string
	Parameters string // empty for any object
}

// ToolFormat is how a family of models writes calls: a list of objects with a name and arguments.
type ToolFormat struct {
	Begin, Open, Between, Close, End string // around all calls and around each; Begin or Open is what tells a call from text
	Arguments                        string // the field that has the arguments
	One                              bool   // there is one call at most
}

// ToolFormats are those of Hermes and Qwen, of Llama 3, and of Mistral.
var ToolFormats = map[string]ToolFormat{
	"hermes":  {Open: "<tool_call>\n", Close: "\n</tool_call>", Between: "\n", Arguments: "arguments"},
	"llama3":  {Arguments: "parameters", One: true},
	"mistral": {Begin: "[TOOL_CALLS]", Open: "", Between: ", ", End: "]", Arguments: "arguments"},
}

// Compile makes the automaton of what the source says.
func (s *Source) Compile() (*Grammar, error) {
	var g *grammar
	var root int
	var err error
	switch {
	case s.Grammar != "":
		g, root, err = readGBNF(s.Grammar)
	case s.JSONSchema != "":
		g, root, err = readSchema(s.JSONSchema)
	case s.Regex != "":
		g, root, err = readRegex(s.Regex)
	case s.Format != "":
		g, root, err = s.readTools()
	default:
		g = new(grammar)
		text := star(chars(allChars...))
		if !s.Thinking {
			text = g.without("<think>")
		}
		root = g.add("any text", text)
	}
	if err != nil {
		return nil, err
	}
	if s.Thinking {
		from := len(g.rules)
		thought := g.without("</think>")
		g.thought = [2]int{from, len(g.rules)}
		if s.closed {
			thought = chars(allChars...)
		}
		thought = seq(thought, g.marker("</think>"), repeat(literal("\n"), 0, 2))
		if !s.ThinkingNow {
			thought = maybe(seq(g.marker("<think>"), thought))
		}
		root = g.add("the output", seq(thought, refer(root)))
	}
	return g.compile(root)
}

// special begins and ends the name of a control token in a vocabulary. No text has this byte.
const special = 0xff

// ControlPiece is the text of a control token in a vocabulary: grammars that do not name the token never allow it.
func ControlPiece(name string) []byte {
	return append(append([]byte{special}, name...), special)
}

// marker matches a text that may also be the name of a control token.
func (g *grammar) marker(text string) *expr {
	return alt(literal(text), &expr{op: opControl, name: text})
}

// without matches texts that do not contain a word. Its rules are the states of Knuth, Morris and Pratt's automaton: how much of the
// word the text ends with.
func (g *grammar) without(word string) *expr {
	runes := []rune(word)
	first := len(g.rules)
	for state := range runes {
		e := alt(empty())
		var known charSet
		for _, r := range runes {
			if known.has(r) {
				continue
			}
			known = append(known, span{r, r})
			next := len(runes)
			for text := string(runes[:state]) + string(r); !strings.HasSuffix(text, string(runes[:next])) || next > state+1; next-- {
			}
			if next < len(runes) {
				e.kids = append(e.kids, seq(between(r, r), refer(first+next)))
			}
		}
		e.kids = append(e.kids, seq(chars(known.not()...), refer(first)))
		g.add("text", e)
	}
	return refer(first)
}

// anObject is the schema of objects: clients take no other arguments.
var anObject = term{place: place{at: "an object", base: &url.URL{},
	schema: &object{[]string{"type"}, map[string]any{"type": "object"}}}}

// readTools makes the grammar of text and calls.
func (s *Source) readTools() (*grammar, int, error) {
	f, ok := ToolFormats[s.Format]
	if !ok {
		return nil, 0, fmt.Errorf("there is no format of calls %q", s.Format)
	}
	c := newSchemas()
	call := alt()
	for _, tool := range s.Tools {
		parameters := tool.Parameters
		if parameters == "" {
			parameters = `{"type": "object"}`
		}
		rule, err := c.read(parameters, anObject)
		if err != nil {
			return nil, 0, fmt.Errorf("the parameters of %s: %w", tool.Name, err)
		}
		call.kids = append(call.kids, seq(literal(`{"name": `+quote(tool.Name)+`, "`+f.Arguments+`": `), refer(rule), literal("}")))
	}
	g := &c.g
	open, closing := empty(), empty()
	if f.Open != "" {
		open = seq(g.marker(strings.TrimSpace(f.Open)), literal(f.Open[len(strings.TrimSpace(f.Open)):]))
		word := strings.TrimSpace(f.Close)
		closing = seq(literal(f.Close[:len(f.Close)-len(word)]), g.marker(word))
	}
	one := g.rule("a call", seq(open, call, closing))
	calls := one
	if !s.Single && !f.One {
		calls = seq(one, star(seq(literal(f.Between), one)))
	}
	if f.Begin != "" {
		calls = seq(g.marker(f.Begin), maybe(literal(" ")), literal("["), calls, literal(f.End))
	}
	switch {
	case s.Must:
		return g, g.add("calls", calls), nil
	case f.Begin+f.Open == "": // text that does not begin as a call
		free := seq(chars(charSet{{'{', '{'}}.not()...), star(chars(allChars...)))
		return g, g.add("text or a call", alt(calls, maybe(free))), nil
	}
	return g, g.add("text and calls", seq(g.without(strings.TrimSpace(f.Begin+f.Open)), maybe(calls))), nil
}
