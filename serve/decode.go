package serve

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// Bodies are structs, whose tags name the fields of JSON objects. One policy holds for all of them
// (docs/serve.md, Fields):
//
//   - A field that the struct does not have is ignored, or kept where the struct has an unknown.
//   - A field of the type refused is an error, unless its value changes nothing.
//   - null is as if the field was not there.
//   - An error names the place in the body, what it takes and what it has.

// selfReader is a type that reads its JSON value itself. path is the value's place in the body, for errors.
type selfReader interface {
	readJSON(path string, raw json.RawMessage) error
}

// field is a field of a body. It knows its place, so that it can be handed on under any name and
// errors go on to name it as the client does.
type field[T any] struct {
	value T
	given bool   // it is there, and not null
	path  string // its place in the body
}

func (f *field[T]) readJSON(path string, raw json.RawMessage) error {
	var value T
	if err := readJSON(path, raw, &value); err != nil {
		return err
	}
	*f = field[T]{value, true, path}
	return nil
}

// absent notes the place of a field that is not there.
func (f *field[T]) absent(path string) {
	if !f.given {
		f.path = path
	}
}

// set gives the field a value.
func (f *field[T]) set(value T) { f.value, f.given = value, true }

// setDefault gives the field a value where it has none.
func (f *field[T]) setDefault(value T) {
	if !f.given {
		f.set(value)
	}
}

// or is the field's value, or another where it has none.
func (f *field[T]) or(value T) T {
	if f.given {
		return f.value
	}
	return value
}

// fail says what is wrong with the field.
func (f *field[T]) fail(format string, args ...any) error { return fieldError(f.path, format, args...) }

// refused is a field that would change the output, and that this server does not obey. Its tag
// neutral lists the values, in JSON and with spaces between, that change nothing; its tag why says
// what to do in place of it.
type refused struct{}

// unlike says why a field is refused.
const unlike = "this server cannot do that: leave it out"

// unknown has the fields of an object that its struct does not have.
type unknown map[string]json.RawMessage

// readJSON reads a JSON value into what to points at.
func readJSON(path string, raw json.RawMessage, to any) error {
	return readInto(path, bytes.TrimSpace(raw), reflect.ValueOf(to).Elem())
}

func readInto(path string, raw json.RawMessage, v reflect.Value) error {
	switch to := v.Addr().Interface().(type) {
	case selfReader:
		return to.readJSON(path, raw)
	case *json.RawMessage:
		*to = raw
		return nil
	}
	switch v.Kind() {
	case reflect.Struct:
		return readStruct(path, raw, v)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		return readInto(path, raw, v.Elem())
	case reflect.Slice:
		return readList(path, raw, v)
	case reflect.Map:
		return readMap(path, raw, v)
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

// readStruct reads an object. Fields that are not there stay as they are.
func readStruct(path string, raw json.RawMessage, v reflect.Value) error {
	fields, ok := decode[map[string]json.RawMessage](raw)
	if !ok {
		return misfit(path, raw, v.Type())
	}
	if path != "" {
		path += "."
	}
	var rest reflect.Value
	for _, f := range reflect.VisibleFields(v.Type()) {
		name := f.Tag.Get("json")
		to := v.FieldByIndex(f.Index)
		if f.Type == reflect.TypeFor[unknown]() {
			rest = to
		}
		if name == "" { // an embedded struct, whose fields follow
			continue
		}
		value := fields[name]
		delete(fields, name)
		if value == nil || isNull(value) {
			if known, ok := to.Addr().Interface().(interface{ absent(path string) }); ok {
				known.absent(path + name)
			}
			continue
		}
		if f.Type == reflect.TypeFor[refused]() {
			if err := refuse(path+name, value, f.Tag); err != nil {
				return err
			}
			continue
		}
		if err := readInto(path+name, value, to); err != nil {
			return err
		}
	}
	if rest.IsValid() {
		rest.Set(reflect.ValueOf(unknown(fields)))
	}
	return nil
}

// refuse fails for a value that is none of those that change nothing.
func refuse(path string, raw json.RawMessage, tag reflect.StructTag) error {
	var compact bytes.Buffer
	_ = json.Compact(&compact, raw) // it was read as JSON before
	if slices.Contains(strings.Fields(tag.Get("neutral")), compact.String()) {
		return nil
	}
	if why := tag.Get("why"); why != "" {
		return fieldError(path, "%s", why)
	}
	return fieldError(path, unlike)
}

// readList reads a list, no item of which is null.
func readList(path string, raw json.RawMessage, v reflect.Value) error {
	items, ok := decode[[]json.RawMessage](raw)
	if !ok {
		return misfit(path, raw, v.Type())
	}
	list := reflect.MakeSlice(v.Type(), len(items), len(items))
	for i, item := range items {
		at := fmt.Sprintf("%s[%d]", path, i)
		if isNull(item) {
			return misfit(at, item, v.Type().Elem())
		}
		if err := readInto(at, item, list.Index(i)); err != nil {
			return err
		}
	}
	v.Set(list)
	return nil
}

// readMap reads an object of values of one type.
func readMap(path string, raw json.RawMessage, v reflect.Value) error {
	values, ok := decode[map[string]json.RawMessage](raw)
	if !ok {
		return misfit(path, raw, v.Type())
	}
	v.Set(reflect.MakeMap(v.Type()))
	for _, name := range slices.Sorted(maps.Keys(values)) {
		to := reflect.New(v.Type().Elem()).Elem()
		if err := readInto(path+"."+name, values[name], to); err != nil {
			var e *apiError
			if errors.As(err, &e) { // its field has a name of the client's
				e.logged = fieldError(path, "%v", err).logged
			}
			return err
		}
		v.SetMapIndex(reflect.ValueOf(name), to)
	}
	return nil
}

// misfit says that a value is none that a Go type holds.
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

func (t *texts) readJSON(path string, raw json.RawMessage) error {
	if one, ok := decode[string](raw); ok {
		*t = texts{one}
		return nil
	}
	if raw[0] != '[' {
		return fieldError(path, "want a string or a list of strings, not %s", described(raw))
	}
	return readJSON(path, raw, (*[]string)(t))
}

// content is text: a string, or a list of parts that are text.
type content []string

// contentPart is a part of a text; that of a refusal has a field of its own.
type contentPart struct {
	Type    field[string] `json:"type"`
	Text    string        `json:"text"`
	Refusal string        `json:"refusal"`
}

func (c *content) readJSON(path string, raw json.RawMessage) error {
	if one, ok := decode[string](raw); ok {
		*c = content{one}
		return nil
	}
	if raw[0] != '[' {
		return fieldError(path, "want a string or a list of text parts, not %s", described(raw))
	}
	var parts []contentPart
	if err := readJSON(path, raw, &parts); err != nil {
		return err
	}
	*c = nil
	for i := range parts {
		p := &parts[i]
		switch p.Type.or("text") {
		case "text", "input_text", "output_text", "summary_text", "reasoning_text":
			*c = append(*c, p.Text)
		case "refusal":
			*c = append(*c, p.Refusal)
		default:
			return p.Type.fail("%q: this server reads text only", p.Type.value)
		}
	}
	return nil
}

// text is all of the content.
func (c content) text() string { return strings.Join(c, "") }
