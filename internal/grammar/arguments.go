package grammar

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/grovellm/grove/internal/callform"
)

// nameChars are the characters of names that are written without quotes.
var nameChars = charSet{{'a', 'z'}, {'A', 'Z'}, {'0', '9'}, {'_', '_'}, {'-', '-'}}

// comma separates the parts of lists and objects.
func (c *schemas) comma() *expr { return literal(c.notation.Comma) }

// name returns the name of a property as written in an object.
func (c *schemas) name(name string) string {
	switch c.notation.Key {
	case "":
		return name
	case callform.JSON.Key:
		return quote(name)
	}
	return c.notation.Key + escapePython(name) + c.notation.Key
}

// written returns a string, a number, true, false or null, given in JSON, in the notation.
func (c *schemas) written(value string) string {
	n := &c.notation
	switch {
	case value == "true":
		return n.True
	case value == "false":
		return n.False
	case value == "null":
		return n.Null
	case value[0] == '"' && n.Quote != callform.JSON.Quote:
		return n.Quote + c.escape(unquote(value)) + n.Quote
	}
	return value
}

func (c *schemas) allWritten(values []string) []string {
	out := make([]string, len(values))
	for i, v := range values {
		out[i] = c.written(v)
	}
	return out
}

// escape returns a string as written between quotes that are not JSON's.
func (c *schemas) escape(text string) string {
	if c.notation.Quote == "'" {
		return escapePython(text)
	}
	return text
}

