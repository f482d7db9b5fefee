// Whether the papers' orders hold.

package report

import (
	"fmt"
	"strings"

	"github.com/grovellm/grove/internal/bench"
)

// metric is a figure that methods are ordered by.
type metric struct {
	name      string
	format    string
	tolerance float64 // share by which figures may differ and count as level: the noise of a run
	of        func(*bench.MethodReport) float64
}

var metrics = map[string]metric{
	"tau":     {"τ", "%.2f", 0.02, func(m *bench.MethodReport) float64 { return m.Tau }},
	"speedup": {"speed-up", "%.2f", 0.05, func(m *bench.MethodReport) float64 { return m.Speedup }},
	"draft": {"share of the time that drafting takes", "%.3f", 0.05, func(m *bench.MethodReport) float64 {
		return m.DraftShare
	}},
	"tokens_per_s": {"tokens/s", "%.1f", 0.05, func(m *bench.MethodReport) float64 { return m.TokensPerS }},
}

// Finding says whether an order holds.
type Finding struct {
	Holds    int    `json:"holds"` // of so many comparisons
	Compared int    `json:"compared"`
	Text     string `json:"text"`
}

// group is what methods are compared on: a suite, a stream, a number of callers.
type group struct {
	name   string
	values map[string]float64 // by method
}

// groups are the comparisons of an experiment by a metric. Methods that were run with several
// budgets are compared at each.
func (r *Result) groups(name string) (all []group) {
	of := metrics[name].of
	add := func(name string) map[string]float64 {
		all = append(all, group{name, map[string]float64{}})
		return all[len(all)-1].values
	}
	switch {
	case r.Spec != nil:
		budgets := []string{""}
		if len(r.Budgets) > 1 {
			budgets = budgets[:0]
			for _, b := range r.Budgets {
				budgets = append(budgets, fmt.Sprintf("@budget=%d", b))
			}
		}
		for _, s := range r.Spec.Suites {
			for _, budget := range budgets {
				at := s.Name
				if budget != "" {
					at += " with " + strings.TrimPrefix(budget, "@budget=") + " nodes"
				}
				values := add(at)
				for i := range s.Methods {
					m := &s.Methods[i]
					if base, ok := strings.CutSuffix(m.Name, budget); ok || !strings.Contains(m.Name, "@budget=") {
						values[base] = of(m)
					}
				}
			}
		}
	case r.Adapt != nil:
		for _, s := range r.Adapt.Streams {
			values := add(s.Name)
			for _, p := range s.Policies {
				values[p.Name] = map[string]float64{"tau": p.Tau, "tokens_per_s": p.TokensPerS}[name]
			}
		}
	case r.Serve != nil:
		for _, n := range r.Clients {
			values := add(fmt.Sprintf("%d callers", n))
			for _, row := range r.Serve.Rows {
				if row.Clients == n {
					values[row.Drafter] = row.PerSecond
				}
			}
		}
	}
	return all
}

// judge says whether an order holds.
func (r *Result) judge(o Order) Finding {
	m := metrics[o.Metric]
	var f Finding
	var held, level, broken []string
	for _, g := range r.groups(o.Metric) {
		var chain []string
		for _, name := range o.Methods {
			if _, ok := g.values[name]; ok {
				chain = append(chain, name)
			}
		}
		if len(chain) < 2 {
			continue
		}
		f.Compared++
		var wrong []string
		near := false
		for i, b := range chain[1:] {
			low, high := g.values[chain[i]], g.values[b]
			switch {
			case high < low*(1-m.tolerance):
				wrong = append(wrong, fmt.Sprintf("%s "+m.format+", %s "+m.format, chain[i], low, b, high))
			case high < low*(1+m.tolerance):
				near = true
			}
		}
		switch {
		case len(wrong) > 0:
			broken = append(broken, fmt.Sprintf("%s (%s)", g.name, strings.Join(wrong, "; ")))
		case near:
			level = append(level, g.name)
		default:
			held = append(held, g.name)
		}
	}
	f.Holds = len(held) + len(level)
	f.Text = fmt.Sprintf("%s, %s: ", m.name, strings.Join(o.Methods, " < "))
	switch {
	case f.Compared == 0:
		f.Text += "could not be compared."
	case len(broken) == 0 && len(level) == 0:
		f.Text += "holds"
		if f.Compared > 1 {
			f.Text += fmt.Sprintf(" in all %d comparisons", f.Compared)
		}
		f.Text += "."
	default:
		var parts []string
		for _, p := range []struct {
			word string
			list []string
		}{{"holds on ", held}, {fmt.Sprintf("level within %.0f %% on ", 100*m.tolerance), level}, {"does not hold on ", broken}} {
			if len(p.list) > 0 {
				parts = append(parts, p.word+strings.Join(p.list, ", "))
			}
		}
		f.Text += strings.Join(parts, "; ") + "."
	}
	if o.Reason != "" && f.Holds < f.Compared {
		f.Text += " " + o.Reason
	}
	return f
}
