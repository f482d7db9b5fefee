package autograd

import (
	"math"

	"github.com/grovellm/grove/internal/nn"
)

// Product writes x⊙y to dst, which the tape must have made; x and y must not change afterwards.
func (t *Tape) Product(dst, x, y nn.Mat) {
	t.perRow(dst.Rows, func(i int) {
		a, b := x.Row(i), y.Row(i)
		for j := range dst.Row(i) {
			dst.Row(i)[j] = a[j] * b[j]
		}
	})
	if t.attached {
		t.record(&productRecord{dst, x, y})
	}
}

type productRecord struct{ dst, x, y nn.Mat }

func (r *productRecord) backward(t *Tape) {
	d, _ := Grad(r.dst)
	for _, of := range [][2]nn.Mat{{r.x, r.y}, {r.y, r.x}} {
		dx, ok := Grad(of[0])
		if !ok {
			continue
		}
		t.perRow(d.Rows, func(i int) {
			for j, g := range d.Row(i) {
				dx.Row(i)[j] += g * of[1].Row(i)[j]
			}
		})
	}
}

// Gate writes σ(x)⊙y to dst, which the tape must have made; x and y must not change afterwards.
func (t *Tape) Gate(dst, x, y nn.Mat) {
	t.perRow(dst.Rows, func(i int) {
		for j, v := range x.Row(i) {
			dst.Row(i)[j] = sigmoid(v) * y.Row(i)[j]
		}
	})
	if t.attached {
		t.record(&gateRecord{dst, x, y})
	}
}

type gateRecord struct{ dst, x, y nn.Mat }

func (r *gateRecord) backward(t *Tape) {
	d, _ := Grad(r.dst)
	dx, gated := Grad(r.x)
	dy, carried := Grad(r.y)
	t.perRow(d.Rows, func(i int) {
		for j, g := range d.Row(i) {
			s := sigmoid(r.x.Row(i)[j])
			if gated {
				dx.Row(i)[j] += g * r.y.Row(i)[j] * s * (1 - s)
			}
			if carried {
				dy.Row(i)[j] += g * s
			}
		}
	})
}

func sigmoid(x float32) float32 { return float32(1 / (1 + math.Exp(-float64(x)))) }

// BinaryCrossEntropy is the loss of σ(x), x having one number per row, against shares from 0 to 1.
// A row's weight may be 0. scale multiplies the gradient.
func (t *Tape) BinaryCrossEntropy(x nn.Mat, shares, weights []float32, scale float32) Loss {
	var l Loss
	for i := range x.Rows {
		v := float64(x.Row(i)[0])
		l.Sum += float64(weights[i]) * (math.Max(v, 0) + math.Log1p(math.Exp(-math.Abs(v))) - v*float64(shares[i]))
		l.Weight += float64(weights[i])
	}
	l.Rows = x.Rows
	if t.attached {
		t.record(&binaryRecord{x, shares, weights, scale})
	}
	return l
}

type binaryRecord struct {
	x               nn.Mat
	shares, weights []float32
	scale           float32
}

func (r *binaryRecord) backward(*Tape) {
	d, ok := Grad(r.x)
	for i := range r.x.Rows {
		if ok {
			d.Row(i)[0] += r.scale * r.weights[i] * (sigmoid(r.x.Row(i)[0]) - r.shares[i])
		}
	}
}
