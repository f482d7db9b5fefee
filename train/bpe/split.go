package bpe

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// cutQwen2 returns the length of the first word of s, by Qwen 2's pattern:
//
//	(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
func cutQwen2(s string) int {
	if n := contraction(s); n > 0 {
		return n
	}
	r, n := utf8.DecodeRuneInString(s)
	if unicode.IsLetter(r) {
		return letters(s, n)
	}
	if unicode.IsNumber(r) {
		return n
	}
	if r != '\r' && r != '\n' && n < len(s) {
		if r2, n2 := utf8.DecodeRuneInString(s[n:]); unicode.IsLetter(r2) {
			return letters(s, n+n2)
		}
	}
	i := 0
	if s[0] == ' ' {
		i = 1
	}
	start := i
	for i < len(s) {
		r, n := utf8.DecodeRuneInString(s[i:])
		if unicode.IsSpace(r) || unicode.IsLetter(r) || unicode.IsNumber(r) {
			break
		}
		i += n
	}
	if i > start {
		for i < len(s) && (s[i] == '\r' || s[i] == '\n') {
			i++
		}
		return i
	}
	last, end, line := 0, 0, 0
	for end < len(s) {
		r, n := utf8.DecodeRuneInString(s[end:])
		if !unicode.IsSpace(r) {
			break
		}
		last, end = end, end+n
		if r == '\r' || r == '\n' {
			line = end
		}
	}
	switch {
	case line > 0:
		return line
	case end < len(s) && last > 0:
		return last
	}
	return end
}

func letters(s string, i int) int {
	for i < len(s) {
		r, n := utf8.DecodeRuneInString(s[i:])
		if !unicode.IsLetter(r) {
			break
		}
		i += n
	}
	return i
}

func contraction(s string) int {
	if len(s) < 2 || s[0] != '\'' {
		return 0
	}
	switch s[1] | 0x20 {
	case 's', 't', 'm', 'd':
		return 2
	case 'r', 'v':
		if len(s) > 2 && s[2]|0x20 == 'e' {
			return 3
		}
	case 'l':
		if len(s) > 2 && s[2]|0x20 == 'l' {
			return 3
		}
	}
	if strings.HasPrefix(s[1:], "ſ") { // an s to the pattern, which folds cases
		return 3
	}
	return 0
}

// splitter returns the cutter of a pre-tokenizer.
func splitter(pre string) (func(string) int, error) {
	if pre != "qwen2" {
		return nil, fmt.Errorf("pre-tokenizer %q is not known; known is qwen2", pre)
	}
	return cutQwen2, nil
}
