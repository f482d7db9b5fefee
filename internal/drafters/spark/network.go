package spark

import (
	"fmt"

	"github.com/grovellm/grove/internal/drafters/jet"
	"github.com/grovellm/grove/internal/heads/headfile"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/nn"
)

// Network is the layers of a head: those of its block and of its correction.
type Network struct {
	Config
	Base *jet.Network

	before nn.Table  // of DSpark and DFlash 2: a row for the previous token
	token  nn.Linear // a row for each token that is scored
	mix    nn.Linear // DSpark's gate or joint projection, DFlash 2's and Domino's projection of the state
	sure   nn.Linear // DSpark's confidence

	gru   [2]nn.Linear // Domino's, of the token and of the state: gates r, z and n
	convs []conv       // DFlash 2's: of each layer, the one around attention and the one around the MLP
}

// NewNetwork builds the head that c describes for a target, whose tensors it uses where it has none
// of its own.
func NewNetwork(c Config, w model.Weights, tokens []int32, target *model.Network) (*Network, error) {
	if err := headfile.CheckWeights(&c, w, tokens); err != nil {
		return nil, err
	}
	n := layOut(c)
	n.Base.Tokens, n.Base.Ends = tokens, headfile.EndsOf(target, tokens)
	return n, n.Tensors().Load(w)
}

func layOut(c Config) *Network {
	n := &Network{Config: c, Base: jet.LayOutNetwork(c.Config)}
	if c.Variant == dflash2 {
		n.convs = make([]conv, 2*c.Layers)
	}
	return n
}

// Parts lists the tensors of a head.
func (c *Config) Parts() headfile.Parts { return layOut(*c).Tensors() }

// Tensors lists the network's tensors, in the order in which random weights are drawn.
func (n *Network) Tensors() headfile.Parts {
	c := &n.Config
	list := n.Base.Tensors()
	switch c.Variant {
	case dspark:
		list = append(list, headfile.Table("markov.before", &n.before, c.Vocab, c.Rank),
			headfile.Linear("markov.token", &n.token, c.Output(), c.Rank, false))
		switch c.Markov {
		case gated:
			list = append(list, headfile.Linear("markov.gate", &n.mix, c.Rank, c.Hidden+c.Rank, true))
		case rnn:
			list = append(list, headfile.Linear("markov.joint", &n.mix, 3*c.Rank, 2*c.Rank+c.Hidden, true))
		}
		if c.Confidence != noConfidence {
			list = append(list, headfile.Linear("confidence", &n.sure, 1, c.Hidden+(c.Confidence-1)*c.Rank, true))
		}
	case dflash2:
		list = append(list, headfile.Table("selector.before", &n.before, c.Vocab, c.Rank),
			headfile.Linear("selector.token", &n.token, c.Vocab, c.Rank, false),
			headfile.Linear("selector.state", &n.mix, c.Rank, c.Hidden, false))
		for i := range n.convs {
			name := fmt.Sprintf("blk.%d.%s_conv", i/2, []string{"attention", "mlp"}[i%2])
			n.convs[i].Taps, n.convs[i].Group = c.Kernel, c.Group
			list = append(list, headfile.Vector(name+".base", &n.convs[i].Base, 2*c.Kernel*c.Hidden),
				headfile.Linear(name+".kernel", &n.convs[i].kernel, 2*c.Kernel*c.Hidden/c.Group, c.Hidden, false))
		}
	case domino:
		list = append(list, headfile.Linear("gru.input", &n.gru[0], 3*c.Width, c.Hidden, false),
			headfile.Linear("gru.state", &n.gru[1], 3*c.Width, c.Width, false),
			headfile.Linear("domino.state", &n.mix, c.Rank, c.Hidden+c.Width, false),
			headfile.Linear("domino.token", &n.token, c.Vocab, c.Rank, false))
	}
	return list
}

// Run computes the rows of blocks, as jet.Network.Run does.
func (n *Network) Run(e *nn.Exec, f *nn.Forest, tokens []int32, x nn.Mat, m *Buffers) {
	if n.Variant != dflash2 {
		n.Base.Run(e, f, tokens, x, &m.Buffers)
		return
	}
	e.Embed(n.Base.Embed, tokens, x)
	before := m.rowsBefore(f)
	windows := n.Base.Windows(f, &m.Buffers)
	for i := range n.Base.Blocks {
		b := &n.Base.Blocks[i]
		n.convs[2*i].around(e, before, &b.AttnNorm, x, m, func(y, u nn.Mat) {
			clear(u.Data[:u.Rows*u.Stride])
			e.Attention(b, i, n.Base.Forest(i, f, windows), nn.Source{X: y}, u, &m.layer)
		})
		n.convs[2*i+1].around(e, before, &b.MLPNorm, x, m, func(y, u nn.Mat) {
			gate, up := e.Mat(&m.gate, y.Rows, n.FFN), e.Mat(&m.up, y.Rows, n.FFN)
			e.Linear(nn.Source{X: y}, nn.Proj{Linear: b.MLP.Gate, Dst: gate}, nn.Proj{Linear: &b.MLP.Up, Dst: up})
			e.Linear(nn.Source{X: gate, Act: nn.SiLUMul, Up: up}, nn.Proj{Linear: &b.MLP.Down, Dst: u})
		})
	}
}

// Buffers is the activation memory of a head.
type Buffers struct {
	jet.Buffers
	Rows int // of each block, if a sequence of the forest has several; 0: it has one

	layer                              nn.BlockBuffers
	normed, kernels, in, out, gate, up nn.Buffer
	convolved                          nn.Buffer
	before                             []int32   // for each row, the number of rows of its block before it
	states                             nn.Buffer // of the requested rows, normalised
	mixed                              nn.Buffer // DFlash 2's projection of them
}

// rowsBefore returns, for each row, the number of rows of its block before it.
func (m *Buffers) rowsBefore(f *nn.Forest) []int32 {
	m.before = m.before[:0]
	for _, s := range f.Segments() {
		for r := range s.Rows {
			if m.Rows > 0 {
				r %= m.Rows
			}
			m.before = append(m.before, int32(r))
		}
	}
	return m.before
}

// Correction is the layers that are trained in addition to a block's. Domino's are not trained.
type Correction struct {
	Before nn.Table   // a row for the previous token: DSpark's W1, DFlash 2's A
	Token  *nn.Linear // a row for each scored token: W2 or S
	Mix    *nn.Linear // DSpark's gate, or DFlash 2's H
	Sure   *nn.Linear // DSpark's confidence; nil: none
}

// Correction returns the network's correction.
func (n *Network) Correction() Correction {
	c := Correction{Before: n.before, Token: &n.token, Mix: &n.mix}
	if n.Confidence != noConfidence {
		c.Sure = &n.sure
	}
	return c
}
