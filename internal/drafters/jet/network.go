package jet

import (
	"github.com/grovellm/grove/internal/heads/headfile"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/nn"
	"github.com/grovellm/grove/tree"
)

// Network has the layers of a block head (JetSpec §2.2), over loaded weights to serve or trained ones
// to train.
//
// The text so far is its context. The taps of each committed token, joined and projected, give only
// the keys and values of each layer; they are never queries and never change. The block, an anchor
// followed by mask tokens, runs through the layers with its own queries. It sees the context and, as
// the attention mask allows, itself. Row k becomes the hidden state of the token k places after the
// anchor.
type Network struct {
	Config
	Fuse        nn.Linear // joined taps to Hidden
	ContextNorm nn.Norm   // of the output of Fuse
	Blocks      []nn.Block
	Norm        nn.Norm // before Head

	headfile.Ends

	Tokens []int32 // the token of each row of Head; nil: the vocabulary in order
}

// NewNetwork builds the head that c describes. tokens are those of a draft vocabulary, nil if it is
// the whole one. The embedding and the output matrix are the target's if w has none. Weights have
// the names of llama.cpp's dflash files.
func NewNetwork(c Config, w model.Weights, tokens []int32, target *model.Network) (*Network, error) {
	if err := headfile.CheckWeights(&c, w, tokens); err != nil {
		return nil, err
	}
	n := LayOutNetwork(c)
	n.Tokens, n.Ends = tokens, headfile.EndsOf(target, tokens)
	return n, n.Tensors().Load(w)
}

// LayOutNetwork returns a network without weights: Tensors fills them in.
func LayOutNetwork(c Config) *Network {
	return &Network{Config: c, ContextNorm: nn.Norm{Eps: c.NormEps}, Norm: nn.Norm{Eps: c.NormEps}}
}

// Parts lists the tensors of a head.
func (c *Config) Parts() headfile.Parts { return LayOutNetwork(*c).Tensors() }

// Tensors lists the network's tensors, in the order in which random weights are drawn.
func (n *Network) Tensors() headfile.Parts {
	c := &n.Config
	return headfile.Parts{
		n.Ends.Part(c, false),
		headfile.Linear("fc", &n.Fuse, c.Hidden, len(c.Taps)*c.Hidden, false),
		headfile.Norm("enc.output_norm", &n.ContextNorm, c.Hidden),
		headfile.Norm("output_norm", &n.Norm, c.Hidden),
		&headfile.Blocks{Of: &c.Config, To: &n.Blocks},
	}
}

// Pages returns the memory of caches for the network's context. They hold f32, which a tape needs: a
// head learns from its drafts.
func (n *Network) Pages() nn.Pages {
	return nn.Pages{Layers: n.Layers, Heads: n.KVHeads, Dim: n.HeadDim, Rope: n.Blocks[0].Attn.Rope}
}

// Buffers is the activation memory of a head.
type Buffers struct {
	fused, kv nn.Buffer
	other     nn.Forest // rows as layers with a window see them, if differently
	trees     []*tree.Tree
	block     nn.BlockBuffers
	projs     []nn.Proj
}

// Context puts the keys and values of rows of text into the forest's caches, uncommitted. taps has
// each row's taps, one after the other: rows × len(Taps)·Hidden.
func (n *Network) Context(e *nn.Exec, f *nn.Forest, taps nn.Mat, m *Buffers) {
	fused := e.Mat(&m.fused, taps.Rows, n.Hidden)
	e.Hold()
	e.Linear(nn.Source{X: taps}, nn.Proj{Linear: &n.Fuse, Dst: fused})

	// Every layer reads the same rows, so one product makes the keys and values of all layers.
	width := 2 * n.KVHeads * n.HeadDim
	kv := e.Mat(&m.kv, taps.Rows, n.Layers*width)
	m.projs = m.projs[:0]
	for i := range n.Blocks {
		b := &n.Blocks[i]
		at := i * width
		m.projs = append(m.projs,
			nn.Proj{Linear: &b.QKV[1], Dst: kv.Columns(at, at+width/2)},
			nn.Proj{Linear: &b.QKV[2], Dst: kv.Columns(at+width/2, at+width)})
	}
	e.Linear(nn.Source{X: fused, Norm: &n.ContextNorm}, m.projs...)
	for i := range n.Blocks {
		e.Keys(&n.Blocks[i].Attn, i, f, kv.Columns(i*width, (i+1)*width))
	}
	e.Release()
}

// Run computes the rows of blocks with the given tokens, over the context in the forest's caches. It
// puts them into x (rows × Hidden) before the last norm: Head·Norm(x) gives their logits.
func (n *Network) Run(e *nn.Exec, f *nn.Forest, tokens []int32, x nn.Mat, m *Buffers) {
	e.Hold()
	e.Embed(n.Embed, tokens, x)
	windows := n.Windows(f, m)
	for i := range n.Blocks {
		e.Block(&n.Blocks[i], i, n.Forest(i, f, windows), x, &m.block)
	}
	e.Release()
}

// Forest returns the rows as a layer sees them: f, or those of Windows.
func (n *Network) Forest(layer int, f, windows *nn.Forest) *nn.Forest {
	if n.Blocks[layer].Attn.Window > 0 {
		return windows
	}
	return f
}

// Windows returns the blocks of f as layers with a window see them.
func (n *Network) Windows(f *nn.Forest, m *Buffers) *nn.Forest {
	if !n.mixed() {
		return f
	}
	like := n.Config
	like.Causal = n.WindowCausal
	m.other.Reset()
	for i, s := range f.Segments() {
		if i == len(m.trees) {
			m.trees = append(m.trees, new(tree.Tree))
		}
		like.LayOut(m.trees[i], 0, s.Rows)
		m.other.Add(s.Cache, m.trees[i], 0)
	}
	return &m.other
}
