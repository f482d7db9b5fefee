package report

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const docs = "../../../docs"

// Tables between marks are what the results say, and every table of a measurement is on a page.
func TestDocuments(t *testing.T) {
	list := Measurements()
	pages, err := Documents(docs, list, false)
	if err != nil {
		t.Fatal(err)
	}
	all := ""
	for file, want := range pages {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all += want
		if string(b) != want {
			t.Errorf("%s: a table is not that of its result: run grove-lab tables --no-measure --write", file)
		}
	}
	for _, m := range list {
		for _, v := range m.Tables {
			if !strings.Contains(all, markBegin+v.Name+" ") {
				t.Errorf("no page has the table %s", v.Name)
			}
		}
	}
}

// Every result is of a measurement, was made by its commands, and names machine, date and commit.
func TestStored(t *testing.T) {
	files, err := filepath.Glob(dataFile(docs, "*"))
	if err != nil {
		t.Fatal(err)
	}
	list := Measurements()
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".json")
		i := slices.IndexFunc(list, func(m Measurement) bool { return m.Name == name })
		if i < 0 {
			t.Errorf("%s: there is no such measurement: remove the file", file)
			continue
		}
		r, err := Stored(docs, name)
		if err != nil {
			t.Error(err)
			continue
		}
		var commands []string
		for k := range list[i].Commands {
			commands = append(commands, list[i].Commands[k].line())
		}
		if !slices.Equal(commands, r.Commands) || r.Runs != max(list[i].Runs, 1) {
			t.Errorf("%s: it is of other commands than measurements.json has: measure it again", file)
		}
		if r.Machine == "" || r.Threads < 1 || r.Date.IsZero() || !regexp.MustCompile(`^[0-9a-f]{12}$`).MatchString(r.Commit) {
			t.Errorf("%s: machine %q, %d threads, date %v, commit %q", file, r.Machine, r.Threads, r.Date, r.Commit)
		}
		for _, table := range r.Tables {
			for _, row := range table.Rows {
				for c, values := range row.Values {
					if len(values) != 0 && len(values) != r.Runs {
						t.Errorf("%s: table %s, %v, %s: %d runs of %d", file, table.Name, row.Labels,
							table.Columns[c], len(values), r.Runs)
					}
				}
			}
		}
	}
}

var (
	section  = regexp.MustCompile(`(?m)^## `)
	rule     = regexp.MustCompile(`(?m)^\|-+`)
	recorded = regexp.MustCompile(`(?s)^## Recorded once: .*\b\d{1,2} [A-Z][a-z]+ 20\d\d\b`)
	commit   = regexp.MustCompile(`[Cc]ommits? [0-9a-f]{7}`)
)

// Every table of docs/benchmarks is between marks, or below a heading that says it was recorded
// once, with a date and a commit.
func TestTablesAreMarked(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(docs, "benchmarks", "*.md"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		page := marks.ReplaceAllString(string(b), "")
		starts := append([]int{0}, indexes(section, page)...)
		for i, start := range starts {
			part := page[start:]
			if i+1 < len(starts) {
				part = page[start:starts[i+1]]
			}
			if rule.MatchString(part) && !(recorded.MatchString(part) && commit.MatchString(part)) {
				head, _, _ := strings.Cut(part, "\n")
				t.Errorf("%s, %q: a table is neither between marks nor recorded once with a date and a commit", file, head)
			}
		}
	}
}

func indexes(r *regexp.Regexp, text string) (all []int) {
	for _, at := range r.FindAllStringIndex(text, -1) {
		all = append(all, at[0])
	}
	return all
}
