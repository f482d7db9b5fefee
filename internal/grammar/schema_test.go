package grammar

import (
	"encoding/json"
	"fmt"
	"math/big"
	"math/rand/v2"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestJSONSchema(t *testing.T) {
	for _, c := range []struct {
		schema  string
		yes, no []string
	}{
		{`{"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "string"}}, "required": ["a"]}`,
			[]string{`{"a": 1}`, `{"a": -20, "b": "x\"\n"}`}, []string{`{}`, `{"b": "x"}`, `{"a": 1.5}`, `{"b": "", "a": 1}`,
				`{"a":1}`, `{"a": 1, "c": 1}`}},
		{`{"enum": ["a", 1, null, {"b": [true]}]}`, []string{`"a"`, `1`, `null`, `{"b": [true]}`},
			[]string{`"b"`, `2`, `{"b": [false]}`}},
		{`{"type": "integer", "minimum": -3, "exclusiveMaximum": 12}`, []string{"-3", "0", "9", "10", "11"},
			[]string{"-4", "12", "1.5", "01", "-0"}},
		{`{"type": "number", "minimum": 0, "maximum": 1}`, []string{"0", "1", "0.25", "0.99"}, []string{"-0.5", "1.01", "2"}},
		{`{"type": "number", "exclusiveMinimum": 1.25, "maximum": 10.5}`, []string{"1.26", "1.251", "2", "10.5", "10.4999"},
			[]string{"1.25", "1", "10.51", "11"}},
		{`{"multipleOf": 0.01, "type": "number"}`, []string{"0", "1.25", "-3.5", "100"}, []string{"1.255"}},
		{`{"type": "integer", "multipleOf": 7}`, []string{"0", "7", "49", "-14"}, []string{"8", "7.0"}},
		{`{"type": "string", "minLength": 2, "maxLength": 3}`, []string{`"ab"`, `"é語x"`, `"\n\u00e9"`},
			[]string{`"a"`, `"abcd"`}},
		{`{"type": "string", "pattern": "^[a-z]+\\d$"}`, []string{`"ab1"`}, []string{`"1"`, `"ab1 "`}},
		{`{"type": "string", "format": "uuid", "pattern": "^[0-9a-f-]{35}[^f]$"}`, []string{`"0b0cf0f9-8f09-8b98-9d38-8089ecfba20e"`},
			[]string{`"0b0cf0f9-8f09-8b98-9d38-8089ecfba20f"`, `"0b0cf0f9-8f09-8b98-9d38-8089ecfba2--"`}},
		{`{"anyOf": [{"type": "number"}, {"pattern": "^\\ba", "type": "string"}, {"type": "null"}]}`, // cannot be held
			[]string{"1.5", "null"}, []string{`"a"`, `"xa"`}},
		{`{"anyOf": [{"anyOf": [{"type": "string", "pattern": "^\\bx"}]}, {"const": 1}]}`, []string{"1"}, []string{`"a"`}},
		{`{"anyOf": [{"type": "number"}, {"type": "string", "pattern": "^(?!^[-+.]*$)[+-]?0*\\d*\\.?\\d*$"}]}`, // pydantic's Decimal
			[]string{"1.5", `"1.5"`, `"-.5"`, `"0"`}, []string{`""`, `"-"`, `"+."`, `"1.5.0"`}},
		{`{"type": "string", "format": "email", "pattern": "^(?!\\.)(?!.*\\.\\.)([A-Za-z0-9_'+\\-\\.]*)[A-Za-z0-9_+-]@([A-Za-z0-9][A-Za-z0-9\\-]*\\.)+[A-Za-z]{2,}$"}`, // zod's
			[]string{`"ada.lovelace@mail.example.org"`}, []string{`".a@b.org"`, `"a..b@c.org"`, `"a@b.c"`, `"a.@b.org"`}},
		{`{"type": "string", "pattern": "^P(?:(\\d+W)|(?!.*W)(?=\\d|T\\d)(\\d+Y)?(\\d+M)?(\\d+D)?(T(?=\\d)(\\d+H)?(\\d+M)?(\\d+([.,]\\d+)?S)?)?)$"}`, // zod's duration
			[]string{`"P3W"`, `"P1Y2M"`, `"PT4H0.5S"`, `"P1DT1M"`}, []string{`"P"`, `"PT"`, `"P1DT"`, `"P1Y2W"`, `"1Y"`}},
		{`{"type": "string", "format": "hostname", "pattern": "^(?=.{1,253}\\.?$)[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?(?:\\.[a-zA-Z0-9](?:[-0-9a-zA-Z]{0,61}[0-9a-zA-Z])?)*\\.?$"}`, // zod's
			[]string{`"a"`, `"a-b.example.org."`}, []string{`""`, `"-a.b"`, `"` + strings.Repeat("ab.", 85) + `"`}},
		{`{"type": "string", "format": "date", "pattern": "\\(?=|-"}`, // no lookahead
			[]string{`"2024-01-02"`}, []string{`"-"`}},
		{`{"type": "string", "minLength": 8, "maxLength": 9, "pattern": "^(?=.*[A-Z])(?=.*\\d)[^ ]+$"}`, []string{`"secreT12"`, `"1Aaaaaaaa"`},
			[]string{`"secret12"`, `"SecretSe"`, `"T1"`, `"secreT 12"`, `"secreT1234"`}},
		{`{"enum": ["ab", "ba", "b", 1], "pattern": "^(?!.*ba)(?=[^c]*b$)"}`, []string{`"ab"`, `"b"`, "1"}, []string{`"ba"`, `"a"`}},
		{`{"oneOf": [{"type": "string", "pattern": "^a"}, {"type": "string", "pattern": "b$"}]}`,
			[]string{`"a"`, `"b"`, `"aba"`}, []string{`"ab"`, `"c"`, `""`}},
		{`{"type": "string", "maxLength": 2, "not": {"pattern": "[^ab]"}}`, []string{`""`, `"ab"`}, []string{`"c"`, `"aba"`}},
		{`{"enum": ["ab", "b", 1], "not": {"pattern": "^a"}}`, []string{`"b"`}, []string{`"ab"`, "1"}},
		{`{"if": {"pattern": "^a"}, "then": {"maxLength": 2}, "else": {"minLength": 3}, "type": "string"}`,
			[]string{`"ab"`, `"bab"`}, []string{`"abc"`, `"ba"`}},
		{`{"type": "string", "pattern": "^((?!end)[a-z])*$"}`, []string{`""`, `"enenx"`}, []string{`"xend"`, `"enend"`}},
		{`{"type": "string", "format": "time", "pattern": "^\\d\\d:\\d\\d$"}`, []string{`"12:30"`}, []string{`"12:30:00Z"`, `"x"`}},
		{`{"type": "string", "format": "uri", "minLength": 1, "maxLength": 2083}`,
			[]string{`"https://a.org/b"`}, []string{`"a"`}},
		{`{"type": "string", "maxLength": 3, "not": {"enum": ["", "a\n"]}}`, []string{`"a"`, `"\n"`, `"a\na"`},
			[]string{`""`, `"a\n"`, `"abcd"`}},
		{`{"type": "object", "properties": {"ab": true}, "propertyNames": {"pattern": "^a", "maxLength": 3}, "additionalProperties": {"type": "null"}}`,
			[]string{`{"ab": 1}`, `{"ab": 1, "abc": null}`, `{"a": null}`},
			[]string{`{"abc": 1}`, `{"b": null}`, `{"abcd": null}`}},
		{`{"type": "string", "pattern": "\"x"}`, []string{`"\"x"`, `"a\"xb"`}, []string{`"x"`}},
		{`{"type": "array", "items": {"type": "boolean"}, "minItems": 1, "maxItems": 2}`, []string{"[true]", "[true, false]"},
			[]string{"[]", "[true, true, true]", "[1]"}},
		{`{"type": "array", "prefixItems": [{"const": 1}, {"const": 2}], "items": false}`, []string{"[]", "[1]", "[1, 2]"},
			[]string{"[2]", "[1, 2, 3]"}},
		{`{"type": "number", "maximum": 1e20}`, []string{"1", "-5.5", "999999999999999999"}, []string{"5e60", "1e21"}},
		{`{"type": "number", "minimum": -3.4e38, "maximum": 3.4e38}`, []string{"0.5", "-7"}, []string{"5e60", "-5e60"}},
		{`{"type": "number", "minimum": -1e20}`, []string{"3"}, []string{"-5e60"}},
		{`{"type": "string", "pattern": "^\\S+$"}`, []string{`"a"`, `"é語\""`},
			[]string{`"a b"`, "\"a\u00a0b\"", "\"\u3000\"", "\"\u2028\"", "\"\ufeff\"", `"\u000b"`, `"a\u00a0"`}},
		{`{"type": "string", "pattern": "^[^\\s]$"}`, []string{`"a"`}, []string{`" "`, "\"\u3000\""}},
		{`{"type": "string", "pattern": "^[\\s\\S]$"}`, []string{`"a"`, `" "`, "\"\u3000\"", `"\n"`, `"語"`}, []string{`"ab"`}},
		{`{"type": "string", "pattern": "^[A-Za-z\\s-']+$"}`, []string{`"Jean-Luc d'A"`}, []string{`"a.b"`, `"3"`}},
		{`{"type": "string", "pattern": "^[\\w\\s-]+$"}`, []string{`"a-b c"`}, []string{`"a.b"`}},
		{`{"type": "string", "pattern": "^[.]\\s.$"}`, []string{`". x"`}, []string{`"x x"`, `". \r"`, `". \n"`}},
		{`{"type": "string", "pattern": "^\\ud83d\\ude00$"}`, []string{`"😀"`}, []string{`"x"`}},
		{`{"type": "array", "prefixItems": [{"type": "integer"}], "uniqueItems": true, "contains": {"enum": [1, 2]}}`,
			[]string{"[1]", "[2]"}, []string{"[3]", "[]"}},
		{`{"type": "array", "items": {"enum": ["a", "b", "c"]}, "uniqueItems": true, "minItems": 2}`, []string{`["a", "c"]`}, []string{`["a"]`, `["a", "a"]`}},
		{`{"$defs": {"tree": {"type": "object", "properties": {"kids": {"type": "array", "items": {"$ref": "#/$defs/tree"}}}, "additionalProperties": false}}, "$ref": "#/$defs/tree"}`,
			[]string{`{}`, `{"kids": [{}, {"kids": []}]}`}, []string{`{"kids": [1]}`}},
		{`{"anyOf": [{"type": "string"}, {"type": "integer", "minimum": 3}], "not": {"const": 5}}`, []string{`"x"`, "3", "6", "55"}, []string{"2", "5"}},
		{`{"type": "object", "oneOf": [{"properties": {"a": {"type": "null"}}, "additionalProperties": false}, {"properties": ` +
			`{"a": {"type": "null"}, "b": {"type": "null"}}, "additionalProperties": false}]}`,
			[]string{`{"b": null}`, `{"a": null, "b": null}`}, []string{"{}", `{"a": null}`}},
		{`{"oneOf": [{"type": "integer"}, {"minimum": 2}]}`, []string{"1", "2.51"}, []string{"3", "1.5"}},
		{`{"type": "object", "additionalProperties": {"type": "integer"}}`, []string{"{}", `{"x": 1, "y": 2}`},
			[]string{`{"x": "1"}`}},
		{`{"type": "object", "properties": {"ab": true}, "additionalProperties": {"type": "integer"}}`, []string{`{"ab": "x", "abc": 1}`, `{"a": 1}`},
			[]string{`{"abc": "x"}`}},
		{`{"type": "object", "patternProperties": {"^x": {"type": "integer"}}, "minProperties": 1}`, []string{`{"x1": 1}`}, []string{"{}", `{"x1": "a"}`}},
		{`{"allOf": [{"properties": {"a": {"minimum": 3}}}, {"properties": {"a": {"type": "integer"}}, "required": ["a"]}], "type": "object"}`, []string{`{"a": 3}`}, []string{`{"a": 2}`, "{}"}},
		{`{"if": {"properties": {"k": {"const": 1}}, "required": ["k"]}, "then": {"required": ["v"]}, "type": "object", "properties": {"k": {"type": "integer"}, "v": {"type": "string"}}}`,
			[]string{`{"k": 2}`, `{"k": 1, "v": "x"}`, "{}"}, []string{`{"k": 1}`}},
		{`{"type": "string", "format": "date"}`, []string{`"2026-11-22"`}, []string{`"2026-13-22"`, `"x"`}},
		{`{"oneOf": [{"type": "string", "format": "email"}, {"type": "string", "format": "uri"}]}`,
			[]string{`"a@b.org"`, `"https://a.org/b"`, `"mailto:a@b.org"`}, []string{`"a"`}},
		{`{"type": "string", "oneOf": [{"format": "hostname"}, {"format": "ipv4"}]}`, []string{`"a.org"`}, []string{`"1.2.3.4"`, `"::"`}},
		{`{"type": "string", "not": {"format": "date"}}`, []string{`"a"`, `"2026-13-22"`}, []string{`"2026-11-22"`}},
		{`{"oneOf": [{"type": "string", "format": "email"}, {"const": ""}]}`, []string{`"a@b.org"`, `""`}, []string{`"a"`}},
		{`{"type": "object", "properties": {"Sa": {"type": "null"}}, "patternProperties": {"^S": {"type": ["string", "null"]}, "^I": {"type": "integer"}}, "additionalProperties": {"type": "boolean"}}`,
			[]string{`{"Sa": null}`, `{"Sb": "x", "I": 1, "xS": true}`, `{"": true}`},
			[]string{`{"Sa": "x"}`, `{"I": true}`, `{"S": true}`, `{"x": 1}`, `{"Sa": null, "Sa": "x"}`, `{"\u0053": true}`}},
		{`{"type": "object", "patternProperties": {"a": {"minimum": 1}, "b": {"maximum": 3}}, "additionalProperties": false}`,
			[]string{`{"a": 9, "b": 0, "ab": 2}`}, []string{`{"ab": 9}`, `{"ba": 0}`, `{"c": 2}`}},
		{`true`, []string{"1", `{"a": [null, true]}`, `"x"`, "-1.5e3"}, []string{"", "nul", "{a: 1}"}},
	} {
		g, err := JSONSchema(c.schema)
		if err != nil {
			t.Errorf("%s: %v", c.schema, err)
			continue
		}
		for i, text := range append(c.yes, c.no...) {
			if got, err := g.Accepts(text); err != nil || got != (i < len(c.yes)) {
				t.Errorf("%s: %s: accepted %v, %v", c.schema, text, got, err)
			}
		}
		rng := rand.New(rand.NewPCG(1, 2))
		for range 20 {
			text, err := g.Sample(rng.IntN, 200)
			if err != nil || !json.Valid([]byte(text)) {
				t.Errorf("%s: %s: no JSON, %v", c.schema, text, err)
			}
		}
	}
}

func TestJSONSchemaRefuses(t *testing.T) {
	for schema, want := range map[string]string{
		`{"properties": {"a": {"$ref": "#/$defs/x"}}}`:                                           "#/properties/a: keyword $ref",
		`{"$ref": "http://example.com/x"}`:                                                       "put it into $defs",
		`{"type": "text"}`:                                                                       "keyword type",
		`{"type": "array", "uniqueItems": true, "minItems": 3}`:                                  "keyword uniqueItems",
		`{"type": "array", "uniqueItems": true, "contains": {"enum": [1, 2]}, "minContains": 2}`: "keyword uniqueItems",
		`{"type": "array", "prefixItems": [{"type": "integer"}], "uniqueItems": true, "contains": {"type": "string"}}`:                "keyword uniqueItems",
		`{"type": "string", "pattern": "^.{1,2000}$"}`:                                                                                "repeats of 1000 at most",
		`{"type": "string", "pattern": "\\ba"}`:                                                                                       "keyword pattern",
		`{"anyOf": [{"type": "string", "pattern": "\\ba"}, {"type": "null"}]}`:                                                        "anyOf/0: keyword pattern",
		`{"type": "string", "pattern": "a(?<=a)"}`:                                                                                    "keyword pattern",
		`{"type": "string", "pattern": "(?!a(?=b))"}`:                                                                                 "within a negative one",
		`{"type": "string", "pattern": "(?=a)(?=^b)"}`:                                                                                "anchors can stand at the ends",
		`{"type": "string", "pattern": "` + strings.Repeat("(?=a)", 9000) + `"}`:                                                      "it takes too long to compile",
		`{"pattern": "` + strings.Repeat("(?=a", 9000) + strings.Repeat(")", 9000) + `"}`:                                             "nested more than 8 deep",
		`{"type": "string", "pattern": "(?!a"}`:                                                                                       "keyword pattern",
		`{"patternProperties": {"^(?!a)": true}}`:                                                                                     "lookaheads can stand in patterns of values alone",
		`{"anyOf": [{"type": "string", "pattern": "\\ba"}]}`:                                                                          "anyOf/0: keyword pattern",
		`{"type": "string", "format": "uri", "minLength": 900, "maxLength": 950}`:                                                     "keyword pattern",
		`{"type": "integer", "minimum": 3, "maximum": 2}`:                                                                             "no text",
		`{"items": {"additionalProperties": {"type": "null"}, "minProperties": 2, "type": "object"}, "minItems": 1, "type": "array"}`: "#/items: keyword minProperties",
		`{"type": "object", "properties": {"a": {"type": "array", "uniqueItems": true, "minItems": 3}}}`:                              "#/properties/a: keyword uniqueItems",
		`{"oneOf": [{"format": "iri"}, {"format": "x"}]}`:                                                                             "use anyOf",
		`false`:             "no text",
		`{"$ref": "#"}`:     "keyword $ref",
		`{"properties": 1}`: "want an object",
		`[1]`:               "want an object, true or false",
		`{"a`:               "not JSON",
		nestedOneOf():       "too long",
		`{"type": "object", "properties": {"a": false}, "required": ["a"]}`:   "no text",
		strings.Repeat(`{"items": `, 300) + "true" + strings.Repeat("}", 300): "nested",
	} {
		if _, err := JSONSchema(schema); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.100s: error %v: want %q", schema, err, want)
		}
	}
}

