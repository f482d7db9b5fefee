package tokenizer

// Scanners for the split patterns of the common byte-level tokenizers, by hand: each returns the
// length of the first word of a text that is not empty, in one pass and without backtracking.
// The tests hold every scanner against a slow interpreter of the regular expression it stands for.

import "strings"

// A scanner returns the length in bytes of the first word of s, 1 ≤ n ≤ len(s). It sees no text
// before s, and the end of s is the end of the text: so do the patterns when they are chained.
type scanner func(s string) int

// GPT-2:
//
//	's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
func scanGPT2(s string) int {
	if n := contraction(s, false); n > 0 {
		return n
	}
	i := 0
	if s[0] == ' ' {
		i = 1
	}
	switch c, n := at(s, i); {
	case c&letter != 0:
		return run(s, i+n, letter)
	case c&number != 0:
		return run(s, i+n, number)
	case n > 0 && c&space == 0:
		return runNot(s, i+n, space|letter|number)
	}
	return scanSpace(s, false)
}

// contraction matches (?:'s|'t|'re|'ve|'m|'ll|'d) at the start of s, with (?i) where fold is set.
// Unicode case folding makes ſ (U+017F) an s.
func contraction(s string, fold bool) int {
	if len(s) < 2 || s[0] != '\'' {
		return 0
	}
	lower := func(b byte) byte {
		if fold && 'A' <= b && b <= 'Z' {
			b += 'a' - 'A'
		}
		return b
	}
	switch a := lower(s[1]); a {
	case 's', 't', 'm', 'd':
		return 2
	case 'r', 'v', 'l':
		want := byte('e')
		if a == 'l' {
			want = 'l'
		}
		if len(s) > 2 && lower(s[2]) == want {
			return 3
		}
	}
	if fold && len(s) >= 3 && s[1:3] == "ſ" {
		return 3
	}
	return 0
}

// scanSpace matches \s+(?!\S)|\s+ at the start of s: all the white space, except that its last
// character is left to the word that follows. With lines set, \s*[\r\n]+ is tried first: the white
// space up to its last line end.
func scanSpace(s string, lines bool) int {
	last := 0
	end := 0
	line := 0
	for {
		c, n := at(s, end)
		if c&space == 0 {
			break
		}
		last, end = end, end+n
		if c&newline != 0 {
			line = end
		}
	}
	switch {
	case lines && line > 0:
		return line
	case end < len(s) && last > 0:
		return last
	}
	return end
}

// cl100k is the family of patterns that began with OpenAI's cl100k_base:
//
//	(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,digits}
//	| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
//
// word is \p{L}, or [\p{L}\p{M}] in Qwen 3.5's; tail is what may follow punctuation, [\r\n] or nothing.
func cl100k(digits int, word, tail class) scanner {
	return func(s string) int {
		if n := contraction(s, true); n > 0 {
			return n
		}
		c, n := at(s, 0)
		if c&word != 0 {
			return run(s, n, word)
		}
		if c&number != 0 {
			return digitGroup(s, n, digits)
		}
		if c&newline == 0 {
			if c1, n1 := at(s, n); c1&word != 0 {
				return run(s, n+n1, word)
			}
		}
		i := 0
		if s[0] == ' ' {
			i = 1
		}
		if c, n := at(s, i); n > 0 && c&(space|word|number) == 0 {
			return run(s, runNot(s, i+n, space|word|number), tail)
		}
		return scanSpace(s, true)
	}
}

// K-EXAONE's, whose words go on over single spaces:
//
//	(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}
//	| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+
func scanExaoneMoE(s string) int {
	if n := contraction(s, true); n > 0 {
		return n
	}
	c, n := at(s, 0)
	if c&number != 0 {
		return n
	}
	i := 0
	if c&(letter|newline) == 0 {
		i = n
	}
	if end := phrase(s, i); end > i {
		return end
	}
	i = 0
	if s[0] == ' ' {
		i = 1
	}
	if c, n := at(s, i); n > 0 && c&(space|letter|number) == 0 {
		i = runNot(s, i+n, space|letter|number)
		if c, n := at(s, i); c&newline != 0 {
			i += n
		}
		return i
	}
	return scanSpace(s, true)
}

// phrase matches letters with their marks from i on, and single spaces between them.
func phrase(s string, i int) int {
	for next := i; ; {
		c, n := at(s, next)
		if c&letter == 0 {
			return i
		}
		i = run(s, next+n, mark)
		next = i
		if next < len(s) && s[next] == ' ' {
			next++
		}
	}
}

