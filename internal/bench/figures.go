// The report as figures, each as PNG and SVG.

package bench

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"

	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
)

// Figures draws the report into a folder, which it makes, and returns the files' names:
//
//	speedup                  speed-up by method and suite, with quartiles
//	SUITE-tau-by-position    τ by place in the output
//	SUITE-tau-by-length      τ of outputs up to a length (DynaTree's figure 6)
//	SUITE-speedup-by-length  the same for the speed-up
//	SUITE-accept-by-depth    acceptance by depth
//	SUITE-tau-by-budget      τ by the budget, where methods were run with several (JetSpec's figure 1)
//	SUITE-speedup-by-budget  the same for the speed-up
//	SUITE-tau-by-shortlist   τ by the mean size of the shortlist, where a kind was run with several (DynaSpec's figure 2)
//	SUITE-coverage-by-shortlist
//
// and the views.
func (r *SpecReport) Figures(dir string, views []FigureView) ([]string, error) {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, err
	}
	if len(r.Suites) == 0 {
		return nil, nil
	}
	var files []string
	save := func(name string, c *chart, err error) error {
		if err != nil || c == nil {
			return err
		}
		drawn, err := c.save(dir, name)
		files = append(files, drawn...)
		return err
	}
	c, err := r.speedups()
	if err := save("speedup", c, err); err != nil {
		return files, err
	}
	for i := range r.Suites {
		s := &r.Suites[i]
		name := fileName(s.Name)
		if slices.ContainsFunc(r.Suites[:i], func(o SuiteReport) bool { return fileName(o.Name) == name }) {
			name = fmt.Sprintf("%d-%s", i+1, name) // a figure in another folder has this name
		}
		for _, f := range lineFigures {
			c, err := r.lines(s, f)
			if err := save(name+"-"+f.name, c, err); err != nil {
				return files, err
			}
		}
		for _, f := range sweepFigures {
			c, err := r.sweep(s, f)
			if err := save(name+"-"+f.name, c, err); err != nil {
				return files, err
			}
		}
		for _, v := range views {
			c, err := r.grid(s, v)
			if err := save(name+"-"+v.Name, c, err); err != nil {
				return files, err
			}
		}
	}
	return files, nil
}

// disliked matches characters that some file systems refuse.
var disliked = regexp.MustCompile(`[^a-zA-Z0-9_.-]`)

func fileName(name string) string { return disliked.ReplaceAllString(filepath.Base(name), "-") }

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

// speedups draws bars: a group per suite, a bar per method.
func (r *SpecReport) speedups() (*chart, error) {
	p := r.newChart("speed-up over plain decoding: medians and quartiles of prompts", "", "speed-up")
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
		p.bars += len(at)
		c := colour(i)
		for _, xy := range at {
			box, err := plotter.NewPolygon(plotter.XYs{{X: xy.X - pitch*0.45}, {X: xy.X - pitch*0.45, Y: xy.Y},
				{X: xy.X + pitch*0.45, Y: xy.Y}, {X: xy.X + pitch*0.45}})
			if err != nil {
				return nil, err
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
			return nil, err
		}
		p.Add(e)
	}
	one := plotter.NewFunction(func(float64) float64 { return 1 })
	one.Dashes = []vg.Length{vg.Points(3), vg.Points(3)}
	p.Add(one)
	p.NominalX(suites...)
	p.X.Min = -0.5
	p.X.Max = float64(len(suites)) - 0.5
	p.Y.Min = 0
	p.Y.Max = max(p.Y.Max, 1) * 1.05
	return p, nil
}
