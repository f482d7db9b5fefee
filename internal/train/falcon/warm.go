package falcon

import (
	"fmt"
	"math"
	"slices"

	"github.com/grovellm/grove/internal/train"
)

// A head with random initial weights long predicts little more than token frequencies. But features
// are partly linear functions of the head's inputs, which can be fitted to examples. The LSTM
// starts as the function that computes the feature at the row's own token, scaled down so that tanh
// hardly bends it: the input and output gates are nearly open, and the second layer passes values
// on. Attention starts as a linear function, of the states of the row and of the last row of its
// block, that computes what the feature to predict still lacks. The MLP starts as the MLPs of
// blocks of the target, and its output starts small.

const (
	gateOpen  = 2   // the bias of a gate that is nearly open: σ(2) is 0.88
	stateSize = 0.5 // root mean square of the inputs to tanh

	// With this many rotating pairs of dimensions, of this length, a head of dimension 64 scores the row
	// that it looks for 5 higher than that row's neighbours, and at least 10 higher than other rows.
	turning, sharpness = 4, 6.5
)

// warm gives the head this start. The examples are the target's tokens in the texts; without blocks
// in from, everything except the biases stays as it was drawn.
func (h *Head) warm(from []int, list []train.Conversation) error {
	w, n := h.Begin(), h.net.Hidden
	for i := range h.net.LSTM {
		bias := w.Head[fmt.Sprintf("lstm.%d.input.bias", i)].Data
		for d := range n {
			bias[d] = gateOpen
			bias[n+d] = -gateOpen
			bias[2*n+d] = 0
			bias[3*n+d] = gateOpen
		}
	}
	if len(from) == 0 {
		h.Pack()
		return nil
	}
	examples := h.examples(list)
	still, err := h.function(w, examples)
	if err != nil {
		return err
	}
	if err := h.attend(w, examples, still); err != nil {
		return err
	}
	w.Copy("blk.0.ffn_norm.weight", fmt.Sprintf("blk.%d.ffn_norm.weight", from[0]))
	clear(w.Head["blk.0.ffn_down.weight"].Data) // for units beyond those of the blocks
	w.MLP(0, from...)
	w.Scale("blk.0.ffn_down.weight", 0.1)
	h.Pack()
	return w.Err
}

// example is rows of a text. Each has its input, which is an embedding and a feature; next, the
// feature of its own token; and state, the LSTM's output.
type example struct{ input, next, state [][]float32 }

func (h *Head) examples(list []train.Conversation) (all []example) {
	for _, c := range list {
		text := c.Tokens
		first, last := c.Places()
		if last < h.net.Block {
			continue
		}
		t := texts{list: [][]int32{text}, places: [][]int{{max(first, h.net.Block)}}}
		h.read(&t, 1)
		var e example
		for row := max(first-h.net.Block, 0); row+1 < len(text); row++ {
			x := make([]float32, 2*h.net.Hidden)
			h.net.Embed.Row(x[:h.net.Hidden], int(text[row+1]))
			copy(x[h.net.Hidden:], t.features.Row(row))
			e.input, e.next = append(e.input, x), append(e.next, slices.Clone(t.features.Row(row+1)))
		}
		all = append(all, e)
	}
	return all
}

// function makes the LSTM compute the linear function. The dimension of its states that varies
// least in features becomes a constant.
func (h *Head) function(w *train.WarmStart, examples []example) (still int, err error) {
	n := h.net.Hidden
	var rows, next [][]float32
	for _, e := range examples {
		rows, next = append(rows, e.input...), append(next, e.next...)
	}
	fit, err := train.Regress(rows, next)
	if err != nil {
		return 0, err
	}
	size := 0.0
	for _, y := range next {
		size += train.Length(y) / math.Sqrt(float64(n)) / float64(len(next))
	}
	still = stillest(next)
	for layer := range h.net.LSTM {
		p := w.Head[fmt.Sprintf("lstm.%d.input.weight", layer)]
		w.Scale(p.Name, 0.1)
		for d := range n {
			candidate := train.Row(p, 2*n+d)
			clear(candidate)
			switch {
			case d == still:
				w.Head[fmt.Sprintf("lstm.%d.input.bias", layer)].Data[2*n+d] = gateOpen
				for gate := range 4 {
					clear(train.Row(p, gate*n+d))
				}
			case layer == 0:
				for i := range candidate {
					candidate[i] = float32(stateSize / size * fit.At(i, d))
				}
			default:
				candidate[d] = 1
			}
		}
	}
	first, through := w.Head["lstm.0.input.weight"], 1/(1+math.Exp(-gateOpen))
	for i := range examples {
		e := &examples[i]
		for _, x := range e.input {
			s := make([]float32, n)
			for o := range n {
				v := 0.0
				for j, a := range train.Row(first, 2*n+o) {
					v += float64(a) * float64(x[j])
				}
				for range h.net.LSTM {
					if o == still {
						v = gateOpen
					}
					v = through * math.Tanh(through*math.Tanh(v))
				}
				s[o] = float32(v)
			}
			e.state = append(e.state, s)
		}
	}
	return still, nil
}

