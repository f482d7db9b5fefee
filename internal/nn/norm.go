package nn

import "github.com/grovellm/grove/internal/kernels/simd"

// Norm is a normalisation with weights: RMSNorm, or LayerNorm when Center is set.
type Norm struct {
	Weight, Bias []float32 // Bias belongs to LayerNorm; nil: none
	Eps          float32
	Center       bool
}

// apply writes the normalised x to dst.
func (n *Norm) apply(dst, x []float32) {
	if n.Center {
		simd.LayerNorm(dst, x, n.Weight, n.Bias, n.Eps)
		return
	}
	simd.RMSNorm(dst, x, n.Weight, n.Eps)
}

// orNil returns n, or nil if it has no weights.
func (n *Norm) orNil() *Norm {
	if n.Weight == nil {
		return nil
	}
	return n
}

// orCopy is apply or, if there is no norm, a copy.
func (n *Norm) orCopy(dst, x []float32) {
	if n == nil {
		copy(dst, x)
		return
	}
	n.apply(dst, x)
}

// Normalise writes the normalised rows of x to those of dst, which may be x; without a norm it copies them.
func (e *Exec) Normalise(norm *Norm, x, dst Mat) {
	if e.records != nil {
		e.records.Normalise(norm, x, dst)
	}
	j := e.plan.norms.next(&e.plan)
	*j = normJob{norm, x, dst}
	e.OwnRows(x.Rows, x.Cols, j)
}

type normJob struct {
	norm   *Norm
	x, dst Mat
}

func (j *normJob) Do(_, i int) { j.norm.orCopy(j.dst.Row(i), j.x.Row(i)) }
