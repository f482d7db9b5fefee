package bench

import (
	"cmp"
	"fmt"
	"image/color"
	"io"
	"math"
	"path/filepath"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/grovellm/grove/internal/files/atomicfile"
)

// chart is a plot with its legend next to it: names of methods are long, and there may be many.
type chart struct {
	*plot.Plot
	legend plot.Legend
	named  bool // the legend has entries
	bars   int  // it must be wide enough for this many
}

// newChart returns an empty chart. Its title describes the target: a padded model must not pass for another.
func (s *Setting) newChart(about, x, y string) *chart {
	c := &chart{Plot: plot.New(), legend: plot.NewLegend()}
	model := cmp.Or(s.Model, "unnamed model")
	if s.Pad > 0 {
		model += fmt.Sprintf(", padded to %.0f M parameters", float64(s.Pad)/1e6)
	}
	c.Title.Text = about + "\n" + model
	c.X.Label.Text, c.Y.Label.Text = x, y
	c.X.Tick.Marker, c.Y.Tick.Marker = plot.TickerFunc(ticks), plot.TickerFunc(ticks)
	c.legend.Top, c.legend.Left = true, true
	c.legend.Padding = vg.Points(2)
	c.Add(plotter.NewGrid())
	return c
}

// name adds an entry to the legend.
func (c *chart) name(text string, thumbs ...plot.Thumbnailer) {
	c.legend.Add(text, thumbs...)
	c.named = true
}

// save draws the chart into a folder, as PNG and SVG.
func (c *chart) save(dir, name string) (files []string, err error) {
	for _, format := range []string{"png", "svg"} {
		w, err := c.draw(format)
		if err != nil {
			return files, err
		}
		path := filepath.Join(dir, fileName(name)+"."+format)
		if err := atomicfile.Write(path, func(out io.Writer) error { _, err := w.WriteTo(out); return err }); err != nil {
			return files, err
		}
		files = append(files, path)
	}
	return files, nil
}

// draw draws the chart in a format.
func (c *chart) draw(format string) (io.WriterTo, error) {
	width := max(16*vg.Centimeter, vg.Length(c.bars)*vg.Centimeter)
	height := 11 * vg.Centimeter
	shift := vg.Length(0)
	probe := draw.Canvas{Rectangle: vg.Rectangle{Max: vg.Point{X: width, Y: height}}}
	if c.named {
		size := c.legend.Rectangle(probe).Size()
		shift, height = size.X+vg.Centimeter, max(height, size.Y+vg.Centimeter)
	}
	canvas, err := draw.NewFormattedCanvas(width+shift, height, format)
	if err != nil {
		return nil, err
	}
	all := draw.New(canvas)
	c.Draw(draw.Crop(all, 0, -shift, 0, 0))
	if c.named {
		c.legend.Draw(draw.Crop(all, width+vg.Centimeter/2, 0, 0, -vg.Centimeter/2))
	}
	return canvas, nil
}

// colour returns the colour of method i.
func colour(i int) color.Color {
	all := append(plotutil.SoftColors[:len(plotutil.SoftColors):len(plotutil.SoftColors)], plotutil.DarkColors...)
	return all[i%len(all)]
}

// ticks marks about seven round numbers.
func ticks(low, high float64) (t []plot.Tick) {
	if !(high > low) || math.IsInf(high-low, 0) {
		return plot.DefaultTicks{}.Ticks(low, high)
	}
	step := math.Pow(10, math.Floor(math.Log10((high-low)/7)))
	for _, times := range []float64{2, 2.5, 2} { // 1, 2, 5, 10
		if (high-low)/step > 9 {
			step *= times
		}
	}
	for i := math.Ceil(low / step); i*step <= high; i++ {
		t = append(t, plot.Tick{Value: i * step, Label: strconv.FormatFloat(i*step, 'g', 4, 64)})
	}
	return t
}