// Patterns and a length together match what each of them does.
func TestPatternsTogether(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		piece := rapid.SampledFrom([]string{"a", "b", ".", "[ab]", "(ab)*", "(a|b?)+", "(a?){2,3}", "b{1,2}", "(|ba)", "\n"})
		anchored := func(begin, end string) string {
			text := rapid.SampledFrom([]string{"", "^"}).Draw(t, begin)
			text += strings.Join(rapid.SliceOfN(piece, 0, 4).Draw(t, "pieces"), "")
			return text + rapid.SampledFrom([]string{"", "$"}).Draw(t, end)
		}
		patterns := []string{anchored("begin", "end"), anchored("begin", "end"), anchored("begin", "end")}
		patterns = patterns[:rapid.IntRange(1, 3).Draw(t, "patterns")]
		least := rapid.IntRange(0, 3).Draw(t, "least")
		most := least + rapid.IntRange(0, 4).Draw(t, "more")
		var all []string
		for _, p := range patterns {
			all = append(all, `{"pattern": `+quote(p)+`}`)
		}
		schema := fmt.Sprintf(`{"type": "string", "minLength": %d, "maxLength": %d, "not": {"const": "ab"}, "allOf": [%s]}`,
			least, most, strings.Join(all, ", "))
		g, err := JSONSchema(schema)
		if err != nil && !strings.Contains(err.Error(), "no text") {
			t.Fatalf("%s: %v", schema, err)
		}
		for range 20 {
			text := rapid.StringOfN(rapid.SampledFrom([]rune("ab\n\"")), 0, 8, -1).Draw(t, "text")
			want := len(text) >= least && len(text) <= most && text != "ab"
			for _, p := range patterns {
				want = want && regexp.MustCompile(p).MatchString(text)
			}
			got := false
			if g != nil {
				got, _ = g.Accepts(quote(text))
			}
			if got != want {
				t.Fatalf("%s: %q: accepted %v", schema, text, got)
			}
		}
	})
}

