package callform

import (
	"cmp"
	"slices"
	"strings"
)

// Form is how a model writes calls of tools. A turn with calls is
//
//	First NAME arguments (Next NAME arguments)* Last
//
// and before First, or before After where that differs, there may be text.
type Form struct {
	First  Text      // from the beginning of the turn to the name of the first call
	After  Text      // the same behind text
	Next   Text      // from the end of a call's arguments to the next name; empty where a turn has one call at most
	Last   Text      // from the end of the last call's arguments to the end of the turn
	Closes Text      // what may follow that: some templates write it behind several calls alone
	Text   Text      // what stands before text at the beginning of the turn
	Also   []Opening // further ways in which the first call begins

	// Thought is what stands around text before calls where that is marked as reasoning, as in gpt-oss's channels.
	// Preamble is what stands around such text that is for the user.
	Thought, Preamble Value

	Arguments Arguments

	// Generic says that the chat template writes no calls in a form that is known: the model is told
	// of tools, earlier calls and their results in grove's own form.
	Generic bool

	// How the template wants earlier calls.
	TextArguments bool // their arguments as JSON in a string, not as an object
	NullContent   bool // the content of a turn that has no text as null, not as ""
	CallsAlone    bool // without text beside: it would leave the calls out
	ShortIDs      bool // their ids as IDLength letters and digits: it refuses others
	NamesInIDs    bool // their ids as functions.NAME:INDEX, for the template writes the id alone
}

// Opening is what stands before the name of a call, and between the name and the arguments.
type Opening struct{ First, Open Text }

// Ways are the form with each way in which the first call begins.
func (f *Form) Ways() []*Form {
	list := []*Form{f}
	for _, o := range f.Also {
		way := *f
		way.First, way.After = o.First, o.First
		way.Arguments.Open = o.Open
		list = append(list, &way)
	}
	return list
}

// Arguments is how a call's arguments are written: as a JSON object behind Open, or one by one:
//
//	Open NAME Assign value Close (Between NAME Assign value Close)*
type Arguments struct {
	Object  bool
	Open    Text // behind the name of the call
	None    Text // the same where there are no arguments
	Between Text

	Strings []Value  // the ways to write a string, as it is; none where strings are written like other values, in quotes
	Other   Value    // of another value
	Words   Words    // of values that are not within others
	Nested  Notation // of lists and objects
}

// Value is what stands around the value of an argument.
type Value struct{ Assign, Close Text }

// Words are true, false and null.
type Words struct{ True, False, Null string }

// Of returns the ways to write true, false or null, by its first character in JSON; nil for another character.
func (w Words) Of(begin rune) []string {
	return map[rune][]string{'t': {"true", cmp.Or(w.True, "true")}, 'f': {"false", cmp.Or(w.False, "false")},
		'n': {"null", cmp.Or(w.Null, "null")}}[begin]
}

// Notation is how lists and objects are written. With Tag, which stands before every tag, they are elements: members
// with their names, items named item. Arguments are elements then too.
type Notation struct {
	Tag          string
	Quote, Key   string // around strings, and around names
	Colon, Comma string
	Words
}

// JSON is the notation of JSON, with spaces as Python writes it.
var JSON = Notation{Quote: `"`, Key: `"`, Colon: ": ", Comma: ", ", Words: Words{"true", "false", "null"}}

// Text is a part of the text of calls.
type Text []Part

// Part is a piece of such a text.
type Part struct {
	Kind PartKind
	Text string // of a literal or a token
}

// CallPartKind says what a Part is.
type PartKind int

const (
	Literal PartKind = iota // text
	Token                   // a control token, by its name
	ID                      // the id of the call
	Index                   // the number of the call in its turn, from 0
)

// IDLength is the length of the ids that calls have in their text: Mistral's.
const IDLength = 9

// String is the text, with ID and INDEX in their places.
func (t Text) String() string {
	var b strings.Builder
	for _, p := range t {
		b.WriteString(p.Text + map[PartKind]string{ID: "ID", Index: "INDEX"}[p.Kind])
	}
	return b.String()
}

