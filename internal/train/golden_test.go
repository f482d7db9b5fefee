package train

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/grovellm/grove/internal/autograd"
	"github.com/grovellm/grove/internal/kernels/gemm"
	"github.com/grovellm/grove/internal/kernels/par"
	"github.com/grovellm/grove/internal/testing/testdata"
)

// The golden file has the gradients that PyTorch computes for every parameter of go-7m: their
// norms, sums and first elements.
func TestGradientAgainstPyTorch(t *testing.T) {
	dir := testdata.Path(t, "models/go-7m")
	data, err := os.ReadFile(filepath.Join(dir, "golden.json"))
	if err != nil {
		t.Fatal(err)
	}
	var golden struct {
		Gradient struct {
			IDs         []int32
			Loss        float64
			ByParameter map[string]struct {
				Norm, Sum float64
				First8    []float64
			} `json:"by_parameter"`
		}
	}
	if err := json.Unmarshal(data, &golden); err != nil {
		t.Fatal(err)
	}
	g := golden.Gradient
	pool := par.New(2)
	defer pool.Close()
	n, err := NewNetwork(Shape{Vocab: 8192, Hidden: 256, Layers: 6, Heads: 4, KVHeads: 2, HeadDim: 64, FFN: 704,
		Context: 2048, RopeBase: 1e6, NormEps: 1e-6}, pool, gemm.F32)
	if err != nil {
		t.Fatal(err)
	}
	if err := n.Load(dir); err != nil {
		t.Fatal(err)
	}
	last := len(g.IDs) - 1
	targets := autograd.Targets{Token: g.IDs[1:]}
	l := n.Gradient(g.IDs[:last], last, targets, 1/float32(last))
	if got := l.Sum / l.Weight; math.Abs(got-g.Loss) > 1e-5*g.Loss {
		t.Errorf("loss %.7f, PyTorch's %.7f", got, g.Loss)
	}
	worst := 0.0
	for _, p := range n.Params.All() {
		want, ok := g.ByParameter[hfName(p.Name)]
		if !ok {
			t.Errorf("no golden gradient of %s", p.Name)
			continue
		}
		var norm, sum float64
		for _, v := range p.Grad {
			norm += float64(v) * float64(v)
			sum += float64(v)
		}
		norm = math.Sqrt(norm)
		// A sum of values of both signs cancels: its error is relative to the norm.
		worst = max(worst, math.Abs(norm-want.Norm)/want.Norm,
			math.Abs(sum-want.Sum)/(want.Norm*math.Sqrt(float64(len(p.Grad)))))
		if math.Abs(norm-want.Norm) > 1e-4*want.Norm {
			t.Errorf("%s: gradient's norm %.8g, PyTorch's %.8g", p.Name, norm, want.Norm)
		}
		if math.Abs(sum-want.Sum) > 1e-4*want.Norm*math.Sqrt(float64(len(p.Grad))) {
			t.Errorf("%s: gradient's sum %.8g, PyTorch's %.8g", p.Name, sum, want.Sum)
		}
		for i, w := range want.First8 {
			if i < len(p.Grad) && math.Abs(float64(p.Grad[i])-w) > 1e-4*math.Abs(w)+2e-6*want.Norm {
				t.Errorf("%s: gradient %d is %.8g, PyTorch's %.8g", p.Name, i, p.Grad[i], w)
			}
		}
	}
	t.Logf("largest relative difference %.2g", worst)
}
