package jet

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"

	"github.com/grovellm/grove/internal/autograd"
	"github.com/grovellm/grove/internal/nn"
	"github.com/grovellm/grove/internal/train"
)

// handOn makes every row of a layer, except the anchor's own, attend to the anchor and add its
// embedding to the row, as far as the width of the key/value heads' values allows. The layer's
// MLP starts by adding nothing.
//
// Queries and keys have one dimension that matters: the slowest-rotating one, whose sign
// normalisation keeps. A key is positive for an embedding, and negative for a mask token and for
// context; a query is positive for a mask token.
func (h *Head) handOn(w *train.WarmStart, layer int, texts [][]int32) error {
	hidden, dim := h.net.Hidden, h.net.HeadDim
	part := func(name string) *autograd.Param { return w.Head[fmt.Sprintf("blk.%d.%s.weight", layer, name)] }
	for _, name := range []string{"attn_norm", "attn_q_norm", "attn_k_norm"} {
		for i := range part(name).Data {
			part(name).Data[i] = 1
		}
	}
	clear(part("ffn_down").Data)

	var tokens [][]float32
	size := 0.0
	for _, text := range texts {
		for _, id := range text {
			v := make([]float32, hidden)
			h.net.Embed.Row(v, int(id))
			size += train.Length(v) / math.Sqrt(float64(hidden))
			tokens = append(tokens, train.Unit(v))
		}
	}
	size /= float64(len(tokens))
	for id := range h.net.Vocab { // so that rare tokens are included
		v := make([]float32, hidden)
		h.net.Embed.Row(v, id)
		tokens = append(tokens, train.Unit(v))
	}
	mask := make([]float32, hidden)
	h.net.Embed.Row(mask, int(h.net.Mask))
	masks := [][]float32{train.Unit(mask)}

	key, err := divide(hidden, set{tokens, 1, 1}, set{masks, -1, float64(len(tokens)) / 4},
		set{h.contexts(texts), -1, 1})
	if err != nil {
		return err
	}
	query, err := divide(hidden, set{tokens, -1, 1}, set{masks, 1, float64(len(tokens))})
	if err != nil {
		return err
	}
	slow := dim/2 - 1 // the pair that rotates slowest
	aim := func(p *autograd.Param, v []float64) {
		for r := range p.Rows {
			x := train.Row(p, r)
			for i := range x {
				x[i] *= 0.02
				if r%dim == slow {
					x[i] = float32(v[i])
				}
			}
		}
	}
	aim(part("attn_q"), query)
	aim(part("attn_k"), key)
	part("attn_q_norm").Data[slow] = 2

	basis, err := train.Principal(tokens)
	if err != nil {
		return err
	}
	v, out := part("attn_v"), part("attn_output")
	clear(out.Data)
	group := h.net.Heads / h.net.KVHeads
	for r := range v.Rows {
		for i := range hidden {
			b := basis.At(i, hidden-1-r) // eigenvectors come in ascending order of eigenvalue
			v.Data[r*v.Cols+i] = float32(b)
			for g := range group {
				c := ((r/dim)*group+g)*dim + r%dim
				out.Data[i*out.Cols+c] = float32(b * size / float64(group))
			}
		}
	}
	return nil
}

// contexts returns the context that the layers would read for some texts.
func (h *Head) contexts(texts [][]int32) (rows [][]float32) {
	h.Tape.Detach()
	for _, text := range texts {
		h.Target.Read([][]int32{text})
		m := nn.NewMat(len(text), h.net.Hidden)
		h.Exec.Linear(nn.Source{X: h.Target.Taps}, nn.Proj{Linear: &h.net.Fuse, Dst: m})
		for i := range m.Rows {
			x := m.Row(i)
			s := math.Sqrt(float64(len(x))) / max(train.Length(x), 1e-9)
			for j := range x {
				x[j] *= float32(s) * h.net.ContextNorm.Weight[j]
			}
			rows = append(rows, x)
		}
	}
	return rows
}

// set is vectors and the product that a direction should have with each. Each vector has this weight.
type set struct {
	rows   [][]float32
	value  float64
	weight float64
}

// divide finds the direction whose products with the sets' vectors are closest to their
// values, by weighted least squares.
func divide(n int, sets ...set) ([]float64, error) {
	a, b := mat.NewSymDense(n, nil), mat.NewVecDense(n, nil)
	for _, s := range sets {
		for _, x := range s.rows {
			v := mat.NewVecDense(n, train.Widen(x))
			a.SymRankOne(a, s.weight, v)
			b.AddScaledVec(b, s.weight*s.value, v)
		}
	}
	for i := range n {
		a.SetSym(i, i, a.At(i, i)*1.001)
	}
	var c mat.Cholesky
	if !c.Factorize(a) {
		return nil, fmt.Errorf("embeddings and context do not span the hidden size of %d", n)
	}
	var x mat.VecDense
	err := c.SolveVecTo(&x, b)
	return x.RawVector().Data, err
}
