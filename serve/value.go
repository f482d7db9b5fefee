package serve

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// unmarshal reads JSON into what to points at. Where a whole number is wanted it may be written as
// a fraction or with an exponent: 40.0 and 4e1 are 40. Some languages know no other numbers.
func unmarshal(raw json.RawMessage, to any) error {
	err := json.Unmarshal(raw, to)
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) && strings.HasPrefix(wrong.Value, "number") && isInteger(wrong.Type.Kind()) {
		return json.Unmarshal(wholeNumbers(raw), to)
	}
	return err
}

func isInteger(k reflect.Kind) bool { return k >= reflect.Int && k <= reflect.Uint64 }

// wholeNumbers writes the whole numbers of a JSON text as digits alone. Other numbers stay.
func wholeNumbers(raw json.RawMessage) json.RawMessage {
	out := make([]byte, 0, len(raw))
	for i := 0; i < len(raw); {
		end := i + 1
		switch c := raw[i]; {
		case c == '"':
			for end < len(raw) && raw[end] != '"' {
				if raw[end] == '\\' {
					end++
				}
				end++
			}
			end = min(end+1, len(raw))
		case c == '-' || c >= '0' && c <= '9':
			for end < len(raw) && strings.IndexByte("+-.0123456789eE", raw[end]) >= 0 {
				end++
			}
			out = append(out, wholeNumber(string(raw[i:end]))...)
			i = end
			continue
		}
		out = append(out, raw[i:end]...)
		i = end
	}
	return out
}

// mostDigits is more than any number has that a field takes.
const mostDigits = 20

// wholeNumber is a JSON number as digits alone; where it is not whole, or long, as it was.
func wholeNumber(text string) string {
	mantissa, exponent, _ := strings.Cut(strings.ToLower(text), "e")
	digits, negative := strings.CutPrefix(mantissa, "-")
	whole, fraction, _ := strings.Cut(digits, ".")
	shift, err := strconv.Atoi(exponent)
	if exponent != "" && err != nil {
		return text
	}
	digits = strings.TrimRight(whole+fraction, "0")
	zeros := len(whole) + shift - len(digits) // behind the digits, to the point
	digits = strings.TrimLeft(digits, "0")
	switch {
	case digits == "":
		return "0"
	case zeros < 0 || zeros > mostDigits || len(digits) > mostDigits:
		return text
	}
	digits += strings.Repeat("0", zeros)
	if negative {
		digits = "-" + digits
	}
	return digits
}

// misfit finds the first place in a JSON value that a Go type does not hold, and says what is wrong
// there; why is empty where there is none.
func misfit(raw json.RawMessage, t reflect.Type) (at, why string) {
	raw = bytes.TrimSpace(raw)
	if t == reflect.TypeFor[json.RawMessage]() {
		return "", ""
	}
	if list, ok := decode[[]json.RawMessage](raw); ok && t.Kind() == reflect.Slice {
		for i, item := range list {
			if at, why := misfit(item, t.Elem()); why != "" {
				return fmt.Sprintf("[%d]%s", i, at), why
			}
		}
		return "", ""
	}
	if fields, ok := decode[map[string]json.RawMessage](raw); ok && t.Kind() == reflect.Map {
		for _, name := range slices.Sorted(maps.Keys(fields)) {
			if at, why := misfit(fields[name], t.Elem()); why != "" {
				return "." + name + at, why
			}
		}
		return "", ""
	}
	if string(raw) != "null" && unmarshal(raw, reflect.New(t).Interface()) == nil {
		return "", ""
	}
	return "", fmt.Sprintf("want %s, not %s", wanted(raw, t), described(raw))
}

// wanted names the JSON values that a Go type holds; of a number that is out of its range, the
// range.
func wanted(raw json.RawMessage, t reflect.Type) string {
	kind := kindOf(t)
	number, err := strconv.ParseFloat(string(raw), 64)
	switch given := err == nil || errors.Is(err, strconv.ErrRange); {
	case given && t.Kind() == reflect.Float32:
		return fmt.Sprintf("%s from %.3g to %.3g", kind, -math.MaxFloat32, math.MaxFloat32)
	case given && isInteger(t.Kind()) && math.Abs(number) >= math.Exp2(float64(t.Bits()-1)):
		most := uint64(1)<<(t.Bits()-1) - 1
		return fmt.Sprintf("%s from -%d to %d", kind, most+1, most)
	}
	return kind
}

// described names a JSON value in an error.
func described(raw json.RawMessage) string {
	raw = bytes.TrimSpace(raw)
	switch text, isText := decode[string](raw); {
	case len(raw) == 0:
		return "nothing"
	case raw[0] == '[':
		return "a list"
	case raw[0] == '{':
		return "an object"
	case isText:
		return fmt.Sprintf("the string %q", shortened(text))
	}
	return shortened(string(raw))
}

// shortened is the beginning of a long text.
func shortened(text string) string {
	const most = 40
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}
