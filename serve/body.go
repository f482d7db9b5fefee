package serve

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// object is a JSON object of a body. Its methods read fields; the first field that is wrong is its
// error.
type object struct {
	path   string // of this object in the body, with a dot at its end; empty for the body
	fields map[string]json.RawMessage
	err    *Error

	// A translation of another protocol's body leaves these: the client's names of fields, and lists of objects.
	names map[string]string
	lists map[string][]*object

	offered  map[string]offered // tools under the names that the model is offered; those of other names are not in it
	warnings []string           // what is not obeyed

	oldFunctions bool // the tools were functions, OpenAI's first form
}

// readBody reads a request's body, a JSON object.
func (x *exchange) readBody() (*object, error) {
	_ = x.control.SetReadDeadline(time.Now().Add(x.s.o.Read))
	body, err := x.openBody()
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(body)
	var big *http.MaxBytesError
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, newError(http.StatusRequestTimeout, "invalid_request_error", "slow_body",
			"the body did not arrive within %v", x.s.o.Read)
	case errors.As(err, &big):
		return nil, newError(http.StatusRequestEntityTooLarge, "invalid_request_error", "body_too_large",
			"the body has more than %d bytes, the most that this server takes", x.s.o.Body)
	case err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && x.r.Context().Err() != nil: // the connection broke
		return nil, errGone
	case err != nil: // it ends early, or its chunks are none; whoever sent it may read an answer
		return nil, newError(http.StatusBadRequest, "invalid_request_error", "unreadable_body",
			"the body cannot be read: %v", err)
	}
	_ = x.control.SetReadDeadline(time.Time{})
	x.body = data
	return parseBody(data)
}

// openBody returns the body's reader, which decompresses what was compressed with gzip. What is read is bounded, and so is
// what it is read from: a stream that decompresses to nothing may be endless.
func (x *exchange) openBody() (io.Reader, error) {
	most := x.s.o.Body
	packed := false
	for _, list := range x.r.Header.Values("Content-Encoding") {
		for name := range strings.SplitSeq(list, ",") {
			name = strings.ToLower(strings.TrimSpace(name))
			switch {
			case name == "" || name == "identity":
			case !packed && (name == "gzip" || name == "x-gzip"):
				packed = true
			default:
				x.Header().Set("Accept-Encoding", "gzip")
				return nil, newError(http.StatusUnsupportedMediaType, "invalid_request_error", "unsupported_encoding",
					"Content-Encoding %q: want gzip, or a body that is not compressed", list)
			}
		}
	}
	if !packed {
		return http.MaxBytesReader(x.ResponseWriter, x.r.Body, most), nil
	}
	added := most/64 + 1024 // more than gzip adds to what cannot be compressed
	unpacked := &gzipReader{from: bufio.NewReader(http.MaxBytesReader(x.ResponseWriter, x.r.Body, most+added))}
	return http.MaxBytesReader(x.ResponseWriter, unpacked, most), nil
}

// gzipReader decompresses a body. The first Read reads the header, so an error of the body is one of Read.
type gzipReader struct {
	from *bufio.Reader
	to   *gzip.Reader
}

func (g *gzipReader) Read(b []byte) (n int, err error) {
	if g.to == nil {
		g.to, err = gzip.NewReader(g.from)
	}
	if errors.Is(err, io.EOF) {
		return 0, io.ErrUnexpectedEOF
	}
	if err != nil {
		return 0, err
	}
	return g.to.Read(b)
}

func (g *gzipReader) Close() error { return nil }

func parseBody(data []byte) (*object, error) {
	o := &object{}
	bad := func(format string, args ...any) error {
		return newError(http.StatusBadRequest, "invalid_request_error", "invalid_json", "the body: "+format, args...)
	}
	switch {
	case !utf8.Valid(data):
		return nil, bad("it is not valid UTF-8")
	case depth(data) > maxDepth:
		return nil, bad("arrays and objects are nested more than %d deep", maxDepth)
	}
	err := json.Unmarshal(data, &o.fields)
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &syntax):
		return nil, bad("not JSON at byte %d: %v", syntax.Offset, syntax)
	case err != nil || o.fields == nil:
		return nil, bad("want a JSON object")
	}
	return o, nil
}

// depth is how deep arrays and objects are nested.
func depth(data []byte) (most int) {
	now, text := 0, false
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case text && c == '\\':
			i++
		case c == '"':
			text = !text
		case text:
		case c == '{' || c == '[':
			now++
			most = max(most, now)
		case c == '}' || c == ']':
			now--
		}
	}
	return most
}

