package chat

import (
	"encoding/json"
	"strings"
	"testing"
)

// Bad templates and bad input are errors that say where, and hostile ones come to an end.
func TestErrors(t *testing.T) {
	tok := toy(t, `{}`)
	for source, want := range map[string]string{
		"a\n{% if x %}":                        "",
		"a\nb {{ x":                            `line 2: a tag is not closed by "}}"`,
		"{% nonsense %}":                       "nonsense",
		"{{ x | nofilter }}":                   "nofilter",
		"{{ raise_exception('no ' ~ 1) }}":     "no 1",
		"\n\n{% raw %} {{":                     "line 3: raw without endraw",
		strings.Repeat("x", 256<<10+1):         "bytes long",
		strings.Repeat("{% if x %}", 300):      "more than 64 blocks",
		"{{ " + strings.Repeat("(", 300) + "1": "is not closed",
		"{{ " + strings.Repeat("(", 300) + "1" + strings.Repeat(")", 300) + " }}":           "more than 64 brackets",
		"{{ " + strings.Repeat("not ", 5000) + "1 }}":                                       "more than 64 brackets and prefixes",
		"{% macro f(x) %}{{ f(x) }}{% endmacro %}{{ f(1) }}":                                "call each other without end",
		"{% for i in range(100000000) %}{% endfor %}":                                       "range: more than",
		"{% set x = range(1000) %}{% for i in x %}{% for j in x %}{% endfor %}{% endfor %}": "turns",
		"{{ strftime_now() }}":                              "strftime_now",
		"{{ range(1, 2, 0) }}":                              "step",
		"{{ range('x') }}":                                  "an integer",
		"{% set x = namespace() %}{% set x.x = x %}{{ x }}": "nested more than",
		"{{ ('ab' * 99999999999999) }}":                     "",
	} {
		l, err := Parse(tok, source)
		if err == nil {
			_, err = l.Render(talk, Options{})
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q: got error %v, want %s", source, err, want)
		}
	}
	l, err := Parse(tok, "{{ messages }}{{ tools }}")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		m    Message
		o    Options
		want string
	}{
		{Message{Extra: json.RawMessage(`[]`)}, Options{}, "message 1: not a JSON object"},
		{Message{Extra: json.RawMessage(`{"a": `)}, Options{}, "message 1: cannot be read as JSON"},
		{Message{}, Options{Tools: json.RawMessage(`[}`)}, "tools"},
		{Message{}, Options{Tools: json.RawMessage(`1 2`)}, "tools: more than one"},
		{Message{}, Options{Tools: json.RawMessage(strings.Repeat("[", 300))}, "nested more than"},
		{Message{}, Options{Vars: map[string]json.RawMessage{"x": json.RawMessage(`?`)}}, "template variable x"},
	} {
		if _, err := l.Render([]Message{c.m}, c.o); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got error %v, want %s", err, c.want)
		}
	}
	if _, err := New(toy(t, `{"chat_template": "{{"}`)); err == nil ||
		!strings.Contains(err.Error(), `chat template "default"`) {
		t.Error(err)
	}
}
