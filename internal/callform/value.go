package callform

import (
	"encoding/json"
	"fmt"
	"strings"
)

// appendEscaped appends a text as it stands in a string of JSON. It may be cut within a character.
func appendEscaped(dst []byte, text string) []byte {
	for i := range len(text) {
		switch b := text[i]; {
		case b == '"' || b == '\\':
			dst = append(dst, '\\', b)
		case b == '\n':
			dst = append(dst, `\n`...)
		case b == '\t':
			dst = append(dst, `\t`...)
		case b == '\r':
			dst = append(dst, `\r`...)
		case b < 0x20:
			dst = fmt.Appendf(dst, `\u%04x`, b)
		default:
			dst = append(dst, b)
		}
	}
	return dst
}

func appendQuoted(dst []byte, text string) []byte {
	return append(appendEscaped(append(dst, '"'), text), '"')
}

// literalEnds are the places of a text at which a value may end: those outside of brackets and quotes, the first apart.
func literalEnds(text, quote string) (ends []int) {
	depth := 0
	for i := 0; i < len(text); {
		if n, ok := quotedLength(text[i:], quote); ok {
			if n < 0 {
				return ends
			}
			i += n
		} else {
			switch text[i] {
			case '{', '[':
				depth++
			case '}', ']':
				depth--
				if depth < 0 {
					return ends
				}
			}
			i++
		}
		if depth == 0 {
			ends = append(ends, i)
		}
	}
	return ends
}

// quotedLength is the length of the string that a text begins with, quotes included; below 0 where it is not whole.
func quotedLength(text, quote string) (n int, ok bool) {
	if len(quote) > 1 {
		if !strings.HasPrefix(text, quote) {
			return 0, false
		}
		end := strings.Index(text[len(quote):], quote)
		if end < 0 {
			return -1, true
		}
		return end + 2*len(quote), true
	}
	if text[0] != '"' && text[0] != '\'' {
		return 0, false
	}
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case text[0]:
			return i + 1, true
		}
	}
	return -1, true
}

// readLiteral turns a value in a form's notation, in Python's or in JSON into JSON.
func readLiteral(text string, a *Arguments) (value string, ok bool) {
	p := literalReader{text: strings.Trim(text, space), a: a}
	p.value(0)
	return string(p.out), !p.wrong && p.text == ""
}

type literalReader struct {
	text  string
	a     *Arguments
	out   []byte
	wrong bool
}

func (p *literalReader) skip() { p.text = strings.TrimLeft(p.text, space) }

func (p *literalReader) take(word string) bool {
	rest, ok := strings.CutPrefix(p.text, word)
	if ok {
		p.text = rest
	}
	return ok
}

func (p *literalReader) value(depth int) {
	p.skip()
	if p.text == "" || depth > 200 {
		p.wrong = true
		return
	}
	if n, ok := quotedLength(p.text, p.a.Nested.Quote); ok {
		p.quoted(n)
		return
	}
	switch {
	case p.take("{"):
		p.list('{', '}', func() {
			p.name()
			p.skip()
			p.wrong = p.wrong || !p.take(":")
			p.out = append(p.out, ": "...)
			p.value(depth + 1)
		})
	case p.take("["):
		p.list('[', ']', func() { p.value(depth + 1) })
	default:
		end := strings.IndexAny(p.text, ",]}: \t\r\n")
		if end < 0 {
			end = len(p.text)
		}
		word := p.text[:end]
		p.text = p.text[end:]
		for _, w := range []Words{p.a.Words, p.a.Nested.Words, JSON.Words, {"True", "False", "None"}} {
			for i, known := range []string{w.True, w.False, w.Null} {
				if word == known && word != "" {
					p.out = append(p.out, []string{"true", "false", "null"}[i]...)
					return
				}
			}
		}
		p.wrong = p.wrong || !isNumber(word)
		p.out = append(p.out, word...)
	}
}

func (p *literalReader) list(open, end byte, item func()) {
	p.out = append(p.out, open)
	p.skip()
	for n := 0; !p.take(string(end)) && !p.wrong; n++ {
		if n > 0 {
			p.wrong = !p.take(",")
			p.out = append(p.out, ", "...)
		}
		item()
		p.skip()
		p.wrong = p.wrong || p.text == ""
	}
	p.out = append(p.out, end)
}

// name reads the name of a member, with quotes or without.
func (p *literalReader) name() {
	p.skip()
	if p.text == "" {
		p.wrong = true
		return
	}
	if n, ok := quotedLength(p.text, p.a.Nested.Quote); ok {
		p.quoted(n)
		return
	}
	if p.a.Nested.Key != "" {
		p.wrong = true
		return
	}
	name, rest, ok := strings.Cut(p.text, ":")
	p.text, p.wrong = ":"+rest, p.wrong || !ok
	p.out = appendQuoted(p.out, name)
}

// quoted reads a string that is n bytes long.
func (p *literalReader) quoted(n int) {
	if n < 0 {
		p.wrong = true
		return
	}
	text, q := p.text[:n], p.a.Nested.Quote
	p.text = p.text[n:]
	switch {
	case len(q) > 1:
		p.out = appendQuoted(p.out, text[len(q):n-len(q)])
	case text[0] == '"' && p.a.Nested.Quote != "'":
		p.out = append(p.out, text...)
	default:
		p.out = appendQuoted(p.out, unescapePython(text[1:n-1]))
	}
}

// unescapePython reads the escapes of a string of Python.
func unescapePython(text string) string {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' || i+1 == len(text) {
			b.WriteByte(text[i])
			continue
		}
		i++
		size := map[byte]int{'x': 2, 'u': 4, 'U': 8}[text[i]]
		var r rune
		switch known := strings.IndexByte(`\'"nrt`, text[i]); {
		case known >= 0:
			b.WriteByte("\\'\"\n\r\t"[known])
		case size > 0 && i+size < len(text):
			if _, err := fmt.Sscanf(text[i+1:i+1+size], "%x", &r); err == nil {
				b.WriteRune(r)
				i += size
				continue
			}
			fallthrough
		default:
			b.WriteString(text[i-1 : i+1])
		}
	}
	return b.String()
}

// isNumber reports whether a word is a number of JSON.
func isNumber(word string) bool {
	return word != "" && strings.IndexByte("-0123456789", word[0]) >= 0 && json.Valid([]byte(word))
}
