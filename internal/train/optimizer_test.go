package train

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/grovellm/grove/internal/autograd"
	"github.com/grovellm/grove/internal/kernels/gemm"
	"github.com/grovellm/grove/internal/kernels/par"
	"github.com/grovellm/grove/internal/nn"
)

// Whatever a matrix's shape and scale, the result has singular values near 1, except where those of
// the matrix were lost: it has all directions of U·Vᵀ, with about the same length.
func TestOrthogonal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		rows, cols := rapid.IntRange(1, 60).Draw(t, "rows"), rapid.IntRange(1, 60).Draw(t, "cols")
		x := nn.NewMat(rows, cols)
		scale := math.Pow(10, rapid.Float64Range(-12, 6).Draw(t, "scale"))
		for i := range x.Data {
			x.Data[i] = float32(r.NormFloat64() * scale)
		}
		before := append([]float32(nil), x.Data...)
		y := newOrthogonalizer().run(x)
		if y.Rows != rows || y.Cols != cols {
			t.Fatalf("%d×%d became %d×%d", rows, cols, y.Rows, y.Cols)
		}
		// A random direction on the shorter side keeps about its length.
		v := make([]float64, cols)
		wide := cols > rows
		if wide {
			v = make([]float64, rows)
		}
		for i := range v {
			v[i] = r.NormFloat64()
		}
		out := make([]float64, max(rows, cols))
		dot := 0.0
		for i := range rows {
			for j := range cols {
				w := float64(y.Data[i*cols+j])
				dot += w * float64(before[i*cols+j])
				if wide {
					out[j] += w * v[i]
				} else {
					out[i] += w * v[j]
				}
			}
		}
		length := func(v []float64) (s float64) {
			for _, x := range v {
				s += x * x
			}
			return math.Sqrt(s)
		}
		// Nearly square random matrices have some singular values near 0, which five steps do not
		// bring up to 1.
		if ratio := length(out) / length(v); ratio > 1.35 || ratio < 0.6 && max(rows, cols) > 2*min(rows, cols) {
			t.Fatalf("%d×%d: a vector became %.2f times as long", rows, cols, ratio)
		}
		if dot <= 0 {
			t.Fatalf("the step does not go along the gradient: %g", dot)
		}
	})
}

func TestOrthogonalOfNothing(t *testing.T) {
	for _, v := range newOrthogonalizer().run(nn.NewMat(3, 5)).Data {
		if v != 0 {
			t.Fatalf("of zeros: %g", v)
		}
	}
}

// AdamW compared with its definition in f64 on a quadratic function. Norms do not decay.
func TestAdamWIsTheDefinition(t *testing.T) {
	o := Optimizer{AdamW: autograd.AdamW{Rate: 0.1, Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, Decay: 0.1}}
	ps := autograd.NewParams(gemm.F32)
	if _, err := ps.Matrix("w", 3, 5); err != nil {
		t.Fatal(err)
	}
	ps.Vector("norm", 4)
	r := rand.New(rand.NewPCG(1, 2))
	pool := par.New(2)
	defer pool.Close()
	opt := newOptimizer(o, pool, ps.All())
	type ref struct{ w, m, v float64 }
	var refs []ref
	for _, p := range ps.All() {
		for i := range p.Data {
			p.Data[i] = float32(r.NormFloat64())
			refs = append(refs, ref{w: float64(p.Data[i])})
		}
	}
	for step := 1; step <= 40; step++ {
		k := 0
		for _, p := range ps.All() {
			decay := 0.1
			if p.Vector {
				decay = 0
			}
			for i := range p.Data {
				q := &refs[k]
				k++
				g := 0.5 * 2 * q.w // clip · gradient of w²
				p.Grad[i] = 2 * p.Data[i]
				q.m = 0.9*q.m + 0.1*g
				q.v = 0.95*q.v + 0.05*g*g
				hat := q.m / (1 - math.Pow(0.9, float64(step))) / (math.Sqrt(q.v/(1-math.Pow(0.95,
					float64(step)))) + 1e-8)
				q.w -= 0.1 * 0.8 * (hat + decay*q.w)
			}
		}
		opt.step(step, 0.8, 0.5)
	}
	k := 0
	for _, p := range ps.All() {
		for i, v := range p.Data {
			if math.Abs(float64(v)-refs[k].w) > 1e-3 {
				t.Errorf("%s[%d] is %g after 40 steps, by the definition %g", p.Name, i, v, refs[k].w)
			}
			k++
		}
	}
}

func TestSchedule(t *testing.T) {
	s := Schedule{Warmup: 0.1, Cooldown: 0.5, Floor: 0.1}
	for _, c := range []struct {
		step int
		want float32
	}{{0, 1.0 / 11}, {9, 10.0 / 11}, {10, 1}, {49, 1}, {50, 1}, {75, 0.55}, {100, 0.1}} {
		if got := s.at(c.step, 100); math.Abs(float64(got-c.want)) > 1e-6 {
			t.Errorf("step %d of 100: %g, want %g", c.step, got, c.want)
		}
	}
	s.Cosine = true
	if got := s.at(75, 100); math.Abs(float64(got)-0.55) > 1e-6 {
		t.Errorf("half way down the cosine: %g", got)
	}
}
