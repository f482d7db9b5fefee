// DFlash 2's convolutions.

package spark

import "github.com/grovellm/grove/internal/nn"

// conv is a causal convolution over a block's rows before a half of a layer, and one after it. A row's kernels are the base's
// and what the row itself adds to them.
type conv struct {
	c      *Config
	base   []float32 // 2 × Kernel × Hidden
	kernel nn.Linear // to 2 × Kernel × groups
}

// around makes x += out(half(in(norm(x)))); the kernels of both come from the normalised rows.
func (v *conv) around(e *nn.Exec, f *nn.Forest, norm *nn.Norm, x nn.Mat, m *Buffers, half func(y, u nn.Mat)) {
	z, k := m.normed.Mat(x.Rows, x.Cols), m.kernels.Mat(x.Rows, v.kernel.W.Out())
	y, u := m.in.Mat(x.Rows, x.Cols), m.out.Mat(x.Rows, x.Cols)
	e.Normalise(norm, x, z)
	e.Linear(nn.Source{X: z}, nn.Proj{Linear: &v.kernel, Dst: k})
	v.apply(f, 0, z, k, y)
	half(y, u)
	v.apply(f, 1, u, k, z)
	e.Add(x, z)
}

// apply convolves the rows of each block. Rows before a block are zeros.
func (v *conv) apply(f *nn.Forest, which int, from, kernels, to nn.Mat) {
	c := v.c
	groups := c.Hidden / c.Group
	for _, s := range f.Segments() {
		for r := range s.Rows {
			row := to.Row(s.Row + r)
			clear(row)
			own := kernels.Row(s.Row + r)
			for tap := range min(c.Kernel, r+1) {
				at := which*c.Kernel + tap
				base := v.base[at*c.Hidden:][:c.Hidden]
				changed := own[at*groups:][:groups]
				for i, x := range from.Row(s.Row + r - tap) {
					row[i] += (base[i] + changed[i/c.Group]) * x
				}
			}
		}
	}
}