// A union of many objects that a constant tells apart compiles, as pydantic and zod write it.
func TestUnionOfManyObjects(t *testing.T) {
	for _, form := range []string{
		`{"type": "object", "properties": {"kind": {"const": "k%d"}, "n%[1]d": {"type": "integer"}}, "required": ["kind"]}`,
		`{"type": "object", "properties": {"kind": {"enum": ["k%d"]}, "n%[1]d": {"type": "integer"}}, "required": ["kind"], "additionalProperties": false}`,
		`{"type": "object", "properties": {"kind": {"const": "k%d", "default": "k%[1]d"}, "n%[1]d": {"type": "integer"}}}`,
	} {
		var all []string
		defs := `"none": {}`
		for i := range 150 {
			all = append(all, fmt.Sprintf(form, i))
			if i%2 == 0 {
				defs += fmt.Sprintf(`, "d%d": %s`, i, all[i])
				all[i] = fmt.Sprintf(`{"$ref": "#/$defs/d%d"}`, i)
			}
		}
		schema := `{"oneOf": [` + strings.Join(all, ", ") + `], "discriminator": {"propertyName": "kind"}, "$defs": {` +
			defs + `}}`
		g, err := JSONSchema(schema)
		if err != nil {
			t.Fatal(err)
		}
		for text, want := range map[string]bool{`{"kind": "k0"}`: true, `{"kind": "k149", "n149": 3}`: true, "{}": false,
			`{"kind": "k150"}`: false, `{"kind": "k5", "n5": "x"}`: false} {
			if got, err := g.Accepts(text); err != nil || got != want {
				t.Errorf("%s: accepted %v, %v", text, got, err)
			}
		}
	}
}

