package jinja

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/grovellm/grove/internal/testing/hostile"
)

// checkTemplate compiles and renders a template within the limits of memory. It returns what that gives.
func checkTemplate(t testing.TB, source, message string) (text string, err error) {
	t.Helper()
	v, err := FromJSON([]byte(message), nil)
	if err != nil {
		return "", err
	}
	hostile.Check(t, len(source)+20*len(message), func() {
		text, err = render(source, map[string]Value{"messages": &List{[]Value{v, v}}, "x": v})
	})
	return text, err
}

// Templates that would take memory, time or stack without bound end in an error that says why.
func TestHostileTemplates(t *testing.T) {
	const (
		made  = "it makes more than"
		steps = "it takes more than"
		deep  = "nested more than"
		loops = "turns of its loops"
	)
	// Lists, dictionaries and texts are never changed: a namespace alone can have itself among its elements.
	cycle := "{% set n = namespace() %}{% set n.n = [n] %}{% set x = [n] %}"
	double := func(start, next, after string) string {
		return "{% set ns = namespace(x=" + start + ") %}{% for i in range(60) %}{% set ns.x = " + next +
			" %}{% endfor %}" + after
	}
	for source, want := range map[string]string{
		"{{ ('nan'|float) ** 0 }}{{ ('nan'|float) ** 1.5 }}": "", // no number to round
		// texts
		double("'x'", "ns.x ~ ns.x", ""):                                              made,
		double("'x'", "ns.x + ns.x", ""):                                              made,
		double("'x'", "ns.x * 2", ""):                                                 made,
		double("'x'", "2 * ns.x", ""):                                                 made,
		double("'x'", "ns.x * +2", ""):                                                made,
		double("'x'", "ns.x | replace('x', 'xx')", ""):                                made,
		double("'x'", "ns.x.replace('x', 'xx')", ""):                                  made,
		double("'x'", "[ns.x, ns.x] | join", ""):                                      made,
		double("'xx'", "ns.x | list | join('xx')", ""):                                made,
		double("'{0}'", "'{0}{0}'.format(ns.x)", ""):                                  made,
		double("'x'", "ns.x | tojson", ""):                                            made,
		double("'x'", "[ns.x, ns.x] | string", ""):                                    made,
		"{% macro f(s) %}{{ s }}{{ s }}{% endmacro %}" + double("'x'", "f(ns.x)", ""): made,
		"{% set ns = namespace(x='x') %}{% for i in range(60) %}{% set y %}{{ ns.x }}{{ ns.x }}{% endset %}{% set ns.x = y %}{% endfor %}":                                     made,
		"{% set ns = namespace(x='x') %}{% for i in range(60) %}{% set y %}{% filter replace('x', 'xx') %}{{ ns.x }}{% endfilter %}{% endset %}{% set ns.x = y %}{% endfor %}": made,
		"{{ 'x' * 999999999 }}":                                                                                                made,
		"{{ 'x' * 9223372036854775807 }}":                                                                                      made,
		"{{ ('x' * 65536) * 65536 }}":                                                                                          made,
		"{{ ([''] * 65537) | join('x' * 65536) }}":                                                                             made,
		"{{ ('x' * 65536) | replace('x', 'y' * 65536) }}":                                                                      made,
		"{{ ('x' * 4000) | list | join('x' * 2147483648) }}":                                                                   made,
		"{{ ('\\n' * 65536) | indent('x' * 65536, true, true) }}":                                                              made,
		"{{ 'a' | indent(999999999) }}":                                                                                        made,
		"{{ [1] | tojson(none, indent=64) }}":                                                                                  "",
		"{{ 'aaaaaaaaaa'" + strings.Repeat("|replace('a', 'aaaaaaaaaa')", 20) + " }}":                                          made,
		"{{ 'aaaaaaaaaa'" + strings.Repeat(".replace('a', 'aaaaaaaaaa')", 20) + " }}":                                          made,
		"{% set x = 'y' * 4000000 %}{{ x" + strings.Repeat(" ~ x", 100) + " }}":                                                made,
		"{% set x = 'y' * 1000000 %}{{ x | upper | lower | title | length }}{{ x.split('y') }}":                                made,
		"{% set x = 'y' * 1000000 %}{% for c in x %}{{ c }}{% endfor %}":                                                       loops,
		"{% set n = namespace(l=[]) %}{% for i in range(5000) %}{% set n.l = n.l + ['y' * 2000] %}{% endfor %}":                made,
		"{% set n = namespace(l=[]) %}{% for i in range(90000) %}{% set n.l = n.l + [[], {}, {'a': 1}, (1, 2)] %}{% endfor %}": made,
		"{% for i in range(90000) %}" + strings.Repeat("x", 1000) + "{% endfor %}":                                             made,
		// steps
		"{% for i in range(99999999999) %}{% endfor %}":                                                         "range: more than",
		"{% set x = range(9000) %}{% for i in x %}{% for j in x %}{% endfor %}{% endfor %}":                     loops,
		"{% set x = range(9000) %}{% for i in x %}{% for j in x if false %}{% endfor %}{% endfor %}":            loops,
		"{% set x = range(9000) | list %}{% for i in x %}{{ x == x }}{% endfor %}":                              steps,
		"{% set x = range(9000) %}{% for i in x %}{{ 'a' in x }}{% endfor %}":                                   steps,
		"{% set x = range(9000) | list %}{% for i in x %}{{ x is eq(x) }}{% endfor %}":                          steps,
		"{% set x = 'y' * 90000 %}{% for i in range(9000) %}{{ 'z' in x }}{{ x[0] }}{% endfor %}":               steps,
		"{% for i in range(90000) %}{% if " + strings.Repeat("1 == 2 or ", 100) + "0 %}{% endif %}{% endfor %}": steps,
		// numbers
		"{{ ('0x1' ~ '0' * 400000) | int(0, 16) }}":                                                       "bits is not supported",
		"{{ ('1' * 400000) | int(0, 2) }}":                                                                "bits is not supported",
		"{{ ('1' * 14000) | int(0, 2) % 2 }}{{ ('1' * 5000) | int }}":                                     "",
		"{% set a = (2**60-1)**4000 %}{{ 0.5 in [a] * 20000 }}":                                           steps,
		"{% set a = (2**60-1)**4000 %}{{ [a] * 20000 == [a+0] * 20000 }}":                                 steps,
		"{% set a = (2**60-1)**2000 %}{{ ([-a] * 20000) | map('abs') | list | length }}":                  made,
		"{% for i in range(2000) %}{{ 1.0000001 ** 1000.5 }}{% endfor %}":                                 steps,
		"{% set a = (2**60-1)**4000 %}{% for i in range(90) %}{% set x = a | round(-4300) %}{% endfor %}": steps,
		"{{ range(0, 2 ** 70, 2 ** 70) }}":                                                                "not supported",
		// stack
		"{% set ns = namespace(x=[1]) %}{% for i in range(9000) %}{% set ns.x = ns.x | map('string') %}{% endfor %}{{ ns.x | first }}": "within each other",
		// each loop goes through the one before it
		"{% set ns = namespace() %}{% for x in range(5000) %}{% if loop.first %}{% set ns.l = loop %}{% endif %}" +
			"{% for a, b in ns.l %}{% set ns.l = loop %}{% break %}{% endfor %}{% endfor %}": steps,
		"{% macro f(x) %}{{ f(x) }}{% endmacro %}{{ f(1) }}": "without end",
		"{% macro f() %}{% set ns.c = caller %}{% endmacro %}{% set ns = namespace() %}{% call f() %}{{ ns.c() }}{% endcall %}{{ ns.c() }}": "without end",
		cycle + "{{ x }}":                                   deep,
		cycle + "{{ 'a' ~ x }}":                             deep,
		cycle + "{{ x | join }}":                            deep,
		cycle + "{{ raise_exception(x) }}":                  deep,
		cycle + "{{ x() }}":                                 "cannot be called",
		cycle + "{{ {x: 1} }}":                              deep,
		cycle + "{{ {}[x] }}":                               deep,
		cycle + "{{ {}.get(x) }}":                           deep,
		"{% set n = namespace() %}{% set n.n = n %}{{ n }}": deep,
		"{% set n = namespace(x=range(9)) %}{% call n.get('x') %}{% endcall %}":                                                                              "has no attribute",
		"{% set f = {}.get %}{% call f('x', 1) %}{% endcall %}":                                                                                              "does not take an argument",
		"{% set l = range(40) | list %}{% for i in range(39) %}{% endfor %}{% set a = [1] %}{% for i in range(60) %}{% set a = [a, a] %}{% endfor %}{{ a }}": "",
		double("[1]", "[ns.x, ns.x]", "{{ ns.x }}"):                                                                                                          made,
		double("[1]", "[ns.x, ns.x]", "{{ ns.x == ns.x }}"):                                                                                                  steps,
		double("[1]", "ns.x + ns.x", ""):                                                                                                                     made,
		cycle + "{{ x | join }}":                                                                                                                             deep, cycle + "{{ x | upper }}": deep, cycle +
			"{% filter upper %}{{ n }}{% endfilter %}": deep,
		double("[1]", "(ns.x, ns.x)", "{{ ns.x < ns.x }}"):                         steps,
		double("[1]", "(ns.x, ns.x)", "{{ {ns.x: 1} }}"):                           steps,
		double("1", "(ns.x, ns.x)", "{{ {ns.x: 1} }}"):                             steps,
		double("[1]", "[ns.x, ns.x]", "{{ ns.x | tojson }}"):                       made,
		double("[1]", "[ns.x, ns.x]", "{{ ns.x | pprint }}"):                       "not supported",
		double("3", "ns.x * ns.x", "{{ 1 }}"):                                      steps,
		"{{ 3 ** 99999999 }}":                                                      "",
		"{{ 10 ** 5000 }}":                                                         "digits",
		"{{ '%9999999d' % 1 }}":                                                    "too much",
		"{{ '%*d' % (9999999, 1) }}":                                               "too much",
		"{{ '{:9999999}'.format(1) }}":                                             "too much",
		"{{ '{:.9999999f}'.format(1.5) }}":                                         "too much",
		"{{ 1 | round(999999999) }}{{ 1 | round(-999999999) }}":                    "",
		"{{ 'a'.center(999999999) }}":                                              made,
		"{{ 'a\t'.expandtabs(999999999) }}":                                        made,
		"{{ [1] | batch(999999999, 1) | list }}":                                   made,
		"{{ [1] | slice(999999999, 1) | list }}":                                   made,
		"{{ [1] * 999999999 }}":                                                    made,
		"{% for i in range(90000) %}{% set f = range(90000) | list %}{% endfor %}": made,
		"{% for i in range(90000) %}{{ 'y' * 900 in 'x' * 900 }}{% endfor %}":      made,
		"{% set x = 'xy' * 90000 %}{% for i in range(900) %}{{ x[-1] }}{{ x | first }}{{ x.find('z') }}{{ x is upper }}{% endfor %}": steps,
		// what is not understood
		"{% for x in [] recursive %}{% endfor %}": "recursive",
		"{{ 1 ? 2 }}":     "unexpected character",
		"{{ 'a }}":        "is not closed",
		"{% endfilter %}": "unknown tag",
		"{{ " + strings.Repeat("1 + ", 9000) + "1 }}": "operands and operators",
		"{{ x" + strings.Repeat(".x", 9000) + " }}":   "operands and operators",
	} {
		_, err := checkTemplate(t, source, `{"role": "user", "content": "x"}`)
		if want == "" && err != nil && !strings.Contains(err.Error(), made) || want != "" &&
			(err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%.200s: got error %v, want %s", source, err, want)
		}
	}
}

