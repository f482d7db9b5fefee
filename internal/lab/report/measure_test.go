package report

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// Measurements have names of their own, tables of their own, formats for numbers, and take less
// than an hour. Those of one run have no figure of time.
func TestMeasurements(t *testing.T) {
	names := map[string]bool{}
	tables := map[string]bool{}
	total := 0.0
	timed := []string{"ms", "over_roof", "ratio", "tokens_per_s", "speedup", "draft_ms", "draft_share", "speed_gain"}
	for _, m := range Measurements() {
		if names[m.Name] || m.About == "" || len(m.Commands) == 0 || m.Seconds <= 0 || len(m.Tables) == 0 {
			t.Errorf("%q has no name of its own, no text, no commands, no time or no tables", m.Name)
		}
		names[m.Name] = true
		total += m.TotalSeconds()
		for _, v := range m.Tables {
			if tables[v.Name] {
				t.Errorf("%s: another table is called %s", m.Name, v.Name)
			}
			tables[v.Name] = true
			labels := len(m.Commands[0].Labels)
			for _, level := range v.Rows {
				labels += strings.Count(level, ".")
			}
			if labels != len(v.Labels) || labels == 0 {
				t.Errorf("table %s: rows have %d labels, and %v stand above them", v.Name, labels, v.Labels)
			}
			for _, c := range v.Columns {
				if text := fmt.Sprintf(c.Format, 1.5); strings.Contains(text, "%!") {
					t.Errorf("table %s: format of %s: %s", v.Name, c.Head, text)
				}
				if m.Runs < 2 && slices.Contains(timed, c.Field) {
					t.Errorf("table %s: %s depends on the machine, and is measured once", v.Name, c.Field)
				}
			}
		}
		for _, c := range m.Commands {
			if len(c.Labels) != len(m.Commands[0].Labels) || strings.Contains(c.Args, "--json") {
				t.Errorf("%s: command %q has other labels than the first, or asks for JSON itself", m.Name, c.Args)
			}
		}
	}
	if total > 3600 {
		t.Errorf("all measurements take %.0f minutes: want an hour at most", total/60)
	}
}

// However often measuring is interrupted, each run of each command is finished once, and the
// results have all of them in order.
func TestMeasureGoesOn(t *testing.T) {
	for seed := range uint64(20) { // few, since every run is synced to the disk
		rng := rand.New(rand.NewPCG(seed, 0))
		var list []Measurement
		want := map[string][][]float64{} // by measurement and command
		for i := range 1 + rng.IntN(2) {
			m := Measurement{Name: fmt.Sprint("m", i), Seconds: 1, Runs: rng.IntN(3), Tables: []View{
				{Name: fmt.Sprint("t", i), Labels: []string{"command"}, Columns: []Column{{Head: "x", Field: "x", Format: "%g"}}}}}
			for k := range 1 + rng.IntN(2) {
				c := Command{[]string{fmt.Sprint(k)}, fmt.Sprintf("run %d %d", i, k)}
				m.Commands = append(m.Commands, c)
				var values []float64
				for n := range max(m.Runs, 1) {
					values = append(values, float64(n+1))
				}
				want[c.line()] = [][]float64{values}
			}
			list = append(list, m)
		}
		dir := t.TempDir()
		finished := map[string]int{}
		measure := func() ([]*Measured, error) {
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			return Measure(ctx, MeasureOptions{Dir: dir, Run: func(_ context.Context, program string,
				args []string) ([]byte, error) {
				if rng.IntN(4) == 0 {
					cancel()
					return []byte(`{}`), ctx.Err()
				}
				name := program + " " + strings.Join(args, " ")
				finished[name]++
				return fmt.Appendf(nil, `{"x": %d}`, finished[name]), nil
			}}, list)
		}
		results, err := measure()
		for ; errors.Is(err, context.Canceled); results, err = measure() {
		}
		if err != nil || len(results) != len(list) {
			t.Fatalf("seed %d: %d results of %d: %v", seed, len(results), len(list), err)
		}
		got := map[string][][]float64{}
		for _, r := range results {
			for i, row := range r.Tables[0].Rows {
				got[r.Commands[i]] = row.Values
			}
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Fatalf("seed %d: %s", seed, d)
		}
	}
}

