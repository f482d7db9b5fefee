// The report as a page that needs no other file.

package report

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
)

//go:embed page.html
var pageHTML string

var page = template.Must(template.New("page").Funcs(template.FuncMap{
	"millions": func(n int64) string { return fmt.Sprintf("%.1f", float64(n)/1e6) },
	"seconds": func(s float64) string {
		return time.Duration(s * float64(time.Second)).Round(time.Second).String()
	},
}).Parse(pageHTML))

// shown is a result with what the page shows of it.
type shown struct {
	*Result
	Verdict    string
	Tables     []table
	Repetition string
	Drawings   []drawing
}

// table is a table of the page.
type table struct {
	Caption string
	Head    []string
	Rows    [][]string
}

// drawing is a figure of the page.
type drawing struct {
	Name string
	SVG  template.HTML
}

// HTML writes the page. The figures are those in the folders of the experiments.
func (r *Report) HTML(w io.Writer, dir string) error {
	view := struct {
		*Report
		Results []shown
	}{Report: r}
	for _, result := range r.Results {
		s, err := result.show(filepath.Join(dir, result.Name))
		if err != nil {
			return err
		}
		view.Results = append(view.Results, s)
	}
	return page.Execute(w, view)
}

func (r *Result) show(dir string) (shown, error) {
	s := shown{Result: r, Verdict: r.verdict()}
	t := table{Caption: "Here"}
	var err error
	switch {
	case r.Spec != nil:
		t.Head, t.Rows, err = r.Spec.Cells(r.Columns)
		s.Repetition = r.repetition()
	case r.Adapt != nil:
		t.Head = []string{"policy", "τ", "over the first", "tokens/s", "over the first", "updates", "mismatches"}
		for _, stream := range r.Adapt.Streams {
			for _, p := range stream.Policies {
				updates := 0
				if p.Learning != nil {
					for _, n := range p.Learning.Updates {
						updates += n
					}
				}
				t.Rows = append(t.Rows, []string{p.Name, fmt.Sprintf("%.2f", p.Tau), fmt.Sprintf("%.2f", p.TauGain),
					fmt.Sprintf("%.1f", p.TokensPerS),
					fmt.Sprintf("%.2f", p.SpeedGain), fmt.Sprint(updates), fmt.Sprint(p.Mismatches)})
			}
		}
	case r.Serve != nil:
		t.Head = []string{"drafter", "callers", "tokens/s", "over one caller", "over plain", "τ", "between chunks, ms",
			"99th percentile", "texts that differ"}
		for _, row := range r.Serve.Rows {
			t.Rows = append(t.Rows, []string{row.Drafter, fmt.Sprint(row.Clients), fmt.Sprintf("%.1f", row.PerSecond),
				fmt.Sprintf("%.2f", row.OverOne),
				fmt.Sprintf("%.2f", row.OverPlain), fmt.Sprintf("%.2f", row.Tau), fmt.Sprintf("%.1f",
					row.GapMS), fmt.Sprintf("%.1f", row.GapP99MS), fmt.Sprint(row.Different)})
		}
	}
	if err != nil {
		return s, err
	}
	s.Tables = append(s.Tables, t)
	if p := r.Paper; p != nil {
		published := table{Caption: p.Source, Head: append([]string{"method"}, p.Columns...)}
		for _, row := range p.Rows {
			published.Rows = append(published.Rows, append([]string{row.Name}, row.Values...))
		}
		s.Tables = append(s.Tables, published)
	}
	s.Drawings, err = r.drawings(dir)
	return s, err
}

// verdict sums the findings up.
func (r *Result) verdict() string {
	holds, compared := 0, 0
	for _, f := range r.Findings {
		holds, compared = holds+f.Holds, compared+f.Compared
	}
	if compared == 0 {
		return ""
	}
	return fmt.Sprintf("the order holds in %d of %d comparisons", holds, compared)
}

// repetition says how much the texts repeat themselves, which flatters drafters.
func (r *Result) repetition() string {
	var parts []string
	for _, s := range r.Spec.Suites {
		if m := s.Method("plain"); m != nil {
			parts = append(parts, fmt.Sprintf("%s %.0f %%", s.Name, 100*m.Begin.Repeated))
		}
	}
	return "Repetition, which flatters drafters: tokens whose last four stood in the output before: " + strings.Join(parts, ", ") + "."
}

// drawings reads the figures that the page shows.
func (r *Result) drawings(dir string) (all []drawing, err error) {
	names := []string{"*-1.svg"} // of adaptation
	switch {
	case r.Spec != nil:
		names = names[:0]
		for _, f := range r.Figures {
			names = append(names, f+".svg", "*-"+f+".svg")
		}
	case r.Serve != nil:
		names = []string{"load.svg"}
	}
	for _, name := range names {
		files, err := filepath.Glob(filepath.Join(dir, name))
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			b, err := os.ReadFile(file)
			if err != nil {
				return nil, err
			}
			svg := string(b)
			at := strings.Index(svg, "<svg")
			if at < 0 {
				return nil, fmt.Errorf("%s is no SVG file: remove it, and run the report again", file)
			}
			// The files are the program's own, and what users name in them was escaped when they were drawn.
			all = append(all, drawing{strings.TrimSuffix(filepath.Base(file), ".svg"), template.HTML(svg[at:])})
		}
	}
	return all, nil
}
