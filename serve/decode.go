package serve

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Bodies are structs, whose tags name the fields of JSON objects. One policy applies to all of them
// (docs/serve.md, Fields):
//
//   - A field that the struct does not have is ignored, or kept where the struct has an unknown.
//   - A field of the type refused is an error, unless its value changes nothing.
//   - null is as if the field was not there.
//   - An error names the place in the body, what it takes and what it has.

// selfReader is a type that reads its own JSON value. path is the value's place in the body, for errors.
type selfReader interface {
	readJSON(d *decoder, path string, raw json.RawMessage) error
}

// decoder reads the values of one body, which is valid JSON. JSON that it keeps is a slice of the body.
type decoder struct {
	elements int // list items and fields kept under their names so far, without numbers
}

// count counts an element, or a field, of the value at path.
func (d *decoder) count(path string) error {
	d.elements++
	if d.elements > maxElements {
		return fieldError(path, "all lists of a body together may have %d elements, and this one exceeds that: send fewer",
			maxElements)
	}
	return nil
}

// field is a field of a body. It knows its place, so that under any name in this program, errors
// name it as the client does.
type field[T any] struct {
	value T
	given bool   // present, and not null
	path  string // its place in the body
}

func (f *field[T]) readJSON(d *decoder, path string, raw json.RawMessage) error {
	var value T
	if err := d.read(path, raw, &value); err != nil {
		return err
	}
	*f = field[T]{value, true, path}
	return nil
}

// absent notes the place of a missing field.
func (f *field[T]) absent(path string) {
	if !f.given {
		f.path = path
	}
}

// set gives the field a value.
func (f *field[T]) set(value T) { f.value, f.given = value, true }

// setDefault gives the field a value if it has none.
func (f *field[T]) setDefault(value T) {
	if !f.given {
		f.set(value)
	}
}

// or returns the field's value, or another if it has none.
func (f *field[T]) or(value T) T {
	if f.given {
		return f.value
	}
	return value
}

// fail returns an error that says what is wrong with the field.
func (f *field[T]) fail(format string, args ...any) error { return fieldError(f.path, format, args...) }

// refused is a field that would change the output, and that this server does not support. Its tag
// neutral lists the values, in JSON and separated by spaces, that change nothing; its tag why says
// what to do instead.
type refused struct{}

// unlike says why a field is refused.
const unlike = "this server does not support the field: leave it out"

// unknown holds the fields of an object that its struct does not have.
type unknown map[string]json.RawMessage

// read reads a JSON value into the variable that to points at.
func (d *decoder) read(path string, raw json.RawMessage, to any) error {
	return d.readInto(path, bytes.TrimSpace(raw), reflect.ValueOf(to).Elem())
}

func (d *decoder) readInto(path string, raw json.RawMessage, v reflect.Value) error {
	switch to := v.Addr().Interface().(type) {
	case selfReader:
		return to.readJSON(d, path, raw)
	case *json.RawMessage:
		*to = raw
		return nil
	}
	switch v.Kind() {
	case reflect.Struct:
		return d.readStruct(path, raw, v)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		return d.readInto(path, raw, v.Elem())
	case reflect.Slice:
		return d.readList(path, raw, v)
	case reflect.Map:
		return d.readMap(path, raw, v)
	}
	if v.CanInt() { // most numbers are plain
		if n, err := strconv.ParseInt(string(raw), 10, v.Type().Bits()); err == nil {
			v.SetInt(n)
			return nil
		}
	}
	scalar := raw
	if isInteger(v.Kind()) {
		scalar = wholeNumber(raw)
	}
	if isNull(raw) || json.Unmarshal(scalar, v.Addr().Interface()) != nil {
		return misfit(path, raw, v.Type())
	}
	return nil
}

// structFields are the fields of a struct type of bodies.
type structFields struct {
	list []structField
	at   map[string]int // the index in list of each name
	rest []int          // the index of its field of type unknown; nil if it has none
}

type structField struct {
	name  string
	index []int
	tag   reflect.StructTag
}

// structs caches the fields of each type that was read, by its reflect.Type.
var structs sync.Map

