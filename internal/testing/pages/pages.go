// Package pages reads grove's documentation for tests.
package pages

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// All returns README.md, BENCHMARKS.md and all pages of docs and models, by their path from the
// repository's root, which is at root.
func All(t *testing.T, root string) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, top := range []string{"README.md", "BENCHMARKS.md", "docs", "models"} {
		err := filepath.WalkDir(filepath.Join(root, top), func(path string, d fs.DirEntry, err error) error {
			if err != nil || filepath.Ext(path) != ".md" {
				return err
			}
			text, err := os.ReadFile(path)
			name, _ := filepath.Rel(root, path)
			all[filepath.ToSlash(name)] = string(text)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// Fence matches a block of code: its language and its text.
var Fence = regexp.MustCompile("(?ms)^```(\\w*)\n(.*?)^```$")

// Commands returns the command lines of a program in the code blocks of a page, each as its arguments.
func Commands(page, program string) (all [][]string) {
	shown := regexp.MustCompile(`(?:^|[|$] |^\w+=\S+ )(?:` + program + `|go run \./cmd/` + program + `) (.*)`)
	for _, block := range Fence.FindAllStringSubmatch(page, -1) {
		for line := range strings.Lines(block[2]) {
			if m := shown.FindStringSubmatch(strings.TrimSpace(line)); m != nil {
				all = append(all, ShellWords(m[1]))
			}
		}
	}
	return all
}

var (
	word   = regexp.MustCompile(`(?:\$?'[^']*'|"[^"]*"|[^\s'"])+`)
	quoted = regexp.MustCompile(`(?s)\$?'[^']*'|"[^"]*"`)
)

// ShellWords splits a command line as a shell does, up to a comment, a pipe or a redirection.
func ShellWords(line string) (words []string) {
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
