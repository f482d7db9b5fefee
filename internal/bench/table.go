// The report as Markdown.

package bench

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
)

// plain returns the suite's plain decoding.
func (s *SuiteReport) plain() *MethodReport {
	return find(s.Methods, func(m *MethodReport) bool { return m.Drafter == "" })
}

// Markdown writes the report, with tables in addition to those of every suite.
func (r *SpecReport) Markdown(w io.Writer, tables []TableView) error {
	var b strings.Builder
	r.head(&b)
	for i := range r.Suites {
		r.Suites[i].markdown(&b)
	}
	for _, t := range tables {
		if t.Depths > 0 {
			r.depthTable(&b, t)
		} else if err := r.table(&b, t); err != nil {
			return err
		}
	}
	writeInterrupted(&b, r.Interrupted)
	_, err := io.WriteString(w, b.String())
	return err
}

func writeInterrupted(b *strings.Builder, interrupted bool) {
	if interrupted {
		b.WriteString("\n**Interrupted**: this is what had been measured.\n")
	}
}

func (r *SpecReport) head(b *strings.Builder) {
	r.Setting.head(b, "Speculation, methods by suites")
	if r.DraftSize > 0 {
		line(b, "draft model", "%s, %.1f M parameters", cmp.Or(r.Draft, "unnamed"), float64(r.DraftSize)/1e6)
	} else {
		line(b, "draft model", "none")
	}
	if len(r.Bandwidth) > 0 {
		line(b, "read bandwidth before and after each suite", "%s GB/s",
			strings.ReplaceAll(strings.Trim(fmt.Sprintf("%.1f", r.Bandwidth), "[]"), " ", ", "))
	}
	top := ""
	if r.TopP > 0 && r.TopP < 1 {
		top = fmt.Sprintf(", top-p %g", r.TopP)
	}
	line(b, "sampling", "temperature %s%s, seeds %s", strings.Trim(fmt.Sprint(r.Temperature), "[]"), top,
		strings.Trim(fmt.Sprint(r.Seeds), "[]"))
	end := "to the end of the text"
	if r.IgnoreEnd {
		end = "past the end of the text"
	}
	line(b, "outputs", "at most %d tokens, %s; everything measured %d×; chat template: %v", r.MaxTokens, end,
		r.Repeats, yes(r.Chat))
}

func (s *SuiteReport) markdown(b *strings.Builder) {
	fmt.Fprintf(b, "\n## %s\n\n", s.Name)
	if s.About != "" {
		fmt.Fprintf(b, "%s. ", strings.ToUpper(s.About[:1])+s.About[1:])
	}
	fmt.Fprintf(b, "%d prompts, %d to warm up left out", s.Prompts, s.WarmUp)
	if s.Cut > 0 {
		fmt.Fprintf(b, "; of %d prompts only the end, since they do not fit the context", s.Cut)
	}
	fmt.Fprintf(b, ". Of the outputs' tokens %s end four that stand in the prompt.", percent(s.Copied))
	if s.Forced {
		b.WriteString(" **The target was made to write its outputs**: the logits of their tokens were raised.")
	}
	b.WriteString("\n\n")
	head := []string{"method", "rule", "controller"}
	names := []string{"tokens_per_s", "speedup", "whole", "tau", "accept", "nodes", "draft", "plain", "rounds", "ttft",
		"tpot", "mismatches"}
	if slices.ContainsFunc(s.Methods, func(m MethodReport) bool { return m.listLine() != "" }) {
		names = append(names, "list", "covered")
	}
	if slices.ContainsFunc(s.Methods, func(m MethodReport) bool { return m.Peak > 0 }) {
		names = append(names, "peak", "peak over plain")
	}
	for _, n := range names {
		head = append(head, columns[n].head)
	}
	writeTitles(b, head...)
	for i := range s.Methods {
		m := &s.Methods[i]
		row := []string{m.Name, "–", "–"}
		if m.Drafter != "" {
			row[1], row[2] = cmp.Or(m.Accept, "coupled"), yes(m.Controller)
		}
		for _, n := range names {
			row = append(row, columns[n].cell(s, m))
		}
		writeRow(b, row)
	}
	fmt.Fprintf(b, "\nThe first %d tokens of the outputs, and the rest:\n\n", beginning)
	writeTitles(b, "method", "τ", "speed-up", "repeated 4-grams", "τ, rest", "speed-up, rest", "repeated 4-grams, rest")
	for i := range s.Methods {
		m := &s.Methods[i]
		row := []string{m.Name}
		for _, p := range []*PartReport{&m.Begin, &m.Rest} {
			if p.Tokens == 0 {
				row = append(row, "–", "–", "–")
				continue
			}
			row = append(row, fmt.Sprintf("%.2f", p.Tau), fmt.Sprintf("%.2f", p.Speedup), percent(p.Repeated))
		}
		writeRow(b, row)
	}
}

// table writes a view, with the suites side by side.
func (r *SpecReport) table(b *strings.Builder, t TableView) error {
	fmt.Fprintf(b, "\n## %s\n\n", t.Title)
	head, rows, err := r.Cells(t.Columns)
	if err != nil {
		return err
	}
	writeTitles(b, head...)
	for _, row := range rows {
		writeRow(b, row)
	}
	return nil
}

// Cells returns a table of columns, with the suites side by side and a row for each method, whose name comes first.
func (r *SpecReport) Cells(names []string) (head []string, rows [][]string, err error) {
	head = []string{"method"}
	cells := make([]column, len(names))
	for i, n := range names {
		if cells[i], err = lookColumn(n); err != nil {
			return nil, nil, err
		}
	}
	for i := range r.Suites {
		for _, c := range cells {
			head = append(head, r.Suites[i].Name+": "+c.head)
		}
	}
	for _, name := range r.methodNames() {
		row := []string{name}
		for i := range r.Suites {
			s := &r.Suites[i]
			for _, c := range cells {
				cell := "–"
				if m := s.Method(name); m != nil {
					cell = c.cell(s, m)
				}
				row = append(row, cell)
			}
		}
		rows = append(rows, row)
	}
	return head, rows, nil
}

func writeRow(b *strings.Builder, cells []string) {
	for _, c := range cells {
		b.WriteString("| " + strings.ReplaceAll(c, "|", `\|`) + " ")
	}
	b.WriteString("|\n")
}

// writeTitles writes the first row of a table, and the rule below it.
func writeTitles(b *strings.Builder, cells ...string) {
	writeRow(b, cells)
	b.WriteString("|---" + strings.Repeat("|---:", len(cells)-1) + "|\n")
}

func yes(is bool) string {
	if is {
		return "on"
	}
	return "off"
}
