package bench

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/grovellm/grove/internal/testing/testdata"
	"github.com/grovellm/grove/internal/train/data"
)

func write(t *testing.T, parts ...string) {
	t.Helper()
	path := filepath.Join(parts[:len(parts)-1]...)
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(parts[len(parts)-1]), 0o666); err != nil {
		t.Fatal(err)
	}
}

// Measured prompts and warm-up prompts differ, are as many as requested if there are enough, and are in order.
func TestDivide(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := make([]Prompt, rapid.IntRange(1, 60).Draw(t, "all"))
		for i := range all {
			all[i].Name = fmt.Sprint(i)
		}
		n := rapid.IntRange(0, 20).Draw(t, "n")
		spare := rapid.IntRange(0, 5).Draw(t, "spare")
		ordered := rapid.Bool().Draw(t, "ordered")
		measured, warm := divide(all, n, spare, ordered)
		want := min(n, len(all))
		if n == 0 {
			want = len(all)
		}
		if len(measured) != want || len(warm) != min(spare, len(all)-want) {
			t.Fatalf("%d measured and %d warm of %d, asked for %d and %d", len(measured), len(warm), len(all), n, spare)
		}
		seen := map[string]bool{}
		for _, list := range [][]Prompt{measured, warm} {
			last := -1
			for _, p := range list {
				var at int
				fmt.Sscan(p.Name, &at)
				if at <= last || seen[p.Name] {
					t.Fatalf("measured %v, warm %v", measured, warm)
				}
				last, seen[p.Name] = at, true
			}
		}
		if !ordered && want >= 2 && want+len(warm) < len(all) && measured[want-1].Name == fmt.Sprint(want-1) {
			t.Errorf("%v of %d are not spread", measured, len(all))
		}
	})
}

// A file of questions gives the text of the first field it has, line by line; options cut it and choose another field.
func TestQuestionFiles(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "mine.jsonl")
	rapid.Check(t, func(t *rapid.T) {
		var lines strings.Builder
		var want []string
		for range rapid.IntRange(1, 8).Draw(t, "lines") {
			text := rapid.StringMatching(`[a-zé"\\\n]{1,30}x`).Draw(t, "text")
			object := map[string]any{"id": 3, "other": "o"}
			switch field := rapid.SampledFrom(promptFields).Draw(t, "field"); field {
			case "turns":
				object[field] = []string{text, "and another"}
			default:
				object[field] = text
			}
			b, err := json.Marshal(object)
			if err != nil {
				t.Fatal(err)
			}
			lines.Write(b)
			lines.WriteString(rapid.SampledFrom([]string{"\n", "\r\n", "\n\n"}).Draw(t, "end"))
			want = append(want, text)
		}
		if err := os.WriteFile(file, []byte(lines.String()), 0o666); err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			name string
			want func(string) string
		}{
			{file, func(s string) string { return s }},
			{file + ":chars=4", func(s string) string { return string([]rune(s)[:min(4, utf8.RuneCountInString(s))]) }},
			{file + ":field=other", func(string) string { return "o" }},
		} {
			s, err := OpenSuite(c.name, SuiteOptions{})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for i, p := range s.Prompts {
				got = append(got, p.Text)
				if want := c.want(want[i]); p.Text != want || !p.Question {
					t.Fatalf("%s: prompt %d is %q, want %q", c.name, i, p.Text, want)
				}
			}
			if len(got) != len(want) {
				t.Fatalf("%s: %d prompts of %d", c.name, len(got), len(want))
			}
		}
	})
}