// cost is what a template's meter counts, with the error that ended it.
func cost(t *testing.T, source string) (m meter, err error) {
	t.Helper()
	tmpl, err := Compile(source)
	if err != nil {
		t.Fatalf("%.200s: %v", source, err)
	}
	r := &run{now: goldenTime, line: 1, meter: meter{maxWork: maxWork, maxMade: maxMade}}
	func() {
		defer catch(&err)
		r.top = &scope{vars: map[string]Value{}, parent: &scope{}}
		r.captured(func() { r.execute(tmpl.body, r.top) })
	}()
	return r.meter, err
}

// Whatever goes through a value charges its size, also where little comes of it.
func TestWorkIsCharged(t *testing.T) {
	const n = 20_000
	many := func(name string) string { return strings.Repeat(name, n) }
	text := "{% set s = 'a' * 20000 %}{% set t = 'a' * 20000 %}{% set d = {s: '', 'k': none} %}"
	items := "{% set l = ['x'] * 20000 %}{% set f = [0.5] * 20000 %}{% set e = ('',) * 20000 %}"
	number := "{% set a = 2 ** 60000 %}{% set b = 2 ** 60000 %}" // 938 words
	names := "{% set ns = namespace() %}{% set d = {} %}{% macro f(" + params(400) + ") %}{% endmacro %}"
	dict := "{% set d = dict.fromkeys(range(2000) | map('string')) %}"
	for _, c := range []struct {
		before, source string
		work, made     int
	}{
		{text, "{% set x = 'b'.strip(s) %}", n, 0},
		{text, "{% set x = 'aaaaa'.strip('b' * 20000 ~ 'a') %}", 6 * n, 0},
		{text, "{% set x = ('\t' * 20000).expandtabs(0) %}", 2 * n, 0},
		{text, "{% set x = s.removeprefix(t) %}", n, 0},
		{text, "{% set x = s.removesuffix(t) %}", n, 0},
		{text, "{% set x = s is sameas(t) %}", n, 0},
		{text, "{% set x = [][s] %}", n, 0},
		{text, "{% set x = [] | join('', s) %}", n, 0},
		{text, "{% set x = ('%.0s' | safe) % s %}", n, n},
		{text, "{% set x = ('%' ~ ' ' * 20000 ~ 's') % '' %}", 4 * n, 0},
		{text, "{% set x = ('%(' ~ s ~ ')s') % d %}", 4 * n, 0},
		{text, "{% set x = ('{' ~ s ~ '}').format_map(d) %}", 4 * n, 0},
		{text, "{% set x = s.find('a' * 1000 ~ 'b') %}", n * 500, 0},
		{text, "{% set x = s.rfind('a' * 1000 ~ 'b') %}", n * 500, 0},
		{text, "{% set x = ('a' * 1000 ~ 'b') in s %}", n * 500, 0},
		{text, "{% set x = s.count('a' * 1000 ~ 'b') %}", n * 500, 0},
		{text, "{% set x = s.split('a' * 1000 ~ 'b') %}", n * 500, 0},
		{text, "{% set x = s.partition('a' * 1000 ~ 'b') %}", n * 500, 0},
		{text, "{% set x = s.replace('a' * 1000 ~ 'b', '') %}", n * 500, 0},
		{items, "{% set x = f | sum %}", 8 * n, 0},
		{items, "{% set x = 'a'.startswith(e) %}", 8 * n, 0},
		{items, "{% set x = cycler(*l) %}", n, 8 * n},
		{items, "{% set " + many("a,") + "b = l + [1] %}", 8 * n, 0},
		{number, "{% set x = 0.5 == a %}", 938, 0},
		{number, "{% set x = 0.5 < a %}", 938, 0},
		{number, "{% set x = a == b %}", 938, 0},
		{number, "{% set x = a < b %}", 938, 0},
		{number, "{% set x = a is sameas(b) %}", 938, 0},
		{number, "{% set x = -a %}", 938, 7500},
		{number, "{% set x = a | round(-4000) %}", 938 * 200, 0},
		{"", "{% set x = 1.1 ** 1000.5 %}", 1_000_000, 0},
		{"", "{% set x = '%.0f' % 5e-324 %}", 1000, 0},
		{"", "{% set x = 1.5e300 | round(-300) %}", 1000, 0},
		{"", "{% set x = 1e308 % 3e-308 %}", 1000, 0},
		{names, "{% set x = f() %}", 8 * 400, 16 * 400},
		{names, "{% set x = f.arguments %}", 400, 32 * 400},
		{names, "{% set x = " + many("n") + " %}", n, 0},
		{names, "{% set x = ns." + many("n") + " %}", n, 0},
		{names, "{% set x = d." + many("n") + " %}", n, 0},
		{names, "{% set " + many("n") + " = 1 %}", n, 0},
		{names, "{% set x = '' | format(" + many("n") + "=1) %}", n, 0},
		{names, "{% macro " + many("n") + "() %}{% endmacro %}", n, 0},
		{names, "{% macro g(" + many("n") + ") %}{% endmacro %}{% set x = g() %}", n, 0},
		{names, "{% set ns." + many("n") + " = 1 %}", n, 0},
		{dict, "{% set x = d | xmlattr %}", 2000, 0},
		{dict, "{% set x = dict(**d) %}", 2000 * 2000, 0},
	} {
		before, err := cost(t, c.before)
		if err != nil {
			t.Fatal(err)
		}
		after, err := cost(t, c.before+c.source)
		work, made := after.work-before.work, after.made-before.made
		if work < c.work || made < c.made {
			t.Errorf("%.100s: %d steps and %d bytes, want at least %d and %d (%v)", c.source, work, made, c.work, c.made, err)
		}
	}
	// What looks at the ends of a text alone costs no more for a large set.
	if m, err := cost(t, "{{ ('x' * 100000).strip('b' * 1000) }}"); err != nil || m.work > 1_000_000 {
		t.Errorf("strip at the ends takes %d steps: %v", m.work, err)
	}
}

