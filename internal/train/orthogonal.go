package train

import (
	"math"

	"github.com/grovellm/grove/internal/autograd"
	"github.com/grovellm/grove/internal/kernels/gemm"
	"github.com/grovellm/grove/internal/kernels/par"
	"github.com/grovellm/grove/internal/nn"
)

// orthogonalizer makes matrices orthogonal, one at a time on one core: a model has enough of them
// to keep all cores busy.
type orthogonalizer struct{ products *autograd.Products }

// newOrthogonalizer returns one that multiplies in bf16: the steps bring singular values near 1,
// not exactly to 1, and rounding is negligible compared with that.
func newOrthogonalizer() *orthogonalizer {
	return &orthogonalizer{autograd.NewProducts(par.New(1), gemm.BF16)}
}

// run returns the matrix with x's singular vectors and all singular values near 1, after five
// Newton-Schulz steps X ← aX + X(bA + cA²) with A = XᵀX (the quintic of Jordan et al., 2024), where
// X is the taller of x and its transpose. x may be overwritten.
func (o *orthogonalizer) run(x nn.Mat) nn.Mat {
	wide := x.Rows < x.Cols
	if wide {
		x = transposed(x)
	}
	var sum float64
	for _, v := range x.Data {
		sum += float64(v) * float64(v)
	}
	if sum > 0 {
		inv := float32(1 / math.Sqrt(sum))
		for i := range x.Data {
			x.Data[i] *= inv
		}
		o.iterate(x)
	}
	if wide {
		x = transposed(x)
	}
	return x
}

func (o *orthogonalizer) iterate(x nn.Mat) {
	const a, b, c = 3.4445, -4.7750, 2.0315
	gram := nn.NewMat(x.Cols, x.Cols)
	square := nn.NewMat(x.Cols, x.Cols)
	next := nn.NewMat(x.Rows, x.Cols)
	for range 5 {
		o.products.TMul(gram, x, x)
		o.products.Mul(square, gram, gram) // symmetric, as are all polynomials of it
		for i, v := range gram.Data {
			square.Data[i] = b*v + c*square.Data[i]
		}
		o.products.Mul(next, x, square)
		for i, v := range next.Data {
			x.Data[i] = a*x.Data[i] + v
		}
	}
}

func transposed(a nn.Mat) nn.Mat {
	t := nn.NewMat(a.Cols, a.Rows)
	const tile = 16 // a cache line on either side
	for i0 := 0; i0 < a.Rows; i0 += tile {
		for j := range a.Cols {
			for i := i0; i < min(i0+tile, a.Rows); i++ {
				t.Data[j*t.Stride+i] = a.Data[i*a.Stride+j]
			}
		}
	}
	return t
}
