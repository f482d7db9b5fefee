package infile

import "bytes"

// PlainJSON converts JSON as Python writes it: null replaces numbers that JSON cannot express:
// Infinity, -Infinity and NaN.
func PlainJSON(data []byte) []byte {
	var out []byte
	quoted := false
	done := 0
	for i := 0; i < len(data); i++ {
		switch {
		case quoted && data[i] == '\\':
			i++
		case data[i] == '"':
			quoted = !quoted
		case !quoted:
			for _, word := range []string{"Infinity", "-Infinity", "NaN"} {
				if bytes.HasPrefix(data[i:], []byte(word)) {
					out = append(append(out, data[done:i]...), "null"...)
					done = i + len(word)
					i = done - 1
				}
			}
		}
	}
	if done == 0 {
		return data
	}
	return append(out, data[done:]...)
}
