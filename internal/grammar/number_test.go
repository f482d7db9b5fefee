package grammar

import (
	"encoding/json"
	"fmt"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// Whatever keywords a schema of numbers has, each text of its grammar has at most 18 digits before
// the point and 15 after it, and is a number that the keywords accept. The walk prefers long texts,
// as a high temperature does.
func TestNumberDigits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		number := rapid.OneOf(
			rapid.Custom(func(t *rapid.T) string {
				return decimalText(rapid.Int64Range(-3000, 3000).Draw(t, "n"), rapid.IntRange(0, 4).Draw(t, "places"))
			}),
			rapid.SampledFrom([]string{"0", "1e17", "-1e17", "1e18", "-1e18", "1e30", "-1e30", "1e-15", "1e-17",
				"0.1234567890123456", "999999999999999999"}))
		step := rapid.OneOf(
			rapid.Custom(func(t *rapid.T) string {
				return decimalText(rapid.Int64Range(1, 1200).Draw(t, "step"), rapid.IntRange(0, 4).Draw(t, "places"))
			}),
			rapid.SampledFrom([]string{"5", "10", "1000", "64", "365", "1024", "86400", "0.01", "0.25", "0.05", "1e-15",
				"1e-20", "1e17", "1e20"}))
		schema := map[string]any{"type": rapid.SampledFrom([]string{"integer", "number"}).Draw(t, "type")}
		for keyword, values := range map[string]*rapid.Generator[string]{"minimum": number, "maximum": number,
			"exclusiveMinimum": number,
			"exclusiveMaximum": number, "multipleOf": step} {
			if rapid.IntRange(0, 2).Draw(t, keyword) == 0 {
				schema[keyword] = json.Number(values.Draw(t, keyword+" value"))
			}
		}
		if rapid.IntRange(0, 3).Draw(t, "allOf") == 0 {
			schema["allOf"] = []any{map[string]any{"multipleOf": json.Number(step.Draw(t, "further step"))}}
		}
		if rapid.IntRange(0, 3).Draw(t, "not") == 0 {
			schema["not"] = map[string]any{"const": json.Number(number.Draw(t, "not"))}
		}
		text, err := json.Marshal(schema)
		if err != nil {
			t.Fatal(err)
		}
		g, err := JSONSchema(string(text))
		if err != nil {
			if !strings.Contains(err.Error(), "no text") && !strings.Contains(err.Error(), "cannot be honoured") {
				t.Fatal(err)
			}
			return
		}
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		for range 20 {
			got, err := g.Sample(func(n int) int {
				if n == 4 { // whether to end: no
					return 1
				}
				return rng.IntN(n)
			}, 200)
			if err != nil {
				t.Fatal(err)
			}
			v, ok := ratio(got)
			mantissa, _, _ := strings.Cut(strings.ToLower(strings.TrimPrefix(got, "-")), "e")
			whole, fraction, _ := strings.Cut(mantissa, ".")
			if !ok || len(whole) > intDigits || len(fraction) > fracDigits {
				t.Fatalf("%s: %s", text, got)
			}
			if why := refused(schema, v); why != "" {
				t.Fatalf("%s: %s is refused by %s", text, got, why)
			}
		}
	})
}

// refused names the keyword of a schema that does not accept a number; empty for none.
func refused(schema map[string]any, v *big.Rat) string {
	for keyword, value := range schema {
		bound, _ := ratio(fmt.Sprint(value))
		ok := true
		switch keyword {
		case "type":
			ok = value == "number" || v.IsInt()
		case "minimum":
			ok = v.Cmp(bound) >= 0
		case "maximum":
			ok = v.Cmp(bound) <= 0
		case "exclusiveMinimum":
			ok = v.Cmp(bound) > 0
		case "exclusiveMaximum":
			ok = v.Cmp(bound) < 0
		case "multipleOf":
			ok = new(big.Rat).Quo(v, bound).IsInt()
		case "allOf":
			ok = refused(value.([]any)[0].(map[string]any), v) == ""
		case "not":
			bound, _ = ratio(fmt.Sprint(value.(map[string]any)["const"]))
			ok = v.Cmp(bound) != 0
		}
		if !ok {
			return keyword
		}
	}
	return ""
}

// Multiples of round numbers, and of numbers that take many rules, are within reach.
func TestMultiples(t *testing.T) {
	for _, c := range []struct {
		schema  string
		yes, no []string
	}{
		{`{"type": "integer", "multipleOf": 5}`, []string{"0", "5", "-10", "999999999999999995"},
			[]string{"1", "-0", "05", "0.", "0.0", "1000000000000000000"}},
		{`{"type": "integer", "multipleOf": 300}`, []string{"0", "300", "-900", "123456789012345600"},
			[]string{"100", "30", "000"}},
		{`{"type": "integer", "multipleOf": 64}`, []string{"0", "64", "-128", "6400000000"}, []string{"65"}},
		{`{"type": "integer", "multipleOf": 86400}`, []string{"0", "86400", "-86400", "604800"}, []string{"86401"}},
		{`{"type": "integer", "multipleOf": 1024}`, []string{"0", "1024", "65536"}, []string{"1000"}},
		{`{"type": "number", "multipleOf": 0.05}`, []string{"0", "0.05", "-12.1", "12.10", "7"},
			[]string{"0.01", "0.055", ".05"}},
		{`{"type": "number", "multipleOf": 0.01, "minimum": 0}`, []string{"0", "0.05", "19.99", "1234567.8"},
			[]string{"-0.01", "-5", "1.005"}},
		{`{"type": "integer", "minimum": -9007199254740991, "maximum": 9007199254740991, "multipleOf": 5}`, // zod's
			[]string{"0", "15", "-20", "9007199254740990"}, []string{"3", "9007199254740995"}},
		{`{"type": "integer", "exclusiveMinimum": 10, "maximum": 25, "multipleOf": 5}`, []string{"15", "25"},
			[]string{"10", "30", "5"}},
		{`{"type": "integer", "minimum": -9007199254740991, "maximum": 9007199254740991, "multipleOf": 1024}`,
			[]string{"0", "4096", "-1024"}, []string{"1000"}},
		{`{"type": "number", "multipleOf": 1e-20}`, []string{"0.000000000000001", "3"}, []string{"0.0000000000000001"}},
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
	}
}

// Within bounds, exactly the multiples can be written.
func TestMultiplesWithinBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		decimal := func(name string, least int64) string {
			return decimalText(rapid.Int64Range(least, 3000).Draw(t, name), rapid.IntRange(0, 2).Draw(t, name+" places"))
		}
		schema := map[string]any{"type": "number", "multipleOf": json.Number(decimal("step", 1))}
		for _, keyword := range []string{"minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum"} {
			if rapid.IntRange(0, 1).Draw(t, keyword) == 0 {
				schema[keyword] = json.Number(decimal(keyword+" value", -3000))
			}
		}
		text, _ := json.Marshal(schema)
		g, err := JSONSchema(string(text))
		if err != nil && !strings.Contains(err.Error(), "no text") {
			t.Fatal(err)
		}
		step, _ := ratio(fmt.Sprint(schema["multipleOf"]))
		for range 20 {
			multiple := big.NewRat(rapid.Int64Range(-400, 400).Draw(t, "multiple"), rapid.Int64Range(1, 2).Draw(t, "half"))
			v := multiple.Mul(multiple, step)
			number := decimalOf(v)
			got := false
			if g != nil {
				got, err = g.Accepts(number)
			}
			if want := refused(schema, v) == ""; got != want && err == nil {
				t.Fatalf("%s: %s: accepted %v", text, number, got)
			}
		}
	})
}
