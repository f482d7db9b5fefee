package jinja

import (
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// testdata/golden.py writes what Python's jinja2 makes of the templates of these tests.

// golden reads one of its files.
func golden(t testing.TB, name string, to any) {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.NewDecoder(z).Decode(to); err != nil {
		t.Fatal(err)
	}
}

// variables reads an object of JSON.
func variables(t testing.TB, raw []byte) map[string]Value {
	t.Helper()
	v, err := FromJSON(raw, nil)
	if err != nil {
		t.Fatal(err)
	}
	vars := map[string]Value{}
	d := v.(*Dict)
	for i, key := range d.keys {
		vars[key.(string)] = d.values[i]
	}
	return vars
}

func readFile(t testing.TB, path ...string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

var goldenTime = time.Date(2026, 11, 21, 9, 5, 7, 0, time.UTC)

func render(source string, vars map[string]Value) (string, error) {
	tmpl, err := Compile(source)
	if err != nil {
		return "", err
	}
	return tmpl.Render(vars, goldenTime)
}

type result struct{ Text, Error *string }

// compare reports whether grove rendered what Python did, or failed as Python did.
func (want result) compare(t *testing.T, what, got string, err error) bool {
	t.Helper()
	switch {
	case want.Error == nil && err == nil && got == *want.Text:
		return true
	case want.Error != nil && err != nil && isRaised(err) == (*want.Error == raisedByTemplate):
		return true
	case want.Error != nil && err != nil:
		t.Errorf("%s\n got error %v\nwant %s", what, err, *want.Error)
	case want.Error != nil:
		t.Errorf("%s\n got %q\nwant %s", what, got, *want.Error)
	case err != nil:
		t.Errorf("%s\n got error %v\nwant %q", what, err, *want.Text)
	default:
		t.Errorf("%s\n got %q\nwant %q", what, got, *want.Text)
	}
	return false
}

// raisedByTemplate is what Python's raise_exception raises.
const raisedByTemplate = "TemplateError"

func isRaised(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.Line == 0
}

// pair is a template with its result.
type pair struct {
	source string
	want   result
}

func (p *pair) UnmarshalJSON(b []byte) error { return json.Unmarshal(b, &[]any{&p.source, &p.want}) }

// Whatever a construct of the language does in jinja2 it does here: the same text, or an error in both.
func TestSnippets(t *testing.T) {
	vars := variables(t, readFile(t, "testdata", "vars.json"))
	for file, vars := range map[string]map[string]Value{"snippets.json.gz": vars, "matrix.json.gz": vars,
		"programs.json.gz": nil} {
		var pairs []pair
		golden(t, file, &pairs)
		wrong := 0
		for _, p := range pairs {
			got, err := render(p.source, vars)
			if isRefused(err) {
				continue
			}
			if !p.want.compare(t, p.source, got, err) {
				wrong++
			}
		}
		t.Logf("%s: %d of %d are as Python has them", file, len(pairs)-wrong, len(pairs))
	}
}

// Generators become lists of JSON, which Python refuses: llama.cpp's template for DeepSeek R1 lists tools so.
func TestJSONOfGenerators(t *testing.T) {
	got, err := render("{{ [{'f': 1}, {'f': [2]}] | map(attribute='f') | tojson }}{{ {'a': [1] | map('string')} | tojson }}", nil)
	if want := `[1, [2]]{"a": ["1"]}`; err != nil || got != want {
		t.Errorf("%q, %v; want %q", got, err, want)
	}
}

// isRefused reports whether an error says that grove does not support what jinja2 has.
func isRefused(err error) bool {
	return err != nil && (strings.Contains(err.Error(), "not supported") ||
		strings.Contains(err.Error(), "cannot be printed"))
}

// Our own templates, which use what published ones use, with every conversation.
func TestOwnTemplates(t *testing.T) {
	var want map[string]map[string]result
	golden(t, "templates.json.gz", &want)
	var conversations map[string]json.RawMessage
	if err := json.Unmarshal(readFile(t, "testdata", "conversations.json"), &conversations); err != nil {
		t.Fatal(err)
	}
	for file, results := range want {
		source := string(readFile(t, "testdata", "templates", file))
		for name, want := range results {
			got, err := render(source, conversation(t, conversations[name]))
			want.compare(t, file+" with "+name, got, err)
		}
	}
}

// conversation adds what a chat always has.
func conversation(t testing.TB, raw []byte) map[string]Value {
	vars := map[string]Value{"tools": nil, "documents": nil, "add_generation_prompt": true,
		"bos_token": "<s>", "eos_token": "</s>"}
	for name, v := range variables(t, raw) {
		vars[name] = v
	}
	return vars
}

// Published templates render as in Python. They are others' work and not in this repository: GROVE_TEMPLATES
// names a folder that has them, such as models/templates of llama.cpp.
func TestPublishedTemplates(t *testing.T) {
	folder := os.Getenv("GROVE_TEMPLATES")
	if folder == "" {
		t.Skip("GROVE_TEMPLATES names no folder with published templates, such as models/templates of llama.cpp")
	}
	var want map[string][]string
	golden(t, "others.json.gz", &want)
	conversations := ordered(t, readFile(t, "testdata", "conversations.json"))
	equal := 0
	failed := 0
	all := 0
	for file, hashes := range want {
		source, err := os.ReadFile(filepath.Join(folder, file))
		if err != nil {
			t.Error(err)
			continue
		}
		for i, want := range hashes {
			got, err := render(string(source), conversation(t, conversations[i].raw))
			all++
			what := file + " with " + conversations[i].name
			sum := sha256.Sum256([]byte(got))
			switch fails := strings.HasSuffix(want, "Error"); {
			case fails && err == nil:
				t.Errorf("%s: got %.100q, Python fails with %s", what, got, want)
			case fails && isRaised(err) != (want == raisedByTemplate):
				t.Errorf("%s: got error %v, Python fails with %s", what, err, want)
			case fails:
				failed++
			case err != nil:
				t.Errorf("%s: %v", what, err)
			case hex.EncodeToString(sum[:8]) != want:
				t.Errorf("%s: another text than Python's: %.300q", what, got)
			default:
				equal++
			}
		}
	}
	t.Logf("%d templates, %d renderings: %d texts are equal, %d fail in both", len(want), all, equal, failed)
}

type entry struct {
	name string
	raw  json.RawMessage
}

// ordered reads an object's members in their order.
func ordered(t testing.TB, raw []byte) []entry {
	t.Helper()
	v, err := FromJSON(raw, nil)
	if err != nil {
		t.Fatal(err)
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(raw, &members); err != nil {
		t.Fatal(err)
	}
	var list []entry
	for _, key := range v.(*Dict).keys {
		list = append(list, entry{key.(string), members[key.(string)]})
	}
	if len(list) != len(members) || !slices.ContainsFunc(list, func(e entry) bool { return len(e.raw) > 0 }) {
		t.Fatal("conversations.json is damaged")
	}
	return list
}
