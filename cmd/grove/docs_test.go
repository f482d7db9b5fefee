package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"github.com/grovellm/grove/internal/testing/pages"
)

var (
	link   = regexp.MustCompile(`\]\(([^)\s#]*)(?:#([^)\s]*))?\)`)
	header = regexp.MustCompile(`(?m)^#+ (.*)$`)
	figure = regexp.MustCompile(`\b\d+\.\d+\b`)
)

// anchors are the fragments that headings of a page have on GitHub.
func anchors(page string) (all []string) {
	for _, h := range header.FindAllStringSubmatch(pages.Fence.ReplaceAllString(page, ""), -1) {
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
	all := pages.All(t, "../..")
	reached := map[string]bool{"README.md": true}
	for queue := []string{"README.md"}; len(queue) > 0; queue = queue[1:] {
		from := queue[0]
		for _, l := range link.FindAllStringSubmatch(pages.Fence.ReplaceAllString(all[from], ""), -1) {
			if strings.Contains(l[1], "://") {
				continue
			}
			to := from
			if l[1] != "" {
				to = filepath.ToSlash(filepath.Join(filepath.Dir(from), l[1]))
			}
			if _, err := os.Stat(filepath.Join("../..", to)); err != nil {
				t.Errorf("%s links to %s: %v", from, l[1], err)
			} else if page, ok := all[to]; l[2] != "" && ok && !slices.Contains(anchors(page), l[2]) {
				t.Errorf("%s links to %s#%s: no such heading", from, to, l[2])
			} else if ok && !reached[to] {
				reached[to] = true
				queue = append(queue, to)
			}
		}
	}
	for name := range all {
		if !reached[name] {
			t.Errorf("no link leads from README.md to %s", name)
		}
	}
}

// The pages of docs have 35,000 words at most, as wc -w counts them: rules and bars of tables too.
func TestDocsLength(t *testing.T) {
	const most = 35000
	words := 0
	for name, page := range pages.All(t, "../..") {
		if strings.HasPrefix(name, "docs/") {
			words += len(strings.Fields(page))
		}
	}
	if words > most {
		t.Errorf("docs has %d words, want %d at most: say what is new in place of something, not beside it", words, most)
	}
}

// README.md gives no figure of speed that BENCHMARKS.md does not have, to as many digits.
func TestDocsFigures(t *testing.T) {
	all := pages.All(t, "../..")
	_, rest, _ := strings.Cut(all["README.md"], "\n## How fast\n")
	section, _, found := strings.Cut(rest, "\n## ")
	quoted := figure.FindAllString(section, -1)
	if !found || len(quoted) < 5 {
		t.Fatalf("README.md has %d figures below How fast", len(quoted))
	}
	for _, q := range quoted {
		_, digits, _ := strings.Cut(q, ".")
		measured := slices.ContainsFunc(figure.FindAllString(all["BENCHMARKS.md"], -1), func(b string) bool {
			x, err := strconv.ParseFloat(b, 64)
			return err == nil && strconv.FormatFloat(x, 'f', len(digits), 64) == q
		})
		if !measured {
			t.Errorf("README.md quotes %s, which BENCHMARKS.md does not have", q)
		}
	}
}

// Every command line in a block of code names a command and flags that exist.
func TestDocsCommands(t *testing.T) {
	for name, page := range pages.All(t, "../..") {
		for _, args := range pages.Commands(page, "grove") {
			if code, _, err := runGrove("", append(args, "--help")...); code != 0 {
				t.Errorf("%s: grove %q: %s", name, args, err)
			}
		}
	}
}

// A block of type console shows what the command writes: "$ " begins a command, "> " a line that is typed.
func TestDocsOutput(t *testing.T) {
	for name, page := range pages.All(t, "../..") {
		for _, block := range pages.Fence.FindAllStringSubmatch(page, -1) {
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
				got := must(t, typed.String(), pages.ShellWords(line)...)
				if strings.TrimRight(got, " \n") != strings.TrimRight(want.String(), " \n") {
					t.Errorf("%s: grove %s\nshows\n%s\nthe command writes\n%s", name, line, want.String(), got)
				}
			}
		}
	}
}
