package data

import (
	"os"
	"path/filepath"
	"testing"
	"unicode/utf8"
)

// Whatever a file holds, reading it returns documents of valid text, or an error that
// names the file.
func FuzzJSONL(f *testing.F) {
	f.Add([]byte(`{"text":"a"}`+"\n"+`{"text":"\ud800"}`), "{text}")
	f.Add([]byte("\xef\xbb\xbf{\"a\":{\"b\":\"c\"}}\r\n"), "<|mask|>{a.b} {a.b}")
	f.Add([]byte("{\"text\":1}\x00"), "{text}{")
	f.Fuzz(func(t *testing.T, content []byte, template string) {
		path := filepath.Join(t.TempDir(), "x.jsonl")
		if err := os.WriteFile(path, content, 0o666); err != nil {
			t.Fatal(err)
		}
		docs, _, err := Source{Name: "x", Path: path, Template: template}.Documents()
		if (err == nil) != (len(docs) > 0) {
			t.Fatalf("%d documents and %v", len(docs), err)
		}
		for _, d := range docs {
			for _, p := range d.Parts {
				if p.Control && !placeholder.MatchString(p.Text) {
					t.Fatalf("control token %q", p.Text)
				}
				if !utf8.ValidString(p.Text) && utf8.ValidString(template) {
					t.Fatalf("part %q is not UTF-8", p.Text)
				}
			}
		}
	})
}

func FuzzText(f *testing.F) {
	f.Add([]byte("\ufeffa\r\nb"))
	f.Add([]byte("*** START OF THE PROJECT GUTENBERG EBOOK X ***\n*** END OF THE PROJECT GUTENBERG EBOOK X ***"))
	f.Add([]byte{0})
	f.Add([]byte("caf\xe9"))
	f.Fuzz(func(t *testing.T, content []byte) {
		path := filepath.Join(t.TempDir(), "x.txt")
		if err := os.WriteFile(path, content, 0o666); err != nil {
			t.Fatal(err)
		}
		d, err := readText(path, false)
		if err == nil && !utf8.ValidString(d.Text()) {
			t.Fatalf("%q is not UTF-8", d.Text())
		}
		raw, err2 := readText(path, true)
		if err == nil && err2 != nil || err2 == nil && raw.Text() != string(content) {
			t.Fatalf("raw: %q, %v; %v", raw.Text(), err2, err)
		}
	})
}

func FuzzParseSource(f *testing.F) {
	f.Add(`a.jsonl,template={x}\n\,,weight=1e3,name=n`)
	f.Add(`,,=`)
	f.Add(`src,kind=go,packages=all,except=cmd`)
	f.Fuzz(func(t *testing.T, spec string) {
		if s, err := ParseSource(spec); err == nil && (s.Path == "" || s.Name == "" || !(s.Weight >= 0)) {
			t.Fatalf("%q gives %+v", spec, s)
		}
	})
}