// fail records what is wrong with a field.
func (o *object) fail(name, format string, args ...any) {
	if o.err == nil {
		o.err = fieldError(o.path+o.nameOf(name), format, args...)
	}
}

// nameOf is the client's name of a field.
func (o *object) nameOf(name string) string {
	if given, ok := o.names[name]; ok {
		return given
	}
	return name
}

// has reports whether a field is there and not null.
func (o *object) has(name string) bool {
	raw, ok := o.fields[name]
	return ok && string(raw) != "null" || o.lists[name] != nil
}

// read reads a field, if it is there and not null, into what to points at.
func (o *object) read(name string, to any) (given bool) {
	if o.err != nil || !o.has(name) {
		return false
	}
	if unmarshal(o.fields[name], to) != nil {
		o.misfit(name, reflect.TypeOf(to).Elem())
		return false
	}
	return true
}

// misfit records where a field differs from a Go type.
func (o *object) misfit(name string, t reflect.Type) {
	if at, why := misfit(o.fields[name], t); o.err == nil {
		o.err = fieldError(o.path+o.nameOf(name)+at, "%s", why)
	}
}

// want records that a field is none of the values that are wanted.
func (o *object) want(name, wanted string) {
	o.fail(name, "want %s, not %s", wanted, described(o.fields[name]))
}

// readFirst reads the first of several names of a field, and returns that name; "" where there is
// none.
func (o *object) readFirst(to any, names ...string) string {
	for _, name := range names {
		if o.read(name, to) {
			return name
		}
	}
	return ""
}

// kindOf names the JSON values that a Go type holds.
func kindOf(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int32, reflect.Int64, reflect.Uint64:
		return "a whole number"
	case reflect.Float32:
		return "a number"
	case reflect.String:
		return "a string"
	case reflect.Slice:
		switch t.Elem().Kind() {
		case reflect.Int32:
			return "a list of tokens"
		case reflect.String:
			return "a list of strings"
		}
		return "a list"
	}
	return "an object"
}

// object reads a field that is an object; nil where it is not there.
func (o *object) object(name string) *object {
	in := &object{path: o.path + o.nameOf(name) + "."}
	if !o.read(name, &in.fields) {
		return nil
	}
	return in
}

// objects reads a field that is a list of objects.
func (o *object) objects(name string) (list []*object) {
	list = o.lists[name]
	if list != nil {
		return list
	}
	var fields []map[string]json.RawMessage
	if !o.read(name, &fields) {
		return nil
	}
	for i, f := range fields {
		if f == nil {
			o.fail(fmt.Sprintf("%s[%d]", name, i), "want an object, not null")
		}
		list = append(list, &object{path: fmt.Sprintf("%s%s[%d].", o.path, name, i), fields: f})
	}
	return list
}

// listsOf reads a list of lists of Ts, none of them null.
func listsOf[T any](raw json.RawMessage) (lists [][]T, ok bool) {
	raws, ok := decode[[]json.RawMessage](raw)
	for _, raw := range raws {
		list, ok := listOf[T](raw)
		if !ok {
			return nil, false
		}
		lists = append(lists, list)
	}
	return lists, ok
}

// strings reads a field that is a string or a list of strings.
func (o *object) strings(name string) []string {
	if o.err != nil || !o.has(name) {
		return nil
	}
	if one, ok := decode[string](o.fields[name]); ok {
		return []string{one}
	}
	if o.fields[name][0] != '[' {
		o.want(name, "a string or a list of strings")
	}
	return o.listOfStrings(name)
}

// listOfStrings reads a field that is a list of strings.
func (o *object) listOfStrings(name string) []string {
	list, ok := listOf[string](o.fields[name])
	if !ok {
		o.misfit(name, reflect.TypeFor[[]string]())
	}
	return list
}

// decode reads a T.
func decode[T any](raw json.RawMessage) (v T, ok bool) {
	err := unmarshal(raw, &v)
	return v, err == nil && string(raw) != "null"
}

// listOf reads a list of Ts, none of them null.
func listOf[T any](raw json.RawMessage) (list []T, ok bool) {
	values, ok := decode[[]*T](raw)
	for _, v := range values {
		if !ok || v == nil {
			return nil, false
		}
		list = append(list, *v)
	}
	return list, ok
}

// refuse fails for a field whose value is none of those that change nothing.
func (o *object) refuse(name, why string, neutral ...string) {
	if !o.has(name) {
		return
	}
	var compact bytes.Buffer
	if json.Compact(&compact, o.fields[name]) == nil && !slices.Contains(neutral, compact.String()) {
		o.fail(name, "%s", why)
	}
}
