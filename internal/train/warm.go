// The initial values of heads: parts of their target, and solutions of least squares.

package train

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"github.com/grovellm/grove/internal/autograd"
	"github.com/grovellm/grove/internal/nn"
)

// Regress finds the matrix M whose products with the rows of x, x·M, are nearest to the rows of y;
// a small ridge keeps M small where x carries no information.
func Regress(x, y [][]float32) (*mat.Dense, error) {
	s := moments(x, x)
	n := len(x[0])
	a := mat.NewSymDense(n, s.RawMatrix().Data)
	for i := range n {
		a.SetSym(i, i, a.At(i, i)*1.01)
	}
	var c mat.Cholesky
	if !c.Factorize(a) {
		return nil, fmt.Errorf("the %d examples do not span %d dimensions", len(x), n)
	}
	var m mat.Dense
	err := c.SolveTo(&m, moments(x, y))
	return &m, err
}

// atOnce is the number of rows processed at a time: they take twice the memory in float64.
const atOnce = 4096

// moments returns the sum of the outer products of x's rows with y's.
func moments(x, y [][]float32) *mat.Dense {
	all := mat.NewDense(len(x[0]), len(y[0]), nil)
	for i := 0; i < len(x); i += atOnce {
		end := min(i+atOnce, len(x))
		var some mat.Dense
		some.Mul(dense(x[i:end]).T(), dense(y[i:end]))
		all.Add(all, &some)
	}
	return all
}

// Products returns the products of the rows of x with a matrix, x·M.
func Products(x [][]float32, m *mat.Dense) (y [][]float32) {
	for i := 0; i < len(x); i += atOnce {
		var some mat.Dense
		some.Mul(dense(x[i:min(i+atOnce, len(x))]), m)
		for r := range some.RawMatrix().Rows {
			row := make([]float32, some.RawMatrix().Cols)
			for c, v := range some.RawRowView(r) {
				row[c] = float32(v)
			}
			y = append(y, row)
		}
	}
	return y
}

// Principal returns the eigenvectors of the vectors' second moments, one per column.
func Principal(rows [][]float32) (*mat.Dense, error) {
	var e mat.EigenSym
	if !e.Factorize(mat.NewSymDense(len(rows[0]), moments(rows, rows).RawMatrix().Data), true) {
		return nil, fmt.Errorf("the embeddings' principal directions were not found")
	}
	var m mat.Dense
	e.VectorsTo(&m)
	return &m, nil
}

// Widen converts a vector to float64.
func Widen(x []float32) []float64 {
	v := make([]float64, len(x))
	for i := range x {
		v[i] = float64(x[i])
	}
	return v
}

// dense returns the matrix of some rows.
func dense(rows [][]float32) *mat.Dense {
	m := mat.NewDense(len(rows), len(rows[0]), nil)
	for i, r := range rows {
		m.SetRow(i, Widen(r))
	}
	return m
}

// Unit returns a vector normalised with weights of one.
func Unit(v []float32) []float32 {
	s := float32(math.Sqrt(float64(len(v))) / max(Length(v), 1e-9))
	u := make([]float32, len(v))
	for i, x := range v {
		u[i] = s * x
	}
	return u
}

// Begin returns a WarmStart, which initialises a head's parameters from its target's.
func (h *OverTarget) Begin() *WarmStart {
	return &WarmStart{Head: ByName(h.Params), target: &h.Target}
}

// ByName returns parameters by their names.
func ByName(params *autograd.Params) map[string]*autograd.Param {
	m := map[string]*autograd.Param{}
	for _, p := range params.All() {
		m[p.Name] = p
	}
	return m
}

// WarmStart initialises the parameters of a head from those of its target.
type WarmStart struct {
	Head   map[string]*autograd.Param
	Err    error // of the first tensor that the target lacks, or has in another form than the head
	target *Frozen
}

// of returns a tensor of the target, or an empty one if it has none.
func (w *WarmStart) of(name string) *autograd.Param {
	p, ok := w.target.weights(name)
	if !ok {
		if w.Err == nil {
			w.Err = fmt.Errorf("the target, of architecture %s, has no tensor %s as which a head can begin: want random weights (--from=-1)", w.target.Config.Arch, name)
		}
		p = new(autograd.Param)
	}
	return p
}

// Copy copies a tensor of the target.
func (w *WarmStart) Copy(name, from string) { copy(w.Head[name].Data, w.of(from).Data) }

// Scale multiplies a tensor, to keep a little of its drawn values.
func (w *WarmStart) Scale(name string, by float32) {
	data := w.Head[name].Data
	for i := range data {
		data[i] *= by
	}
}

