// What measurements found: figures by table, row and column, each with all of its runs.

package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/grovellm/grove/internal/files/atomicfile"
)

// Measured is what a measurement found. It is kept in docs/benchmarks/data.
type Measured struct {
	Name     string    `json:"name"`
	Machine  string    `json:"machine"`
	Threads  int       `json:"threads"`
	Commit   string    `json:"commit"`  // that the program is of
	Go       string    `json:"go"`      // that it was built with
	Date     time.Time `json:"date"`    // of the last run
	Seconds  float64   `json:"seconds"` // of all runs
	Runs     int       `json:"runs"`
	Commands []string  `json:"commands"`
	Tables   []Table   `json:"tables"`
}

// Table is the figures of a view.
type Table struct {
	Name    string   `json:"name"`
	Columns []string `json:"columns"`
	Rows    []Row    `json:"rows"`
}

// Row is a row of a table.
type Row struct {
	Labels []string    `json:"row"`
	Values [][]float64 `json:"values"` // by column, of each run; none where the command printed none
}

// read makes tables of what the commands printed: all commands of the first run, then those of the next.
func (m *Measurement) read(outputs []kept) (*Measured, error) {
	r := &Measured{Name: m.Name, Runs: max(m.Runs, 1)}
	for i := range m.Commands {
		r.Commands = append(r.Commands, m.Commands[i].line())
	}
	for _, o := range outputs {
		r.Seconds += math.Round(o.Seconds)
		if o.Date.After(r.Date) {
			r.Date = o.Date
		}
	}
	for i := range m.Tables {
		v := &m.Tables[i]
		t := Table{Name: v.Name, Columns: v.heads()}
		for k, o := range outputs {
			rows, err := v.rows(m.Commands[k%len(m.Commands)].Labels, o.Output)
			if err != nil {
				return nil, fmt.Errorf("%s: table %s: %w", m.Name, v.Name, err)
			}
			for _, row := range rows {
				t.add(row)
			}
		}
		for c := range v.Columns {
			if !slices.ContainsFunc(t.Rows, func(row Row) bool { return len(row.Values[c]) > 0 }) {
				return nil, fmt.Errorf("%s: table %s: no row has a number in field %s", m.Name, v.Name, v.Columns[c].Field)
			}
		}
		r.Tables = append(r.Tables, t)
	}
	return r, nil
}

// add appends the values of a run.
func (t *Table) add(row Row) {
	i := slices.IndexFunc(t.Rows, func(other Row) bool { return slices.Equal(other.Labels, row.Labels) })
	if i < 0 {
		t.Rows = append(t.Rows, row)
		return
	}
	for c := range row.Values {
		t.Rows[i].Values[c] = append(t.Rows[i].Values[c], row.Values[c]...)
	}
}

func (v *View) heads() (all []string) {
	for _, c := range v.Columns {
		all = append(all, c.Head)
	}
	return all
}

// rows are those of one run of one command.
func (v *View) rows(labels []string, output []byte) (rows []Row, err error) {
	var top map[string]any
	if err := json.Unmarshal(output, &top); err != nil {
		return nil, err
	}
	var walk func(objects []map[string]any, labels, levels []string) error
	walk = func(objects []map[string]any, labels, levels []string) error {
		if len(levels) == 0 {
			row := Row{Labels: labels}
			for _, c := range v.Columns {
				row.Values = append(row.Values, c.value(objects))
			}
			rows = append(rows, row)
			return nil
		}
		list := strings.Split(levels[0], ".")
		inner, ok := objects[len(objects)-1][list[0]].([]any)
		if !ok {
			return fmt.Errorf("the command's JSON has no list %q", list[0])
		}
		for _, x := range inner {
			object, _ := x.(map[string]any)
			at := slices.Clone(labels)
			for _, field := range list[1:] {
				if object[field] == nil {
					return fmt.Errorf("an object of list %q has no field %q", list[0], field)
				}
				at = append(at, fmt.Sprint(object[field]))
			}
			if err := walk(append(slices.Clone(objects), object), at, levels[1:]); err != nil {
				return err
			}
		}
		return nil
	}
	if err := walk([]map[string]any{top}, labels, v.Rows); err != nil {
		return nil, err
	}
	for c, column := range v.Columns {
		if column.Over != "" {
			divide(rows, c, column.Over)
		}
	}
	return rows, nil
}

// value is the field's value in the innermost object that has it, or nothing.
func (c *Column) value(objects []map[string]any) []float64 {
	for _, object := range slices.Backward(objects) {
		var x any = object
		for name := range strings.SplitSeq(c.Field, ".") {
			inner, _ := x.(map[string]any)
			x = inner[name]
		}
		if f, ok := x.(float64); ok {
			if c.Scale != 0 {
				f *= c.Scale
			}
			return []float64{significant(f)}
		}
	}
	return nil
}

