// Figures with a line per method.

package bench

import (
	"cmp"
	"slices"

	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
)

// line adds the i-th line of a chart, with its dots and its name.
func (c *chart) line(i int, name string, xy plotter.XYs) error {
	l, dots, err := plotter.NewLinePoints(xy)
	if err != nil {
		return err
	}
	l.Color = colour(i)
	dots.Color = colour(i)
	dots.Shape = plotutil.Shape(i)
	l.Width = vg.Points(1.2)
	c.Add(l, dots)
	c.name(name, l, dots)
	return nil
}

// fromZero returns the chart with its y axis from 0, or nil if it has no line.
func (c *chart) fromZero() *chart {
	if !c.named {
		return nil
	}
	c.Y.Min = 0
	c.Y.Max *= 1.05
	return c
}

// lineFigure is a plot with a line per method.
type lineFigure struct {
	name, about, x, y string
	plain             bool // plain decoding has a line too
	points            func(m *MethodReport) plotter.XYs
}

var lineFigures = []lineFigure{
	{"tau-by-position", "τ by place in the output", "token of the output", "τ", false, func(m *MethodReport) plotter.XYs {
		return partPoints(m.Positions, func(p *PartReport) (x, y float64) { return float64(p.From+p.To) / 2, p.Tau })
	}},
	{"tau-by-length", "τ up to a length of the output", "tokens of the output", "τ", false,
		func(m *MethodReport) plotter.XYs {
			return partPoints(m.Lengths, func(p *PartReport) (x, y float64) { return float64(p.To), p.Tau })
		}},
	{"speedup-by-length", "speed-up up to a length of the output", "tokens of the output", "speed-up", true,
		func(m *MethodReport) plotter.XYs {
			return partPoints(m.Lengths, func(p *PartReport) (x, y float64) { return float64(p.To), p.Speedup })
		}},
	{"accept-by-depth", "share of the rounds with a node at a depth that accepted one", "depth", "accepted", false,
		func(m *MethodReport) plotter.XYs {
			var xy plotter.XYs
			for _, d := range m.Depths {
				if d.Rounds > 0 {
					xy = append(xy, plotter.XY{X: float64(d.Depth), Y: d.Rate})
				}
			}
			return xy
		}},
}

func partPoints(parts []PartReport, f func(*PartReport) (x, y float64)) (xy plotter.XYs) {
	for i := range parts {
		if parts[i].Tokens > 0 {
			x, y := f(&parts[i])
			xy = append(xy, plotter.XY{X: x, Y: y})
		}
	}
	return xy
}

// lines draws a line figure of a suite, or returns nil if there is nothing to draw.
func (r *SpecReport) lines(s *SuiteReport, f lineFigure) (*chart, error) {
	p := r.newChart(s.Name+": "+f.about, f.x, f.y)
	for i, m := range s.Methods {
		xy := f.points(&m)
		if len(xy) == 0 || m.Drafter == "" && !f.plain {
			continue
		}
		if err := p.line(i, m.Name, xy); err != nil {
			return nil, err
		}
	}
	return p.fromZero(), nil
}

// sweepFigure is a plot over a figure of the methods themselves, several of which make a line.
type sweepFigure struct {
	name, about, x, y string
	line              func(m *MethodReport) string // the line that a method is on; empty: none
	point             func(m *MethodReport) (x, y float64)
}

var sweepFigures = []sweepFigure{
	{"tau-by-budget", "τ by the budget", byBudget, "τ", (*MethodReport).budgetLine, func(m *MethodReport) (x, y float64) {
		return float64(m.Budget), m.Tau
	}},
	{"speedup-by-budget", "speed-up by the budget", byBudget, "speed-up", (*MethodReport).budgetLine,
		func(m *MethodReport) (x, y float64) { return float64(m.Budget), m.Speedup }},
	{"tau-by-shortlist", "τ by the shortlist", byList, "τ", (*MethodReport).listLine,
		func(m *MethodReport) (x, y float64) { return m.ListSize, m.Tau }},
	{"coverage-by-shortlist", "the target's choices on the shortlist", byList, "share", (*MethodReport).listLine,
		func(m *MethodReport) (x, y float64) { return m.ListSize, m.Coverage }},
}

func byX(a, b plotter.XY) int { return cmp.Compare(a.X, b.X) }

const (
	byBudget = "nodes of a tree, root included"
	byList   = "tokens of a shortlist, mean"
)

// sweep draws the lines that have at least two methods, or returns nil if there are none.
func (r *SpecReport) sweep(s *SuiteReport, f sweepFigure) (*chart, error) {
	var names []string
	points := map[string]plotter.XYs{}
	for i := range s.Methods {
		m := &s.Methods[i]
		name := f.line(m)
		if name == "" {
			continue
		}
		if points[name] == nil {
			names = append(names, name)
		}
		x, y := f.point(m)
		points[name] = append(points[name], plotter.XY{X: x, Y: y})
	}
	p := r.newChart(s.Name+": "+f.about, f.x, f.y)
	for i, name := range names {
		xy := points[name]
		if len(xy) < 2 {
			continue
		}
		slices.SortStableFunc(xy, byX)
		if err := p.line(i, name, xy); err != nil {
			return nil, err
		}
	}
	return p.fromZero(), nil
}
