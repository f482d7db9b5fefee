package tokenizer

// Character classes: what the split patterns call \p{L}, \p{N}, \s and so on, as one table of bits
// per character, built once from the unicode package.

import (
	"sync"
	"unicode"
	"unicode/utf8"
)

type class uint16

const (
	letter      class = 1 << iota // \p{L}
	number                        // \p{N}
	space                         // \s, the White_Space property
	mark                          // \p{M}
	punct                         // \p{P}
	symbol                        // \p{S}
	upperish                      // [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]
	lowerish                      // [\p{Ll}\p{Lm}\p{Lo}\p{M}]
	newline                       // [\r\n]
	asciiLetter                   // [A-Za-z]
	han                           // \p{Han}
	asciiPunct                    // ASCII that is neither letter, digit, space nor control
)

// classTable is a two-level table: pages of 256 characters, equal pages stored once.
type classTable struct {
	index [(unicode.MaxRune + 1) >> 8]uint16
	pages [][256]class
}

var asciiClass = func() (t [utf8.RuneSelf]class) {
	for r := range t {
		t[r] = classOf(rune(r))
	}
	return
}()

var allClasses = sync.OnceValue(func() *classTable {
	t := new(classTable)
	seen := map[[256]class]uint16{}
	flat := make([]class, unicode.MaxRune+1)
	paint := func(tab *unicode.RangeTable, c class) {
		for _, r := range tab.R16 {
			for x := uint32(r.Lo); x <= uint32(r.Hi); x += uint32(r.Stride) {
				flat[x] |= c
			}
		}
		for _, r := range tab.R32 {
			for x := r.Lo; x <= r.Hi; x += r.Stride {
				flat[x] |= c
			}
		}
	}
	for _, p := range classSources {
		paint(p.table, p.bits)
	}
	for i := range t.index {
		page := [256]class(flat[i<<8 : i<<8+256])
		k, ok := seen[page]
		if !ok {
			k = uint16(len(t.pages))
			seen[page] = k
			t.pages = append(t.pages, page)
		}
		t.index[i] = k
	}
	return t
})

var classSources = []struct {
	table *unicode.RangeTable
	bits  class
}{
	{unicode.L, letter}, {unicode.N, number}, {unicode.M, mark}, {unicode.P, punct}, {unicode.S, symbol},
	{unicode.White_Space, space},
	{unicode.Han, han},
	{unicode.Lu, upperish}, {unicode.Lt, upperish},
	{unicode.Ll, lowerish},
	{unicode.Lm, upperish | lowerish}, {unicode.Lo, upperish | lowerish}, {unicode.M, upperish | lowerish},
}

// classOf is the definition that the tables hold, for ASCII.
func classOf(r rune) (c class) {
	for _, p := range classSources {
		if unicode.Is(p.table, r) {
			c |= p.bits
		}
	}
	switch {
	case r == '\r' || r == '\n':
		c |= newline
	case 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z':
		c |= asciiLetter
	case r > ' ' && r < 0x7f && c&number == 0:
		c |= asciiPunct
	}
	return c
}

// at returns the class of the character of s at i and its length in bytes; 0, 0 past the end. A byte
// that is not UTF-8 has the class of U+FFFD, a symbol.
func at(s string, i int) (class, int) {
	if i >= len(s) {
		return 0, 0
	}
	if b := s[i]; b < utf8.RuneSelf {
		return asciiClass[b], 1
	}
	r, n := utf8.DecodeRuneInString(s[i:])
	t := allClasses()
	return t.pages[t.index[r>>8]][r&0xff], n
}

// run returns the end of the characters from i on that have one of the bits of want.
func run(s string, i int, want class) int {
	for {
		c, n := at(s, i)
		if c&want == 0 {
			return i
		}
		i += n
	}
}

// runNot returns the end of the characters from i on that have none of the bits of stop.
func runNot(s string, i int, stop class) int {
	for {
		c, n := at(s, i)
		if n == 0 || c&stop != 0 {
			return i
		}
		i += n
	}
}

// char returns the length of the first character of s, a byte that is not UTF-8 being one too.
func char(s string) int {
	_, n := utf8.DecodeRuneInString(s)
	return n
}
