package data

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Packages selects the packages of a Go source tree that a source reads.
type Packages string

// The parts of a Go source tree. HeldOut has the list.
const (
	Training   Packages = ""           // all except those held out
	Validation Packages = "validation" // held out for measuring
	Prompts    Packages = "prompts"    // held out to make prompts
	All        Packages = "all"
)

// HeldOut names the packages of Go's standard library that no model is trained on, each including
// all packages below it. They are of many kinds (formats, containers, text, protocols, tests) and
// have no twin elsewhere in the library: under 1 % of their five-line passages occur outside them
// (Go 1.26).
var HeldOut = map[Packages][]string{
	Validation: {"archive/tar", "container", "encoding/csv", "encoding/xml", "image/gif", "log/slog", "net/textproto",
		"net/url", "regexp/syntax", "testing/quick", "text/tabwriter"},
	Prompts: {"archive/zip", "bufio", "compress/bzip2", "database/sql", "encoding/pem", "expvar", "index/suffixarray",
		"mime/multipart", "net/mail", "text/scanner", "text/template/parse"},
}

func (p Packages) check() error {
	switch p {
	case Training, Validation, Prompts, All:
		return nil
	}
	return fmt.Errorf("packages %q: want validation, prompts, all, or nothing for those to train on", string(p))
}

// has reports whether a package, by its folder's path, is part of p.
func (p Packages) has(folder string) bool {
	if p == All {
		return true
	}
	for part, list := range HeldOut {
		for _, h := range list {
			if folder == h || strings.HasPrefix(folder, h+"/") {
				return p == part
			}
		}
	}
	return p == Training
}

// generated matches the line that a generator writes (go help generate), including its old forms.
var generated = regexp.MustCompile(`(?mi)^// (?:code )?(?:generated|created) .*do not edit`)

var packageClause = regexp.MustCompile(`(?m)^package `)

// maxGoFile is the size from which a Go file is data rather than code: the longest hand-written
// file in Go's own library is about half as large.
const maxGoFile = 512 << 10

// maxTable is the share of a Go file's bytes in lines of a table above which the file is left out.
const maxTable = 0.3

// readGo reads the Go files below a folder in the order of their paths. Folders named testdata and
// vendor, and those that begin with . or _, are left out, as the go command does; so are generated
// files, tables, and copies of a file read before.
func readGo(s *Source, r *Report) ([]Document, error) {
	if st, err := os.Stat(s.Path); err != nil {
		return nil, err
	} else if !st.IsDir() {
		return nil, fmt.Errorf("%s: want the folder of a tree of Go source, such as src of a Go toolchain", s.Path)
	}
	var docs []Document
	seen := map[[32]byte]bool{}
	err := filepath.WalkDir(s.Path, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(s.Path, path)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		if d.IsDir() {
			name := d.Name()
			if rel != "." && (name == "testdata" || name == "vendor" || name[0] == '.' || name[0] == '_' ||
				slices.Contains(s.Except, rel)) {
				return filepath.SkipDir
			}
			return nil
		}
		if !d.Type().IsRegular() || !strings.HasSuffix(rel, ".go") || !s.Packages.has(folderOf(rel)) {
			return nil
		}
		b, err := readFile(path)
		if err != nil {
			return err
		}
		if reason := notCode(b); reason != "" {
			r.skip(reason)
			return nil
		}
		if sum := sha256.Sum256(b); seen[sum] {
			r.skip("copy of another file")
			return nil
		} else {
			seen[sum] = true
		}
		docs = append(docs, textDocument(path, cleanText(b)))
		return nil
	})
	if err == nil && len(docs) == 0 {
		err = fmt.Errorf("%s: no Go source in it", s.Path)
	}
	return docs, err
}

// folderOf is path.Dir, with "" for the top folder.
func folderOf(rel string) string {
	return rel[:max(0, strings.LastIndexByte(rel, '/'))]
}

// notCode returns why a Go file teaches nothing, or "".
func notCode(b []byte) string {
	if checkText("", 1, b, maxTextLine) != nil {
		return "not text"
	}
	head := b
	if at := packageClause.FindIndex(b); at != nil {
		head = b[:at[0]]
	}
	switch {
	case generated.Match(head):
		return "generated"
	case len(b) > maxGoFile:
		return "larger than 512 KB"
	case tableShare(b) > maxTable:
		return "a table"
	}
	return ""
}

// tableShare returns the share of bytes in lines without words, which have only numbers,
// hexadecimal digits and punctuation, or the escapes of a byte string, and in lines too long for a
// person to have written.
func tableShare(b []byte) float64 {
	table := 0
	for line := range bytes.Lines(b) {
		letters := 0
		for _, c := range line {
			if c >= 'g' && c <= 'w' || c >= 'G' && c <= 'W' {
				letters++
			}
		}
		if trimmed := len(bytes.TrimSpace(line)); trimmed > 12 && letters*10 < trimmed || len(line) > 1000 {
			table += len(line)
		}
	}
	return float64(table) / float64(len(b)+1)
}
