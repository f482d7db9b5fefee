package tokenizer

// Scanners for patterns that match only part of a text, used one after another: the words that one
// leaves are cut by the next. What a pattern does not match is a word too.

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// matches makes a scanner of a matcher, which returns the length of its match at the start of s, or
// 0: the first word is that match, or the text before the next one. A matcher must fail in constant
// time for the whole to be linear.
func matches(match func(s string) int) scanner {
	return func(s string) int {
		if n := match(s); n > 0 {
			return n
		}
		i := 0
		for {
			_, n := at(s, i)
			i += n
			if i == len(s) || match(s[i:]) > 0 {
				return i
			}
		}
	}
}

// runs matches [set]+, and what lies between.
func runs(set class) scanner {
	return func(s string) int {
		if n := run(s, 0, set); n > 0 {
			return n
		}
		return runNot(s, 0, set)
	}
}

// singles matches one character of set.
func singles(set class) scanner { return matches(one(set)) }

func one(set class) func(string) int {
	return func(s string) int {
		if c, n := at(s, 0); c&set != 0 {
			return n
		}
		return 0
	}
}

// spaced matches \s?[set]+.
func spaced(set class) scanner {
	return matches(func(s string) int {
		i := 0
		if c, n := at(s, 0); c&space != 0 {
			i = n
		}
		if end := run(s, i, set); end > i {
			return end
		}
		return 0
	})
}

// trailingSpace matches \s+$, the white space that ends the text or a line: Oniguruma's $, which is
// Hugging Face's, also stands before every line end.
func trailingSpace(s string) int {
	r, _ := utf8.DecodeLastRuneInString(s)
	if c, _ := at(string(r), 0); c&space == 0 && strings.IndexByte(s, '\n') < 0 {
		return len(s)
	}
	for i := 0; i < len(s); {
		c, n := at(s, i)
		if c&space == 0 {
			i += n
			continue
		}
		end := run(s, i, space)
		match := end
		if end < len(s) {
			match = i + n + strings.LastIndexByte(s[i+n:end], '\n')
		}
		switch {
		case match >= i+n && i == 0:
			return match
		case match >= i+n:
			return i
		}
		i = end
	}
	return len(s)
}

// oneOf cuts between the characters of [set] and the others, set being bits, or ASCII characters.
func oneOf(bits class, ascii string) scanner {
	return func(s string) int {
		in := func(i int) (bool, int) {
			c, n := at(s, i)
			return c&bits != 0 || n == 1 && strings.IndexByte(ascii, s[i]) >= 0, n
		}
		first, i := in(0)
		for {
			now, n := in(i)
			if n == 0 || now != first {
				return i
			}
			i += n
		}
	}
}

// alphabetDigits cuts as Digits does after ByteLevel, on text that is already in the alphabet of bytes:
// there the bytes of ²³¹¼½¾ are digits, whatever character they are part of.
func alphabetDigits(individual bool) scanner {
	return func(s string) int {
		digit := func(b byte) bool {
			return '0' <= b && b <= '9' || b == 0xb2 || b == 0xb3 || b == 0xb9 || 0xbc <= b && b <= 0xbe
		}
		first := digit(s[0])
		if first && individual {
			return 1
		}
		for i := 1; i < len(s); i++ {
			if digit(s[i]) != first {
				return i
			}
		}
		return len(s)
	}
}

// threeDigits matches [0-9][0-9][0-9].
var threeDigits = matches(func(s string) int {
	if len(s) < 3 {
		return 0
	}
	for i := range 3 {
		if s[i] < '0' || s[i] > '9' {
			return 0
		}
	}
	return 3
})

// groupsOf3 matches \p{N}{1,3}.
var groupsOf3 = matches(func(s string) int {
	if c, n := at(s, 0); c&number != 0 {
		return digitGroup(s, n, 3)
	}
	return 0
})

// leadingDigits cuts a number into the digits in front of its threes, counted from its end, and these.
var leadingDigits = matches(func(s string) int {
	digits := 0
	end := 0
	for {
		c, n := at(s, end)
		if n == 0 || c&number == 0 {
			break
		}
		digits++
		end += n
	}
	if digits%3 == 0 {
		return end
	}
	return firstDigits(s, digits%3)
})

// thousandsPattern cuts numbers into threes of digits from their ends.
const thousandsPattern = `\d{1,3}(?=(?:\d{3})*\b)`

// thousands are its scanners: two, so that the digits of a long number are not counted again for each three.
var thousands = []scanner{wholeThrees, threes}