// A command that fails costs its own measurement alone. Another program's runs are not taken.
func TestMeasureFails(t *testing.T) {
	table := []View{{Name: "t", Labels: []string{"n"}, Columns: []Column{{Field: "x", Format: "%g"}}}}
	list := []Measurement{
		{Name: "bad", Runs: 2, Commands: []Command{{[]string{"a"}, "good"}, {[]string{"b"}, "bad"}}, Tables: table},
		{Name: "good", Runs: 2, Commands: []Command{{[]string{"a"}, "good"}}, Tables: table},
		{Name: "other", Commands: []Command{{[]string{"a"}, "other"}}, Tables: table},
	}
	calls := 0
	o := MeasureOptions{Dir: t.TempDir(), Commit: "one", Run: func(_ context.Context, program string,
		args []string) ([]byte, error) {
		calls++
		switch args[0] {
		case "bad":
			return nil, errors.New("it broke")
		case "other":
			return []byte(`{"y": 1}`), nil
		}
		return []byte(`{"x": 1}`), nil
	}}
	for _, want := range []int{5, 1, 5} { // the second time, the bad command alone; the third time it is another program
		calls = 0
		results, err := Measure(t.Context(), o, list)
		if err == nil || !strings.Contains(err.Error(), "bad: grove bad --json: it broke") ||
			!strings.Contains(err.Error(), "other: table t: no row has a number in field x") {
			t.Errorf("error %v", err)
		}
		if len(results) != 1 || results[0].Name != "good" || calls != want {
			t.Errorf("%d calls, want %d; results %v", calls, want, results)
		}
		if calls == 1 {
			o.Commit = "two"
		}
	}
}

// Rows are objects of nested lists. Fields are looked for from the inside out; shares are of the row named.
func TestReadAndShow(t *testing.T) {
	m := &Measurement{Name: "m", Runs: 2, Commands: []Command{{Args: "bench spec"}}, Tables: []View{
		{Name: "t", Labels: []string{"suite", "method"}, Rows: []string{"suites.name", "methods.name"},
			Across: true, Columns: []Column{
				{Head: "τ", Field: "tau", Format: "%.2f"}, {Head: "", Field: "tau", Format: "%.2f", Over: "full"}, {Head: "GB/s",
					Field: "memory.gbs", Format: "%.0f"}, {Head: "p", Field: "p", Format: "%.0f %%", Scale: 100}}}}}
	output := func(tau float64) kept {
		return kept{Output: fmt.Appendf(nil, `{"memory": {"gbs": 40}, "suites": [
			{"name": "go", "p": 0.25, "methods": [{"name": "full", "tau": 4}, {"name": "half", "tau": %v, "p": 0.5}]},
			{"name": "math", "p": null, "methods": [{"name": "half", "tau": 3}]}]}`, tau)}
	}
	r, err := m.read([]kept{output(2), output(3)})
	if err != nil {
		t.Fatal(err)
	}
	head, rows := m.Tables[0].cells(&r.Tables[0])
	want := [][]string{{"method", "go: τ", "go", "go: GB/s", "go: p", "math: τ", "math", "math: GB/s", "math: p"},
		{"full", "4.00", "1.00", "40", "25 %", "–", "–", "–", "–"}, {"half", "2.50", "0.62", "40", "50 %",
			"3.00", "–", "40", "–"}}
	if d := cmp.Diff(want, append([][]string{head}, rows...)); d != "" {
		t.Error(d)
	}
	m.Tables[0].Across = false
	head, rows = m.Tables[0].cells(&r.Tables[0])
	if d := cmp.Diff([][]string{{"suite", "method", "τ", "", "GB/s", "p"}, {"math", "half", "3.00", "–", "40", "–"}},
		[][]string{head, rows[2]}); d != "" {
		t.Error(d)
	}
	r.Machine = "Z80"
	r.Threads = 1
	r.Commit = "e1698b9017a0"
	r.Go = "go1.26"
	table, err := m.markdown(&m.Tables[0], r)
	text := table.rows + table.source
	footer := "Medians of 2 runs, which differ by 0.0 % (median) and 40 % (most). Z80; `--threads 1`. 1 January 0001, commit e1698b9017a0, go1.26.\n\n```sh\ngrove bench spec --json\n```\n"
	if err != nil || !strings.Contains(text, footer) || !strings.Contains(text, "| go | half | 2.50 | 0.62 | 40 | 50 % |\n") {
		t.Errorf("%v: %s\nwant %s", err, text, footer)
	}
	if table, err := m.markdown(&m.Tables[0], nil); err != nil || !strings.Contains(table.source, "Not measured yet.") {
		t.Errorf("%v: without a result: %s", err, table.source)
	}
	m.Tables[0].Columns[2].Stored = true
	m.Tables[0].Without = []string{"full"}
	table, err = m.markdown(&m.Tables[0], r)
	if want := "| suite | method | τ |  | p |\n|---|---|---|---|---|\n| go | half | 2.50 | 0.62 | 50 % |\n" +
		"| math | half | 3.00 | – | – |\n\n"; err != nil || table.rows != want {
		t.Errorf("%v: rows and columns chosen:\n%s\nwant\n%s", err, table.rows, want)
	}
	m.Tables[0].Columns[0].Head = "another"
	if _, err := m.markdown(&m.Tables[0], r); err == nil || !strings.Contains(err.Error(),
		"grove-lab tables --only m --write") {
		t.Errorf("a result with other columns: %v", err)
	}
	for _, bad := range []string{`[]`, `{}`, `{"suites": [{"methods": []}]}`, `{"suites": [1]}`} {
		if _, err := m.read([]kept{{Output: json.RawMessage(bad)}, {Output: json.RawMessage(bad)}}); err == nil {
			t.Errorf("%s is read without an error", bad)
		}
	}
	docs := t.TempDir()
	if err := r.Store(docs); err != nil {
		t.Fatal(err)
	}
	again, err := Stored(docs, "m")
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(r, again); d != "" {
		t.Errorf("what was stored is read otherwise: %s", d)
	}
}