func escapePython(text string) string {
	return strings.NewReplacer(`\`, `\\`, `'`, `\'`, "\n", `\n`, "\r", `\r`, "\t", `\t`).Replace(text)
}

// unquote returns the text of a JSON string.
func unquote(value string) (text string) {
	_ = json.Unmarshal([]byte(value), &text)
	return text
}

// emitPlainString matches strings between quotes that are not JSON's: Python's, or a mark that no string contains.
func (c *schemas) emitPlainString(s *shape) *expr {
	q := c.notation.Quote
	if q != "'" {
		return seq(c.g.marker(q), c.plainString(s, &raw{stops: []string{q}}), c.g.marker(q))
	}
	python := func(quote rune) *expr {
		set := plain
		if quote == '\'' {
			set = append(plain.and(charSet{{'\'', '\''}}.not()), span{'"', '"'})
		}
		return seq(between(quote, quote), c.plainString(s, &raw{set: set, escapes: true}), between(quote, quote))
	}
	return alt(python('\''), python('"'))
}

// raw defines which strings can be written without change.
type raw struct {
	stops   []string // texts that no string contains
	set     charSet  // the characters, if there are no stops
	escapes bool     // Python's
	mixed   *callform.Words
}

// characters returns the characters that a string may contain in any number and order.
func (r *raw) characters() charSet {
	set := r.set
	if set == nil {
		set = allChars
	}
	for _, stop := range r.stops {
		at := max(strings.IndexByte(stop, '<'), 0)
		first := []rune(stop[at:])[0]
		set = set.and(charSet{{first, first}}.not())
	}
	return set
}

func (r *raw) holds(text string) bool {
	return !slices.ContainsFunc(r.stops, func(stop string) bool { return strings.Contains(text, stop) }) &&
		!strings.ContainsFunc(text, func(c rune) bool { return r.set != nil && !r.set.has(c) }) &&
		(r.mixed == nil || !callform.LooksOther(text, *r.mixed))
}

// plainString matches the strings of a shape, written without change.
func (c *schemas) plainString(s *shape, r *raw) *expr {
	if s.value != nil {
		if text := unquote(*s.value); r.holds(text) {
			return literal(text)
		}
		return nothing()
	}
	set := r.characters()
	if e := c.limited(s, set, func(of charSet) *expr { return chars(of.and(set)...) }); e != nil {
		return e
	}
	switch {
	case r.escapes:
		return repeat(alt(chars(set...), seq(literal(`\`), oneOf(`\'"nrt`))), s.least, s.most)
	case s.most != unlimited || s.least > mostLeast || s.least > 1 && r.mixed != nil:
		return repeat(chars(set...), s.least, s.most)
	case r.mixed != nil:
		return c.unlike(r, set, s.least)
	case len(r.stops) > 0:
		return c.g.without(s.least, r.stops...)
	}
	return repeat(chars(set...), s.least, unlimited)
}

// mostLeast bounds the least lengths of strings that may have the beginnings of what ends them: each takes states.
const mostLeast = 4

// unlike matches strings of least characters or more, 0 or 1, that do not look like another value.
func (c *schemas) unlike(r *raw, set charSet, least int) *expr {
	words := []string{"true", "false", "null", r.mixed.True, r.mixed.False, r.mixed.Null}
	slices.Sort(words)
	words = slices.DeleteFunc(slices.Compact(words), func(w string) bool { return w == "" })
	var others, begins charSet
	for _, b := range callform.OtherBegins {
		others = append(others, span{b, b})
	}
	rest := map[rune][]string{}
	for _, w := range words {
		b := rune(w[0])
		begins = append(begins, span{b, b})
		rest[b] = append(rest[b], w[1:])
	}
	text := star(chars(set...))
	if len(r.stops) > 0 {
		text = c.g.without(0, r.stops...)
	}
	e := alt(seq(chars(set.and(append(others, begins...).not())...), text))
	if least == 0 {
		e.kids = append(e.kids, empty())
	}
	for _, b := range begins.normal() {
		for r := b.lo; r <= b.hi; r++ {
			e.kids = append(e.kids, seq(between(r, r), notAny(rest[r], set)))
		}
	}
	return e
}

// anObject is the schema of objects, the only arguments that clients accept.
var anObject = term{place: place{at: "an object", base: &url.URL{},
	schema: &object{[]string{"type"}, map[string]any{"type": "object"}}}}

// readArguments returns the text of a call from after its name to the end of its arguments.
func (c *schemas) readArguments(parameters string, f *callform.Form) (*expr, error) {
	if parameters == "" {
		parameters = `{"type": "object"}`
	}
	a := &f.Arguments
	c.notation = a.Nested
	if a.Object { // which is the same in each way to begin a call
		var err error
		whole := c.once("object "+parameters, func() *expr {
			rule, wrong := c.read(parameters, anObject)
			err = wrong
			return refer(rule)
		})
		return seq(c.part(a.Open), whole), err
	}
	if err := c.open(parameters); err != nil {
		return nil, err
	}
	w := &writing{plain: true, open: c.part(a.Open), none: c.part(a.None), between: c.part(a.Between), end: empty(),
		pair: func(name string, value conj) *expr { return seq(literal(name), c.argument(value, f)) },
		free: func(name *expr, value conj) *expr { return seq(name, c.argument(value, f)) }}
	e := alt()
	for _, s := range c.shapes(conj{{place: c.root}, anObject}) {
		e.kids = append(e.kids, c.writeObject(s, w))
	}
	return e, c.err
}

// part matches a part of the text of calls, which all arguments share.
func (c *schemas) part(t callform.Text) *expr {
	return c.once(fmt.Sprint("part ", t), func() *expr { return c.g.callText(t) })
}

// argument matches the value of an argument with what stands around it.
func (c *schemas) argument(value conj, f *callform.Form) *expr {
	a := &f.Arguments
	shapes := c.shapes(value)
	other, text := alt(), alt()
	quoted := len(a.Other.Close) == 0 && a.Nested.Quote == callform.JSON.Quote // as LFM2 itself writes strings
	for _, s := range shapes {
		if s.kind == isString && !quoted {
			continue
		}
		if s.value == nil {
			other.kids = append(other.kids, c.emit(s))
			continue
		}
		word, ok := map[string]string{"true": a.Words.True, "false": a.Words.False, "null": a.Words.Null}[*s.value]
		other.kids = append(other.kids, literal(*s.value))
		if ok && word != *s.value {
			other.kids = append(other.kids, literal(word))
		}
	}
	for i, form := range a.Strings {
		r := &raw{stops: stops(form, f)}
		if i == 0 && len(a.Strings) > 1 { // except the start of the other form
			r.stops = append(r.stops, strings.TrimPrefix(a.Strings[1].Assign.String(), form.Assign.String()))
		}
		if len(other.kids) > 0 && form.Assign.String() == a.Other.Assign.String() {
			r.mixed = &a.Words
		}
		texts := alt()
		for _, s := range shapes {
			if s.kind == isString {
				name := fmt.Sprint("text ", i, r.mixed != nil, s.key(false))
				texts.kids = append(texts.kids, c.once(name, func() *expr { return c.plainString(s, r) }))
			}
		}
		if len(texts.kids) > 0 {
			text.kids = append(text.kids, seq(c.part(form.Assign), texts, c.part(form.Close)))
		}
	}
	if len(other.kids) > 0 {
		text.kids = append(text.kids, seq(c.part(a.Other.Assign), other, c.part(a.Other.Close)))
	}
	return c.g.rule("an argument", text)
}

// stops returns the texts that end a string written without change.
func stops(v callform.Value, f *callform.Form) (list []string) {
	for _, t := range f.Behind() {
		text := v.Close.String()
		for _, p := range t {
			if p.Kind != callform.Literal && p.Kind != callform.Token {
				break
			}
			text += p.Text
		}
		list = append(list, text)
	}
	if len(f.Last) == 0 {
		list = append(list, v.Close.String())
	}
	return list
}

// ArgumentKinds returns, for the arguments of a tool's schema, whether they may be strings, and
// whether they may be something else.
func ArgumentKinds(parameters string) func(argument string) (text, other bool) {
	c := newSchemas()
	var all []*shape
	if parameters != "" && c.open(parameters) == nil {
		all = c.shapes(conj{{place: c.root}, anObject})
	}
	return func(argument string) (text, other bool) {
		for _, s := range all {
			for _, v := range c.shapes(c.property(s, argument, nil)) {
				text, other = text || v.kind == isString, other || v.kind != isString
			}
		}
		if c.err != nil || !text && !other {
			return true, true
		}
		return text, other
	}
}