func params(n int) string {
	var list []string
	for i := range n {
		list = append(list, fmt.Sprintf("p%d", i))
	}
	return strings.Join(list, ", ")
}

// Macros and calls have a bounded number of names.
func TestManyNames(t *testing.T) {
	for _, source := range []string{"{% macro f(" + params(600) + ") %}{% endmacro %}",
		"{{ f(" + strings.ReplaceAll(params(600), ",", "=1,") + "=1) }}"} {
		if _, err := Compile(source); err == nil || !strings.Contains(err.Error(), "in a row") {
			t.Errorf("%.20s: %v", source, err)
		}
	}
}

// Integers beyond an int count as the nearest one, on 32 bits too.
func TestHugeIntegers(t *testing.T) {
	for source, want := range map[string]string{
		"{{ [1, 2][0:9223372036854775807:2] }}":                                "[1]",
		"{{ [1, 2, 3][-9223372036854775808:4294967297] }}":                     "[1, 2, 3]",
		"{{ [1, 2, 3][::-4294967297] }}":                                       "[3]",
		"{{ [1, 2][4294967296] }}":                                             "",
		"{{ 'a b c'.split(' ', 4294967296) | length }}":                        "3",
		"{{ 'abc'.ljust(-9223372036854775808) }}":                              "abc",
		"{{ 'abc'.zfill(-9223372036854775808) }}":                              "abc",
		"{{ 'abc'.find('c', -9223372036854775808) }}":                          "2",
		"{{ ('ab ' * 100) | truncate(9, leeway=9223372036854775807) == '' }}":  "False",
		"{{ ('a' * 300) | truncate(9, leeway=9223372036854775807) | length }}": "300",
		"{{ 'aaa'.replace('a', 'b', 4294967296) }}":                            "bbb",
		"{{ [] * 9223372036854775807 }}":                                       "[]",
		"{{ 1.25 | round(4294967296) }}":                                       "1.25",
	} {
		if got, err := render(source, nil); err != nil || got != want {
			t.Errorf("%s: %q, %v, want %q", source, got, err, want)
		}
	}
}

