package chat

// Where a name, a string, a bracket or an operand begins and ends within a tag.

import (
	"strings"
)

func identByte(c byte) bool {
	return c == '_' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

func insideString(s string, at int) bool {
	for i := 0; i < at; i++ {
		if s[i] == '\'' || s[i] == '"' {
			if i = quoteEnd(s, i); i > at {
				return true
			}
		}
	}
	return false
}

// operandStart finds where the operand that ends at end begins: a literal, a bracketed expression, or a
// variable with fields, indices and calls. It returns end where something else stands there.
func operandStart(s string, end int) int {
	i := end
	for i > 0 {
		c := s[i-1]
		if identByte(c) || c == '.' {
			i--
			continue
		}
		if c == '\'' || c == '"' {
			if i == end {
				i = stringStart(s, i-1)
			}
			break
		}
		if c != ']' && c != ')' && c != '}' {
			break
		}
		open := bracketStart(s, i-1)
		if open < 0 {
			return end
		}
		i = open
		if c == '}' || i == 0 || !identByte(s[i-1]) && !strings.ContainsRune(")]", rune(s[i-1])) {
			break // a literal, or a bracketed expression
		}
	}
	before := strings.TrimRight(s[:i], " \n\t")
	if i == end || s[i] == '.' || before != "" && strings.ContainsAny(before[len(before)-1:], "|.)]}'\"") {
		return end
	}
	return i
}

// operandEnd finds where the operand that begins at start ends, in the same way.
func operandEnd(s string, start int) int {
	i := start
	for i < len(s) {
		switch c := s[i]; {
		case identByte(c) || c == '.':
			i++
		case (c == '\'' || c == '"') && i == start:
			return min(quoteEnd(s, i)+1, len(s))
		case c == '(' || c == '[' || c == '{' && i == start:
			depth := 0
			for ; i < len(s); i++ {
				switch s[i] {
				case '\'', '"':
					i = quoteEnd(s, i)
				case '(', '[', '{':
					depth++
				case ')', ']', '}':
					depth--
				}
				if depth == 0 {
					i++
					break
				}
			}
		default:
			return i
		}
	}
	return min(i, len(s))
}

func topLevelComma(s string) bool {
	depth := 0
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\'', '"':
			i = quoteEnd(s, i)
		case '(', '[', '{':
			depth++
		case ')', ']', '}':
			depth--
		case ',':
			if depth == 0 {
				return true
			}
		}
	}
	return false
}

// stringStart finds the quote that the one at k closes, or k where there is none.
func stringStart(s string, k int) int {
	for i := 0; i < k; i++ {
		if s[i] == '\'' || s[i] == '"' {
			end := quoteEnd(s, i)
			if end == k {
				return i
			}
			i = end
		}
	}
	return k
}

// bracketStart finds the bracket that the one at k closes, −1 for none.
func bracketStart(s string, k int) int {
	var open []int
	for i := 0; i <= k; i++ {
		switch s[i] {
		case '\'', '"':
			i = quoteEnd(s, i)
		case '(', '[', '{':
			open = append(open, i)
		case ')', ']', '}':
			if len(open) == 0 {
				return -1
			}
			if i == k {
				return open[len(open)-1]
			}
			open = open[:len(open)-1]
		}
	}
	return -1
}
