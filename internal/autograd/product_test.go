package autograd

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/grovellm/grove/internal/kernels/gemm"
	"github.com/grovellm/grove/internal/kernels/num"
	"github.com/grovellm/grove/internal/kernels/par"
	"github.com/grovellm/grove/internal/nn"
	"github.com/grovellm/grove/internal/testing/cases"
)

func randomMat(r *rand.Rand, rows, cols int) nn.Mat {
	m := nn.Mat{Rows: rows, Cols: cols, Stride: cols + r.IntN(5)} // possibly some columns of a wider matrix
	m.Data = randomRow(r, rows*m.Stride)
	return m
}

// Operands are packed into the memory of the largest one: steps over texts of a thousand lengths hold as much as one.
func TestProductsHoldOneOperandEach(t *testing.T) {
	pool := par.New(1)
	defer pool.Close()
	m, r := NewProducts(pool, gemm.BF16), rand.New(rand.NewPCG(1, 1))
	most := 0
	for n := range 60 {
		a, b := randomMat(r, n+1, 40), randomMat(r, n+1, 70)
		m.TMul(randomMat(r, 40, 70), a, b)
		m.MulT(randomMat(r, n+1, n+1), a, a)
		most = max(most, gemm.PackedBytes(gemm.BF16, 70, n+1), gemm.PackedBytes(gemm.BF16, n+1, 40))
	}
	held := 0
	for _, w := range m.packs {
		held += w.Bytes()
	}
	if held > 2*most {
		t.Errorf("operands hold %d bytes, want %d at most", held, 2*most)
	}
}

// The three orientations compared with sums in f64, with operands rounded to bf16 if products round
// them; and the same bits with any number of workers.
func TestProducts(t *testing.T) {
	cases.Check(t, 40, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 6))
		kind := rapid.SampledFrom([]gemm.Type{gemm.F32, gemm.BF16}).Draw(t, "type")
		n := rapid.IntRange(1, 300).Draw(t, "rows")
		k := rapid.IntRange(1, 150).Draw(t, "inner")
		o := rapid.IntRange(1, 100).Draw(t, "out")
		orientation := rapid.IntRange(0, 3).Draw(t, "orientation")
		a, b := randomMat(r, n, k), randomMat(r, k, o)
		at := func(m nn.Mat, i, j int) float64 {
			v := m.Row(i)[j]
			if kind == gemm.BF16 {
				v = num.BF16(num.ToBF16(v))
			}
			return float64(v)
		}
		left, right := func(i, j int) float64 { return at(a, i, j) }, func(i, j int) float64 { return at(b, i, j) }
		switch orientation {
		case 1:
			b = randomMat(r, o, k)
			right = func(i, j int) float64 { return at(b, j, i) }
		case 2, 3:
			a = randomMat(r, k, n)
			left = func(i, j int) float64 { return at(a, j, i) }
		}
		start := randomMat(r, n, o)
		// First a product of another shape, whose operands are in the same memory.
		other := []nn.Mat{randomMat(r, 33, 70), randomMat(r, 90, 33), randomMat(r, 90, 70)}
		other[2].Data[r.IntN(len(other[2].Data))] = float32(math.NaN())
		run := func(threads int) nn.Mat {
			pool := par.New(threads)
			defer pool.Close()
			m := NewProducts(pool, kind)
			m.TMul(other[0], other[1], other[2])
			dst := start
			dst.Data = append([]float32(nil), start.Data...)
			switch orientation {
			case 0:
				m.Mul(dst, a, b)
			case 1:
				m.MulT(dst, a, b)
			case 2:
				m.TMul(dst, a, b)
			case 3:
				m.AddTMul(b, [2]nn.Mat{dst, a})
			}
			return dst
		}
		got, again := run(1), run(3)
		for i := range n {
			for j := range o {
				want, size := 0.0, 1.0
				if orientation == 3 {
					want = float64(start.Row(i)[j])
				}
				for q := range k {
					want += left(i, q) * right(q, j)
					size += math.Abs(left(i, q) * right(q, j))
				}
				if g := got.Row(i)[j]; math.Abs(float64(g)-want) > 1e-6*size*4 {
					t.Fatalf("orientation %d, %v, element %d, %d: %g, want %g", orientation, kind, i, j, g, want)
				}
			}
		}
		for i, v := range got.Data {
			if math.Float32bits(again.Data[i]) != math.Float32bits(v) {
				t.Fatalf("element %d: %x on one worker, %x on three", i, v, again.Data[i])
			}
		}
	})
}
