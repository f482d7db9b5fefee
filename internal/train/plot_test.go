package train

import (
	"bytes"
	"image/png"
	"os"
	"path/filepath"
	"testing"
)

// The plot shows the metrics that exist. Without any, plotting says so.
func TestPlotLoss(t *testing.T) {
	dir := t.TempDir()
	in, out := filepath.Join(dir, "metrics.jsonl"), filepath.Join(dir, "loss.png")
	if err := os.WriteFile(in, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := PlotLoss(in, out); err == nil {
		t.Error("drew a plot of nothing")
	}
	m, err := openMetrics(in, 0)
	if err != nil {
		t.Fatal(err)
	}
	for step := 1; step < 50; step++ {
		p := Progress{Step: step, Tokens: int64(step) * 1000, Loss: 9 / float64(step)}
		if step%10 == 0 {
			p.Validation = map[string]float64{"held": p.Loss + 0.1}
		}
		if err := m.write(p); err != nil {
			t.Fatal(err)
		}
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	if err := PlotLoss(in, out); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	if img, err := png.Decode(bytes.NewReader(b)); err != nil || img.Bounds().Dx() < 400 {
		t.Errorf("not a picture: %v", err)
	}
}
