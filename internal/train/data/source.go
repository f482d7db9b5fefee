package data

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Kind is the way in which a source's files are read.
type Kind string

// The kinds of sources.
const (
	Text  Kind = "text"  // each file is a document
	JSONL Kind = "jsonl" // each line is a document, by the template
	Go    Kind = "go"    // a tree of Go source: each file is a document
)

// Source is text for training or measuring.
type Source struct {
	Name     string
	Kind     Kind     // "": JSONL for names with that ending, else Text
	Path     string   // a file, a folder with everything below it, or a pattern of path/filepath.Match
	Except   []string // base names of files, or folders below Path, to leave out
	Template string   // JSONL: text with {field} in it, and control tokens by name
	Packages Packages // Go: which packages
	Raw      bool     // Text: the file's unchanged bytes, for measuring
	Weight   float64  // share of the rows, relative to the other sources'; 0 excludes it from every mix
	License  string   // for the model card
}

// Report counts the results of reading a source's files.
type Report struct {
	Documents int
	Bytes     int64
	Skipped   map[string]int // files left out deliberately, by reason
}

func (r *Report) skip(reason string) {
	if r.Skipped == nil {
		r.Skipped = map[string]int{}
	}
	r.Skipped[reason]++
}

// ParseSource reads a source in the form of the command line: a path, then options, separated by
// commas:
//
//	prose/*.txt,except=alice_valid.txt,weight=2
//	gsm8k_train.jsonl,template={question}\n{answer}
//	/usr/local/go/src,kind=go,packages=validation
//
// In a template \n is a line end and \, a comma.
func ParseSource(spec string) (Source, error) {
	parts := splitOptions(spec)
	s := Source{Path: parts[0], Weight: 1}
	if s.Path == "" {
		return s, fmt.Errorf("source %q: begins with no path", spec)
	}
	s.Name = nameOf(s.Path)
	for _, p := range parts[1:] {
		key, value, ok := strings.Cut(p, "=")
		if !ok {
			return s, fmt.Errorf("source %q: option %q: want key=value", spec, p)
		}
		switch key {
		case "name":
			s.Name = value
		case "kind":
			s.Kind = Kind(value)
		case "template":
			s.Template = strings.ReplaceAll(value, `\n`, "\n")
		case "except":
			s.Except = append(s.Except, value)
		case "packages":
			s.Packages = Packages(value)
		case "license":
			s.License = value
		case "weight":
			w, err := strconv.ParseFloat(value, 64)
			if err != nil {
				return s, fmt.Errorf("source %q: weight %q is no number", spec, value)
			}
			s.Weight = w
		default:
			return s, fmt.Errorf("source %q: option %q is not known; known are name, kind, template, except, packages, license, weight", spec, key)
		}
	}
	return s, s.check()
}

// nameOf returns the name of a source: that of its file or folder, or, for a pattern, of its folder.
func nameOf(path string) string {
	base := filepath.Base(path)
	if dir := filepath.Base(filepath.Dir(path)); strings.ContainsAny(base, "*?[") && dir != "." &&
		dir != string(filepath.Separator) {
		return dir
	}
	return cmp.Or(strings.TrimSuffix(base, filepath.Ext(base)), base) // for a folder . too
}

// splitOptions splits at commas that no backslash precedes.
func splitOptions(spec string) []string {
	var parts []string
	var b strings.Builder
	for i := 0; i < len(spec); i++ {
		switch {
		case spec[i] == '\\' && i+1 < len(spec) && spec[i+1] == ',':
			b.WriteByte(',')
			i++
		case spec[i] == ',':
			parts = append(parts, b.String())
			b.Reset()
		default:
			b.WriteByte(spec[i])
		}
	}
	return append(parts, b.String())
}

func (s *Source) kind() Kind {
	if s.Kind != "" {
		return s.Kind
	}
	if p := strings.TrimSuffix(s.Path, ".gz"); strings.HasSuffix(p, ".jsonl") {
		return JSONL
	}
	return Text
}

func (s *Source) check() error {
	fail := func(format string, args ...any) error {
		return fmt.Errorf("source %s: %s", s.Name, fmt.Sprintf(format, args...))
	}
	switch k := s.kind(); {
	case s.Name == "":
		return fmt.Errorf("a source of %s has no name", s.Path)
	case k != Text && k != JSONL && k != Go:
		return fail("kind %q: want text, jsonl or go", k)
	case k == JSONL && s.Template == "":
		return fail("no template: say which fields to read, as in template={question}\\n{answer}")
	case k != JSONL && s.Template != "":
		return fail("a template is for jsonl, and this is %s", k)
	case !(s.Weight >= 0) || math.IsInf(s.Weight, 0):
		return fail("weight %g: want a number not below 0", s.Weight)
	}
	if err := s.Packages.check(); err != nil {
		return fail("%v", err)
	}
	return nil
}

// Documents reads the source, in an order that depends only on the files' names and content.
func (s Source) Documents() ([]Document, Report, error) {
	var r Report
	if err := s.check(); err != nil {
		return nil, r, err
	}
	docs, err := s.read(&r)
	if err != nil {
		return nil, r, fmt.Errorf("source %s: %w", s.Name, err)
	}
	if len(docs) == 0 {
		return nil, r, fmt.Errorf("source %s: %s: nothing to read there", s.Name, s.Path)
	}
	r.Documents = len(docs)
	for i := range docs {
		r.Bytes += int64(docs[i].Bytes())
	}
	return docs, r, nil
}

func (s *Source) read(r *Report) ([]Document, error) {
	if s.kind() == Go {
		return readGo(s, r)
	}
	files, err := s.files()
	if err != nil {
		return nil, err
	}
	var docs []Document
	for _, path := range files {
		d := make([]Document, 1)
		if s.kind() == JSONL {
			d, err = readJSONL(path, s.Template)
		} else {
			d[0], err = readText(path, s.Raw)
		}
		if errors.Is(err, errNoText) && len(files) > 1 {
			r.skip("empty")
			continue
		}
		if err != nil {
			return nil, err
		}
		docs = append(docs, d...)
	}
	return docs, nil
}

// files lists the files that the path names, sorted. In a folder, only files with the kind's ending
// count.
func (s *Source) files() ([]string, error) {
	st, err := os.Stat(s.Path)
	switch {
	case err == nil && !st.IsDir():
		return []string{s.Path}, nil
	case err == nil:
		return s.walk()
	case !strings.ContainsAny(s.Path, "*?["):
		return nil, err
	}
	files, err := filepath.Glob(s.Path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.Path, err)
	}
	files = slices.DeleteFunc(files, func(p string) bool { return slices.Contains(s.Except, filepath.Base(p)) })
	slices.Sort(files)
	return files, nil
}

var endings = map[Kind][]string{Text: {".txt", ".md"}, JSONL: {".jsonl"}}

func (s *Source) walk() ([]string, error) {
	var files []string
	err := filepath.WalkDir(s.Path, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(s.Path, path)
		if slices.Contains(s.Except, d.Name()) || slices.Contains(s.Except, filepath.ToSlash(rel)) {
			if d.IsDir() {
				return filepath.SkipDir
			}
			return nil
		}
		if d.Type().IsRegular() && slices.Contains(endings[s.kind()], filepath.Ext(strings.TrimSuffix(path, ".gz"))) {
			files = append(files, path)
		}
		return nil
	})
	if err == nil && len(files) == 0 {
		err = fmt.Errorf("%s: no file in it ends in %s", s.Path, strings.Join(endings[s.kind()], " or "))
	}
	return files, err
}