// Strings of any length take few states.
func TestLongStrings(t *testing.T) {
	var all []string
	for i := range 100 {
		all = append(all, fmt.Sprintf(`"p%d": {"type": "string", "minLength": %[1]d, "maxLength": 90%02[1]d}`, i))
	}
	g, err := JSONSchema(`{"type": "object", "properties": {` + strings.Join(all, ", ") + "}}")
	if err != nil || len(g.nodes) > 4000 {
		t.Fatal(len(g.nodes), err)
	}
	for n, want := range map[int]bool{6: false, 7: true, 9007: true, 9008: false} {
		if got, err := g.Accepts(`{"p7": "` + strings.Repeat("é", n) + `"}`); got != want || err != nil {
			t.Errorf("%d characters: accepted %v, %v", n, got, err)
		}
	}
}

// nestedOneOf is a short schema whose alternatives multiply with every level.
func nestedOneOf() string {
	schema := `{"$defs": {"a0": {"type": "integer"}`
	for i := range 30 {
		schema += fmt.Sprintf(`, "a%d": {"oneOf": [{"$ref": "#/$defs/a%d"}, {"$ref": "#/$defs/a%d", "minimum": %d}]}`, i+1, i, i, i)
	}
	return schema + `}, "$ref": "#/$defs/a30"}`
}

