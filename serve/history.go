package serve

import (
	"encoding/json"
	"strings"
)

// argumentsOf returns the arguments of an earlier call as an object, because chat templates look for fields. It
// closes arguments that were cut short where their text ends; text that is no object becomes the field arguments.
func argumentsOf(text string) json.RawMessage {
	if strings.TrimSpace(text) == "" {
		return json.RawMessage("{}")
	}
	for _, whole := range []string{text, closed(text)} {
		if _, isObject := decode[map[string]json.RawMessage](json.RawMessage(whole)); isObject {
			return json.RawMessage(whole)
		}
	}
	whole, _ := json.Marshal(struct {
		Arguments string `json:"arguments"`
	}{text})
	return whole
}

// callArguments are the arguments of an earlier call: an object, or a string that holds one.
type callArguments string

func (a *callArguments) readJSON(_ *decoder, _ string, raw json.RawMessage) error {
	text, isText := decode[string](raw)
	if !isText {
		text = string(raw)
	}
	*a = callArguments(text)
	return nil
}

// closed completes JSON that was cut short, and drops a last part without a value. It leaves text
// that is nested more deeply than bodies may be as it is.
func closed(text string) string {
	var open []byte // the closing brackets that are due
	end := 0        // the length that can be kept
	var kept []byte // the closing brackets that are due there
	keep := func(at int) { end, kept = at, append(kept[:0], open...) }
	quoted, key := false, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case quoted && c == '"':
			quoted = false
			if !key {
				keep(i + 1)
			}
		case quoted:
		case c == '"':
			quoted = true
			key = len(open) > 0 && open[len(open)-1] == '}' && strings.ContainsAny(lastByte(text[:i]), "{,")
		case c == '{' || c == '[':
			if len(open) == maxDepth {
				return text
			}
			open = append(open, c+2) // the closing bracket in ASCII
			keep(i + 1)
		case (c == '}' || c == ']') && len(open) > 0:
			open = open[:len(open)-1]
			keep(i + 1)
		case c == ',':
			keep(i) // a number or a word ends here
		}
	}
	if quoted && !key {
		cut := inputEnd(text)
		text, end = text[:cut]+`"`, cut+1
		kept = open
	}
	out := []byte(text[:min(end, len(text))])
	for i := len(kept) - 1; i >= 0; i-- {
		out = append(out, kept[i])
	}
	return string(out)
}

// inputEnd returns where a text within a string can be cut: not within an escape.
func inputEnd(text string) int {
	if i := strings.LastIndexByte(text, '\\'); i >= 0 && i >= len(text)-5 && (i == len(text)-1 || text[i+1] == 'u') {
		slashes := len(text[:i+1]) - len(strings.TrimRight(text[:i+1], `\`))
		if slashes%2 == 1 {
			return i
		}
	}
	return len(text)
}

// lastByte returns the last byte of a text that is not a space.
func lastByte(text string) string {
	text = strings.TrimRight(text, " \t\r\n")
	if text == "" {
		return " "
	}
	return text[len(text)-1:]
}
