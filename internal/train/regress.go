// Least squares, of which heads begin.

package train

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"
)

// regress finds the matrix whose products with the rows of x, x·M, are nearest to those of y; a little ridge keeps it small where x has
// nothing to say.
func regress(x, y [][]float32) (*mat.Dense, error) {
	a := dense(x)
	var xx, xy mat.Dense
	xx.Mul(a.T(), a)
	xy.Mul(a.T(), dense(y))
	n := len(x[0])
	s := mat.NewSymDense(n, nil)
	for i := range n {
		for j := i; j < n; j++ {
			s.SetSym(i, j, xx.At(i, j))
		}
		s.SetSym(i, i, xx.At(i, i)*1.01)
	}
	var c mat.Cholesky
	if !c.Factorize(s) {
		return nil, fmt.Errorf("the %d examples do not span %d dimensions", len(x), n)
	}
	var m mat.Dense
	err := c.SolveTo(&m, &xy)
	return &m, err
}

// principal is the eigenvectors of the vectors' second moments, one a column.
func principal(n int, rows [][]float32) (*mat.Dense, error) {
	a := mat.NewSymDense(n, nil)
	for _, x := range rows {
		a.SymRankOne(a, 1, mat.NewVecDense(n, widen(x)))
	}
	var e mat.EigenSym
	if !e.Factorize(a, true) {
		return nil, fmt.Errorf("the embeddings' principal directions were not found")
	}
	var m mat.Dense
	e.VectorsTo(&m)
	return &m, nil
}

func widen(x []float32) []float64 {
	v := make([]float64, len(x))
	for i := range x {
		v[i] = float64(x[i])
	}
	return v
}

// dense is the matrix of some rows.
func dense(rows [][]float32) *mat.Dense {
	m := mat.NewDense(len(rows), len(rows[0]), nil)
	for i, r := range rows {
		m.SetRow(i, widen(r))
	}
	return m
}

// unit is a vector as a norm with weights of one leaves it.
func unit(v []float32) []float32 {
	s := float32(math.Sqrt(float64(len(v))) / max(length(v), 1e-9))
	u := make([]float32, len(v))
	for i, x := range v {
		u[i] = s * x
	}
	return u
}
