package ggufkeys

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/grovellm/grove/gguf"
	"github.com/grovellm/grove/internal/files/fileerr"
)

// Rules say how a reader treats the keys that follow a prefix, such as an architecture's name.
type Rules struct {
	Obeyed  []string         // the reader uses the value
	Ignored []string         // no value changes a result
	Neutral map[string][]any // the values (int, bool, string) that do not change the result; others are refused
}

// allows reports whether the reader takes the key with any value.
func (r *Rules) allows(key string) bool {
	return slices.Contains(r.Obeyed, key) || slices.Contains(r.Ignored, key)
}

// Check returns an error that names the first key with the prefix that the rules do not allow. It
// refuses a key that no rule names.
func Check(f *gguf.File, prefix string, rules ...Rules) error {
	for name, value := range f.Meta() {
		key, ok := strings.CutPrefix(name, prefix)
		if !ok || slices.ContainsFunc(rules, func(r Rules) bool { return r.allows(key) }) {
			continue
		}
		problem := "grove does not know the key, and it may change what the model computes"
		remedy := "take a newer grove; or remove the key, if it changes no result " +
			"(gguf-new-metadata --remove-metadata)"
		for _, r := range rules {
			neutral, known := r.Neutral[key]
			if known && isOneOf(value, neutral) {
				problem = ""
			} else if known {
				problem = fmt.Sprintf("is %v, and grove does not compute models with that value", value)
				remedy = "run the model with a program that does"
			}
		}
		if problem != "" {
			return fault(f, "key "+fileerr.Quote(name), remedy, errors.New(problem))
		}
	}
	return nil
}

// maxNeutral bounds the arrays that are compared element by element with neutral values.
const maxNeutral = 1 << 16

// isOneOf reports whether the value, or each element of an array, is in a list.
func isOneOf(v gguf.Value, list []any) bool {
	if v.Len() > maxNeutral {
		return false
	}
	if elements, ok := gguf.As[[]gguf.Value](v); ok {
		return !slices.ContainsFunc(elements, func(e gguf.Value) bool { return !isOneOf(e, list) })
	}
	return slices.ContainsFunc(list, func(want any) bool {
		var got any
		ok := false
		switch w := want.(type) {
		case bool:
			got, ok = gguf.As[bool](v)
		case string:
			got, ok = gguf.As[string](v)
		case int:
			want = float64(w)
			got, ok = gguf.As[float64](v)
		}
		return ok && got == want
	})
}
