package tokenizer

import (
	"regexp"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// A normalizer changes text before it is cut; first is set where the whole text begins.
type normalizer func(s string, first bool) string

func apply(fs []normalizer, s string, first bool) string {
	for _, f := range fs {
		s = f(s, first)
	}
	return s
}

// unicodeForm is one of NFC, NFD, NFKC, NFKD.
func unicodeForm(f norm.Form) normalizer {
	const joiner = "\u034f" // which package norm puts into long runs of marks, as no form asks
	return func(s string, _ bool) string {
		if strings.Contains(s, joiner) {
			return f.String(s)
		}
		return strings.ReplaceAll(f.String(s), joiner, "")
	}
}

func prepend(text string) normalizer {
	return func(s string, _ bool) string {
		if s == "" {
			return s
		}
		return text + s
	}
}

func replace(from, to string) normalizer {
	return func(s string, _ bool) string { return strings.ReplaceAll(s, from, to) }
}

// metaspace writes spaces as mark, and puts one mark at the start of each stretch of text
// (spaceSegments) or of the whole text (spaceFirst) that has none there.
func metaspace(mark string, rule spaceRule) normalizer {
	return func(s string, first bool) string {
		s = strings.ReplaceAll(s, " ", mark)
		if (rule == spaceSegments || rule == spaceFirst && first) && !strings.HasPrefix(s, mark) {
			s = mark + s
		}
		return s
	}
}

// metaspaceWords puts a mark before each word that has none and leaves white space out.
func metaspaceWords(s string, _ bool) string {
	var b strings.Builder
	for _, word := range strings.FieldsFunc(s, unicode.IsSpace) {
		if !strings.HasPrefix(word, "▁") {
			b.WriteString("▁")
		}
		b.WriteString(word)
	}
	return b.String()
}

// spaceRuns is the pattern of the Replace step that files of SentencePiece models have.
var spaceRuns = regexp.MustCompile(` {2,}`)

func replaceSpaceRuns(to string) normalizer {
	return func(s string, _ bool) string { return spaceRuns.ReplaceAllLiteralString(s, to) }
}

// trimSpace takes white space off the ends.
func trimSpace(left, right bool) normalizer {
	return func(s string, _ bool) string {
		if left {
			s = strings.TrimLeftFunc(s, unicode.IsSpace)
		}
		if right {
			s = strings.TrimRightFunc(s, unicode.IsSpace)
		}
		return s
	}
}

// spaceInFront puts a space before a text that does not begin with one.
func spaceInFront(s string, _ bool) string {
	if strings.HasPrefix(s, " ") {
		return s
	}
	return " " + s
}

// escapeSpaces is llama.cpp's for SentencePiece models: a space in front, always, and ▁ for spaces.
func escapeSpaces(front bool) normalizer {
	return func(s string, _ bool) string {
		if front {
			s = " " + s
		}
		return strings.ReplaceAll(s, " ", "▁")
	}
}