// Errors name the file and say what to do.
func TestSuiteErrors(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "prompts", "one.jsonl", `{"turns": ["a"]}`)
	for name, content := range map[string]string{
		"object": `["a"]`, "fields": `{"x": 1}`, "kind": `{"turns": 4}`, "empty": "\n\n", "blank": `{"text": " "}`,
		"cut":    `{"text": "a`,
		"forced": `{"text": "a", "forced_output": 3}`, "bytes": "{\"text\": \"\xff\"}", "turns": `{"turns": []}`,
		"many": `{"text":"a"}` + "\n" + `{"text":7}`,
	} {
		write(t, dir, name+".jsonl", content)
	}
	for _, c := range []struct{ suite, want string }{
		{"nothing", "one of go, edit, math, prose, wikitext, wikitext-articles, one ("},
		{"math", "--data or GROVE_DATA"},
		{"prose", "--data or GROVE_DATA"},
		{"wikitext", "wikitext2_valid.txt"},
		{"go", "--goroot"},
		{"edit", "--goroot"},
		{"one:chars=0", "chars=0"},
		{"one:times=0", "times=0"},
		{"one:size=4", "chars=N, times=N or field=NAME"},
		{"one:field=no", "no field no"},
		{dir + "/absent.jsonl", "there is no " + dir},
		{dir + "/object.jsonl", "object.jsonl:1: want one JSON object"},
		{dir + "/fields.jsonl", `["x"]`},
		{dir + "/forced.jsonl", `field "forced_output": want a string`},
		{dir + "/kind.jsonl", `field "turns": want a string`},
		{dir + "/turns.jsonl", `field "turns": want a string`},
		{dir + "/empty.jsonl", "no prompt in it"},
		{dir + "/blank.jsonl", "the text is empty"},
		{dir + "/cut.jsonl", "cut.jsonl:1"},
		{dir + "/bytes.jsonl", "not UTF-8"},
		{dir + "/many.jsonl", "many.jsonl:2"},
	} {
		_, err := OpenSuite(c.suite, SuiteOptions{Data: dir})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("suite %s: %v, want something with %q", c.suite, err, c.want)
		}
	}
}

// Files of the data folder are suites by their names, packed or not.
func TestFileSuites(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "prompts", "mt_bench.jsonl", `{"turns": ["first", "second"]}`+"\n"+`{"turns": ["third"]}`)
	f, err := os.Create(filepath.Join(dir, "prompts", "HumanEval.jsonl.gz"))
	if err != nil {
		t.Fatal(err)
	}
	z := gzip.NewWriter(f)
	fmt.Fprintln(z, `{"prompt": "def f():"}`)
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	f.Close()
	for _, c := range []struct {
		suite string
		want  []string
	}{{"mt_bench", []string{"first", "third"}}, {"HumanEval", []string{"def f():"}}} {
		s, err := OpenSuite(c.suite, SuiteOptions{Data: dir})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, p := range s.Prompts {
			got = append(got, p.Text)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", c.suite, diff)
		}
	}
}

// The rule for passages, on an article with short paragraphs, sections and tables, and a second one.
func TestPassages(t *testing.T) {
	long, short := strings.Repeat("word ", 45), "A short one ."
	text := " = First = \n \n " + short + " \n " + long + "\n \n = = Part = = \n \n " + short + " \n\n = = Next = = \n " +
		long + "\n \n " + short + "\n = Second = \n " + long + "\n"
	long = strings.TrimSpace(long)
	want := []passage{
		{"First", 3, short + " " + long},
		{"First", 8, short + " " + long}, // the short one is not enough: the passage continues after the heading
		{"Second", 15, long},
	}
	if diff := cmp.Diff(want, passages(text), cmp.AllowUnexported(passage{})); diff != "" {
		t.Error(diff)
	}
}

// The paper's rule, applied to the paper's file, gives seven passages of one article, the first 699
// characters long, and three of another.
func TestPassagesOfThePaper(t *testing.T) {
	s, err := OpenSuite("wikitext", SuiteOptions{Data: filepath.Dir(filepath.Dir(testdata.Path(t, "prose/"+wikitextFile))),
		N: 10, Spare: 2})
	if err != nil {
		t.Fatal(err)
	}
	articles := map[string]int{}
	for _, p := range s.Prompts {
		articles[p.Name[strings.Index(p.Name, "("):]]++
	}
	if n := utf8.RuneCountInString(s.Prompts[0].Text); n != 699 || articles["(Homarus gammarus)"] != 7 ||
		articles["(Frank Headlam)"] != 3 {
		t.Errorf("the first has %d characters; articles %v", n, articles)
	}
}

