// Documents whose tables are written from results.

package report

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/grovellm/grove/internal/files/atomicfile"
)

const (
	markBegin = "<!-- table "
	markEnd   = "<!-- end -->"
)

var marks = regexp.MustCompile(`(?s)` + markBegin + `([\w-]+) -->\n.*?` + markEnd)

// Documents writes what stands between the marks of the pages anew, from the results that are kept
// below the folder docs. The pages are those of docs/benchmarks and BENCHMARKS.md beside docs. It
// returns their texts by path; with write, files that differ are replaced.
func Documents(docs string, list []Measurement, write bool) (map[string]string, error) {
	tables := map[string]filled{}
	for i := range list {
		m := &list[i]
		r, err := Stored(docs, m.Name)
		if err != nil {
			return nil, err
		}
		for k := range m.Tables {
			if tables[m.Tables[k].Name], err = m.markdown(&m.Tables[k], r); err != nil {
				return nil, err
			}
		}
	}
	files, err := filepath.Glob(filepath.Join(docs, "benchmarks", "*.md"))
	if err != nil {
		return nil, err
	}
	pages := map[string]string{}
	for _, file := range append(files, filepath.Join(docs, "..", "BENCHMARKS.md")) {
		b, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		page, err := fill(string(b), tables)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		pages[file] = page
		if write && page != string(b) {
			if err := atomicfile.Write(file, func(w io.Writer) error {
				_, err := io.WriteString(w, page)
				return err
			}); err != nil {
				return nil, err
			}
		}
	}
	return pages, nil
}

// filled is a table as documents have it, and below it what it was measured on and by which commands.
type filled struct {
	rows, source string
	measurement  string
}

// fill puts the tables between their marks. Of several tables of a measurement the first has the source.
func fill(page string, tables map[string]filled) (string, error) {
	if begun, ended := strings.Count(page, markBegin), len(marks.FindAllString(page, -1)); begun != ended ||
		begun != strings.Count(page, markEnd) {
		return "", fmt.Errorf("%d marks begin tables and %d are complete: want %sNAME --> before each table and %s after it", begun, ended, markBegin, markEnd)
	}
	var missing error
	named := map[string]bool{}
	page = marks.ReplaceAllStringFunc(page, func(whole string) string {
		name := marks.FindStringSubmatch(whole)[1]
		table, ok := tables[name]
		if !ok {
			missing = errors.Join(missing, fmt.Errorf("no measurement has a table %q", name))
		}
		source := table.source
		if named[table.measurement] {
			source = "Of the same runs.\n"
		}
		named[table.measurement] = true
		return fmt.Sprintf("%s%s -->\n\n%s%s\n%s", markBegin, name, table.rows, source, markEnd)
	})
	return page, missing
}

// markdown is the view's table and its source; r is nil where it was not measured.
func (m *Measurement) markdown(v *View, r *Measured) (filled, error) {
	var rows, source strings.Builder
	if r == nil {
		source.WriteString("Not measured yet.\n")
	} else if err := v.markdown(&rows, &source, r); err != nil {
		return filled{}, err
	}
	source.WriteString("\n```sh\n")
	for i := range m.Commands {
		fmt.Fprintln(&source, m.Commands[i].line())
	}
	source.WriteString("```\n")
	return filled{rows.String(), source.String(), m.Name}, nil
}

func (v *View) markdown(lines, source *strings.Builder, r *Measured) error {
	i := slices.IndexFunc(r.Tables, func(t Table) bool { return t.Name == v.Name })
	if i < 0 || !slices.Equal(r.Tables[i].Columns, v.heads()) {
		return fmt.Errorf("the stored result of %s has no table %q with the columns of measurements.json: measure it again (grove-lab tables --only %s --write)", r.Name, v.Name, r.Name)
	}
	view, shown := v.choose(&r.Tables[i])
	head, rows := view.cells(&shown)
	fmt.Fprintf(lines, "| %s |\n%s|\n", strings.Join(head, " | "), strings.Repeat("|---", len(head)))
	for _, row := range rows {
		fmt.Fprintf(lines, "| %s |\n", strings.Join(row, " | "))
	}
	lines.WriteString("\n")
	var differ []float64
	for _, row := range shown.Rows {
		for _, values := range row.Values {
			if len(values) > 1 && median(values) != 0 {
				differ = append(differ, 100*spread(values)/math.Abs(median(values)))
			}
		}
	}
	if len(differ) > 0 {
		fmt.Fprintf(source, "Medians of %d runs, which differ by %.1f %% (median) and %.0f %% (most). ", r.Runs, median(differ),
			slices.Max(differ))
	}
	fmt.Fprintf(source, "%s; `--threads %d`. %s, commit %s, %s.\n", r.Machine, r.Threads,
		r.Date.Format("2 January 2006"), r.Commit, r.Go)
	return nil
}

// choose returns the columns and rows that documents show.
func (v *View) choose(t *Table) (view View, shown Table) {
	view = *v
	view.Columns = slices.DeleteFunc(slices.Clone(v.Columns), func(c Column) bool { return c.Stored })
	shown = Table{Name: t.Name, Columns: view.heads()}
	for _, r := range t.Rows {
		if slices.Contains(v.Without, r.Labels[len(r.Labels)-1]) {
			continue
		}
		row := Row{Labels: r.Labels}
		for c, values := range r.Values {
			if !v.Columns[c].Stored {
				row.Values = append(row.Values, values)
			}
		}
		shown.Rows = append(shown.Rows, row)
	}
	return view, shown
}

// cells are the table's, medians of the runs. With Across, the first label is put before the heads of columns.
func (v *View) cells(t *Table) (head []string, rows [][]string) {
	split := func(labels []string) (group string, rest []string) {
		if v.Across {
			return labels[0], labels[1:]
		}
		return "", labels
	}
	_, head = split(slices.Clone(v.Labels))
	key := func(group string, rest []string) string { return fmt.Sprintf("%q", append([]string{group}, rest...)) }
	var groups []string
	figures := map[string][][]float64{} // by group and row
	for _, r := range t.Rows {
		group, rest := split(r.Labels)
		figures[key(group, rest)] = r.Values
		if !slices.Contains(groups, group) {
			groups = append(groups, group)
			for _, c := range t.Columns {
				head = append(head, strings.Trim(group+": "+c, ": "))
			}
		}
		if !slices.ContainsFunc(rows, func(row []string) bool { return slices.Equal(row, rest) }) {
			rows = append(rows, slices.Clone(rest))
		}
	}
	for i, rest := range rows {
		for _, group := range groups {
			for c, values := range figures[key(group, rest)] {
				cell := "–"
				if len(values) > 0 {
					cell = fmt.Sprintf(v.Columns[c].Format, median(values))
				}
				rows[i] = append(rows[i], cell)
			}
			for range len(t.Columns) - len(figures[key(group, rest)]) {
				rows[i] = append(rows[i], "–")
			}
		}
	}
	return head, rows
}
