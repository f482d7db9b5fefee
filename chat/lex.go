package chat

// A tag's tokens.

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

type tokenKind byte

const (
	endToken tokenKind = iota
	nameToken
	numberToken
	textToken
	signToken
)

type token struct {
	kind tokenKind
	text string
}

// lex cuts a tag into the engine's tokens.
func lex(s string) ([]token, error) {
	var list []token
	for i := 0; i < len(s); {
		c, from := s[i], i
		kind := signToken
		switch {
		case strings.IndexByte(" \t\n\r", c) >= 0:
			i++
			continue
		case c == '\'' || c == '"':
			if i = quoteEnd(s, i) + 1; i > len(s) {
				return nil, fmt.Errorf("a text is not closed: %.60q", s[from:])
			}
			kind = textToken
		case '0' <= c && c <= '9':
			i += len(number.FindString(s[i:]))
			kind = numberToken
		case identByte(c):
			for i < len(s) && identByte(s[i]) {
				i++
			}
			if kind = nameToken; strings.HasPrefix(s[from:i], "grove_") {
				return nil, fmt.Errorf("the name %q is grove's", s[from:i])
			}
		default:
			i++
			if i < len(s) && slices.Contains([]string{"**", "//", "==", "!=", "<=", ">="}, s[from:i+1]) {
				i++
			} else if strings.IndexByte("+-*/%<>=~|.,:()[]{}", c) < 0 {
				return nil, fmt.Errorf("%q is not understood", c)
			}
		}
		list = append(list, token{kind, s[from:i]})
	}
	return list, nil
}

func identByte(c byte) bool {
	return c == '_' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

// number is one of the engine's: an exponent only after a fraction.
var number = regexp.MustCompile(`^[0-9]+(\.[0-9]+([eE][+-]?[0-9]*)?)?`)
