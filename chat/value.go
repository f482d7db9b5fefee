package chat

// JSON to template values and back. Objects keep the order of their keys, which templates print.

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/ardanlabs/jinja"
)

// converter makes template values of what came from outside, shielding the names of control tokens.
type converter struct{ control []string }

func (c converter) text(s string) jinja.Value {
	if len(c.control) > 0 {
		s = guarded(s, c.control)
	}
	return jinja.NewString(s)
}

func (c converter) message(m Message) (jinja.Value, error) {
	v := jinja.NewDict()
	d := v.AsDict()
	d.Set("role", c.text(m.Role))
	d.Set("content", c.text(m.Content))
	if len(m.Extra) == 0 {
		return v, nil
	}
	extra, err := c.decode(m.Extra)
	if err != nil {
		return v, err
	}
	if !extra.IsDict() {
		return v, errNotObject
	}
	for _, k := range extra.AsDict().Keys {
		d.Set(k, extra.AsDict().Data[k])
	}
	return v, nil
}

// decode reads one JSON value.
func (c converter) decode(raw []byte) (jinja.Value, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	v, err := c.value(d, 0)
	if err != nil {
		return v, err
	}
	if _, err := d.Token(); err != io.EOF {
		return v, fmt.Errorf("more than one JSON value")
	}
	return v, nil
}

// maxDepth bounds values within values.
const maxDepth = 200

func (c converter) value(d *json.Decoder, depth int) (jinja.Value, error) {
	if depth > maxDepth {
		return jinja.None(), fmt.Errorf("JSON nested more than %d deep", maxDepth)
	}
	tok, err := d.Token()
	if err != nil {
		return jinja.None(), err
	}
	switch t := tok.(type) {
	case json.Delim:
		if t == '[' {
			return c.list(d, depth)
		}
		return c.dict(d, depth)
	case string:
		return c.text(t), nil
	case bool:
		return jinja.NewBool(t), nil
	case json.Number:
		if n, err := t.Int64(); err == nil {
			return jinja.NewInt(n), nil
		}
		f, err := t.Float64()
		return jinja.NewFloat(f), err
	}
	return jinja.None(), nil
}

func (c converter) list(d *json.Decoder, depth int) (jinja.Value, error) {
	var items []jinja.Value
	for d.More() {
		v, err := c.value(d, depth+1)
		if err != nil {
			return v, err
		}
		items = append(items, v)
	}
	_, err := d.Token()
	return jinja.NewList(items), err
}

func (c converter) dict(d *json.Decoder, depth int) (jinja.Value, error) {
	v := jinja.NewDict()
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return v, err
		}
		name := c.text(key.(string)).AsString()
		item, err := c.value(d, depth+1)
		if err != nil {
			return v, err
		}
		v.AsDict().Set(name, item)
	}
	_, err := d.Token()
	return v, err
}

// jsonStyle is how Python's json.dumps lays JSON out.
type jsonStyle struct {
	indent       int // −1: on one line
	item, key    string
	sort, escape bool // sort_keys, ensure_ascii
	most         int  // bytes
}

// tojson is Hugging Face's filter of that name: json.dumps with ensure_ascii off.
func (m *meter) tojson(args values, kwargs keywords) (jinja.Value, error) {
	if err := m.copied(args[0]); err != nil {
		return jinja.None(), err
	}
	st := jsonStyle{indent: -1, item: ", ", key: ": ", most: m.maxMade - m.made}
	arg := func(i int, name string) jinja.Value { return argument(args, kwargs, i, name) }
	st.escape = arg(1, "ensure_ascii").IsTruthy()
	if v := arg(2, "indent"); v.IsInt() {
		st.indent = int(min(max(v.AsInt(), 0), 64))
		st.item = ","
	}
	if v := arg(3, "separators"); v.IsList() && v.AsList().Len() == 2 {
		if a, b := v.AsList().Get(0), v.AsList().Get(1); a.IsString() && b.IsString() {
			st.item, st.key = a.AsString(), b.AsString()
		}
	}
	st.sort = arg(4, "sort_keys").IsTruthy()
	var b strings.Builder
	if err := st.write(&b, args[0], 0); err != nil {
		return jinja.None(), err
	}
	return jinja.NewString(b.String()), m.spend(b.Len(), b.Len(), 0)
}

func (st jsonStyle) line(b *strings.Builder, depth int) {
	if st.indent >= 0 {
		b.WriteByte('\n')
		for range st.indent * depth {
			b.WriteByte(' ')
		}
	}
}

func (st jsonStyle) write(b *strings.Builder, v jinja.Value, depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("tojson: nested more than %d deep", maxDepth)
	}
	if b.Len() > st.most {
		return fmt.Errorf("tojson: more than %d bytes", st.most)
	}
	switch {
	case v.IsUndefined():
		return fmt.Errorf("tojson: the value is undefined")
	case v.IsBool():
		b.WriteString(strconv.FormatBool(v.AsBool()))
	case v.IsInt():
		b.WriteString(strconv.FormatInt(v.AsInt(), 10))
	case v.IsFloat():
		b.WriteString(pythonFloat(v.AsFloat()))
	case v.IsString():
		st.quote(b, v.AsString())
	case v.IsList():
		items := v.AsList().Items
		return st.group(b, "[]", len(items), depth, func(i int) error { return st.write(b, items[i], depth+1) })
	case v.IsDict():
		d := v.AsDict()
		keys := d.Keys
		if st.sort {
			keys = slices.Sorted(slices.Values(keys))
		}
		return st.group(b, "{}", len(keys), depth, func(i int) error {
			st.quote(b, keys[i])
			b.WriteString(st.key)
			return st.write(b, d.Data[keys[i]], depth+1)
		})
	default:
		b.WriteString("null")
	}
	return nil
}

func (st jsonStyle) group(b *strings.Builder, ends string, n, depth int, item func(int) error) error {
	b.WriteByte(ends[0])
	for i := range n {
		if i > 0 {
			b.WriteString(st.item)
		}
		st.line(b, depth+1)
		if err := item(i); err != nil {
			return err
		}
	}
	if n > 0 {
		st.line(b, depth)
	}
	b.WriteByte(ends[1])
	return nil
}

func (st jsonStyle) quote(b *strings.Builder, s string) {
	b.WriteByte('"')
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch esc := strings.IndexRune("\"\\\n\r\t\b\f", r); {
		case esc >= 0 && r != utf8.RuneError:
			b.WriteByte('\\')
			b.WriteByte(`"\nrtbf`[esc])
		case r < ' ' || st.escape && r > 0x7e && r < 0x10000:
			fmt.Fprintf(b, `\u%04x`, r)
		case st.escape && r >= 0x10000:
			fmt.Fprintf(b, `\u%04x\u%04x`, 0xd800+(r-0x10000)>>10, 0xdc00+(r-0x10000)&0x3ff)
		default:
			b.WriteString(s[i : i+n])
		}
		i += n
	}
	b.WriteByte('"')
}

// pythonFloat is repr: the shortest text that reads back, always with a point or an exponent.
func pythonFloat(f float64) string {
	switch {
	case math.IsNaN(f):
		return "NaN"
	case math.IsInf(f, 1):
		return "Infinity"
	case math.IsInf(f, -1):
		return "-Infinity"
	}
	format := byte('f')
	if a := math.Abs(f); a != 0 && (a < 1e-4 || a >= 1e16) {
		format = 'e'
	}
	s := strconv.FormatFloat(f, format, -1, 64)
	if format == 'f' && !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}
