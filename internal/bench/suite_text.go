// Suites made of running text: Go's library, novels, WikiText-2.

package bench

import (
	"cmp"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/grovellm/grove/internal/train/data"
)

// functionPrompt is the size of a prompt of Go code: some 40 lines, in bytes.
const functionPrompt = 1200

func readFunctions(o *SuiteOptions, q query) ([]Prompt, error) {
	docs, root, err := promptFiles(o)
	if err != nil {
		return nil, err
	}
	var all []Prompt
	for _, d := range data.FunctionPrompts(docs, cmp.Or(q.chars, functionPrompt)) {
		name := d.Name
		if rel, err := filepath.Rel(root, d.Name); err == nil {
			name = filepath.ToSlash(rel)
		}
		all = append(all, Prompt{Name: name, Text: d.Text()})
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s: no function in its packages held out for prompts", root)
	}
	return all, nil
}

// proseChars is the length of a prompt in DynaTree's PG-19 protocol: the first 1000 characters of each
// book, with white space around the text removed; books of less than 200 characters are left out.
const (
	proseChars = 1000
	leastChars = 200
)

func readProse(o *SuiteOptions, q query) ([]Prompt, error) {
	dir, err := o.data("prose")
	if err != nil {
		return nil, err
	}
	docs, _, err := data.Source{Name: "prose", Kind: data.Text, Path: filepath.Join(dir, "*.txt"),
		Except: []string{wikitextFile}, Weight: 1}.Documents()
	if err != nil {
		return nil, err
	}
	chars := cmp.Or(q.chars, proseChars)
	var all []Prompt
	for _, d := range docs {
		if text := strings.TrimSpace(d.Text()); len([]rune(cut(text, leastChars))) == leastChars {
			all = append(all, Prompt{Name: filepath.Base(d.Name), Text: cut(text, chars)})
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s: no text of at least %d characters in it", dir, leastChars)
	}
	return all, nil
}

// wikitextFile is WikiText-2's raw validation split: each line is text, empty, or a heading " = Title = ".
const (
	wikitextFile  = "wikitext2_valid.txt"
	wikitextChars = 800
)

func readPassages(o *SuiteOptions, q query) ([]Prompt, error) {
	return readWikitext(o, q, func(p []passage) []passage { return p })
}

func readArticles(o *SuiteOptions, q query) ([]Prompt, error) {
	return readWikitext(o, q, func(all []passage) (first []passage) {
		for _, p := range all {
			if len(first) == 0 || p.article != first[len(first)-1].article {
				first = append(first, p)
			}
		}
		return first
	})
}

func readWikitext(o *SuiteOptions, q query, pick func([]passage) []passage) ([]Prompt, error) {
	path, err := o.data("prose", wikitextFile)
	if err != nil {
		return nil, err
	}
	docs, _, err := data.Source{Name: "wikitext", Kind: data.Text, Path: path, Raw: true, Weight: 1}.Documents()
	if err != nil {
		return nil, err
	}
	chars := cmp.Or(q.chars, wikitextChars)
	var all []Prompt
	for _, p := range pick(passages(docs[0].Text())) {
		all = append(all, Prompt{Name: fmt.Sprintf("%s:%d (%s)", wikitextFile, p.line, p.article), Text: cut(p.text, chars)})
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s: no passage of at least %d characters in it", path, leastChars)
	}
	return all, nil
}

// passage is a piece of an article.
type passage struct {
	article string
	line    int // its first line
	text    string
}

var title = regexp.MustCompile(`^ ?= ([^=].*[^=]) = ?$`)

// passages applies DynaTree's rule: lines of text are joined by a space; an empty line or a heading
// ends the passage if it has 200 characters by then, and otherwise the passage continues after it.
// We depart from the rule in one thing: a passage ends where its article does.
func passages(text string) []passage {
	var all []passage
	var now passage
	article := ""
	end := func(always bool) {
		if n := len([]rune(strings.TrimSpace(now.text))); n >= leastChars {
			now.text = strings.TrimSpace(now.text)
			all = append(all, now)
		} else if !always {
			return
		}
		now = passage{}
	}
	line := 0
	for l := range strings.Lines(text) {
		line++
		l = strings.TrimRight(l, "\r\n ")
		heading := strings.HasPrefix(l, "= ") || strings.HasPrefix(l, " = ")
		if t := title.FindStringSubmatch(l); t != nil {
			end(true)
			article = t[1]
			continue
		}
		if strings.TrimSpace(l) == "" || heading {
			end(false)
			continue
		}
		if now.text == "" {
			now.article, now.line = article, line
		}
		now.text += " " + strings.TrimSpace(l)
	}
	end(true)
	return all
}