func fieldsOf(t reflect.Type) *structFields {
	if known, ok := structs.Load(t); ok {
		return known.(*structFields)
	}
	s := &structFields{at: map[string]int{}}
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Type == reflect.TypeFor[unknown]() {
			s.rest = f.Index
		}
		if name == "" { // an embedded struct, whose fields follow
			continue
		}
		if _, twice := s.at[name]; !twice {
			s.at[name] = len(s.list)
		}
		s.list = append(s.list, structField{name, f.Index, f.Tag})
	}
	structs.Store(t, s)
	return s
}

// readStruct reads an object. Missing fields keep their values.
func (d *decoder) readStruct(path string, raw json.RawMessage, v reflect.Value) error {
	if raw[0] != '{' {
		return misfit(path, raw, v.Type())
	}
	fields := fieldsOf(v.Type())
	values := make([]json.RawMessage, len(fields.list))
	var rest unknown
	for name, value := range members(raw) {
		if i, ok := fields.at[string(name)]; ok {
			values[i] = value
		} else if fields.rest != nil {
			if err := d.count(path); err != nil {
				return err
			}
			if rest == nil {
				rest = unknown{}
			}
			rest[string(name)] = value
		}
	}
	if path != "" {
		path += "."
	}
	for i, f := range fields.list {
		value, to := values[i], v.FieldByIndex(f.index)
		if value == nil || isNull(value) {
			if known, ok := to.Addr().Interface().(interface{ absent(path string) }); ok {
				known.absent(path + f.name)
			}
			continue
		}
		if to.Type() == reflect.TypeFor[refused]() {
			if err := refuse(path+f.name, value, f.tag); err != nil {
				return err
			}
			continue
		}
		if err := d.readInto(path+f.name, value, to); err != nil {
			return err
		}
	}
	if fields.rest != nil {
		v.FieldByIndex(fields.rest).Set(reflect.ValueOf(rest))
	}
	return nil
}

// refuse returns an error unless a value is one of those that change nothing.
func refuse(path string, raw json.RawMessage, tag reflect.StructTag) error {
	var compact bytes.Buffer
	_ = json.Compact(&compact, raw) // it was valid JSON when it was read
	if slices.Contains(strings.Fields(tag.Get("neutral")), compact.String()) {
		return nil
	}
	if why := tag.Get("why"); why != "" {
		return fieldError(path, "%s", why)
	}
	return fieldError(path, unlike)
}

// readList reads a list without null items.
func (d *decoder) readList(path string, raw json.RawMessage, v reflect.Value) error {
	if raw[0] != '[' {
		return misfit(path, raw, v.Type())
	}
	list := reflect.New(v.Type()).Elem()
	list.Set(reflect.MakeSlice(v.Type(), 0, 0))
	for item := range elements(raw) {
		i := list.Len()
		list.Grow(1)
		list.SetLen(i + 1)
		if isNumber(v.Type().Elem()) && d.readInto("", item, list.Index(i)) == nil {
			continue
		}
		at := fmt.Sprintf("%s[%d]", path, i)
		if isNull(item) {
			return misfit(at, item, v.Type().Elem())
		}
		if err := d.count(path); err != nil {
			return err
		}
		if err := d.readInto(at, item, list.Index(i)); err != nil {
			return err
		}
	}
	v.Set(list)
	return nil
}

// readMap reads an object of values of one type.
func (d *decoder) readMap(path string, raw json.RawMessage, v reflect.Value) error {
	if raw[0] != '{' {
		return misfit(path, raw, v.Type())
	}
	v.Set(reflect.MakeMap(v.Type()))
	values := map[string]json.RawMessage{} // the last of several members with the same name counts
	for name, value := range members(raw) {
		if !isNumber(v.Type().Elem()) {
			if err := d.count(path); err != nil {
				return err
			}
		}
		values[string(name)] = value
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		to := reflect.New(v.Type().Elem()).Elem()
		if err := d.readInto(path+"."+name, values[name], to); err != nil {
			var e *apiError
			if errors.As(err, &e) { // the client chose its field's name
				e.logged = fieldError(path, "%v", err).logged
			}
			return err
		}
		v.SetMapIndex(reflect.ValueOf(name), to)
	}
	return nil
}

// elements iterates over the values of a list, in order.
func elements(list json.RawMessage) iter.Seq[json.RawMessage] {
	return func(yield func(json.RawMessage) bool) {
		item, rest := cutValue(list[1:])
		for len(item) > 0 && yield(item) {
			item, rest = cutValue(rest)
		}
	}
}

