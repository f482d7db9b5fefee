package falcon

import (
	"fmt"

	"github.com/grovellm/grove/internal/heads/headfile"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/nn"
)

// Network is the layers of a Falcon head, over loaded weights for serving or over trained ones for training.
//
// Row i combines the token at place i+1 with the target's feature of place i, its last hidden state
// after the norm. The row's state predicts the feature of place i+k, from which the target's output
// matrix computes the logits of the token at place i+k+1:
//
//	g = norm(last layer)      s = LSTM(LSTM([embedding | g]))
//	x = s + attention(s)      x += MLP(norm(x))      logits = Head·x
//
// Beyond the target's features, the states of one block are the features of the next.
type Network struct {
	Config
	LSTM   [2]nn.LSTM
	Blocks []nn.Block // the first has no norm before attention
	GNorm  nn.Norm    // of the feature: the target's last norm

	headfile.Ends
}

// NewNetwork builds the head that c describes for a target, whose tensors it uses where it has none
// of its own. The weights have GGUF names.
func NewNetwork(c Config, w model.Weights, _ []int32, target *model.Network) (*Network, error) {
	if err := headfile.CheckWeights(&c, w, nil); err != nil {
		return nil, err
	}
	n := &Network{Config: c, Ends: headfile.EndsOf(target, nil), GNorm: target.Norm}
	return n, n.Tensors().Load(w)
}

// Parts lists the tensors of a head.
func (c *Config) Parts() headfile.Parts { return (&Network{Config: *c}).Tensors() }

// Tensors lists the network's tensors, in the order in which random weights are drawn.
func (n *Network) Tensors() headfile.Parts {
	c, list := &n.Config, headfile.Parts{n.Ends.Part(&n.Config, false)}
	for i, in := range []int{2 * c.Hidden, c.Hidden} {
		list = append(list, headfile.LSTM(fmt.Sprintf("lstm.%d", i), &n.LSTM[i], c.Hidden, in, c.Recurrent))
	}
	return append(list, &headfile.Blocks{Of: &c.Config, To: &n.Blocks, Biases: true, Bare: true})
}

// Pages returns the memory of caches for the network's rows. They hold f32, which a tape needs.
func (n *Network) Pages() nn.Pages {
	return nn.Pages{Layers: n.Layers, Heads: n.KVHeads, Dim: n.HeadDim, Rope: n.Blocks[0].Attn.Rope}
}

// Buffers is the activation memory of a head.
type Buffers struct {
	tokens                  []int32
	ordered, embed, out, kv nn.Buffer
	h, c                    [2]nn.Buffer
	lstm                    [2]nn.LSTMBuffers
	block                   nn.BlockBuffers
	projs                   [2]nn.Proj
}

// Order is the order of rows for the LSTM of a recurrent head: which row precedes each. Its slices
// are kept until the next Set.
type Order struct {
	nn.Recurrence
	carry [][]float32 // states from earlier passes
	rows  []int32     // of each row in the order of steps, its index in the pass
	place []int32     // of each row of the pass, its row in h and c
	steps []int32     // of each row of the pass, its step

	h, c [2]nn.Mat
}

// Set sets the order. before[i] is the index of the row that precedes row i, which is less than i,
// or -1-k for the k-th carried state, as State returned it. A nil state is zeros.
func (o *Order) Set(before []int32, carry [][]float32) {
	o.Carried, o.carry = len(carry), carry
	o.steps = o.steps[:0]
	o.rows = o.rows[:0]
	o.Before = o.Before[:0]
	o.Ends = o.Ends[:0]
	last := int32(-1)
	for _, b := range before {
		step := int32(0)
		if b >= 0 {
			step = o.steps[b] + 1
		}
		o.steps = append(o.steps, step)
		last = max(last, step)
	}
	o.place = append(o.place[:0], before...) // sets the length
	for step := range last + 1 {
		for i, s := range o.steps {
			if s != step {
				continue
			}
			o.place[i] = int32(o.Carried + len(o.rows))
			o.rows = append(o.rows, int32(i))
			if b := before[i]; b >= 0 {
				o.Before = append(o.Before, o.place[b])
			} else {
				o.Before = append(o.Before, -1-b)
			}
		}
		o.Ends = append(o.Ends, len(o.rows))
	}
}

