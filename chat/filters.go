package chat

// Filters and methods whose result can be larger than what they read. The engine's have no limits;
// these measure their result before they make it.

import (
	"fmt"
	"strings"

	"github.com/ardanlabs/jinja"
)

type growing = map[string]func(m *meter, args values, kwargs keywords) (jinja.Value, error)

// Their first argument is the value before the bar or the point.
var (
	filters = growing{
		"replace": (*meter).replace, "join": (*meter).join, "indent": (*meter).indent, "tojson": (*meter).tojson, "list": (*meter).list,
		"string": (*meter).string, "escape": (*meter).escape, "e": (*meter).escape, "fromjson": (*meter).fromjson,
		"wordcount": (*meter).wordcount, "unique": (*meter).unique, "batch": (*meter).batch,
	}
	methods = growing{"replace": (*meter).replace, "split": (*meter).split, "format": (*meter).format}
)

// argument returns one by its place or name, undefined if it is missing.
func argument(args values, kwargs keywords, i int, name string) jinja.Value {
	if i < len(args) {
		return args[i]
	}
	return kwargs[name]
}

// replace puts one text for another, as often as it occurs or a number of times.
func (m *meter) replace(args values, kwargs keywords) (jinja.Value, error) {
	if len(args) < 3 {
		return jinja.None(), fmt.Errorf("replace: wants two texts")
	}
	var texts [3]string
	for i := range texts {
		var err error
		if texts[i], err = m.printed(args[i]); err != nil {
			return jinja.None(), err
		}
	}
	count := -1
	if n := argument(args, kwargs, 3, "count"); n.IsInt() {
		count = int(n.AsInt())
	}
	return m.replaced(texts[0], texts[1], texts[2], count)
}

func (m *meter) replaced(s, old, with string, count int) (jinja.Value, error) {
	n := strings.Count(s, old)
	if count >= 0 {
		n = min(n, count)
	}
	if err := m.spend(len(s), max(0, n*(len(with)-len(old))), 0); err != nil {
		return jinja.None(), err
	}
	return jinja.NewString(strings.Replace(s, old, with, count)), nil
}

// join writes the elements of a list one after the other, a text between them.
func (m *meter) join(args values, kwargs keywords) (jinja.Value, error) {
	if !args[0].IsList() {
		text, err := m.printed(args[0])
		return jinja.NewString(text), err
	}
	between, err := m.printed(argument(args, kwargs, 1, "d"))
	if err != nil {
		return jinja.None(), err
	}
	attribute := kwargs["attribute"]
	var b strings.Builder
	for i, v := range args[0].AsList().Items {
		if attribute.IsString() && v.IsDict() {
			if x, ok := v.AsDict().Get(attribute.AsString()); ok {
				v = x
			}
		}
		text, err := m.printed(v)
		if err != nil {
			return jinja.None(), err
		}
		if err := m.spend(len(between), len(between), 0); err != nil {
			return jinja.None(), err
		}
		if i > 0 {
			b.WriteString(between)
		}
		b.WriteString(text)
	}
	return jinja.NewString(b.String()), nil
}

// indent puts spaces before every line but the first and empty ones.
func (m *meter) indent(args values, kwargs keywords) (jinja.Value, error) {
	text, err := m.printed(args[0])
	if err != nil {
		return jinja.None(), err
	}
	width := int64(4)
	if v := argument(args, kwargs, 1, "width"); v.IsInt() {
		width = v.AsInt()
	}
	pad, err := m.repeat(" ", width)
	if err != nil {
		return jinja.None(), err
	}
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if i == 0 && !argument(args, kwargs, 2, "first").IsTruthy() || line == "" {
			continue
		}
		if err := m.spend(0, len(pad.AsString())+len(line)+16, 0); err != nil {
			return jinja.None(), err
		}
		lines[i] = pad.AsString() + line
	}
	return jinja.NewString(strings.Join(lines, "\n")), nil
}

// texts makes a list of texts.
func (m *meter) texts(n int, list func() []string) (jinja.Value, error) {
	if err := m.spend(n, 64*n, 0); err != nil {
		return jinja.None(), err
	}
	items := []jinja.Value{}
	for _, s := range list() {
		items = append(items, jinja.NewString(s))
	}
	return jinja.NewList(items), nil
}