// significant rounds to six digits, which is more than a table shows.
func significant(f float64) float64 {
	_, _ = fmt.Sscan(fmt.Sprintf("%.6g", f), &f)
	return f
}

// divide divides a column by the figure of the row with the same labels but the last, which is base.
func divide(rows []Row, column int, base string) {
	by := map[string]float64{}
	group := func(r *Row) string { return fmt.Sprintf("%q", r.Labels[:len(r.Labels)-1]) }
	for i := range rows {
		if v := rows[i].Values[column]; rows[i].Labels[len(rows[i].Labels)-1] == base && len(v) == 1 {
			by[group(&rows[i])] = v[0]
		}
	}
	for i := range rows {
		d := by[group(&rows[i])]
		if v := rows[i].Values[column]; len(v) == 1 && d != 0 {
			v[0] = significant(v[0] / d)
		} else {
			rows[i].Values[column] = nil
		}
	}
}

// dataFile is where a result is kept below the folder docs.
func dataFile(docs, name string) string {
	return filepath.Join(docs, "benchmarks", "data", name+".json")
}

// Stored reads the result of a measurement that is kept below the folder docs; nil where there is none.
func Stored(docs, name string) (*Measured, error) {
	b, err := os.ReadFile(dataFile(docs, name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	r := new(Measured)
	if err := decode(b, r); err != nil {
		return nil, fmt.Errorf("%s: %w: remove it, and measure %s again", dataFile(docs, name), err, name)
	}
	return r, nil
}

// Store keeps the result below the folder docs, with a line for each row.
func (r *Measured) Store(docs string) error {
	b, err := json.Marshal(r)
	if err != nil {
		return err
	}
	b = bytes.ReplaceAll(b, []byte(`{"row":`), []byte("\n"+`{"row":`))
	if err := os.MkdirAll(filepath.Dir(dataFile(docs, r.Name)), 0o777); err != nil {
		return err
	}
	return atomicfile.Write(dataFile(docs, r.Name), func(w io.Writer) error {
		_, err := w.Write(append(b, '\n'))
		return err
	})
}

// Change is a figure that differs from the stored one by more than the noise.
type Change struct {
	Table  string   `json:"table"`
	Row    []string `json:"row"`
	Column string   `json:"column"`
	Old    float64  `json:"old"`
	New    float64  `json:"new"`
	Noise  float64  `json:"noise"`
}

func (c Change) String() string {
	text := fmt.Sprintf("%s, %s, %s: %.4g → %.4g", c.Table, strings.Join(c.Row, ", "), c.Column, c.Old, c.New)
	if c.Old != 0 {
		text += fmt.Sprintf(" (%+.1f %%, noise %.1f %%)", 100*(c.New/c.Old-1), 100*math.Abs(c.Noise/c.Old))
	}
	return text
}

// leastNoise is the least share by which figures of time must differ, however close the runs of one
// hour are to one another: that of the papers' orders by speed. Memory that other guests use
// changes within minutes.
var leastNoise = metrics["speedup"].tolerance

// Compare lists the figures of both that differ by more than the noise: the larger spread of the runs of either, and
// leastNoise where there is any. The reason says why nothing can be compared.
func Compare(old, now *Measured) (changes []Change, reason string) {
	switch {
	case old == nil:
		return nil, "measured for the first time"
	case !slices.Equal(old.Commands, now.Commands):
		return nil, "the stored result is of other commands"
	case now.Runs > 1 && (old.Machine != now.Machine || old.Threads != now.Threads):
		return nil, fmt.Sprintf("the stored result is of another machine: %s, %d threads", old.Machine, old.Threads)
	}
	changes = []Change{}
	before := map[string][]float64{}
	key := func(t *Table, r *Row, column int) string {
		return fmt.Sprintf("%q", append([]string{t.Name, t.Columns[column]}, r.Labels...))
	}
	old.each(func(t *Table, r *Row, c int) { before[key(t, r, c)] = r.Values[c] })
	now.each(func(t *Table, r *Row, c int) {
		a, b := before[key(t, r, c)], r.Values[c]
		if len(a) == 0 || len(b) == 0 {
			return
		}
		x := median(a)
		y := median(b)
		noise := max(spread(a), spread(b))
		if noise > 0 {
			noise = max(noise, leastNoise*max(math.Abs(x), math.Abs(y)))
		}
		if math.Abs(x-y) > noise {
			changes = append(changes, Change{t.Name, r.Labels, t.Columns[c], x, y, noise})
		}
	})
	return changes, ""
}

// each calls f for every figure.
func (r *Measured) each(f func(t *Table, row *Row, column int)) {
	for i := range r.Tables {
		t := &r.Tables[i]
		for k := range t.Rows {
			for c := range t.Columns {
				f(t, &t.Rows[k], c)
			}
		}
	}
}

func spread(v []float64) float64 { return slices.Max(v) - slices.Min(v) }

func median(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}
