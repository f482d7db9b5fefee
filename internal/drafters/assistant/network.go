package assistant

import (
	"github.com/grovellm/grove/internal/heads/headfile"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/nn"
)

// Network is the layers of an assistant, and what it takes from its target.
type Network struct {
	Config
	Pre, Post nn.Linear
	Blocks    []nn.Block
	Norm      nn.Norm // before Head
	Head      nn.Linear

	Centroids nn.Linear // of the clusters; none: rows have logits of all tokens
	Order     []int32   // tokens, cluster by cluster

	Embed      nn.Table // of the target
	TargetNorm nn.Norm  // the target's last norm
	sources    []int    // of each layer, the target's layer that it reads
}

// NewNetwork builds the assistant that c describes, for a target.
func NewNetwork(c Config, w model.Weights, _ []int32, of *model.Network) (*Network, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	n := layOut(c)
	n.Embed, n.TargetNorm = of.Embed, of.Norm
	if err := n.Tensors().Load(w); err != nil {
		return nil, err
	}
	var err error
	n.sources, err = c.BorrowedFrom(&of.Config)
	return n, err
}

func layOut(c Config) *Network { return &Network{Config: c, Norm: nn.Norm{Eps: c.NormEps}} }

// Parts lists the tensors of an assistant.
func (c *Config) Parts() headfile.Parts { return layOut(*c).Tensors() }

// Tensors lists the network's tensors, in the order in which random weights are drawn.
func (n *Network) Tensors() headfile.Parts {
	c := &n.Config
	list := headfile.Parts{
		headfile.Linear("token_embd", &n.Head, c.Vocab, c.Hidden, false),
		headfile.Linear(preName, &n.Pre, c.Hidden, 2*c.TargetHidden, false),
		headfile.Linear(postName, &n.Post, c.TargetHidden, c.Hidden, false),
		headfile.Norm("output_norm", &n.Norm, c.Hidden),
	}
	if c.Centroids > 0 {
		list = append(list, headfile.Linear(centroidName, &n.Centroids, c.Centroids, c.Hidden, false),
			headfile.Numbers(orderName, &n.Order, c.Vocab))
	}
	return append(list, &headfile.Blocks{Of: &c.Config, To: &n.Blocks})
}

// Buffers is the activation memory of an assistant.
type Buffers struct {
	embed nn.Buffer
	block nn.BlockBuffers
}

// Run computes rows of a forest of readers of the target's caches (nn.Forest.AddReaders) from their tokens
// and their states s (rows × TargetHidden). It leaves y (rows × Hidden) in x, as it is before the last norm.
func (n *Network) Run(e *nn.Exec, f *nn.Forest, tokens []int32, s, x nn.Mat, m *Buffers) {
	m.block.Fit(n.Blocks)
	embed := e.Mat(&m.embed, len(tokens), n.TargetHidden)
	e.Embed(n.Embed, tokens, embed)
	e.Linear(nn.Source{X: embed, With: s}, nn.Proj{Linear: &n.Pre, Dst: x})
	for i := range n.Blocks {
		e.Block(&n.Blocks[i], n.sources[i], f, x, &m.block)
	}
}

// Next computes in s the states that rows with outputs x pass to their children.
func (n *Network) Next(e *nn.Exec, x, s nn.Mat) {
	e.Linear(nn.Source{X: x, Norm: &n.Norm}, nn.Proj{Linear: &n.Post, Dst: s})
}

// clusters returns the tokens in clusters of equal size.
func (n *Network) clusters() (list [][]int32) {
	size := len(n.Order) / n.Config.Centroids
	for at := 0; at < len(n.Order); at += size {
		list = append(list, n.Order[at:at+size])
	}
	return list
}