func TestProse(t *testing.T) {
	dir := t.TempDir()
	frame := "*** START OF THE PROJECT GUTENBERG EBOOK X ***\n\n%s\n\n*** END OF THE PROJECT GUTENBERG EBOOK X ***\n"
	book := strings.Repeat("é was a dark night. ", 100)
	write(t, dir, "prose", "b.txt", fmt.Sprintf(frame, book))
	write(t, dir, "prose", "a.txt", "  \n"+book)
	write(t, dir, "prose", "short.txt", "Nothing much.")
	write(t, dir, "prose", wikitextFile, book)
	s, err := OpenSuite("prose", SuiteOptions{Data: dir, N: 8})
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Prompts) != 2 || s.Prompts[0].Name != "a.txt" || s.Prompts[1].Text != string([]rune(book)[:1000]) ||
		s.Prompts[0].Text != s.Prompts[1].Text {
		t.Errorf("prompts %+v", s.Prompts)
	}
}

// The suite go reads the packages held out for it, and no others.
func TestFunctions(t *testing.T) {
	root := t.TempDir()
	code := func(name string) string {
		return "package p\n\n// " + name + " does.\nfunc " + name + "() {\n\treturn\n}\n"
	}
	write(t, root, "src", "fmt", "print.go", code("Seen"))
	write(t, root, "src", "bufio", "scan_test.go", code("Test"))
	for i, folder := range data.HeldOut[data.Prompts] {
		write(t, root, "src", filepath.FromSlash(folder), "x.go", code(fmt.Sprintf("Held%d", i)))
	}
	s, err := OpenSuite("go", SuiteOptions{GoRoot: root})
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Prompts) != len(data.HeldOut[data.Prompts]) {
		t.Errorf("%d prompts of %d packages", len(s.Prompts), len(data.HeldOut[data.Prompts]))
	}
	for _, p := range s.Prompts {
		if !strings.Contains(p.Text, "func Held") || !strings.HasSuffix(p.Text, "() {\n") || strings.Contains(p.Name, root) {
			t.Errorf("%s: %q", p.Name, p.Text)
		}
	}
	if !slices.ContainsFunc(s.Prompts, func(p Prompt) bool { return p.Name == "bufio/x.go" }) {
		t.Errorf("no prompt of bufio: %v", s.Prompts)
	}
}

// A suite may be a file of prompts that heads are trained with: it has what the user says first.
func TestQuestionsOfConversations(t *testing.T) {
	for line, want := range map[string]string{
		`{"messages":[{"role":"system","content":"s"},{"role":"user","content":"a"},{"role":"user","content":"b"}]}`: "a",
		`{"conversations":[{"from":"human","value":"a"},{"from":"gpt","value":"x"}]}`:                                "a",
		`{"prompt":[{"role":"user","content":"a"}]}`:                                                                 "a",
		`{"instruction":"a","input":"b","output":"c"}`:                                                               "a\n\nb",
		`{"messages":[{"role":"assistant","content":"x"}]}`:                                                          "",
	} {
		if text, _, err := question([]byte(line), ""); text != want || (err != nil) != (want == "") {
			t.Errorf("%s: %q, %v, want %q", line, text, err, want)
		}
	}
}

// Any line gives a text or an error.
func FuzzQuestion(f *testing.F) {
	for _, line := range []string{`{"turns":["a"]}`, `{"prompt":"a"}`, `{"turns":[1]}`, `[]`, `{"text":""}`, "\xff",
		`{"question":{"a":1}}`} {
		f.Add([]byte(line), "")
		f.Add([]byte(line), "text")
	}
	f.Fuzz(func(t *testing.T, line []byte, field string) {
		text, _, err := question(line, field)
		if (strings.TrimSpace(text) == "") != (err != nil) || !utf8.ValidString(text) {
			t.Errorf("%q: %q, %v", line, text, err)
		}
	})
}
