package bench

import (
	"fmt"
	"slices"

	"gonum.org/v1/plot/plotter"
)

// Save writes the report into a folder, with two figures per suite: the gap of the likeliest path
// by depth, and the distribution of rank 1's gaps.
func (r *FaithfulReport) Save(dir string) ([]string, error) {
	files, err := saveReport(dir, r, r.Markdown)
	if err != nil {
		return files, err
	}
	for i := range r.Suites {
		s := &r.Suites[i]
		for _, f := range []struct {
			name, about, x, y string
			points            func(*FaithfulMethod) plotter.XYs
		}{
			{"gap-by-depth", "gap of the likeliest path", "depth", "draft less target log-probability, nats",
				(*FaithfulMethod).byDepth},
			{"gap-distribution", "gaps of rank 1", "gap, nats", "share of places with at most this gap",
				(*FaithfulMethod).distribution},
		} {
			c := r.newChart(fmt.Sprintf("%s: %s", s.Name, f.about), f.x, f.y)
			for m := range s.Methods {
				if xy := f.points(&s.Methods[m]); len(xy) > 0 {
					if err := c.line(m, s.Methods[m].Name, xy); err != nil {
						return files, err
					}
				}
			}
			if !c.named {
				continue
			}
			more, err := c.save(dir, s.Name+"-"+f.name)
			files = append(files, more...)
			if err != nil {
				return files, err
			}
		}
	}
	return files, nil
}

func (m *FaithfulMethod) byDepth() (xy plotter.XYs) {
	for _, d := range m.Depths {
		xy = append(xy, plotter.XY{X: float64(d.N), Y: d.Gap})
	}
	return xy
}

// distribution has at most 40 points, and omits the outermost hundredths, which would fill most of the picture.
func (m *FaithfulMethod) distribution() (xy plotter.XYs) {
	gaps := slices.Sorted(slices.Values(m.rank1Gaps))
	low, high := len(gaps)/100, len(gaps)-len(gaps)/100
	for i := low; i < high; i += max((high-low)/40, 1) {
		xy = append(xy, plotter.XY{X: gaps[i], Y: float64(i+1) / float64(len(gaps))})
	}
	return xy
}
