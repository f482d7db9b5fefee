// Random weights, made in memory: what a network costs does not depend on them.

package bench

import (
	"encoding/binary"
	"hash/fnv"
	"math"
	"math/rand/v2"

	"github.com/grovellm/grove/internal/gemm"
	"github.com/grovellm/grove/internal/num"
	"github.com/grovellm/grove/internal/par"
	"github.com/grovellm/grove/model"
	"github.com/grovellm/grove/nn"
)

// randomWeights makes the tensors of a network as they are asked for (model.Weights): the numbers of each row follow from the seed, the
// tensor's name and the row. They are evenly spread, and matrices keep the size of what they multiply.
type randomWeights struct {
	pool *par.Pool
	typ  gemm.Type // of matrices
	seed uint64
}

func (w *randomWeights) Has(string) bool { return false } // no biases

func (w *randomWeights) source(name string, row int) *rand.PCG {
	h := fnv.New64a()
	h.Write([]byte(name)) // which cannot fail
	return rand.NewPCG(w.seed^h.Sum64(), uint64(row))
}

// Matrix fills and packs on all workers.
func (w *randomWeights) Matrix(name string, out, in int) (*gemm.Matrix, error) {
	m, err := gemm.New(w.typ, out, in)
	if err != nil {
		return nil, err
	}
	row, err := model.FileType(w.typ).Size(in)
	if err != nil {
		return nil, err
	}
	src := make([]byte, out*row)
	w.pool.Run(m.Panels(), eachTask(func(p int) {
		for i := p * gemm.Panel; i < min((p+1)*gemm.Panel, out); i++ {
			fillRow(w.source(name, i), w.typ, src[i*row:(i+1)*row], in)
		}
		m.PackPanels(src, p, p+1)
	}))
	return m, nil
}

// eachTask is a function of a task's number as a pool's job.
type eachTask func(i int)

func (f eachTask) Do(_, i int) { f(i) }

// fillRow writes a row as a file has it, of numbers between ±√(3/in).
func fillRow(r *rand.PCG, t gemm.Type, dst []byte, in int) {
	le := binary.LittleEndian
	most := math.Sqrt(3 / float64(in))
	switch t {
	case gemm.Q4_K, gemm.Q5_K, gemm.Q6_K:
		_, block := model.FileType(t).Block()
		for at := range dst {
			dst[at] = byte(r.Uint64())
		}
		for at := 0; at < len(dst); at += block {
			switch t { // the middle of q's range is taken off, scales and minimums are up to 63 and to 127
			case gemm.Q4_K:
				le.PutUint16(dst[at:], num.ToF16(float32(most/500)))
				le.PutUint16(dst[at+2:], num.ToF16(float32(most/500*7.5)))
			case gemm.Q5_K:
				le.PutUint16(dst[at:], num.ToF16(float32(most/1000)))
				le.PutUint16(dst[at+2:], num.ToF16(float32(most/1000*15.5)))
			default:
				le.PutUint16(dst[at+208:], num.ToF16(float32(most/4096)))
			}
		}
		return
	case gemm.Q4_0, gemm.Q4_1, gemm.Q5_0, gemm.Q5_1:
		_, block := model.FileType(t).Block()
		for at := range dst {
			dst[at] = byte(r.Uint64())
		}
		for at := 0; at < len(dst); at += block {
			half := map[gemm.Type]float64{gemm.Q4_0: 8, gemm.Q4_1: 7.5, gemm.Q5_0: 16, gemm.Q5_1: 15.5}[t] // of q's range
			if le.PutUint16(dst[at:], num.ToF16(float32(most/half))); t == gemm.Q4_1 || t == gemm.Q5_1 {
				le.PutUint16(dst[at+2:], num.ToF16(float32(-most)))
			}
		}
		return
	case gemm.Q8_0:
		scale := num.ToF16(float32(most / 128))
		for at := 0; at < len(dst); at += 34 {
			le.PutUint16(dst[at:], scale)
			for k := 2; k < 34; k += 8 {
				le.PutUint64(dst[at+k:], r.Uint64())
			}
		}
		return
	}
	for i := range in {
		v := float32((2*float64(r.Uint64()>>11)/(1<<53) - 1) * most)
		switch t {
		case gemm.F16:
			le.PutUint16(dst[2*i:], num.ToF16(v))
		case gemm.BF16:
			le.PutUint16(dst[2*i:], num.ToBF16(v))
		default:
			le.PutUint32(dst[4*i:], math.Float32bits(v))
		}
	}
}

// Vector is a norm's, near 1.
func (w *randomWeights) Vector(name string, n int) ([]float32, error) {
	r := rand.New(w.source(name, 0))
	v := make([]float32, n)
	for i := range v {
		v[i] = 0.8 + 0.4*r.Float32()
	}
	return v, nil
}

func (w *randomWeights) Table(name string, rows, cols int) (nn.Table, error) {
	return w.Matrix(name, rows, cols)
}
