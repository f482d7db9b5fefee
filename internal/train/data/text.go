package data

import (
	"fmt"
	"regexp"
	"strings"
)

// readText reads a file as one document.
func readText(path string, raw bool) (Document, error) {
	b, err := readFile(path)
	if err != nil {
		return Document{}, err
	}
	if err := checkText(path, 1, b, maxTextLine); err != nil {
		return Document{}, err
	}
	if raw {
		return textDocument(path, string(b)), nil
	}
	text := trimGutenberg(cleanText(b))
	if strings.TrimSpace(text) == "" {
		return Document{}, fmt.Errorf("%s: no text between the lines that frame it", path)
	}
	return textDocument(path, text), nil
}

// Project Gutenberg's frame around a book.
var (
	gutenbergStart = regexp.MustCompile(`(?m)^ ?\*\*\* ?START OF (?:THE|THIS) PROJECT GUTENBERG.*$`)
	gutenbergEnd   = regexp.MustCompile(`(?mi)^ ?(?:\*\*\* ?END OF (?:THE|THIS) PROJECT GUTENBERG|End of (?:the )?Project Gutenberg)`)
)

// trimGutenberg removes Project Gutenberg's text before and after a book: it is the same in every
// file.
func trimGutenberg(text string) string {
	start := gutenbergStart.FindStringIndex(text)
	if start == nil {
		return text
	}
	text = text[start[1]:]
	if end := gutenbergEnd.FindStringIndex(text); end != nil {
		text = text[:end[0]]
	}
	return strings.TrimSpace(text) + "\n"
}
