package medusa

import (
	"fmt"

	"github.com/grovellm/grove/internal/heads/headfile"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/nn"
)

// Network has Medusa heads, over loaded weights to serve or trained ones to train.
//
// They read x, the target's hidden state of a token after its last norm. Head i has residual blocks
// y = y + SiLU(W·y + b), the first of which reads x. Its output matrix turns their output into logits
// of the token i+2 places after that of x.
type Network struct {
	Config
	Residual [][]nn.Linear // of each head its residual blocks
	Outputs  []nn.Linear   // of each head, where they have one each
	Norm     nn.Norm       // the target's last

	headfile.Ends // with the output matrix that heads share

	Tokens []int32 // of each row of an output matrix; nil: they are the vocabulary in order
}

// NewNetwork builds the heads that c describes. They use the target's tensors where they have none of
// their own. tokens are those of a draft vocabulary, nil if it is the whole one.
func NewNetwork(c Config, w model.Weights, tokens []int32, target *model.Network) (*Network, error) {
	if err := headfile.CheckWeights(&c, w, tokens); err != nil {
		return nil, err
	}
	n := layOut(c)
	n.Tokens = tokens
	n.Norm = target.Norm
	n.Ends = headfile.EndsOf(target, tokens)
	for i := range n.Outputs { // as the target makes of its logits
		n.Outputs[i].Scale, n.Outputs[i].Cap = target.Head.Scale, target.Head.Cap
	}
	return n, n.Tensors().Load(w)
}

// layOut returns a network without weights.
func layOut(c Config) *Network {
	n := &Network{Config: c}
	for range c.Depths {
		n.Residual = append(n.Residual, make([]nn.Linear, c.ResBlocks))
	}
	if c.OwnOutputs {
		n.Outputs = make([]nn.Linear, c.Depths)
	}
	return n
}

// Parts lists the tensors of heads.
func (c *Config) Parts() headfile.Parts { return layOut(*c).Tensors() }

// Tensors lists the network's tensors, in the order in which random weights are drawn.
func (n *Network) Tensors() (list headfile.Parts) {
	c := &n.Config
	for i := range n.Residual {
		for j := range n.Residual[i] {
			list = append(list, headfile.Linear(blockName(i, j), &n.Residual[i][j], c.Hidden, c.Hidden, true))
		}
		if c.OwnOutputs {
			list = append(list, headfile.Linear(outputName(i), &n.Outputs[i], c.Output(), c.Hidden, false))
		}
	}
	if !c.OwnOutputs {
		list = append(list, n.Ends.OutputPart(c))
	}
	return list
}

func blockName(head, block int) string { return fmt.Sprintf("medusa.%d.%d", head, block) }
func outputName(head int) string       { return fmt.Sprintf("medusa.%d.output", head) }

// Buffers is the activation memory of heads.
type Buffers struct {
	inner  nn.Buffer
	states [2]nn.Buffer // after blocks
}

// Run computes the first heads over rows x (rows × Hidden), the output of the target's last norm. It
// puts the inputs of their output matrices into y: rows [i·rows, (i+1)·rows) for head i. It computes
// as many heads as y has room for.
func (n *Network) Run(e *nn.Exec, x, y nn.Mat, m *Buffers) {
	rows := x.Rows
	part := func(a nn.Mat, head int) nn.Mat { return a.Slice(head*rows, (head+1)*rows) }
	e.Hold()
	var in nn.Mat
	for j := range n.ResBlocks {
		inner, out := e.Mat(&m.inner, y.Rows, y.Cols), y
		if j+1 < n.ResBlocks {
			out = e.Mat(&m.states[j%2], y.Rows, y.Cols)
		}
		for i := range y.Rows / rows {
			src := x
			if j > 0 {
				src = part(in, i)
			}
			e.Normalise(nil, src, part(out, i))
			e.Linear(nn.Source{X: src}, nn.Proj{Linear: &n.Residual[i][j], Dst: part(inner, i)})
		}
		e.AddSiLU(out, inner)
		in = out
	}
	e.Release()
}

// Matrix returns the output matrix of a head.
func (n *Network) Matrix(head int) *nn.Linear {
	if n.Outputs == nil {
		return &n.Head
	}
	return &n.Outputs[head]
}
