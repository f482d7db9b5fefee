package chat

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ardanlabs/jinja"
)

// Bad templates and bad input are errors that say where, and hostile ones come to an end.
func TestErrors(t *testing.T) {
	tok := toy(t, `{}`)
	for source, want := range map[string]string{
		"a\n{% if x %}":                        "",
		"a\nb {{ x":                            `line 2: "{{" is not closed`,
		"{% nonsense %}":                       "nonsense",
		"{{ x | nofilter }}":                   "nofilter",
		"{{ raise_exception('no ' ~ 1) }}":     "no 1",
		"\n\n{% raw %} {{":                     "line 3: raw without endraw",
		strings.Repeat("x", maxSource+1):       "bytes long",
		strings.Repeat("{% if x %}", 300):      "more than 200 blocks",
		"{{ " + strings.Repeat("(", 300) + "1": "is not closed",
		"{{ " + strings.Repeat("(", 300) + "1" + strings.Repeat(")", 300) + " }}":        "more than 200 brackets",
		"{{ " + strings.Repeat("not ", 5000) + "1 }}":                                    "operators",
		"{% macro f(x) %}{{ f(x) }}{% endmacro %}{{ f(1) }}":                             "call each other without end",
		"{% for i in range(100000000) %}{% endfor %}":                                    "range: more than",
		"{% for i in range(90000) %}{% for j in range(90000) %}{% endfor %}{% endfor %}": "turns",
		"{{ strftime_now() }}": "strftime_now",
		"{{ range(1, 2, 0) }}": "step",
		"{{ range('x') }}":     "integers",
		"{% set x = [1] %}{% set _ = x.append(x) %}{{ x | tojson }}": "nested more than",
		"{{ ('ab' * 99999999999999) }}":                              "",
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
		{Message{Extra: json.RawMessage(`{"a": `)}, Options{}, "message 1"},
		{Message{}, Options{Tools: json.RawMessage(`[}`)}, "tools"},
		{Message{}, Options{Tools: json.RawMessage(`1 2`)}, "tools: more than one"},
		{Message{}, Options{Tools: json.RawMessage(strings.Repeat("[", 300))}, "nested more than"},
		{Message{}, Options{Vars: map[string]json.RawMessage{"x": json.RawMessage(`?`)}}, "template variable x"},
	} {
		if _, err := l.Render([]Message{c.m}, c.o); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got error %v, want %s", err, c.want)
		}
	}
	if _, err := New(toy(t, `{"chat_template": "{{"}`)); err == nil || !strings.Contains(err.Error(), `chat template "default"`) {
		t.Error(err)
	}
}

// Whatever the template and the message, text or an error, and no panic.
func FuzzTemplate(f *testing.F) {
	files, _ := filepath.Glob("testdata/templates/*")
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(b), `{"role": "user", "content": "x"}`)
	}
	f.Add("{{ x | tojson }}{%- raw -%} {{ {%- endraw %}{# c #}{% for a, b in messages[0].items() %}{{a[0:1]}}{% endfor %}", `{"a": [1, {"b": null}]}`)
	f.Fuzz(func(t *testing.T, source, message string) {
		// String arithmetic of the engine has no bounds; see the package's limits.
		if len(source) > 2000 || strings.ContainsAny(source, "~+") || strings.Contains(source, "{% set") {
			return
		}
		p, err := compile(source)
		if err != nil {
			return
		}
		v, err := converter{control: []string{"<s>", "x"}}.decode([]byte(message))
		if err != nil {
			return
		}
		_, _ = p.render(map[string]jinja.Value{"messages": jinja.NewList([]jinja.Value{v}), "x": v}, time.Unix(0, 0))
	})
}