// State appends the LSTM's state of a row of the last pass to dst: the initial state of the rows
// after it.
func (o *Order) State(dst []float32, row int) []float32 {
	for i := range o.h {
		dst = append(append(dst, o.h[i].Row(int(o.place[row]))...), o.c[i].Row(int(o.place[row]))...)
	}
	return dst
}

// Features computes the features g (rows × Hidden) of places of the text from the target's taps
// there (rows × Hidden).
func (n *Network) Features(e *nn.Exec, taps, g nn.Mat) { e.Normalise(&n.GNorm, taps, g) }

// Run computes rows of a forest from their tokens and their features g (rows × Hidden). It leaves
// their states in x (rows × Hidden), from which Head computes logits. o is the order of a recurrent
// head, otherwise nil.
func (n *Network) Run(e *nn.Exec, f *nn.Forest, tokens []int32, g nn.Mat, o *Order, x nn.Mat, m *Buffers) {
	e.Hold()
	s := n.recur(e, tokens, g, o, m)
	e.Normalise(nil, s, x)
	e.Attention(&n.Blocks[0], 0, f, nn.Source{X: s}, x, &m.block)
	e.MLP(&n.Blocks[0], x, &m.block)
	for i := 1; i < len(n.Blocks); i++ {
		e.Block(&n.Blocks[i], i, f, x, &m.block)
	}
	e.Release()
}

// Keep writes to the forest's caches what Run does, for rows whose states are not needed: in a head
// of one layer, only keys and values.
func (n *Network) Keep(e *nn.Exec, f *nn.Forest, tokens []int32, g nn.Mat, o *Order, m *Buffers) {
	if n.Layers > 1 {
		n.Run(e, f, tokens, g, o, e.Mat(&m.kv, g.Rows, g.Cols), m)
		return
	}
	first := &n.Blocks[0]
	half := first.Attn.KVHeads * first.Attn.Dim
	e.Hold()
	s := n.recur(e, tokens, g, o, m)
	kv := e.Mat(&m.kv, g.Rows, 2*half)
	m.projs = [2]nn.Proj{
		{Linear: &first.QKV[1], Dst: kv.Columns(0, half)}, {Linear: &first.QKV[2], Dst: kv.Columns(half, 2*half)},
	}
	e.Linear(nn.Source{X: s}, m.projs[:]...)
	e.Keys(&first.Attn, 0, f, kv)
	e.Release()
}

// recur runs the LSTM and returns its states.
func (n *Network) recur(e *nn.Exec, tokens []int32, g nn.Mat, o *Order, m *Buffers) nn.Mat {
	rows, carried := len(tokens), 0
	var r *nn.Recurrence
	if o != nil {
		ordered := e.Mat(&m.ordered, rows, n.Hidden)
		e.Gather(g, o.rows, ordered)
		m.tokens = m.tokens[:0]
		for _, row := range o.rows {
			m.tokens = append(m.tokens, tokens[row])
		}
		r = &o.Recurrence
		g = ordered
		tokens = m.tokens
		carried = o.Carried
	}
	embed := e.Mat(&m.embed, rows, n.Hidden)
	e.Embed(n.Embed, tokens, embed)
	src := nn.Source{X: embed, With: g}
	for i := range n.LSTM {
		h, c := e.Mat(&m.h[i], carried+rows, n.Hidden), e.Mat(&m.c[i], carried+rows, n.Hidden)
		for k := range carried {
			clear(h.Row(k))
			clear(c.Row(k))
			if s := o.carry[k]; s != nil {
				copy(h.Row(k), s[2*i*n.Hidden:])
				copy(c.Row(k), s[(2*i+1)*n.Hidden:])
			}
		}
		if o != nil {
			o.h[i], o.c[i] = h, c
		}
		e.LSTM(&n.LSTM[i], src, r, h, c, &m.lstm[i])
		src = nn.Source{X: h.Slice(carried, carried+rows)}
		if o != nil && i == len(n.LSTM)-1 {
			out := e.Mat(&m.out, rows, n.Hidden)
			e.Gather(h, o.place, out)
			src.X = out
		}
	}
	return src.X
}