// wholeThrees cuts a number into the digits in front, at most three, and the others, if what follows it is no part of
// a word.
func wholeThrees(s string) int {
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if !unicode.IsDigit(r) {
			i += n
			continue
		}
		end, digits := i, 0
		for unicode.IsDigit(r) {
			end += n
			digits++
			r, n = utf8.DecodeRuneInString(s[end:])
		}
		inWord := n > 0 && unicode.In(r, unicode.L, unicode.M, unicode.N, unicode.Pc)
		switch {
		case !inWord && i > 0:
			return i
		case !inWord && digits%3 == 0:
			return end
		case !inWord:
			return firstDigits(s, digits%3)
		}
		i = end
	}
	return len(s)
}

// threes cuts what wholeThrees leaves of a number: text that ends with a digit.
func threes(s string) int {
	if r, _ := utf8.DecodeLastRuneInString(s); unicode.IsDigit(r) {
		return firstDigits(s, 3)
	}
	return len(s)
}

// firstDigits is the length of the first digits of a number, at most as many as it has.
func firstDigits(s string, digits int) (length int) {
	for ; digits > 0 && length < len(s); digits-- {
		_, n := utf8.DecodeRuneInString(s[length:])
		length += n
	}
	return length
}

// DeepSeek V3's last cut:
//
//	[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*
//	|\s*[\r\n]+|\s+(?!\S)|\s+
var scanDeepSeek3 = matches(func(s string) int {
	c, n := at(s, 0)
	if c&asciiPunct != 0 {
		if end := run(s, n, asciiLetter); end > n {
			return end
		}
	}
	if c&(newline|letter|punct|symbol) == 0 {
		if end := run(s, n, letter|mark); end > n {
			return end
		}
	}
	if end := run(s, 0, letter|mark); end > 0 {
		return end
	}
	i := 0
	if s[0] == ' ' {
		i = 1
	}
	if end := run(s, i, punct|symbol); end > i {
		return run(s, end, newline)
	}
	if c&space != 0 {
		return scanSpace(s, true)
	}
	return 0
})

// lines matches [^\n]+|[\n]+.
func lines(s string) int {
	if s[0] == '\n' {
		return len(s) - len(strings.TrimLeft(s, "\n"))
	}
	if i := strings.IndexByte(s, '\n'); i > 0 {
		return i
	}
	return len(s)
}

// A charset is a list of ranges written as in a regular expression: characters and a-b.
type charset struct {
	lo, hi []rune // sorted, apart from each other
	ascii  [utf8.RuneSelf]bool
}

func newCharset(text string) *charset {
	type span struct{ lo, hi rune }
	var spans []span
	for rs := []rune(text); len(rs) > 0; {
		if len(rs) > 2 && rs[1] == '-' {
			spans, rs = append(spans, span{rs[0], rs[2]}), rs[3:]
		} else {
			spans, rs = append(spans, span{rs[0], rs[0]}), rs[1:]
		}
	}
	slices.SortFunc(spans, func(a, b span) int { return int(a.lo - b.lo) })
	c := new(charset)
	for _, p := range spans {
		if k := len(c.hi) - 1; k >= 0 && p.lo <= c.hi[k] {
			c.hi[k] = max(c.hi[k], p.hi)
		} else {
			c.lo, c.hi = append(c.lo, p.lo), append(c.hi, p.hi)
		}
	}
	for r := range c.ascii {
		c.ascii[r] = c.has(rune(r))
	}
	return c
}

func (c *charset) has(r rune) bool {
	k, ok := slices.BinarySearch(c.lo, r)
	return ok || k > 0 && r <= c.hi[k-1]
}

// run returns the end of the characters of the set from i on.
func (c *charset) run(s string, i int) int {
	for i < len(s) {
		if b := s[i]; b < utf8.RuneSelf {
			if !c.ascii[b] {
				break
			}
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		if !c.has(r) {
			break
		}
		i += n
	}
	return i
}

// plus matches [set]+, and with a leading \s? where spaced is set.
func (c *charset) plus(spaced bool) scanner {
	return matches(func(s string) int {
		i := 0
		if cl, n := at(s, 0); spaced && cl&space != 0 {
			i = n
		}
		if end := c.run(s, i); end > i {
			return end
		}
		return c.run(s, 0) // the set may hold white space itself
	})
}

// scanYoutu is Youtu's first cut: characters of one of its sets.
var scanYoutu = matches(func(s string) int {
	for _, set := range youtuSets {
		if end := set.run(s, 0); end > 0 {
			return end
		}
	}
	return 0
})

// bloomStop ends the words of Bloom and its relatives: ` ?[^(\s|.,!?…。，、।۔،)]+`
var bloomStop = newCharset("(|.,!?…。，、।۔،)")

var scanBloom = matches(func(s string) int {
	i := 0
	if s[0] == ' ' {
		i = 1
	}
	start := i
	for {
		c, n := at(s, i)
		if n == 0 || c&space != 0 || bloomStop.run(s[i:i+n], 0) > 0 {
			break
		}
		i += n
	}
	if i > start {
		return i
	}
	return 0
})
