package bench

import (
	"fmt"
	"image/color"
	"math"
	"slices"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/palette/moreland"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// grid draws the speed-ups of methods over two options of their drafters, as dots whose colours and
// labels show how large they are. It returns nil if fewer than two methods have both options.
func (r *SpecReport) grid(s *SuiteReport, v FigureView) (*chart, error) {
	var xy plotter.XYs
	var speedups []float64
	for _, m := range s.Methods {
		method := Method{Drafter: m.Drafter}
		x, okX := numeric(&method, v.X)
		y, okY := numeric(&method, v.Y)
		if okX && okY {
			xy = append(xy, plotter.XY{X: x, Y: y})
			speedups = append(speedups, m.Speedup)
		}
	}
	if len(xy) < 2 {
		return nil, nil
	}
	p := r.newChart(s.Name+": speed-up over plain decoding", v.X, v.Y)
	least, most := slices.Min(speedups), slices.Max(speedups)
	colours := moreland.SmoothBlueRed()
	colours.SetMin(0)
	colours.SetMax(1)
	dots, err := plotter.NewScatter(xy)
	if err != nil {
		return nil, err
	}
	dots.GlyphStyleFunc = func(i int) draw.GlyphStyle {
		at := share(speedups[i]-least, most-least)
		c, err := colours.At(min(max(at, 0), 1))
		if err != nil {
			c = color.Black
		}
		return draw.GlyphStyle{Color: c, Radius: vg.Points(7), Shape: draw.CircleGlyph{}}
	}
	var texts []string
	for _, x := range speedups {
		texts = append(texts, fmt.Sprintf("  %.2f", x))
	}
	labels, err := plotter.NewLabels(plotter.XYLabels{XYs: xy, Labels: texts})
	if err != nil {
		return nil, err
	}
	labels.Offset = vg.Point{X: vg.Points(6)}
	p.Add(dots, labels)
	for _, a := range []*plot.Axis{&p.X, &p.Y} { // room around the dots
		pad := max((a.Max-a.Min)/6, math.SmallestNonzeroFloat32)
		a.Min, a.Max = a.Min-pad, a.Max+pad
	}
	return p, nil
}

func numeric(m *Method, key string) (float64, bool) {
	text, ok := m.option(key)
	if !ok {
		return 0, false
	}
	x, err := strconv.ParseFloat(text, 64)
	return x, err == nil
}
