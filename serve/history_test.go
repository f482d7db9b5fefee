package serve

import (
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// Arguments that are cut short anywhere are an object: the beginning of the whole one.
func TestArgumentsCutShort(t *testing.T) {
	var value func(depth int) *rapid.Generator[any]
	value = func(depth int) *rapid.Generator[any] {
		kinds := []*rapid.Generator[any]{rapid.Just[any](nil), rapid.Bool().AsAny(), rapid.Float64Range(-1e9, 1e9).AsAny(),
			rapid.StringOfN(rapid.RuneFrom([]rune(`ab"\/{}[],: é🙂`+"\n\x01")), 0, 8, -1).AsAny()}
		if depth > 0 {
			kinds = append(kinds, rapid.SliceOfN(value(depth-1), 0, 3).AsAny(),
				rapid.MapOfN(rapid.StringOfN(rapid.RuneFrom([]rune(`ab"\,:é`)), 0, 3, -1), value(depth-1), 0, 3).AsAny())
		}
		return rapid.OneOf(kinds...)
	}
	rapid.Check(t, func(t *rapid.T) {
		object := rapid.MapOfN(rapid.StringOfN(rapid.RuneFrom([]rune(`xyz"\,:🙂`)), 1, 3, -1), value(2), 0, 4).Draw(t, "object")
		encoded, _ := json.Marshal(object)
		whole := string(encoded)
		if rapid.Bool().Draw(t, "ascii") {
			whole = strings.NewReplacer("é", `\u00e9`, "🙂", `\ud83d\ude42`).Replace(whole)
		}
		n := rapid.IntRange(1, len(whole)).Draw(t, "n")
		var got map[string]any
		if err := json.Unmarshal(argumentsOf(whole[:n]), &got); err != nil {
			t.Fatalf("%q: %v", whole[:n], err)
		}
		if !begins(got, object) {
			t.Fatalf("%q is read as %v", whole[:n], got)
		}
		if n == len(whole) && len(got) != len(object) {
			t.Fatalf("%q is read as %v", whole, got)
		}
	})
}

// begins reports whether a value is another one, cut short.
func begins(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		for name := range a {
			if _, there := b[name]; !there || !begins(a[name], b[name]) {
				return false
			}
		}
		return ok
	case []any:
		b, ok := b.([]any)
		for i := range a {
			if i >= len(b) || !begins(a[i], b[i]) {
				return false
			}
		}
		return ok
	case string:
		b, ok := b.(string)
		return ok && strings.HasPrefix(b, strings.TrimRight(a, "\ufffd")) // a character may be cut
	}
	return a == b
}

// A custom tool's text comes in pieces that are the text, wherever its JSON is cut.
func TestInputInPieces(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOfN(rapid.RuneFrom([]rune(`ab"\/é🙂u`+"\n\x01")), 0, 20, -1).Draw(t, "text")
		quoted, _ := json.Marshal(text)
		if rapid.Bool().Draw(t, "ascii") {
			quoted = []byte(strings.NewReplacer("é", `\u00e9`, "🙂", `\ud83d\ude42`).Replace(string(quoted)))
		}
		whole := []rune(`{"input": ` + string(quoted) + `}`)
		c := customCalls{offered: map[string]offered{"f": {name: "f", custom: true}}}
		got := ""
		for first := true; first || len(whole) > 0; first = false {
			n := rapid.IntRange(0, len(whole)).Draw(t, "n")
			call := toolCall{Function: calledFunction{Arguments: string(whole[:n])}}
			if first {
				call.ID = "1"
				call.Type = "function"
				call.Function.Name = "f"
			}
			calls := []toolCall{call}
			c.convert(calls)
			got += calls[0].Function.Arguments
			if !strings.HasPrefix(text, got) {
				t.Fatalf("%q is no beginning of %q", got, text)
			}
			whole = whole[n:]
		}
		if got != text {
			t.Fatalf("%q, want %q", got, text)
		}
	})
}