// Short schemas whose alternatives, rules or comparisons would multiply are refused, in little
// memory. Without bounds some of them would take hours.
func TestHostileSchemas(t *testing.T) {
	list := func(n int, format string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, format+",", i)
		}
		return strings.TrimSuffix(b.String(), ",")
	}
	for name, schema := range map[string]string{
		"properties and patterns": `{"type": "object", "properties": {` + list(5000, `"k%d": true`) +
			`}, "patternProperties": {` + list(5000, `"p%d": true`) + `}}`,
		"values and a pattern": `{"enum": [` + list(10000, `"k%d"`) + `], "pattern": "^k[0-9a-z]{1,900}$"}`,
		"a long value":         `{"const": "` + strings.Repeat("a", 100000) + `", "pattern": "(a?){900}b"}`,
		"a large pattern":      `{"const": "a", "pattern": "` + strings.Repeat("[a-c]{1000}", 3000) + `"}`,
		"counted properties":   `{"type": "object", "properties": {` + list(4000, `"k%d": true`) + `}, "minProperties": 4000}`,
		"distinct items": `{"type": "array", "items": {"enum": [` + list(8000, `"k%d"`) +
			`]}, "uniqueItems": true, "minItems": 2}`,
		"dependent properties": `{"dependentRequired": {` + list(40, `"k%d": ["a"]`) + `}}`,
		"alternatives and values": `{"anyOf": [` + list(1000, `{"minLength": %d}`) + `], "enum": [` +
			list(3000, `"k%d"`) + `]}`,
		"items denied": `{"not": {"prefixItems": [` + list(20000, `{"minimum": %d}`) + `]}}`,
		"properties denied": `{"anyOf": [` + list(1000, `{"minProperties": %d}`) + `], "not": {"required": [` +
			list(3000, `"k%d"`) + `]}}`,
		"patterns of many parts": `{"type": "string", "allOf": [{"pattern": "^` + strings.Repeat("a?", 900) +
			`$"}, {"pattern": "^` + strings.Repeat("(a|b)?", 900) + `$"}]}`,
		"patterns that begin anywhere": `{"type": "string", "pattern": "` + strings.Repeat(".*", 500) +
			`", "allOf": [{"pattern": "a` + strings.Repeat(".*", 500) + `"}], "maxLength": 200}`,
		"many patterns": `{"type": "string", "allOf": [` + list(30, `{"pattern": "%d.*a"}`) + `]}`,
		"a list":        `{"const": [` + list(50000, "%d") + `]}`,
		"names":         `{"type": "object", "properties": {` + list(20000, `"%d": true`) + `}}`,
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := JSONSchema(schema)
		runtime.ReadMemStats(&after)
		if made := (after.TotalAlloc - before.TotalAlloc) >> 20; err == nil || made > 1000 {
			t.Errorf("%s: error %v after %d MiB", name, err, made)
		}
	}
}

