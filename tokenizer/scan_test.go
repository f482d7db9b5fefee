package tokenizer

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// alphabet has the characters between which the patterns distinguish: one or more of every class.
var alphabet = []string{
	"a", "s", "T", "r", "e", "E", "v", "l", "L", "m", "d", "Z", "é", "É", "ſ", "ǅ", "ʰ", "あ", "中", "가", "ก", "𐐀", "µ", "K",
	"⺀", "〇", "々", "\u302a", "한", "ㄱ", "ㄅ", "”",
	"\u0301", "\u0903", "\u20dd",
	"0", "7", "3", "²", "Ⅷ", "٣", "½",
	" ", "\t", "\n", "\r", "\v", "\u0085", "\u00a0", "\u2028", "\u3000",
	"'", "\"", ".", ",", "!", "(", ")", "-", "_", "/", "…", "。", "、", "！", "～", "\\", "[",
	"$", "+", "<", "=", "^", "`", "|", "~", "€", "☃", "😀",
	"\x00", "\x1c", "\x7f", "\u200d", "\ufeff", "\u0378", "\ue000", "\ufffd", "▁",
}

// few has one character of each class, for exhaustive tests.
var few = []string{"a", "S", "l", "T", "ſ", "あ", "\u0301", "7", "²", " ", "\n", "\r", "\u00a0", "'", ".", "/",
	"$", "`", "\x00", "▁"}

// others are scanners that files never name by a pattern, with the pattern they stand for.
var others = map[string]scanner{
	`▁*[^▁]*`:                              spaceWords,
	`▁[^▁]*`:                               eachSpace,
	`_`:                                    literal("_", false),
	`[^_]*_`:                               literal("_", true),
	`\p{N}{1,3}(?=(?:\p{N}{3})*(?!\p{N}))`: func(s string) int { return groupsOf3(s[:leadingDigits(s)]) },
	thousandsPattern:                       func(s string) int { return threes(s[:wholeThrees(s)]) },
}

func words(scan scanner, s string) (out []string) {
	for s != "" {
		n := scan(s)
		out = append(out, s[:n])
		s = s[n:]
	}
	return out
}

type scannerCase struct {
	pattern string
	scan    scanner
	ref     node
}

func scannerCases() (list []scannerCase) {
	for _, m := range []map[string]scanner{patterns, others} {
		for _, p := range slices.Sorted(maps.Keys(m)) {
			list = append(list, scannerCase{p, m[p], compile(p)})
		}
	}
	for _, p := range slices.Sorted(maps.Keys(spellings)) {
		list = append(list, scannerCase{p, patterns[spellings[p]], compile(p)})
	}
	return list
}

func (c scannerCase) check(t interface{ Fatalf(string, ...any) }, text string) {
	if got, want := words(c.scan, text), cut(c.ref, text); !slices.Equal(got, want) {
		t.Fatalf("%s\non %q\n got %q\nwant %q", c.pattern, text, got, want)
	}
}

// Every scanner cuts texts like its regular expression: all texts of up to three characters, …
func TestScannersOnAllShortTexts(t *testing.T) {
	for _, c := range scannerCases() {
		for _, x := range few {
			c.check(t, x)
			for _, y := range few {
				c.check(t, x+y)
				for _, z := range few {
					c.check(t, x+y+z)
				}
			}
		}
	}
}

// … and random longer ones.
func TestScannersOnLongTexts(t *testing.T) {
	cases := scannerCases()
	parts := rapid.SampledFrom(append(slices.Clone(alphabet), "\xff", "\xe4\xb8", "'ll", "'RE", "  ",
		"\n\n", "word", "12345"))
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(parts, 4, 40).Draw(t, "text"), "")
		for _, c := range cases {
			c.check(t, text)
		}
	})
}

func FuzzScanners(f *testing.F) {
	cases := scannerCases()
	for _, s := range []string{"", "Hello  world's\n\n 1234 ÀÉ中文", "\xff\xfe 'LL  \r\n", strings.Join(alphabet, "")} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 200 {
			text = text[:200] // the reference backtracks, deeply on long runs
		}
		for _, c := range cases {
			c.check(t, text)
		}
	})
}

// Cutting a text of one hostile run after another takes time in proportion to its length: a
// quadratic scanner would not finish here.
func TestScannersOnLongRuns(t *testing.T) {
	n := 1 << 16
	for _, run := range []string{"a", "A", "あ", "あA", "a中", "\u0301", "1", " ", "\n", " \n", "\t", "'",
		"'l", ".", "$", " a", " .", "\x00", "\u00a0", "\xff", "▁", "▁a"} {
		text := strings.Repeat(run, n/len(run))
		for _, p := range presets {
			total := 0
			var split func(s string, stages []scanner)
			split = func(s string, stages []scanner) {
				if len(stages) == 0 {
					total += len(s)
					return
				}
				for s != "" {
					k := stages[0](s)
					split(s[:k], stages[1:])
					s = s[k:]
				}
			}
			split(text, p.stages)
			if total != len(text) {
				t.Fatalf("%s lost text on %q…", p.names[0], run)
			}
		}
	}
}

func TestClassTable(t *testing.T) {
	for r := rune(0); r <= 0x10ffff; r++ {
		if r == 0xd800 {
			r = 0xe000
		}
		got, _ := at(string(r), 0)
		if want := classOf(r); got&^(newline|asciiLetter|asciiPunct) != want&^(newline|asciiLetter|asciiPunct) {
			t.Fatalf("%U: class %b, want %b", r, got, want)
		}
	}
}