// members iterates over the names and values of an object, in order.
func members(object json.RawMessage) iter.Seq2[[]byte, json.RawMessage] {
	return func(yield func([]byte, json.RawMessage) bool) {
		name, rest := cutValue(object[1:])
		for len(name) > 0 {
			value, after := cutValue(rest)
			plain := name[1 : len(name)-1]
			if bytes.IndexByte(plain, '\\') >= 0 {
				text, _ := decode[string](name)
				plain = []byte(text)
			}
			if !yield(plain, value) {
				return
			}
			name, rest = cutValue(after)
		}
	}
}

// cutValue splits text within a list or an object after its first value and the delimiter that
// follows. The value is empty if there is none.
func cutValue(text json.RawMessage) (value, rest json.RawMessage) {
	depth, quoted := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			depth++
		case depth > 0 && (c == '}' || c == ']'):
			depth--
		case depth == 0 && (c == ',' || c == ':' || c == '}' || c == ']'):
			return bytes.TrimSpace(text[:i]), text[i+1:]
		}
	}
	return nil, nil
}

// misfit returns an error that says that a Go type cannot hold a value.
func misfit(path string, raw json.RawMessage, t reflect.Type) error {
	return fieldError(path, "want %s, not %s", wanted(raw, t), described(raw))
}

func isNull(raw json.RawMessage) bool { return string(raw) == "null" }

// decode reads a T, if the value is one.
func decode[T any](raw json.RawMessage) (v T, ok bool) {
	err := json.Unmarshal(raw, &v)
	return v, err == nil && !isNull(raw)
}

// texts is a string or a list of strings.
type texts []string

func (t *texts) readJSON(d *decoder, path string, raw json.RawMessage) error {
	if one, ok := decode[string](raw); ok {
		*t = texts{one}
		return nil
	}
	if raw[0] != '[' {
		return fieldError(path, "want a string or a list of strings, not %s", described(raw))
	}
	return d.read(path, raw, (*[]string)(t))
}

// content is text: a string, or a list of parts that are text.
type content []string

// contentPart is a part of a text. A refusal has its text in another field, and so does reasoning.
type contentPart struct {
	Type      field[string] `json:"type"`
	Text      string        `json:"text"`
	Refusal   string        `json:"refusal"`
	Thinking  content       `json:"thinking"`
	Reasoning content       `json:"reasoning"`
}

func (c *content) readJSON(d *decoder, path string, raw json.RawMessage) error {
	return c.read(d, path, raw, nil)
}

// messageContent is the content of a message. Its parts may be reasoning, as in Mistral's API and LangChain, or what no
// model reads here, for which a line of the content stands.
type messageContent struct {
	content
	thought content
	unread  []field[string] // the types of the parts that are not read
}

func (c *messageContent) readJSON(d *decoder, path string, raw json.RawMessage) error {
	return c.read(d, path, raw, c)
}

// read reads content. Parts that are not text go to other; they are refused if that is nil.
func (c *content) read(d *decoder, path string, raw json.RawMessage, other *messageContent) error {
	if one, ok := decode[string](raw); ok {
		*c = content{one}
		return nil
	}
	if raw[0] != '[' {
		return fieldError(path, "want a string or a list of text parts, not %s", described(raw))
	}
	var parts []contentPart
	if err := d.read(path, raw, &parts); err != nil {
		return err
	}
	*c = nil
	for i := range parts {
		p := &parts[i]
		switch kind := p.Type.or("text"); {
		case slices.Contains([]string{"text", "input_text", "output_text", "summary_text", "reasoning_text"}, kind):
			*c = append(*c, p.Text)
		case kind == "refusal":
			*c = append(*c, p.Refusal)
		case other != nil && (kind == "thinking" || kind == "reasoning"):
			other.thought = append(append(other.thought, p.Thinking...), p.Reasoning...)
		case other != nil && media.MatchString(kind):
			*c = append(*c, lineOf(kind))
			other.unread = append(other.unread, p.Type)
		default:
			return p.Type.fail("%q: this server reads text only", p.Type.value)
		}
	}
	return nil
}

// text returns all of the content.
func (c content) text() string { return strings.Join(c, "") }

// lines returns the parts as lines: vLLM and llama.cpp join the parts of a message so.
func (c content) lines() string { return strings.Join(c, "\n") }