// split cuts a text at another one, or at white space.
func (m *meter) split(args values, _ keywords) (jinja.Value, error) {
	s := args[0].AsString()
	if len(args) == 1 {
		return m.fields(s)
	}
	at, err := m.printed(args[1])
	if err != nil {
		return jinja.None(), err
	}
	if err := m.spend(len(s), 0, 0); err != nil {
		return jinja.None(), err
	}
	return m.texts(1+strings.Count(s, at), func() []string { return strings.Split(s, at) })
}

func (m *meter) fields(s string) (jinja.Value, error) {
	n := 0
	for range strings.FieldsSeq(s) {
		n++
	}
	return m.texts(n+len(s)/64, func() []string { return strings.Fields(s) })
}

func (m *meter) wordcount(args values, _ keywords) (jinja.Value, error) {
	s, err := m.printed(args[0])
	if err != nil {
		return jinja.None(), err
	}
	n := int64(0)
	for range strings.FieldsSeq(s) {
		n++
	}
	return jinja.NewInt(n), nil
}

// list is the characters of a text, or the list itself.
func (m *meter) list(args values, _ keywords) (jinja.Value, error) {
	v := args[0]
	switch {
	case v.IsList():
		return v, nil
	case v.IsString():
		return m.texts(len(v.AsString()), func() []string { return strings.Split(strings.ToValidUTF8(v.AsString(), "\uFFFD"), "") })
	}
	return jinja.NewList(values{v}), nil
}

func (m *meter) string(args values, _ keywords) (jinja.Value, error) {
	text, err := m.printed(args[0])
	return jinja.NewString(text), err
}

var entities = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;", "'", "&#39;")

func (m *meter) escape(args values, _ keywords) (jinja.Value, error) {
	text, err := m.printed(args[0])
	if err == nil {
		err = m.spend(len(text), 5*len(text), 0)
	}
	if err != nil {
		return jinja.None(), err
	}
	return jinja.NewString(entities.Replace(text)), nil
}

// format puts arguments for {0}, {1} and so on, or for {}.
func (m *meter) format(args values, _ keywords) (jinja.Value, error) {
	result := args[0]
	for i, arg := range args[1:] {
		text, err := m.printed(arg)
		if err != nil {
			return jinja.None(), err
		}
		for _, place := range []struct {
			mark  string
			count int
		}{{fmt.Sprintf("{%d}", i), -1}, {"{}", 1}} {
			if err := m.copied(result); err != nil {
				return jinja.None(), err
			}
			if result, err = m.replaced(result.AsString(), place.mark, text, place.count); err != nil {
				return jinja.None(), err
			}
		}
	}
	return result, nil
}

// fromjson reads JSON; a byte of it takes up to 64 of memory.
func (m *meter) fromjson(args values, _ keywords) (jinja.Value, error) {
	if !args[0].IsString() {
		return jinja.Undefined(), nil
	}
	s := args[0].AsString()
	if err := m.spend(len(s), 64*len(s), 0); err != nil {
		return jinja.None(), err
	}
	v, err := (converter{}).decode([]byte(s))
	if err != nil {
		err = fmt.Errorf("fromjson: %w", err)
	}
	return v, err
}

func (m *meter) unique(args values, _ keywords) (jinja.Value, error) {
	if !args[0].IsList() {
		return jinja.NewList(nil), nil
	}
	seen := map[string]bool{}
	var items values
	for _, v := range args[0].AsList().Items {
		key, err := m.printed(v)
		if err == nil {
			err = m.spend(0, 96, 0)
		}
		if err != nil {
			return jinja.None(), err
		}
		if !seen[key] {
			seen[key] = true
			items = append(items, v)
		}
	}
	return jinja.NewList(items), nil
}

// batch cuts a list into lists of a length.
func (m *meter) batch(args values, kwargs keywords) (jinja.Value, error) {
	n := argument(args, kwargs, 1, "linecount")
	if !args[0].IsList() || !n.IsInt() || n.AsInt() <= 0 {
		return jinja.None(), fmt.Errorf("batch: wants a list and a length of at least 1")
	}
	if err := m.listed(args[0]); err != nil {
		return jinja.None(), err
	}
	var batches values
	items := args[0].AsList().Items
	for len(items) > 0 {
		k := int(min(n.AsInt(), int64(len(items))))
		batches = append(batches, jinja.NewList(append(values(nil), items[:k]...)))
		items = items[k:]
	}
	return jinja.NewList(batches), nil
}
