// The report as figures, each as PNG and SVG.

package bench

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"

	"github.com/grovellm/grove/internal/atomicfile"
)

// Figures draws the report into a folder, which it makes, and returns the files' names:
//
//	speedup                  speed-up by method and suite, with quartiles
//	SUITE-tau-by-position    τ by place in the output
//	SUITE-tau-by-length      τ of outputs up to a length (DynaTree's figure 6)
//	SUITE-speedup-by-length  the same for the speed-up
//	SUITE-accept-by-depth    acceptance by depth
//
// and the views.
func (r *SpecReport) Figures(dir string, views []FigureView) ([]string, error) {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, err
	}
	var files []string
	save := func(name string, p *chart, bars int) error {
		for _, format := range []string{"png", "svg"} {
			w, err := p.draw(format, bars)
			if err != nil {
				return err
			}
			path := filepath.Join(dir, fileName(name)+"."+format)
			if err := atomicfile.Write(path, func(out io.Writer) error { _, err := w.WriteTo(out); return err }); err != nil {
				return err
			}
			files = append(files, path)
		}
		return nil
	}
	if len(r.Suites) == 0 {
		return nil, nil
	}
	p, bars, err := r.speedups()
	if err != nil {
		return nil, err
	}
	if err := save("speedup", p, bars); err != nil {
		return files, err
	}
	for i := range r.Suites {
		s := &r.Suites[i]
		for _, f := range lineFigures {
			p, err := r.lines(s, f)
			if err != nil {
				return files, err
			}
			if p == nil {
				continue
			}
			if err := save(s.Name+"-"+f.name, p, 0); err != nil {
				return files, err
			}
		}
		for _, v := range views {
			p, err := r.grid(s, v)
			if err != nil {
				return files, err
			}
			if p == nil {
				continue
			}
			if err := save(s.Name+"-"+v.Name, p, 0); err != nil {
				return files, err
			}
		}
	}
	return files, nil
}

// fileName is a name without what file systems do not like.
func fileName(name string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' || r == '.' {
			return r
		}
		return '-'
	}, filepath.Base(name))
}

// methodNames lists the methods of all suites.
func (r *SpecReport) methodNames() (names []string) {
	for _, s := range r.Suites {
		for _, m := range s.Methods {
			if !slices.Contains(names, m.Name) {
				names = append(names, m.Name)
			}
		}
	}
	return names
}

// speedups draws bars: a group a suite, a bar a method.
func (r *SpecReport) speedups() (p *chart, bars int, err error) {
	p = r.newChart("speed-up over plain decoding: medians and quartiles of prompts", "", "speed-up")
	names := r.methodNames()
	var suites []string
	for _, s := range r.Suites {
		suites = append(suites, s.Name)
	}
	pitch := 0.8 / float64(len(names)) // of a group, which is 1 wide
	for i, name := range names {
		var at plotter.XYs
		var spread plotter.YErrors
		for j := range r.Suites {
			if m := r.Suites[j].Method(name); m != nil && m.Speedup > 0 {
				q := m.SpeedupQuartiles
				at = append(at, plotter.XY{X: float64(j) + (float64(i)-float64(len(names)-1)/2)*pitch, Y: q[1]})
				spread = append(spread, struct{ Low, High float64 }{q[1] - q[0], q[2] - q[1]})
			}
		}
		if len(at) == 0 {
			continue
		}
		bars += len(at)
		c := colour(i)
		for _, xy := range at {
			box, err := plotter.NewPolygon(plotter.XYs{{X: xy.X - pitch*0.45}, {X: xy.X - pitch*0.45, Y: xy.Y}, {X: xy.X + pitch*0.45, Y: xy.Y}, {X: xy.X + pitch*0.45}})
			if err != nil {
				return nil, 0, err
			}
			box.Color, box.LineStyle.Width = c, 0
			p.Add(box)
			if xy == at[0] {
				p.name(name, box)
			}
		}
		e, err := plotter.NewYErrorBars(struct {
			plotter.XYer
			plotter.YErrorer
		}{at, spread})
		if err != nil {
			return nil, 0, err
		}
		p.Add(e)
	}
	one := plotter.NewFunction(func(float64) float64 { return 1 })
	one.Dashes = []vg.Length{vg.Points(3), vg.Points(3)}
	p.Add(one)
	p.NominalX(suites...)
	p.X.Min, p.X.Max, p.Y.Min = -0.5, float64(len(suites))-0.5, 0
	p.Y.Max = max(p.Y.Max, 1) * 1.05
	return p, bars, nil
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
		line, dots, err := plotter.NewLinePoints(xy)
		if err != nil {
			return nil, err
		}
		line.Color, dots.Color, dots.Shape = colour(i), colour(i), plotutil.Shape(i)
		line.Width = vg.Points(1.2)
		p.Add(line, dots)
		p.name(m.Name, line, dots)
		drawn = true
	}
	if !drawn {
		return nil, nil
	}
	p.Y.Min = 0
	p.Y.Max *= 1.05
	return p, nil
}
