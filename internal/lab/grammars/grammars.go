// Package grammars makes random grammars, and vocabularies for them: what checks and tests constrain texts by.
package grammars

import (
	"fmt"
	"strings"
)

// Random makes a grammar of a few rules over the letters of Vocab, for tests. intn returns a
// number of 0 to n-1. Rules call later rules, and themselves between letters.
func Random(intn func(n int) int) string {
	pick := func(list ...string) string { return list[intn(len(list))] }
	names := []string{"root", "r1", "r2", "r3"}[:1+intn(4)]
	var body func(rule, depth int) string
	atom := func(rule, depth int) string {
		switch intn(7) {
		case 0, 1:
			return `"` + pick("a", "ab", "c", "é", "語", "da", "abcdabcd") + `"`
		case 2:
			return pick("[a-c]", "[^ab]", "[é-語]", ".")
		case 3:
			if depth < 2 {
				return "(" + body(rule, depth+1) + ")"
			}
		case 4:
			if later := names[rule+1:]; len(later) > 0 {
				return pick(later...)
			}
		}
		return `"b"`
	}
	body = func(rule, depth int) string {
		var alternatives []string
		for range 1 + intn(3) {
			parts := []string{`""`}
			for range intn(4) {
				parts = append(parts, atom(rule, depth)+pick("", "", "", "*", "+", "?", "{2}", "{1,3}", "{0,2}"))
			}
			if depth == 0 && intn(4) == 0 {
				parts = append(parts, `"d"`, names[rule], pick(`"c"`, `""`))
			}
			alternatives = append(alternatives, strings.Join(parts, " "))
		}
		return strings.Join(alternatives, " | ")
	}
	var b strings.Builder
	for i, name := range names {
		fmt.Fprintf(&b, "%s ::= %s\n", name, body(i, 0))
	}
	return b.String()
}

// Vocab makes texts of n tokens: the letters and bytes that Random's grammars need, as far as
// there are so many tokens, and pieces of such texts, some of which are cut within a character.
func Vocab(n int, intn func(n int) int) [][]byte {
	letters := []rune("abcdé語")
	pieces := [][]byte{nil, {0xc3}, {0xa9}}
	for _, c := range letters {
		pieces = append(pieces, []byte(string(c)))
	}
	for len(pieces) < n {
		var text []rune
		for range 1 + intn(5) {
			text = append(text, letters[intn(len(letters))])
		}
		pieces = append(pieces, []byte(string(text))[intn(2):])
	}
	return pieces[:n]
}