// digitGroup matches the rest of \p{N}{1,most} after a first number of n bytes.
func digitGroup(s string, n, most int) int {
	for ; most > 1; most-- {
		c, k := at(s, n)
		if c&number == 0 {
			break
		}
		n += k
	}
	return n
}

var (
	scanLlama3    = cl100k(3, letter, newline)
	scanQwen2     = cl100k(1, letter, newline)
	scanQwen35    = cl100k(1, letter|mark, newline)
	scanSeedCoder = cl100k(1, letter, 0)
	scanMiniCPM5  = cl100k(1<<30, letter, newline)
	scanGPT4o     = o200k(3, true, "\r\n/", 0)
	scanTekken    = o200k(1, false, "\r\n/", 0)
	notHan        = o200k(3, true, "\r\n", han)
)

// scanJais2 is scanLlama3 with white space in pieces of 512, 256 and so on to 1:
//
//	\s{512}(?!\S)|…|\s{4}(?!\S)|\s{1,2}(?!\S)|\s{1}
func scanJais2(s string) int {
	n := scanLlama3(s)
	piece := 0 // of the largest power of two
	count := 0
	for i := 0; i < n; {
		c, k := at(s, i)
		if c&space == 0 || c&newline != 0 {
			return n
		}
		i += k
		count++
		if count&(count-1) == 0 && count <= 512 {
			piece = i
		}
	}
	return piece
}

// o200k is the family that began with OpenAI's o200k_base: words are split where lower case turns
// to upper case, and keep their contraction.
//
//	[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?
//	|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?
//	|\p{N}{1,digits}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+
//
// Mistral's tekken has neither contractions nor groups of digits. Punctuation ends with characters of ends, in place
// of [\r\n/]; characters of the class stop are no letters of words.
func o200k(digits int, contractions bool, ends string, stop class) scanner {
	return func(s string) int {
		if n := casedWord(s, stop); n > 0 {
			if contractions {
				n += contraction(s[n:], true)
			}
			return n
		}
		c, n := at(s, 0)
		if c&number != 0 {
			return digitGroup(s, n, digits)
		}
		i := 0
		if s[0] == ' ' {
			i = 1
		}
		if c, n := at(s, i); n > 0 && c&(space|letter|number) == 0 {
			i = runNot(s, i+n, space|letter|number)
			for i < len(s) && strings.IndexByte(ends, s[i]) >= 0 {
				i++
			}
			return i
		}
		return scanSpace(s, true)
	}
}

// scanKimi is Kimi K2's pattern: Han characters are words of their own, and in no other word. llama.cpp, unlike the
// pattern, does not split words where lower case turns to upper case.
func scanKimi(s string) int {
	if c, _ := at(s, 0); c&han != 0 {
		return run(s, 0, han)
	}
	return notHan(s)
}

// casedWord matches the first two alternatives of o200k, the order of a backtracking matcher kept:
// first upper* lower+ with and without a character before it, then upper+ lower*.
func casedWord(s string, stop class) int {
	c, n := at(s, 0)
	start := -1 // where the word begins when the optional character before it is taken
	if c&(letter|number|newline) == 0 {
		start = n
	}
	if start > 0 {
		if end, lower := cased(s, start, stop); lower {
			return end
		}
	}
	end, lower := cased(s, 0, stop)
	if lower {
		return end
	}
	if start > 0 {
		if e, _ := cased(s, start, stop); e > start {
			return e
		}
	}
	return end
}

// cased matches upper* lower+ at i and reports true, or else upper+ (lower* being empty then); the
// end is i where neither matches. Letters without case count as both, so a greedy upper* gives back
// its last one where no lower-case letter follows.
func cased(s string, i int, stop class) (end int, lower bool) {
	both := -1 // end of the last character of upper* that is also lowerish
	end = i
	for {
		c, n := at(s, end)
		if c&upperish == 0 || c&stop != 0 {
			break
		}
		end += n
		if c&lowerish != 0 {
			both = end
		}
	}
	e := end
	for c, n := at(s, e); c&lowerish != 0 && c&stop == 0; c, n = at(s, e) {
		e += n
	}
	if e > end {
		return e, true
	}
	if both >= 0 {
		return both, true
	}
	return end, false
}