// A figure changed if its medians differ by more than the runs of either do, and than the least
// noise. Which of the two is older does not matter.
func TestCompare(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		runs := rapid.IntRange(1, 3).Draw(t, "runs")
		a, b := &Measured{Runs: runs}, &Measured{Runs: runs}
		want := map[string]bool{}
		for _, r := range []*Measured{a, b} {
			r.Tables = []Table{{Name: "t", Columns: []string{"x", "y"}}}
		}
		for i := range rapid.IntRange(0, 4).Draw(t, "rows") {
			row := func(r *Measured) [][]float64 {
				var values [][]float64
				for range 2 {
					v := rapid.SliceOfN(rapid.Float64Range(1, 2), runs, runs).Draw(t, "values")
					if rapid.Bool().Draw(t, "same") {
						v = slices.Repeat(v[:1], runs)
					}
					values = append(values, v)
				}
				r.Tables[0].Rows = append(r.Tables[0].Rows, Row{[]string{fmt.Sprint(i)}, values})
				return values
			}
			x, y := row(a), row(b)
			for c, column := range []string{"x", "y"} {
				noise := max(slices.Max(x[c])-slices.Min(x[c]), slices.Max(y[c])-slices.Min(y[c]))
				mx, my := median(x[c]), median(y[c])
				if noise > 0 {
					noise = max(noise, 0.05*max(mx, my))
				}
				if math.Abs(mx-my) > noise {
					want[fmt.Sprint(i)+column] = true
				}
			}
		}
		for _, pair := range [][2]*Measured{{a, b}, {b, a}} {
			changes, reason := Compare(pair[0], pair[1])
			got := map[string]bool{}
			for _, c := range changes {
				got[c.Row[0]+c.Column] = true
			}
			if reason != "" || !maps.Equal(got, want) {
				t.Fatalf("changed: %v, want %v; %s", got, want, reason)
			}
		}
		if changes, _ := Compare(a, a); len(changes) > 0 {
			t.Fatalf("a result differs from itself: %v", changes)
		}
		other := *b
		other.Machine = "another"
		if _, reason := Compare(a, &other); (reason == "") != (runs == 1) {
			t.Fatalf("%d runs of another machine: %q", runs, reason)
		}
	})
}

// What stands between the marks is the table, and all else stays; marks without a table or an end are errors. Of the
// tables of a measurement, the first has the source.
func TestFill(t *testing.T) {
	tables := map[string]filled{"a": {"| A |\n", "of m\n", "m"}, "a-2": {"| A2 |\n", "of m\n", "m"},
		"b": {"B\n", "of n\n", "n"}}
	rapid.Check(t, func(t *rapid.T) {
		var page, want strings.Builder
		named := map[string]bool{}
		for range rapid.IntRange(0, 5).Draw(t, "parts") {
			text := rapid.SampledFrom([]string{"text\n", "| x |\n|---|\n", "# Head\n", "<!-- note -->\n", ""}).Draw(t, "text")
			name := rapid.SampledFrom([]string{"a", "a-2", "b"}).Draw(t, "name")
			old := rapid.SampledFrom([]string{"", "\nold\n"}).Draw(t, "old")
			fmt.Fprintf(&page, "%s<!-- table %s -->\n%s<!-- end -->\n", text, name, old)
			source := tables[name].source
			if named[tables[name].measurement] {
				source = "Of the same runs.\n"
			}
			named[tables[name].measurement] = true
			fmt.Fprintf(&want, "%s<!-- table %s -->\n\n%s%s\n<!-- end -->\n", text, name, tables[name].rows, source)
		}
		got, err := fill(page.String(), tables)
		if err != nil || got != want.String() {
			t.Fatalf("%v\n%s\nwant\n%s", err, got, want.String())
		}
		if again, err := fill(got, tables); err != nil || again != got {
			t.Fatalf("%v: the second time it is\n%s", err, again)
		}
	})
	for _, page := range []string{"<!-- table a -->\n", "<!-- table no -->\n<!-- end -->", "<!-- end -->",
		"<!-- table a -->\n<!-- table a -->\n<!-- end -->"} {
		if _, err := fill(page, tables); err == nil {
			t.Errorf("%q is filled without an error", page)
		}
	}
}