// Keys are one where Python takes them for one.
func TestKeys(t *testing.T) {
	for source, want := range map[string]string{
		"{{ {1: 'a', 1.0: 'b', true: 'c'} }}":                             "{1: 'c'}",
		"{{ {('a', 'b'): 1, ('ab', ''): 2, (('a',), 'b'): 3} | length }}": "3",
		"{{ {('a', (1, 2)): 1}[('a', (1.0, 2))] }}":                       "1",
		"{{ {((1,), 2): 1, (1, (2,)): 2, ((1, 2),): 3} | length }}":       "3",
		"{{ {255: 1}[255] }}{{ {'ff': 1}[255] }}{{ {-255: 2}[-255.0] }}":  "12",
		"{{ {1e308: 1}[1e308] }}":                                         "1",
		"{{ 'ABİC éÀ ΑΒ'.title() }}":                                      "Abi̇c Éà Αβ",
	} {
		if got, err := render(source, nil); err != nil || got != want {
			t.Errorf("%s: %q, %v, want %q", source, got, err, want)
		}
	}
}

// A key within others is not copied at each depth.
func TestDeepKey(t *testing.T) {
	var key Value = strings.Repeat("a", 1<<20)
	for range 100 {
		key = &Tuple{Items: []Value{key}}
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, ok := hash(key)
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; !ok || n > 50<<20 {
		t.Errorf("the hash of a key of 1 MB takes %d bytes", n)
	}
}

// FuzzTemplate: whatever the template and the message, a text or an error within the limits.
func FuzzTemplate(f *testing.F) {
	files, _ := filepath.Glob("testdata/templates/*")
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(b), `{"role": "user", "content": "x"}`)
	}
	for _, s := range []string{
		"{{ x | tojson }}{%- raw -%} {{ {%- endraw %}{# c #}{% for a, b in messages[0].items() %}{{a[0:1]}}{% endfor %}",
		"{% set ns = namespace(x='x') %}{% for i in range(60) %}{% set ns.x = ns.x ~ ns.x %}{% endfor %}",
		"{% macro f(a, b=1) %}{{ caller() }}{{ f(a) }}{% endmacro %}{% call(y) f(1) %}{{ y }}{% endcall %}",
		"{% set a = [1] %}{% set _ = a.append(a) %}{{ a is eq(a) }}{{ a in [a] }}{{ a | string | replace('1', 'a') }}",
		"{% filter indent(3) %}{{ 'ab' * 9 if x else -x ** 2 }}{% endfilter %}{% set a, b = x.split('a'), 'b'.format(1) %}{% break %}",
	} {
		f.Add(s, `{"a": [1, {"b": null}]}`)
	}
	f.Fuzz(func(t *testing.T, source, message string) {
		_, _ = checkTemplate(t, source, message)
	})
}

