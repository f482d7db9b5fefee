package shortlist

import (
	"math"

	"github.com/grovellm/grove/internal/autograd"
	"github.com/grovellm/grove/internal/kernels/gemm"
	"github.com/grovellm/grove/internal/kernels/par"
	"github.com/grovellm/grove/internal/kernels/simd"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/nn"
	"github.com/grovellm/grove/internal/nn/output"
	"github.com/grovellm/grove/tensor"
)

// tail summarises rows of a head, to estimate the softmax's mass on them without computing their
// logits.
//
// The logits w·h of many rows w have an approximately normal distribution, with mean h·(mean of the rows)
// and variance hᵀ·C·h, where C is the rows' covariance: so the sum of their exponentials is about
// n·exp(mean + variance/2). C ≈ L·Lᵀ by a Cholesky factorisation that takes the largest pivots first and
// stops after some columns. So only products with the mean and the columns of L are computed in addition to
// the logits. The part of C that the columns leave out is computed as if hidden states had no direction.
//
// Logits have heavier tails than normal variables. The factor ½ of the variance is therefore replaced by
// [fatness], fitted to grove's draft model over the tokens after the first 1024 to 8192 by frequency, on
// texts of three kinds: 0.67 to 0.83. The standard deviation of the error of the logarithm of the mass,
// with one correction for all rows and with this one, at temperature 1 (code, arithmetic, prose):
//
//	                                     one correction      this
//	draft model, 4096 of 16384 tokens    0.28  0.25  0.24    0.16  0.07  0.14
//	draft model, context                 0.48  0.48  0.41    0.21  0.16  0.14
//	target, context (nothing fitted)     0.39  0.34  0.45    0.21  0.17  0.20
//
// Its mean is within 0.07 of zero.
//
// If the likeliest tokens are listed one by one, as with a router, the rest has a normal
// distribution without its upper end: a share Φ(cut − deviation) of its mass, where the listed
// tokens are those more than cut deviations above the mean.
type tail struct {
	head   *output.OrderedHead // the mean, then columns of L
	tokens int                 // number of tokens summed up
	rest   float64             // variance that L leaves out
}

const (
	fatness = 0.7
	// factors is the maximum number of columns of L: with the mean they fill two panels.
	factors = 2*gemm.Panel - 1
	// sampled is the maximum number of rows from which C is computed.
	sampled = 8192
)

// newTail summarises the rows of tokens.
func newTail(pool *par.Pool, head *Head, tokens []int32) (*tail, error) {
	d := head.W.In()
	t := &tail{tokens: len(tokens)}
	// One row out of every few stands for all.
	every := max(1, (len(tokens)+sampled-1)/sampled)
	x := nn.NewMat((len(tokens)+every-1)/every, d)
	mean, bias := make([]float32, d), float32(0)
	n := float32(max(x.Rows, 1))
	for i := range x.Rows {
		row := head.Row(tokens[i*every])
		head.W.Row(x.Row(i), row)
		if head.Bias != nil {
			bias += head.Bias[row] / n
		}
		simd.Axpy(mean, 1/n, x.Row(i))
	}
	for i := range x.Rows {
		simd.Axpy(x.Row(i), -1, mean)
	}
	c := nn.NewMat(d, d)
	if x.Rows > 0 {
		autograd.NewProducts(pool, gemm.F32).TMul(c, x, x)
	}
	columns, rest := cholesky(c, float64(n), head.Norm)
	t.rest = rest
	if head.Scale != 0 {
		t.rest *= float64(head.Scale) * float64(head.Scale)
	}
	w, err := packRows(append([][]float32{mean}, columns...), d, model.Encodable(head.W.Type()))
	if err != nil {
		return nil, err
	}
	t.head = &output.OrderedHead{Linear: nn.Linear{W: w, Scale: head.Scale}}
	if head.Bias != nil {
		t.head.Bias = make([]float32, w.Out())
		t.head.Bias[0] = bias
	}
	return t, nil
}

