package autograd

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/grovellm/grove/internal/nn"
	"github.com/grovellm/grove/internal/testing/cases"
)

// Products and gates of rows, possibly of the same rows, and their gradients.
func TestElementwiseGradient(t *testing.T) {
	cases.Check(t, 40, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 11))
		g := newGradCheck(rapid.IntRange(1, 3).Draw(t, "threads"))
		n, cols := rapid.IntRange(1, 90).Draw(t, "rows"), rapid.IntRange(1, 20).Draw(t, "columns")
		x := g.source(t, r, "x", n, cols)
		y := g.source(t, r, "y", n, cols)
		gates, same := rapid.Bool().Draw(t, "gates"), rapid.Bool().Draw(t, "same")
		g.run = func() nn.Mat {
			a, b := x(), y()
			dst := g.exec.Mat(new(nn.Buffer), n, cols)
			if same {
				b = a
			}
			if gates {
				g.tape.Gate(dst, a, b)
			} else {
				g.tape.Product(dst, a, b)
			}
			return dst
		}
		g.draw(r)
		g.check(t, r)
	})
}

// The loss for labels that are shares, and its gradient with respect to the source of the scores.
func TestBinaryCrossEntropy(t *testing.T) {
	cases.Check(t, 40, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 12))
		g := newGradCheck(2)
		n := rapid.IntRange(1, 60).Draw(t, "rows")
		x := g.source(t, r, "x", n, 1)
		shares, weights := make([]float32, n), make([]float32, n)
		for i := range n {
			shares[i], weights[i] = r.Float32(), r.Float32()
		}
		scale := 0.1 + 3*r.Float32()
		loss := func() float64 { return float64(scale) * g.tape.BinaryCrossEntropy(x(), shares, weights, scale).Sum }
		g.draw(r)
		g.params.ZeroGrad()
		g.tape.Reset()
		got := loss()
		g.tape.Backward()
		g.tape.Detach()
		want := 0.0
		for i, m := 0, x(); i < n; i++ {
			p := 1 / (1 + math.Exp(-float64(m.Row(i)[0])))
			s := float64(shares[i])
			want -= float64(scale*weights[i]) * (s*math.Log(p) + (1-s)*math.Log(1-p))
		}
		if math.Abs(got-want) > 1e-5*(1+want) {
			t.Fatalf("loss %g, want %g", got, want)
		}
		g.differences(t, r, loss, want)
	})
}

// Convolutions over blocks of several lengths, before and after a half of a layer, compared with their
// definition, and their gradients with respect to rows, weights and the rows' additions to the weights.
func TestConvolveBlockGradient(t *testing.T) {
	cases.Check(t, 40, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 13))
		g := newGradCheck(rapid.IntRange(1, 3).Draw(t, "threads"))
		group := rapid.IntRange(1, 4).Draw(t, "group")
		width := group * rapid.IntRange(1, 6).Draw(t, "groups")
		c := &nn.BlockConvolution{Taps: rapid.IntRange(1, 4).Draw(t, "taps"), Group: group}
		c.Base = g.params.Vector("base", 2*c.Taps*width)
		var before []int32
		for range rapid.IntRange(1, 30).Draw(t, "blocks") {
			for i := range 1 + r.IntN(7) {
				before = append(before, int32(i))
			}
		}
		n := len(before)
		x := g.source(t, r, "x", n, width)
		added := g.source(t, r, "added", n, 2*c.Taps*width/group)
		after := rapid.IntRange(0, 1).Draw(t, "after")
		g.run = func() nn.Mat {
			dst := g.exec.Mat(new(nn.Buffer), n, width)
			g.exec.ConvolveBlock(c, after, before, x(), added(), dst)
			return dst
		}
		g.draw(r)
		g.tape.Detach()
		got := g.run()
		rows, more := x(), added()
		for i := range n {
			for k := range width {
				want := 0.0
				for tap := range min(c.Taps, int(before[i])+1) {
					at := after*c.Taps + tap
					want += float64(c.Base[at*width+k]+more.Row(i)[at*(width/group)+k/group]) * float64(rows.Row(i - tap)[k])
				}
				if math.Abs(float64(got.Row(i)[k])-want) > 1e-4 {
					t.Fatalf("row %d is %g at %d, want %g", i, got.Row(i)[k], k, want)
				}
			}
		}
		g.check(t, r)
	})
}