// pieces of templates: bytes that name them make templates that compile more often than other bytes.
var pieces = []string{
	"{{ ", " }}", "{% ", " %}", "{% set ns.x = ", "{% set a = ", "{% set b = ", "{% for i in ", "{% endfor %}",
	"{% for i, j in ", "{% if ", "{% else %}", "{% endif %}",
	"{% macro f(a, b=1) %}", "{% endmacro %}", "{% call f(", ") %}", "{% endcall %}", "{% filter upper %}",
	"{% endfilter %}", "{% set c %}", "{% endset %}",
	"ns.x", "a", "b", "c", "f", "i", "x", "messages", "ns", "loop", "caller()", "'x'", "'{0}'", "1", "0", "99999", "2.5",
	"none", "[", "]", "(", ")", "{", "}", ",", ":", "'k'",
	" + ", " ~ ", " * ", " - ", " / ", " // ", " % ", " ** ", " == ", " < ", " in ", " not in ", " and ", " or ", " not ",
	" if ", " else ", " is ", "defined", "eq(", "sameas(",
	"range(9)", "range(999)", "range(90000)", "namespace(x='x')", "[]", "{}", "[::-1]", "[1:]", "[0]", ".x", ".append(",
	".insert(0, ", ".pop()", ".update(", ".get(", ".items()",
	".split(", ".replace(", ".format(", ".upper()", ".strip(", "|replace('x', 'xx')", "|join(", "|list", "|string",
	"|tojson(", "|length", "|upper", "|escape", "|indent(",
	"|unique", "|sort", "|reverse", "|map(attribute='x')", "|selectattr('x', 'eq', ", "|items", "|batch(2)", "|first",
	"|default(", "|fromjson", "|dictsort", "|title", "text\n",
}