// HasID reports whether calls have ids in their text.
func (f *Form) HasID() bool {
	if f.NamesInIDs {
		return true
	}
	for _, t := range []Text{f.First, f.Next, f.Last, f.Arguments.Open} {
		for _, p := range t {
			if p.Kind == ID {
				return true
			}
		}
	}
	return false
}

// Behind are the texts that may follow an argument where arguments are written one by one.
func (f *Form) Behind() []Text {
	return slices.DeleteFunc([]Text{f.Arguments.Between, f.Next, f.Last}, func(t Text) bool { return len(t) == 0 })
}

// trimmed is the text without white space at its beginning.
func (t Text) trimmed() Text {
	if len(t) == 0 || t[0].Kind != Literal {
		return t
	}
	first := Part{Literal, strings.TrimLeft(t[0].Text, " \t\r\n")}
	if first.Text == "" {
		return t[1:]
	}
	return append(Text{first}, t[1:]...)
}

// Mark is the beginning of the text by which calls are told from text before them: a token, a tag,
// or a word in brackets. It is empty where nothing tells them but that they begin the turn, as an
// object of JSON.
func (t Text) Mark() string {
	t = t.trimmed()
	if len(t) == 0 {
		return ""
	}
	text := t[0].Text
	switch {
	case t[0].Kind == Token:
		return text
	case t[0].Kind != Literal:
		return ""
	case strings.HasPrefix(text, "<"):
		if end := strings.IndexByte(text, '>'); end > 0 {
			return text[:end+1]
		}
		return text
	case len(text) > 1 && text[0] == '[' && text[1] >= 'A' && text[1] <= 'Z':
		if end := strings.IndexByte(text, ']'); end > 0 {
			return text[:end+1]
		}
		return text
	case text[0] == '{' || text[0] == '[':
		return ""
	}
	if end := strings.IndexAny(text, " \t\r\n"); end > 0 {
		return text[:end]
	}
	return text
}

// Opens returns the text that marks the beginning of a call within reasoning: After up to an id. It is empty
// if After begins with neither a token nor a tag, since reasoning may then contain the same text.
func (f *Form) Opens() string {
	if mark := f.After.Mark(); mark == "" || f.After[0].Kind != Token && mark[0] != '<' && mark[0] != '[' {
		return ""
	}
	at := slices.IndexFunc(f.After, func(p Part) bool { return p.Kind > Token })
	if at < 0 {
		at = len(f.After)
	}
	return f.After[:at].String()
}

type matching int

const (
	matchNone matching = iota
	matchPart          // what there is of the text matches
	matchWhole
)

// match matches the beginning of a text, n bytes of it.
func (t Text) match(text string) (n int, id string, m matching) {
	for _, p := range t {
		rest := text[n:]
		switch p.Kind {
		case Literal, Token:
			switch {
			case strings.HasPrefix(rest, p.Text):
				n += len(p.Text)
			case strings.HasPrefix(p.Text, rest):
				return n, id, matchPart
			default:
				return n, id, matchNone
			}
		default:
			k := 0
			for k < len(rest) && (rest[k] >= '0' && rest[k] <= '9' || p.Kind == ID && inName(rest[k])) {
				k++
			}
			switch {
			case k == len(rest):
				return n, id, matchPart
			case k == 0:
				return n, id, matchNone
			case p.Kind == ID:
				id = rest[:k]
			}
			n += k
		}
	}
	return n, id, matchWhole
}

// ReasoningFields are the fields of a message that may hold its reasoning: the first that is not null does.
var ReasoningFields = []string{"reasoning_content", "thinking", "reasoning"}

// IsName reports whether a call can name a tool so.
func IsName(name string) bool {
	return name != "" && strings.IndexFunc(name, func(c rune) bool { return c > '~' || !inName(byte(c)) }) < 0
}

// inName reports whether a byte may be of the name of a tool.
func inName(b byte) bool {
	return b == '_' || b == '-' || b == '.' || b >= '0' && b <= '9' || b|32 >= 'a' && b|32 <= 'z'
}
