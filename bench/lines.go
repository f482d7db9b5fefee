// Figures with a line a method.

package bench

import (
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
	l.Color, dots.Color, dots.Shape = colour(i), colour(i), plotutil.Shape(i)
	l.Width = vg.Points(1.2)
	c.Add(l, dots)
	c.name(name, l, dots)
	return nil
}

// lineFigure is a plot with a line a method.
type lineFigure struct {
	name, about, x, y string
	plain             bool // plain decoding has a line too
	points            func(m *MethodReport) plotter.XYs
}

var lineFigures = []lineFigure{
	{"tau-by-position", "τ by place in the output", "token of the output", "τ", false, func(m *MethodReport) plotter.XYs {
		return partPoints(m.Positions, func(p *PartReport) (x, y float64) { return float64(p.From+p.To) / 2, p.Tau })
	}},
	{"tau-by-length", "τ up to a length of the output", "tokens of the output", "τ", false, func(m *MethodReport) plotter.XYs {
		return partPoints(m.Lengths, func(p *PartReport) (x, y float64) { return float64(p.To), p.Tau })
	}},
	{"speedup-by-length", "speed-up up to a length of the output", "tokens of the output", "speed-up", true, func(m *MethodReport) plotter.XYs {
		return partPoints(m.Lengths, func(p *PartReport) (x, y float64) { return float64(p.To), p.Speedup })
	}},
	{"accept-by-depth", "share of the rounds with a node at a depth that accepted one", "depth", "accepted", false, func(m *MethodReport) plotter.XYs {
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

// lines draws a line figure of a suite; nil where there is nothing to draw.
func (r *SpecReport) lines(s *SuiteReport, f lineFigure) (*chart, error) {
	p := r.newChart(s.Name+": "+f.about, f.x, f.y)
	drawn := false
	for i, m := range s.Methods {
		xy := f.points(&m)
		if len(xy) == 0 || m.Drafter == "" && !f.plain {
			continue
		}
		if err := p.line(i, m.Name, xy); err != nil {
			return nil, err
		}
		drawn = true
	}
	if !drawn {
		return nil, nil
	}
	p.Y.Min = 0
	p.Y.Max *= 1.05
	return p, nil
}

// budgetFigure is a plot over budgets.
type budgetFigure struct {
	name, about, y string
	of             func(m *MethodReport) float64
}

var budgetFigures = []budgetFigure{
	{"tau-by-budget", "τ by the budget", "τ", func(m *MethodReport) float64 { return m.Tau }},
	{"speedup-by-budget", "speed-up by the budget", "speed-up", func(m *MethodReport) float64 { return m.Speedup }},
}

// budgets draws methods that were run with several budgets; nil where there are none.
func (r *SpecReport) budgets(s *SuiteReport, f budgetFigure) (*chart, error) {
	var names []string
	points := map[string]plotter.XYs{}
	for i := range s.Methods {
		m := &s.Methods[i]
		if m.Budget == 0 {
			continue
		}
		name := m.line()
		if points[name] == nil {
			names = append(names, name)
		}
		points[name] = append(points[name], plotter.XY{X: float64(m.Budget), Y: f.of(m)})
	}
	p := r.newChart(s.Name+": "+f.about, "nodes of a tree, root included", f.y)
	drawn := false
	for i, name := range names {
		if len(points[name]) < 2 {
			continue
		}
		if err := p.line(i, name, points[name]); err != nil {
			return nil, err
		}
		drawn = true
	}
	if !drawn {
		return nil, nil
	}
	p.Y.Min = 0
	p.Y.Max *= 1.05
	return p, nil
}