// FuzzPieces: the same of templates made of valid pieces.
func FuzzPieces(f *testing.F) {
	index := map[string]byte{}
	for i, s := range pieces {
		index[s] = byte(i)
	}
	for _, s := range [][]string{
		{"{% set ns.x = ", "ns.x", " ~ ", "ns.x", " %}"}, {"{% for i in ", "range(999)", " %}", "{{ ", "i", " * ", "'x'",
			" }}", "{% endfor %}"},
		{"{% set a = ", "[]", " %}", "{% set _ = "}, {"{{ ", "a", ".append(", "a", ")", " }}", "{{ ", "a", " }}"},
		{"{% macro f(a, b=1) %}", "{{ ", "f", "(", "a", ")", " }}", "{% endmacro %}", "{{ ", "f", "(", "1", ")", " }}"},
		{"{% set a = ", "messages", " + ", "messages", " %}", "{{ ", "a", "|tojson(", ")", " }}"},
	} {
		var data []byte
		for _, piece := range s {
			data = append(data, index[piece])
		}
		f.Add(data, byte(0), byte(60))
	}
	f.Fuzz(func(t *testing.T, data []byte, from, times byte) {
		var list []string
		for _, b := range data[:min(len(data), 2000)] {
			list = append(list, pieces[int(b)%len(pieces)])
		}
		body := strings.Join(list, "")
		if int(from) < len(list) { // the end of the template within a loop
			body = strings.Join(list[:from], "") + fmt.Sprintf("{%% for k in range(%d) %%}",
				times) + strings.Join(list[from:], "") + "{% endfor %}"
		}
		_, _ = checkTemplate(t, "{% set ns = namespace(x='x') %}{% set a = ['x'] %}{% set b = {'x': 'x'} %}"+body,
			`{"role": "user", "content": "x", "x": [1, 2.5, null]}`)
	})
}
