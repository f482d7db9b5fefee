package shortlist

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/grovellm/grove/internal/gemm"
	"github.com/grovellm/grove/internal/par"
	"github.com/grovellm/grove/internal/simd"
	"github.com/grovellm/grove/nn"
)

// tail is rows of a head summed up, to estimate the softmax's mass on them without computing their logits.
//
// Logits w·h of many rows w are distributed about normally, with mean h·(mean of the rows) and variance hᵀ·C·h, C the rows' covariance:
// so the sum of their exponentials is about n·exp(mean + variance/2). Rows may come in groups (clusters), each with a mean, and C
// is what is left within them. C ≈ L·Lᵀ by a Cholesky factorisation that takes the largest pivots first and ends after some columns. So what is
// computed beside the logits is two kinds of rows, means and columns of L. What of C the columns leave is taken for hidden
// states without a direction.
//
// Logits have wider tails than normal variables. In place of ½ of the variance stands [fatness], fitted to grove's draft model over the
// tokens after the first 1024 to 8192 by frequency, on texts of three kinds: 0.67 to 0.83. Standard deviation of the error of the
// logarithm of the mass, by one correction for all rows and by this, at temperature 1 (code, arithmetic, prose):
//
//	                                     one correction      this
//	draft model, 4096 of 16384 tokens    0.28  0.25  0.24    0.16  0.07  0.14
//	draft model, context                 0.48  0.48  0.41    0.21  0.16  0.14
//	target, context (nothing fitted)     0.39  0.34  0.45    0.21  0.17  0.20
//
// and its mean is within 0.07 of nothing.
type tail struct {
	head  *nn.OrderedHead // the groups' means, then the columns of L
	sizes []float64       // logarithm of each group's number of rows; minus infinity where it is empty
	rest  float64         // variance left out of L
}

const (
	fatness = 0.7
	// factors is how many columns of L there are at most: with one mean they fill two panels.
	factors = 2*gemm.Panel - 1
	// sampled is how many rows C is computed from at most.
	sampled = 8192
)

// newTail sums up the rows of groups of tokens. norm is applied to hidden states before the head; it may be nil.
func newTail(pool *par.Pool, head *nn.Linear, norm *nn.Norm, groups [][]int32) (*tail, error) {
	d := head.W.In()
	t := &tail{}
	total := 0
	for _, g := range groups {
		t.sizes = append(t.sizes, math.Log(float64(len(g))))
		total += len(g)
	}
	// Every so many rows of each group stand for all.
	every := max(1, (total+sampled-1)/sampled)
	var x nn.Mat
	x.Cols, x.Stride = d, d
	bias := make([]float32, len(groups))
	var rows [][]float32
	for i, g := range groups {
		mean, n := make([]float32, d), float32((len(g)+every-1)/every)
		first := len(x.Data)
		for k := 0; k < len(g); k += every {
			at := len(x.Data)
			x.Data = append(x.Data, mean...) // zeros so far
			head.W.Row(x.Data[at:], int(g[k]))
			if head.Bias != nil {
				bias[i] += head.Bias[g[k]] / n
			}
		}
		for at := first; at < len(x.Data); at += d {
			simd.Axpy(mean, 1/n, x.Data[at:at+d])
		}
		for at := first; at < len(x.Data); at += d {
			simd.Axpy(x.Data[at:at+d], -1, mean)
		}
		rows = append(rows, mean)
	}
	x.Rows = len(x.Data) / d
	c := nn.NewMat(d, d)
	if x.Rows > 0 {
		nn.NewProducts(pool, gemm.F32).TMul(c, x, x)
	}
	columns, rest := cholesky(c, float64(max(x.Rows, 1)), norm)
	t.rest = rest
	rows = append(rows, columns...)
	w, err := packRows(rows, d)
	if err != nil {
		return nil, err
	}
	t.head = &nn.OrderedHead{Linear: nn.Linear{W: w}}
	if head.Bias != nil {
		t.head.Bias = append(bias, make([]float32, w.Out()-len(bias))...)
	}
	return t, nil
}

// cholesky returns columns of the factor of c/n, those with the largest pivots, and the variance they leave. Of
// a hidden state that passed a norm, element i is about norm.Weight[i] times a variable of variance 1: pivots are weighed so.
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

// packRows packs rows of d elements, filled up to a whole panel with zeros.
func packRows(rows [][]float32, d int) (*gemm.Matrix, error) {
	n := (len(rows) + gemm.Panel - 1) / gemm.Panel * gemm.Panel
	b := make([]byte, 0, 4*n*d)
	for _, r := range rows {
		if len(r) != d {
			return nil, fmt.Errorf("shortlist: a row of %d elements among those of %d", len(r), d)
		}
		for _, x := range r {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
		}
	}
	w, err := gemm.New(gemm.F32, n, d)
	if err != nil {
		return nil, err
	}
	w.PackPanels(b[:cap(b)], 0, w.Panels())
	return w, nil
}

// logMass is the logarithm of the sum of exp(logit / temperature) over the groups that are not listed, from the products with the
// tail's rows; temperature 0 is taken for 1.
//
// At low temperatures the sum is not of many tokens but of the largest, and n tokens' largest is √(2·ln n) standard
// deviations above the mean. (Derrida's random energy model has just this transition.)
func (t *tail) logMass(x []float32, temperature float32, listed []bool) float64 {
	inv := 1.0
	if temperature > 0 {
		inv = 1 / float64(temperature)
	}
	variance := t.rest
	for _, v := range x[len(t.sizes):] {
		variance += float64(v) * float64(v)
	}
	variance *= 2 * fatness * inv * inv
	deviation := math.Sqrt(variance)
	sum := math.Inf(-1)
	for g, n := range t.sizes {
		if listed != nil && listed[g] || math.IsInf(n, -1) {
			continue
		}
		m := n + float64(x[g])*inv
		if most := math.Sqrt(2 * n); deviation < most {
			m += variance / 2
		} else {
			m += most*deviation - n
		}
		sum = logAdd(sum, m)
	}
	return sum
}

// logAdd is log(exp(a) + exp(b)).
func logAdd(a, b float64) float64 {
	if a < b {
		a, b = b, a
	}
	if math.IsInf(a, 0) {
		return a
	}
	return a + math.Log1p(math.Exp(b-a))
}
