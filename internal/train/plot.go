package train

import (
	"bufio"
	"encoding/json"
	"fmt"
	"image/color"
	"image/png"
	"io"
	"maps"
	"os"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"

	"github.com/grovellm/grove/internal/files/atomicfile"
)

// PlotLoss draws the metrics of a run, a file that Run wrote, as a PNG: the loss of every step, its
// running mean, and the validation losses.
func PlotLoss(metrics, path string) error {
	f, err := os.Open(metrics)
	if err != nil {
		return err
	}
	defer f.Close()
	var steps, mean plotter.XYs
	valid := map[string]plotter.XYs{}
	average := 0.0
	s := bufio.NewScanner(f)
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		var m Progress
		if json.Unmarshal(s.Bytes(), &m) != nil {
			continue // the last line of a run that was killed
		}
		x := float64(m.Tokens) / 1e6
		// The mean of about the last 20 steps, or fewer at the beginning.
		average += (m.Loss - average) / float64(min(20, len(steps)+1))
		steps = append(steps, plotter.XY{X: x, Y: m.Loss})
		mean = append(mean, plotter.XY{X: x, Y: average})
		for name, loss := range m.Validation {
			valid[name] = append(valid[name], plotter.XY{X: x, Y: loss})
		}
	}
	if err := s.Err(); err != nil {
		return err
	}
	if len(steps) == 0 {
		return fmt.Errorf("%s: no step in it to draw", metrics)
	}
	p := plot.New()
	p.X.Label.Text, p.Y.Label.Text = "million tokens", "loss (nats per token)"
	p.Add(plotter.NewGrid())
	p.Legend.Top = true
	line := func(name string, xy plotter.XYs, c color.Color, width vg.Length) error {
		l, err := plotter.NewLine(xy)
		if err != nil {
			return err
		}
		l.Color, l.Width = c, width
		p.Add(l)
		if name != "" {
			p.Legend.Add(name, l)
		}
		return nil
	}
	if err := line("", steps, color.Gray{200}, vg.Points(0.5)); err != nil {
		return err
	}
	if err := line("training", mean, color.Gray{90}, vg.Points(1)); err != nil {
		return err
	}
	for i, name := range slices.Sorted(maps.Keys(valid)) {
		if err := line(name+" (held out)", valid[name], plotutil.Color(i), vg.Points(1.5)); err != nil {
			return err
		}
	}
	// A rare bad step must not flatten the rest of the plot.
	p.Y.Max = min(p.Y.Max, steps[0].Y*1.05)
	canvas := vgimg.New(18*vg.Centimeter, 11*vg.Centimeter)
	p.Draw(draw.New(canvas))
	encoder := png.Encoder{CompressionLevel: png.BestSpeed}
	return atomicfile.Write(path, func(out io.Writer) error { return encoder.Encode(out, canvas.Image()) })
}
