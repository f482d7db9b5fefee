// DFlash 2's convolutions.

package spark

import "github.com/grovellm/grove/internal/nn"

// conv is a causal convolution over a block's rows before half a layer (attention or MLP), and one
// after it. Each row's kernels are the base kernels plus a term computed from the row.
type conv struct {
	nn.BlockConvolution
	kernel nn.Linear // to 2 × Kernel × groups
}

// around computes x += out(half(in(norm(x)))). The kernels of both convolutions come from the
// normalised rows. before is the number of rows of the same block before each row.
func (v *conv) around(e *nn.Exec, before []int32, norm *nn.Norm, x nn.Mat, m *Buffers, half func(y, u nn.Mat)) {
	z, k := e.Mat(&m.normed, x.Rows, x.Cols), e.Mat(&m.kernels, x.Rows, v.kernel.W.Out())
	y, u := e.Mat(&m.in, x.Rows, x.Cols), e.Mat(&m.out, x.Rows, x.Cols)
	w := e.Mat(&m.convolved, x.Rows, x.Cols)
	e.Normalise(norm, x, z)
	e.Linear(nn.Source{X: z}, nn.Proj{Linear: &v.kernel, Dst: k})
	e.ConvolveBlock(&v.BlockConvolution, 0, before, z, k, y)
	half(y, u)
	e.ConvolveBlock(&v.BlockConvolution, 1, before, u, k, w)
	e.Add(x, w)
}