// cholesky returns the columns of the factor of c/n with the largest pivots, and the variance that
// they leave out. Element i of a hidden state after a norm is about norm.Weight[i] times a variable
// of variance 1: pivots are weighted accordingly.
func cholesky(c nn.Mat, n float64, norm *nn.Norm) (columns [][]float32, rest float64) {
	d := c.Rows
	left, weigh := make([]float64, d), make([]float64, d)
	for i := range d {
		left[i], weigh[i] = float64(c.Row(i)[i])/n, 1
		if norm != nil {
			weigh[i] = float64(norm.Weight[i]) * float64(norm.Weight[i])
		}
	}
	for len(columns) < min(d, factors) {
		p, most := 0, 0.0
		for i := range d {
			if v := left[i] * weigh[i]; v > most {
				p, most = i, v
			}
		}
		if !(most > 0) || math.IsInf(most, 0) {
			break
		}
		pivot := left[p]
		column := make([]float32, d)
		for i := range d {
			sum := float64(c.Row(i)[p]) / n
			for _, l := range columns {
				sum -= float64(l[i]) * float64(l[p])
			}
			column[i] = float32(sum / math.Sqrt(pivot))
			left[i] = max(left[i]-sum*sum/pivot, 0)
		}
		left[p] = 0
		columns = append(columns, column)
	}
	for i := range d {
		rest += left[i] * weigh[i]
	}
	return columns, rest
}

// packRows packs rows of d elements as a type, padded with zeros to a whole panel.
func packRows(rows [][]float32, d int, t gemm.Type) (*gemm.Matrix, error) {
	n := (len(rows) + gemm.Panel - 1) / gemm.Panel * gemm.Panel
	all := make([]float32, n*d)
	for i, r := range rows {
		copy(all[i*d:(i+1)*d], r)
	}
	x, err := tensor.FromFloat32s("tail", model.FileType(t), []int{n, d}, all)
	if err != nil {
		return nil, err
	}
	w, err := gemm.New(t, n, d)
	if err != nil {
		return nil, err
	}
	w.PackPanels(x.Data, 0, w.Panels())
	return w, nil
}

// logMass returns the logarithm of the sum of exp(logit / temperature) over the tail's tokens
// except the likeliest, those above cut (if cut is infinite, over all), from the products with the
// tail's rows. Temperature 0 counts as 1.
//
// At low temperatures the sum is dominated by the largest tokens instead of by many, and the
// largest of n tokens is √(2·ln n) standard deviations above the mean. (Derrida's random energy
// model has exactly this transition.) Below a cut there are always many.
func (t *tail) logMass(x []float32, temperature float32, cut float64) float64 {
	if t.tokens == 0 {
		return math.Inf(-1)
	}
	inv := 1.0
	if temperature > 0 {
		inv = 1 / float64(temperature)
	}
	variance := t.rest
	for _, v := range x[1:] {
		variance += float64(v) * float64(v)
	}
	variance *= 2 * fatness * inv * inv
	deviation := math.Sqrt(variance)
	n := math.Log(float64(t.tokens))
	m := n + float64(x[0])*inv
	switch most := math.Sqrt(2 * n); {
	case !math.IsInf(cut, 1):
		return m + variance/2 + logNormal(cut-deviation)
	case deviation < most:
		return m + variance/2
	default:
		return m + most*deviation - n
	}
}

// logNormal returns the logarithm of the probability that a standard normal variable is below x.
func logNormal(x float64) float64 {
	if x < -20 { // where Erfc loses its digits, and soon underflows
		return -x*x/2 - math.Log(-x*math.Sqrt(2*math.Pi))
	}
	return math.Log(math.Erfc(-x/math.Sqrt2) / 2)
}

// cutAbove returns the point, in deviations, above which a share of a normal distribution lies.
func cutAbove(share float64) float64 {
	switch {
	case share <= 0:
		return math.Inf(1)
	case share >= 1:
		return math.Inf(-1)
	}
	return math.Sqrt2 * math.Erfinv(1-2*share)
}