// Numbers between decimal bounds are those that compare so.
func TestBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		number := func(name string) json.Number {
			n := rapid.Int64Range(-20000, 20000).Draw(t, name)
			return json.Number(decimalText(n, rapid.IntRange(0, 4).Draw(t, "places")))
		}
		low, high := number("low"), number("high")
		schema := `{"type": "` + rapid.SampledFrom([]string{"number", "integer"}).Draw(t, "type") + `", "` +
			rapid.SampledFrom([]string{"minimum", "exclusiveMinimum"}).Draw(t, "low") + `": ` + string(low) + `, "` +
			rapid.SampledFrom([]string{"maximum", "exclusiveMaximum"}).Draw(t, "high") + `": ` + string(high) + "}"
		g, err := JSONSchema(schema)
		if err != nil {
			if !strings.Contains(err.Error(), "no text") {
				t.Fatal(err)
			}
			return
		}
		text := string(rapid.OneOf(rapid.Just(low), rapid.Just(high),
			rapid.Custom(func(t *rapid.T) json.Number { return number("value") })).Draw(t, "value"))
		v, _ := ratio(text)
		lo, _ := ratio(string(low))
		hi, _ := ratio(string(high))
		b := bounds{lo, hi, strings.Contains(schema, "exclusiveMin"), strings.Contains(schema, "exclusiveMax")}
		if strings.Contains(text, ".") && (!strings.Contains(schema, "number") || strings.HasSuffix(text, "0")) {
			return
		}
		if got, err := g.Accepts(text); err != nil || got != b.holds(v) {
			t.Fatalf("%s: %s: accepted %v, %v", schema, text, got, err)
		}
	})
}

