package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// docs reads README.md, BENCHMARKS.md and all pages of docs and models, by their path from the repository's root.
func docs(t *testing.T) map[string]string {
	t.Helper()
	pages := map[string]string{}
	for _, top := range []string{"README.md", "BENCHMARKS.md", "docs", "models"} {
		err := filepath.WalkDir(filepath.Join("../..", top), func(path string, d fs.DirEntry, err error) error {
			if err != nil || filepath.Ext(path) != ".md" {
				return err
			}
			text, err := os.ReadFile(path)
			name, _ := filepath.Rel("../..", path)
			pages[filepath.ToSlash(name)] = string(text)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return pages
}

var (
	fence  = regexp.MustCompile("(?ms)^```(\\w*)\n(.*?)^```$")
	link   = regexp.MustCompile(`\]\(([^)\s#]*)(?:#([^)\s]*))?\)`)
	header = regexp.MustCompile(`(?m)^#+ (.*)$`)
)

// anchors are the fragments that headings of a page have on GitHub.
func anchors(page string) (all []string) {
	for _, h := range header.FindAllStringSubmatch(fence.ReplaceAllString(page, ""), -1) {
		all = append(all, strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
				return unicode.ToLower(r)
			}
			return -1
		}, h[1]))
	}
	return all
}

// Every relative link leads to a file, and its fragment to a heading; every page is reached from README.md.
func TestDocsLinks(t *testing.T) {
	pages := docs(t)
	reached := map[string]bool{"README.md": true}
	for queue := []string{"README.md"}; len(queue) > 0; queue = queue[1:] {
		from := queue[0]
		for _, l := range link.FindAllStringSubmatch(fence.ReplaceAllString(pages[from], ""), -1) {
			if strings.Contains(l[1], "://") {
				continue
			}
			to := from
			if l[1] != "" {
				to = filepath.ToSlash(filepath.Join(filepath.Dir(from), l[1]))
			}
			if _, err := os.Stat(filepath.Join("../..", to)); err != nil {
				t.Errorf("%s links to %s: %v", from, l[1], err)
			} else if page, ok := pages[to]; l[2] != "" && ok && !slices.Contains(anchors(page), l[2]) {
				t.Errorf("%s links to %s#%s: no such heading", from, to, l[2])
			} else if ok && !reached[to] {
				reached[to] = true
				queue = append(queue, to)
			}
		}
	}
	for name := range pages {
		if !reached[name] {
			t.Errorf("no link leads from README.md to %s", name)
		}
	}
}

var (
	shown  = regexp.MustCompile(`(?:^|[|$] |^\w+=\S+ )(?:grove|go run \./cmd/grove) (.*)`)
	word   = regexp.MustCompile(`(?:\$?'[^']*'|"[^"]*"|[^\s'"])+`)
	quoted = regexp.MustCompile(`(?s)\$?'[^']*'|"[^"]*"`)
)

// shellWords splits a command line as a shell does, up to a comment, a pipe or a redirection.
func shellWords(line string) (words []string) {
	for _, w := range word.FindAllString(line, -1) {
		if strings.ContainsAny(w[:1], "#|<>;&") {
			break
		}
		words = append(words, quoted.ReplaceAllStringFunc(w, func(q string) string {
			if strings.HasPrefix(q, "$") {
				q = strings.ReplaceAll(strings.ReplaceAll(q[1:], `\n`, "\n"), `\t`, "\t")
			}
			return q[1 : len(q)-1]
		}))
	}
	return words
}

// Every command line in a block of code names a command and flags that exist.
func TestDocsCommands(t *testing.T) {
	for name, page := range docs(t) {
		for _, block := range fence.FindAllStringSubmatch(page, -1) {
			for line := range strings.Lines(block[2]) {
				if m := shown.FindStringSubmatch(strings.TrimSpace(line)); m != nil {
					if code, _, err := command("", append(shellWords(m[1]), "--help")...); code != 0 {
						t.Errorf("%s: %s%s", name, line, err)
					}
				}
			}
		}
	}
}

// What a block of type console shows is what the command writes: "$ " begins a command, "> " a line that is typed.
func TestDocsOutput(t *testing.T) {
	for name, page := range docs(t) {
		for _, block := range fence.FindAllStringSubmatch(page, -1) {
			if block[1] != "console" {
				continue
			}
			for _, example := range strings.Split("\n"+block[2], "\n$ grove ")[1:] {
				line, rest, _ := strings.Cut(example, "\n")
				var typed, want strings.Builder
				for l := range strings.Lines(rest) {
					if in, ok := strings.CutPrefix(l, "> "); ok {
						typed.WriteString(in)
					} else {
						want.WriteString(l)
					}
				}
				got := must(t, typed.String(), shellWords(line)...)
				if strings.TrimRight(got, " \n") != strings.TrimRight(want.String(), " \n") {
					t.Errorf("%s: grove %s\nshows\n%s\nthe command writes\n%s", name, line, want.String(), got)
				}
			}
		}
	}
}