// stillest returns the dimension with the least variance.
func stillest(rows [][]float32) (at int) {
	least := math.Inf(1)
	for d := range rows[0] {
		sum, squares := 0.0, 0.0
		for _, x := range rows {
			sum, squares = sum+float64(x[d]), squares+float64(x[d])*float64(x[d])
		}
		if v := squares/float64(len(rows)) - math.Pow(sum/float64(len(rows)), 2); v < least {
			least, at = v, d
		}
	}
	return at
}

// attend initialises attention. Equally many heads look at their own row and at the last row of the
// block; a quarter stay free. Their values are the main directions of what both have to add.
func (h *Head) attend(w *train.WarmStart, examples []example, still int) error {
	n := h.net.Hidden
	dim := h.net.HeadDim
	k := h.net.Block
	var states, missing [][]float32
	for _, e := range examples {
		for row := range e.state {
			for last := row; last < row+k && row+k-1 < len(e.next); last++ { // the last row of a block that row is in
				if last >= len(e.state) {
					break
				}
				d := make([]float32, n)
				for o, v := range e.next[row+k-1] {
					d[o] = v - e.state[row][o]
				}
				states, missing = append(states, slices.Concat(e.state[row], e.state[last])), append(missing, d)
			}
		}
	}
	fit, err := train.Regress(states, missing)
	if err != nil {
		return err
	}
	var said [][]float32 // the parts that the row and the last row contribute
	for i := 0; i < len(states); i += 4 {
		for half := range 2 {
			y := make([]float32, n)
			for j, v := range states[i][half*n : (half+1)*n] {
				for o, m := range fit.RawRowView(half*n + j) {
					y[o] += v * float32(m)
				}
			}
			said = append(said, y)
		}
	}
	basis, err := train.Principal(said) // eigenvectors in ascending order of eigenvalue
	if err != nil {
		return err
	}
	v, out := w.Head["blk.0.attn_v.weight"], w.Head["blk.0.attn_output.weight"]
	w.Scale(out.Name, 0.1)
	heads := max((h.net.KVHeads-h.net.KVHeads/4)/2, 1)
	group := h.net.Heads / h.net.KVHeads
	for number := range min(2*heads, h.net.KVHeads) {
		half := number / heads
		h.lookAt(w, number, half*(k-1), still, float64(states[0][still]))
		for d := range dim {
			direction := n - 1 - (number%heads*dim + d)
			if direction < 0 {
				break
			}
			value, at := train.Row(v, number*dim+d), number*group*dim+d
			clear(value)
			for i := range n {
				b := float32(basis.At(i, direction))
				out.Data[i*out.Cols+at] = b
				for j := range value {
					value[j] += float32(fit.At(half*n+j, i)) * b
				}
			}
		}
	}
	return nil
}

// lookAt makes the first query head of a group look at the row far positions on, or the nearest one
// before that row that it sees. The fastest-rotating pairs of its key hold a constant, made from
// dimension still of the states; those of its query hold that constant rotated by far positions.
func (h *Head) lookAt(w *train.WarmStart, group, far, still int, multiple float64) {
	q := w.Head["blk.0.attn_q.weight"]
	k := w.Head["blk.0.attn_k.weight"]
	dim := h.net.HeadDim
	first := group * (h.net.Heads / h.net.KVHeads) * dim
	for d := range dim {
		for _, row := range [][]float32{train.Row(q, first+d), train.Row(k, group*dim+d)} {
			for i := range row {
				row[i] *= 0.3
			}
		}
	}
	c := sharpness / multiple
	for pair := range min(turning, dim/2) {
		angle := float64(far) * math.Pow(h.net.Rope.Base, -2*float64(pair)/float64(dim))
		for _, x := range []struct {
			row []float32
			v   float64
		}{
			{train.Row(k, group*dim+pair), c}, {train.Row(k, group*dim+dim/2+pair), 0},
			{train.Row(q, first+pair), c * math.Cos(angle)}, {train.Row(q, first+dim/2+pair), c * math.Sin(angle)},
		} {
			clear(x.row)
			x.row[still] = float32(x.v)
		}
	}
}
