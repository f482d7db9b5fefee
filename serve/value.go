package serve

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
)

func isInteger(k reflect.Kind) bool { return k >= reflect.Int && k <= reflect.Uint64 }

func isNumber(t reflect.Type) bool { return isInteger(t.Kind()) || t.Kind() == reflect.Float32 }

// mostDigits is more digits than any number that a field takes has.
const mostDigits = 20

// wholeNumber returns a JSON number as digits only: 40.0 and 4e1 become 40, since some languages
// have no other numbers. It leaves values that are not whole, too long or not numbers as they are.
func wholeNumber(raw json.RawMessage) json.RawMessage {
	if raw[0] != '-' && (raw[0] < '0' || raw[0] > '9') {
		return raw
	}
	text := string(raw)
	mantissa, exponent, _ := strings.Cut(strings.ToLower(text), "e")
	digits, negative := strings.CutPrefix(mantissa, "-")
	whole, fraction, _ := strings.Cut(digits, ".")
	shift, err := strconv.Atoi(exponent)
	if exponent != "" && err != nil {
		return raw
	}
	digits = strings.TrimRight(whole+fraction, "0")
	zeros := len(whole) + shift - len(digits) // zeros between the digits and the point
	digits = strings.TrimLeft(digits, "0")
	switch {
	case digits == "":
		return json.RawMessage("0")
	case zeros < 0 || zeros > mostDigits || len(digits) > mostDigits:
		return raw
	}
	digits += strings.Repeat("0", zeros)
	if negative {
		digits = "-" + digits
	}
	return json.RawMessage(digits)
}

// wanted names the JSON values that a Go type can hold, or its range if a number is out of it.
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

// shown is a JSON value in an error: its text for the client, and its kind for the log.
type shown struct{ text, kind string }

func (s shown) String() string { return s.text }

// described names a JSON value in an error.
func described(raw json.RawMessage) shown {
	raw = bytes.TrimSpace(raw)
	switch text, isText := decode[string](raw); {
	case len(raw) == 0:
		return shown{"nothing", "nothing"}
	case raw[0] == '[':
		return shown{"a list", "a list"}
	case raw[0] == '{':
		return shown{"an object", "an object"}
	case isText:
		return shown{fmt.Sprintf("the string %q", shortened(text, 40)), "a string"}
	case raw[0] > '9': // true, false or null
		return shown{string(raw), string(raw)}
	}
	return shown{shortened(string(raw), 40), "a number"}
}

// shortened returns the beginning of a text of more than most bytes.
func shortened(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}

// kindOf names the JSON values that a Go type can hold.
func kindOf(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int32, reflect.Int64, reflect.Uint64:
		return "a whole number"
	case reflect.Float32:
		return "a number"
	case reflect.String:
		return "a string"
	case reflect.Slice:
		switch t.Elem().Kind() {
		case reflect.Int32:
			return "a list of tokens"
		case reflect.String:
			return "a list of strings"
		}
		return "a list"
	}
	return "an object"
}
