package grammar

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"
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
	if tag := c.notation.Tag; tag != "" {
		return c.plainString(s, &raw{stops: []string{tag}})
	}
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
	words   callform.Words
	others  string // the first characters of other values, which strings do not look like
}

func (r *raw) holds(text string) bool {
	return !slices.ContainsFunc(r.stops, func(stop string) bool { return strings.Contains(text, stop) }) &&
		(r.set == nil || !strings.ContainsFunc(text, r.set.not().has)) && !callform.LooksOther(text, r.others, r.words)
}

// containing returns expressions of the texts that contain one of some words.
func containing(words []string) (all []*expr) {
	for _, word := range words {
		if word != "" {
			all = append(all, seq(anyText(), literal(word), anyText()))
		}
	}
	return all
}

// none returns expressions that strings do not match.
func (r *raw) none() (all []*expr) {
	all = containing(r.stops)
	for _, begin := range r.others {
		words := r.words.Of(begin)
		if words == nil {
			all = append(all, seq(between(begin, begin), anyText()))
		}
		for _, word := range words {
			all = append(all, literal(word))
		}
	}
	return all
}

// plainString matches the strings of a shape, written without change.
func (c *schemas) plainString(s *shape, r *raw) *expr {
	if s.value != nil {
		if text := unquote(*s.value); r.holds(text) {
			return literal(text)
		}
		return nothing()
	}
	set := r.set
	var none []*expr
	if set == nil && len(s.pattern)+len(s.format)+len(s.unlike)+len(s.excluded) > 0 {
		set, none = allChars, r.none()
		trial := newSchemas()
		trial.most = maxApplied / 128
		trial.limited(s, set, unchanged, none...)
		for i := 0; trial.err != nil && i < len(r.stops); i++ { // too many rules: then without a character of each stop
			at := max(strings.IndexByte(r.stops[i], '<'), 0)
			first := []rune(r.stops[i][at:])[0]
			set = set.and(charSet{{first, first}}.not())
			none = nil
		}
	}
	if e := c.limited(s, set, func(of charSet) *expr { return chars(of.and(set)...) }, none...); e != nil {
		return e
	}
	if r.escapes {
		return repeat(alt(chars(set...), seq(literal(`\`), oneOf(`\'"nrt`))), s.least, s.most)
	}
	if s.most != unlimited && s.most <= longestWord {
		e, _ := c.intersection([]*expr{repeat(chars(allChars...), s.least, s.most)}, r.none(), unchanged)
		return e
	}
	return c.once(fmt.Sprint("a text without ", r.stops, r.others), func() *expr {
		x := c.product(unchanged)
		x.each = &expr{op: opEach} // such a text may end at any length, and lengths would multiply the rules
		return x.rule(goal{x.begin([]*expr{anyText()}), x.begin(r.none())})
	}).times(s.least, s.most)
}

// longestWord is the most characters of true, false and null in a form: a text of as many must not be one of them.
const longestWord = 8

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
	if a.Nested.Tag != "" {
		w := c.elements()
		w.open = c.part(a.None)
		w.none = w.open
		return c.writeAll(c.shapes(conj{{place: c.root}, anObject}), w), c.err
	}
	w := &writing{plain: true, open: c.part(a.Open), none: c.part(a.None), between: c.part(a.Between), end: empty(),
		pair: func(name string, value conj) *expr { return seq(literal(name), c.argument(value, f)) },
		free: func(name *expr, value conj) *expr { return seq(name, c.argument(value, f)) }}
	return c.writeAll(c.shapes(conj{{place: c.root}, anObject}), w), c.err
}

// writeAll matches objects of several shapes.
func (c *schemas) writeAll(shapes []*shape, w *writing) *expr {
	e := alt()
	for _, s := range shapes {
		e.kids = append(e.kids, c.writeObject(s, w))
	}
	return e
}

// elements is how objects are written as elements.
func (c *schemas) elements() *writing {
	return &writing{plain: true, open: empty(), none: empty(), between: empty(), end: empty(),
		pair: func(name string, value conj) *expr { return c.element(literal(name), c.ref(value)) },
		free: func(name *expr, value conj) *expr { return c.element(name, c.ref(value)) }}
}

// element matches an element. Two names that an expression allows may differ; readers go by the first.
func (c *schemas) element(name, content *expr) *expr {
	tag := c.once("tag", func() *expr { return c.g.marker(c.notation.Tag) })
	return seq(tag, literal("<"), name, literal(">"), content, tag, literal("</"), name, literal(">"))
}

// list matches a list of items.
func (c *schemas) list(items *expr) *expr {
	if c.notation.Tag != "" {
		return items
	}
	return seq(literal("["), items, literal("]"))
}

// listed matches a value as an item of a list.
func (c *schemas) listed(value *expr) *expr {
	if c.notation.Tag != "" {
		return c.element(literal("item"), value)
	}
	return value
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
	quoted := len(a.Other.Close) == 0 && a.Nested.Quote == callform.JSON.Quote // as MiniCPM 3 and LFM2 write strings
	for _, s := range shapes {
		if s.kind == isString && !quoted {
			continue
		}
		if s.value == nil {
			other.kids = append(other.kids, c.emit(s))
			continue
		}
		other.kids = append(other.kids, literal(*s.value))
		for _, word := range a.Words.Of(rune((*s.value)[0])) {
			other.kids = append(other.kids, literal(word))
		}
	}
	for i, form := range a.Strings {
		r := &raw{stops: stops(form, f), words: a.Words}
		if i == 0 && len(a.Strings) > 1 { // except the start of the other form
			r.stops = append(r.stops, strings.TrimPrefix(a.Strings[1].Assign.String(), form.Assign.String()))
		}
		if form.Assign.String() == a.Other.Assign.String() {
			r.others = others(shapes)
		}
		texts := alt()
		for _, s := range shapes {
			if s.kind == isString {
				name := fmt.Sprint("text ", i, r.others, s.key(false))
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

// others returns the characters with which the values of shapes that are no strings begin, in JSON. A string in quotes
// counts as another value where lists, objects or numbers do.
func others(shapes []*shape) (begins string) {
	for _, s := range shapes {
		more := map[kind]string{isNumber: `-0123456789"`, isArray: `["`, isObject: `{"`}[s.kind]
		if s.kind == isNull || s.kind == isBool {
			more = (*s.value)[:1]
		}
		if !strings.Contains(begins, more) {
			begins += more
		}
	}
	return begins
}

// ArgumentKinds returns, for the arguments of a tool's schema, whether they may be strings, and with which
// characters their other values begin.
func ArgumentKinds(parameters string) func(argument string) (text bool, begins string) {
	c := newSchemas()
	var all []*shape
	if parameters != "" && c.open(parameters) == nil {
		all = c.shapes(conj{{place: c.root}, anObject})
	}
	return func(argument string) (text bool, begins string) {
		shapes := all
		for name := range strings.SplitSeq(argument, callform.Within) {
			var within []*shape
			for _, s := range shapes {
				if i, err := strconv.Atoi(name); s.kind == isArray && err == nil {
					within = append(within, c.shapes(s.item(i))...)
				} else if s.kind == isObject {
					within = append(within, c.shapes(c.property(s, name, nil))...)
				}
			}
			shapes = within
		}
		text = slices.ContainsFunc(shapes, func(v *shape) bool { return v.kind == isString })
		begins = others(shapes)
		if c.err != nil || !text && begins == "" {
			return true, callform.OtherBegins
		}
		return text, begins
	}
}