func FuzzJSONSchema(f *testing.F) {
	f.Add(`{"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"], "anyOf": [{"not": {"enum": [1]}}, true]}`)
	f.Add(`{"items": {"multipleOf": 0.5, "minimum": 1e3}, "contains": {"pattern": "a|b"}, "uniqueItems": true}`)
	f.Fuzz(func(t *testing.T, schema string) {
		began := time.Now()
		if g, err := JSONSchema(schema); err == nil {
			if text, err := g.Sample(rand.New(rand.NewPCG(1, 2)).IntN, 200); err == nil && !json.Valid([]byte(text)) {
				t.Errorf("%s is no JSON", text)
			}
		}
		if took := time.Since(began); took > 20*time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

// decimalText is n with so many places after the point.
func decimalText(n int64, places int) string {
	r, _ := ratio("1e-" + string(rune('0'+places)))
	r.Mul(r, big.NewRat(n, 1))
	return r.FloatString(places)
}

func ratio(text string) (*big.Rat, bool) { return new(big.Rat).SetString(text) }

// An object may have many properties, and others that a schema describes.
func TestManyProperties(t *testing.T) {
	var all []string
	for i := range 200 {
		all = append(all, fmt.Sprintf(`"%x_property_name_%d": {"type": "string"}`, i*7919%10007, i))
	}
	g, err := JSONSchema(`{"type": "object", "properties": {` + strings.Join(all, ", ") +
		`}, "additionalProperties": {"type": "integer"}}`)
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]bool{`{"0_property_name_0": "x", "0_property_name_": 1}`: true,
		`{"0_property_name_0": 1}`: false} {
		if got, err := g.Accepts(text); err != nil || got != want {
			t.Errorf("%s: accepted %v, %v", text, got, err)
		}
	}
}
