package data

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"
)

// Document is one text. A template's control tokens are separate parts, so that no text can pass
// for one.
type Document struct {
	Name  string // its origin: a path, and in jsonl a line
	Parts []Part
}

// Part is text, or the name of one control token.
type Part struct {
	Text    string
	Control bool
}

// Text returns the document as one string, with control tokens as their names.
func (d *Document) Text() string {
	if len(d.Parts) == 1 {
		return d.Parts[0].Text
	}
	var b strings.Builder
	for _, p := range d.Parts {
		b.WriteString(p.Text)
	}
	return b.String()
}

// Bytes is the length of the text without control tokens.
func (d *Document) Bytes() int {
	n := 0
	for _, p := range d.Parts {
		if !p.Control {
			n += len(p.Text)
		}
	}
	return n
}

func textDocument(name, text string) Document {
	return Document{Name: name, Parts: []Part{{Text: text}}}
}

// Limits on files, so that files other than text fail early and with a reason.
const (
	maxFile     = 1 << 30  // bytes of a file, unpacked
	maxTextLine = 1 << 20  // of a line of text
	maxJSONLine = 16 << 20 // of a line of jsonl
)

// readFile reads a file, unpacking .gz.
func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if st, err := f.Stat(); err == nil && st.IsDir() {
		return nil, fmt.Errorf("%s: is a folder, want a file", path)
	}
	var r io.Reader = bufio.NewReaderSize(f, 1<<16)
	if strings.HasSuffix(path, ".gz") {
		z, err := gzip.NewReader(r)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		r = z
	}
	b, err := io.ReadAll(io.LimitReader(r, maxFile+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: %w", path, err)
	case len(b) > maxFile:
		return nil, fmt.Errorf("%s: larger than %d MB: split it", path, maxFile>>20)
	}
	return b, nil
}

// errNoText is about an empty file, which a source of several files leaves out.
var errNoText = errors.New("no text in it")

// checkText refuses bytes that are not text. line is the number of their first line.
func checkText(path string, line int, b []byte, longest int) error {
	if len(bytes.TrimSpace(b)) == 0 {
		return fmt.Errorf("%s: %w", path, errNoText)
	}
	for l := range bytes.Lines(b) {
		if err := checkLine(l, longest); err != nil {
			return fmt.Errorf("%s:%d: %w", path, line, err)
		}
		line++
	}
	return nil
}

func checkLine(l []byte, longest int) error {
	if i := bytes.IndexByte(l, 0); i >= 0 {
		return fmt.Errorf("a zero byte at column %d: the file is binary, not text", i+1)
	}
	if len(l) > longest {
		return fmt.Errorf("a line of %d bytes, more than %d: break it, or leave the file out", len(l), longest)
	}
	if utf8.Valid(l) {
		return nil
	}
	at := 0
	for at < len(l) {
		r, n := utf8.DecodeRune(l[at:])
		if r == utf8.RuneError && n == 1 {
			break
		}
		at += n
	}
	return fmt.Errorf("byte 0x%02x at column %d is not UTF-8: convert the file", l[at], at+1)
}

var bom = []byte("\ufeff")

// cleanText removes the byte order mark and carriage returns.
func cleanText(b []byte) string {
	b = bytes.TrimPrefix(b, bom)
	return strings.ReplaceAll(string(b), "\r\n", "\n")
}
