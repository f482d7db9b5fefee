package jinja

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/big"
	"strconv"
	"strings"
	"unicode/utf8"
)

// FromJSON reads one JSON value as Python's json.loads does: integers keep their digits, floats are
// floats, objects keep the order of their keys. edit, if not nil, is applied to each text.
func FromJSON(raw []byte, edit func(string) string) (Value, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if edit == nil {
		edit = func(s string) string { return s }
	}
	v, err := (&reader{d, edit}).value(0)
	if err != nil {
		return nil, fmt.Errorf("cannot be read as JSON: %w", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, fmt.Errorf("more than one JSON value")
	}
	return v, nil
}

type reader struct {
	*json.Decoder
	edit func(string) string
}

func (d *reader) value(depth int) (Value, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("JSON nested more than %d deep", maxDepth)
	}
	tok, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch t := tok.(type) {
	case json.Delim:
		if t == '[' {
			return d.list(depth)
		}
		return d.dict(depth)
	case string:
		return d.edit(t), nil
	case json.Number:
		return numberOf(t.String())
	}
	return tok, nil // a bool, or nil
}

func numberOf(s string) (Value, error) {
	if strings.ContainsAny(s, ".eE") {
		f, _ := strconv.ParseFloat(s, 64) // ±Inf if too large, as in Python
		return f, nil
	}
	if len(s) > maxDigits {
		return nil, fmt.Errorf("an integer of more than %d digits", maxDigits)
	}
	i, _ := new(big.Int).SetString(s, 10)
	return i, nil
}

func (d *reader) list(depth int) (Value, error) {
	l := &List{}
	for d.More() {
		v, err := d.value(depth + 1)
		if err != nil {
			return nil, err
		}
		l.Items = append(l.Items, v)
	}
	_, err := d.Token()
	return l, err
}

func (d *reader) dict(depth int) (Value, error) {
	dict := NewDict()
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil, err
		}
		v, err := d.value(depth + 1)
		if err != nil {
			return nil, err
		}
		dict.Set(d.edit(key.(string)), v)
	}
	_, err := d.Token()
	return dict, err
}

// jsonStyle is a layout of Python's json.dumps.
type jsonStyle struct {
	*run
	lines        bool
	indent       string
	item, key    string
	sort, escape bool // sort_keys, ensure_ascii
}

// toJSON is transformers' filter tojson: json.dumps with ensure_ascii off.
func toJSON(r *run, x Value, a *arguments) Value {
	got := r.take("tojson", a, "ensure_ascii?", "indent?", "separators?", "sort_keys?")
	st := jsonStyle{run: r, item: ", ", key: ": ", escape: truth(or(got[0], false)), sort: truth(or(got[3], false))}
	if v := or(got[1], nil); v != nil {
		st.lines, st.item = true, ","
		if s, ok := text(v); ok {
			st.indent = s
		} else {
			st.indent = r.repeated(" ", r.index(v, "indent of tojson"))
		}
	}
	if v := or(got[2], nil); v != nil {
		parts := r.elements(v)
		if len(parts) != 2 {
			r.fail("separators of tojson want two texts")
		}
		st.item, st.key = r.string(parts[0], "separators of tojson"), r.string(parts[1], "separators of tojson")
	}
	var b strings.Builder
	st.write(&b, x, 0)
	return r.text(b.String())
}

func (st jsonStyle) line(b *strings.Builder, depth int) {
	if st.lines {
		st.room(b, depth*len(st.indent))
		b.WriteByte('\n')
		for range depth {
			b.WriteString(st.indent)
		}
	}
}

// room fails if there is no room for n more bytes.
func (st jsonStyle) room(b *strings.Builder, n int) {
	st.spend(n, 0)
	if st.made+b.Len()+n > st.maxMade {
		st.spend(0, b.Len()+n)
	}
}

func (st jsonStyle) write(b *strings.Builder, v Value, depth int) {
	if depth > maxDepth {
		st.fail("tojson: a value nested more than %d deep", maxDepth)
	}
	st.room(b, 16)
	switch v := v.(type) {
	case nil:
		b.WriteString("null")
	case bool:
		b.WriteString(strconv.FormatBool(v))
	case *big.Int:
		b.WriteString(st.digits(v))
	case float64:
		b.WriteString(floatText(v, "Infinity", "NaN"))
	case string:
		st.quote(b, v)
	case Markup:
		st.quote(b, string(v))
	case *List:
		st.group(b, "[]", len(v.Items), depth, func(i int) { st.write(b, v.Items[i], depth+1) })
	case *Tuple:
		st.group(b, "[]", len(v.Items), depth, func(i int) { st.write(b, v.Items[i], depth+1) })
	case *iterator: // as in llama.cpp
		st.write(b, &List{st.elements(v)}, depth)
	case *Dict:
		st.object(b, v, depth)
	case *Undefined:
		st.fail("tojson: %s", v.why)
	default:
		st.fail("tojson: a %s has no JSON", typeName(v))
	}
}

func (st jsonStyle) object(b *strings.Builder, d *Dict, depth int) {
	order := make([]Value, len(d.keys))
	for i := range order {
		st.spend(8, 0)
		order[i] = d.pair(i)
	}
	if st.sort {
		order = st.sorted(order, false, func(v Value) Value { return v.(*Tuple).Items[0] })
	}
	st.group(b, "{}", len(order), depth, func(i int) {
		pair := order[i].(*Tuple).Items
		st.quote(b, st.name(pair[0]))
		b.WriteString(st.key)
		st.write(b, pair[1], depth+1)
	})
}

// name returns the text of a key.
func (st jsonStyle) name(key Value) string {
	switch k := key.(type) {
	case nil:
		return "null"
	case bool:
		return strconv.FormatBool(k)
	case *big.Int:
		return st.digits(k)
	case float64:
		return floatText(k, "Infinity", "NaN")
	}
	return st.string(key, "a key of JSON")
}

func (st jsonStyle) group(b *strings.Builder, ends string, n, depth int, item func(int)) {
	b.WriteByte(ends[0])
	for i := range n {
		if i > 0 {
			b.WriteString(st.item)
		}
		st.line(b, depth+1)
		item(i)
	}
	if n > 0 {
		st.line(b, depth)
	}
	b.WriteByte(ends[1])
}

func (st jsonStyle) quote(b *strings.Builder, s string) {
	st.room(b, len(s))
	b.WriteByte('"')
	for i := 0; i < len(s); {
		c, n := utf8.DecodeRuneInString(s[i:])
		switch at := strings.IndexRune("\"\\\n\r\t\b\f", c); {
		case at >= 0 && c != utf8.RuneError:
			b.WriteByte('\\')
			b.WriteByte(`"\nrtbf`[at])
		case c < ' ' || st.escape && c > 0x7e && c < 0x10000:
			fmt.Fprintf(b, `\u%04x`, c)
		case st.escape && c >= 0x10000:
			fmt.Fprintf(b, `\u%04x\u%04x`, 0xd800+(c-0x10000)>>10, 0xdc00+(c-0x10000)&0x3ff)
		default:
			b.WriteString(s[i : i+n])
		}
		i += n
	}
	b.WriteByte('"')
}