// Fuse makes a projection of joined taps their mean, plus a little of its drawn values.
func (w *WarmStart) Fuse(name string, drawn float32) {
	fc := w.Head[name]
	taps := fc.Cols / fc.Rows
	w.Scale(name, drawn)
	for t := range taps {
		for i := range fc.Rows {
			fc.Data[i*fc.Cols+t*fc.Rows+i] += 1 / float32(taps)
		}
	}
}

// Fit makes a matrix the best linear function from x to y.
func (w *WarmStart) Fit(name string, x, y [][]float32) error {
	m, err := Regress(x, y)
	if err != nil {
		return err
	}
	Solved(w.Head[name], m, 0)
	return nil
}

// Solved sets rows of p, starting at from, to m transposed.
func Solved(p *autograd.Param, m *mat.Dense, from int) {
	for r := range p.Rows {
		for c := range p.Cols {
			p.Data[r*p.Cols+c] = float32(m.At(from+c, r))
		}
	}
}

// MeanNorm sets a norm to the mean of the norms before the attention of some blocks: its output
// will be read by layers that begin as these blocks.
func (w *WarmStart) MeanNorm(name string, blocks []int) {
	norm := w.Head[name]
	clear(norm.Data)
	for _, b := range blocks {
		for i, v := range w.of(fmt.Sprintf("blk.%d.attn_norm.weight", b)).Data {
			norm.Data[i] += v / float32(len(blocks))
		}
	}
}

// Block copies a block of the target.
func (w *WarmStart) Block(layer, b int) {
	name := func(part string) (head, target string) {
		return fmt.Sprintf("blk.%d.%s.weight", layer, part), fmt.Sprintf("blk.%d.%s.weight", b, part)
	}
	for _, part := range []string{"attn_norm", "attn_q", "attn_k", "attn_v", "attn_output", "attn_q_norm",
		"attn_k_norm", "ffn_norm"} {
		if to, from := name(part); w.Head[to] != nil { // a head of a target without norms of queries has none
			w.Copy(to, from)
		}
	}
	w.MLP(layer, b)
}

// CopyBlock makes the parameters that a block is built of what those of another of the same shape are.
func CopyBlock(params *autograd.Params, to, from *nn.Block) {
	products, norms := linears(from), normsOf(from)
	for i, l := range linears(to) {
		p := params.Of(l.W).Mat()
		for r := range p.Rows {
			products[i].W.Row(p.Row(r), r)
		}
		copy(l.Bias, products[i].Bias)
	}
	for i, n := range normsOf(to) {
		copy(n.Weight, norms[i].Weight)
		copy(n.Bias, norms[i].Bias)
	}
}

// normsOf are the norms of a block.
func normsOf(b *nn.Block) []*nn.Norm {
	list := []*nn.Norm{&b.AttnNorm, &b.MLPNorm, b.AttnPost, b.MLPPost, b.Attn.QNorm, b.Attn.KNorm}
	return slices.DeleteFunc(list, func(n *nn.Norm) bool { return n == nil })
}

// MLP makes the MLP of a layer that of some blocks, of whose units it takes those whose weights are
// longest.
func (w *WarmStart) MLP(layer int, blocks ...int) {
	name := func(layer int, part string) string { return fmt.Sprintf("blk.%d.%s.weight", layer, part) }
	gate := w.Head[name(layer, "ffn_gate")]
	up := w.Head[name(layer, "ffn_up")]
	down := w.Head[name(layer, "ffn_down")]
	type unit struct {
		gate, up []float32
		down     *autograd.Param
		row      int
		size     float64
	}
	var units []unit
	for _, b := range blocks {
		gateT := w.of(name(b, "ffn_gate"))
		upT := w.of(name(b, "ffn_up"))
		downT := w.of(name(b, "ffn_down"))
		if w.Err != nil {
			return
		}
		for u := range gateT.Rows {
			// A unit's weight in the output is, for inputs of one length, about the product of the
			// lengths of its weights.
			var d float64
			for i := range downT.Rows {
				d += float64(downT.Data[i*downT.Cols+u]) * float64(downT.Data[i*downT.Cols+u])
			}
			units = append(units, unit{Row(gateT, u), Row(upT, u), downT, u,
				Length(Row(gateT, u)) * Length(Row(upT, u)) * math.Sqrt(d)})
		}
	}
	slices.SortStableFunc(units, func(a, b unit) int { return cmp.Compare(b.size, a.size) })
	for i, u := range units[:min(gate.Rows, len(units))] {
		copy(Row(gate, i), u.gate)
		copy(Row(up, i), u.up)
		for j := range down.Rows {
			down.Data[j*down.Cols+i] = u.down.Data[j*u.down.Cols+u.row]
		}
	}
}

// Row is a row of a matrix.
func Row(p *autograd.Param, i int) []float32 { return p.Data[i*p.Cols : (i+1)*p.Cols] }

// Length is the length of a vector.
func Length(v []float32) float64 {
	sum := 0.0
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	return math.Sqrt(sum)
}
