package train

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/grovellm/grove/internal/gemm"
	"github.com/grovellm/grove/internal/par"
	"github.com/grovellm/grove/nn"
	"github.com/grovellm/grove/tree"
)

// Shape is the size of a model of the Qwen3 architecture with a tied head.
type Shape struct {
	Vocab, Hidden, Layers, Heads, KVHeads, HeadDim, FFN int

	Context  int // tokens the file claims the model is good for
	RopeBase float64
	NormEps  float32
}

func (s *Shape) check() error {
	for _, f := range []struct {
		what string
		v    int
	}{{"vocabulary", s.Vocab}, {"hidden size", s.Hidden}, {"layer count", s.Layers}, {"head count", s.Heads},
		{"key/value head count", s.KVHeads}, {"feed-forward size", s.FFN}, {"context length", s.Context}} {
		if f.v < 1 || f.v > 1<<24 {
			return fmt.Errorf("shape: %s is %d: want 1 to %d", f.what, f.v, 1<<24)
		}
	}
	switch {
	case s.Heads%s.KVHeads != 0:
		return fmt.Errorf("shape: %d heads do not share %d key/value heads evenly", s.Heads, s.KVHeads)
	case s.HeadDim < 2 || s.HeadDim%2 != 0:
		return fmt.Errorf("shape: head dimension is %d: want an even number", s.HeadDim)
	case !(s.NormEps > 0) || !(s.RopeBase > 0):
		return fmt.Errorf("shape: norm epsilon %g and rope base %g: want positive numbers", s.NormEps, s.RopeBase)
	}
	return nil
}

// Network is a model in training: the layers that serving runs (package nn), over trained
// parameters. Parameters bear their Hugging Face names.
type Network struct {
	Shape  Shape
	Params *nn.Params

	exec   *nn.Exec
	tape   *nn.Tape
	pages  nn.Pages
	embed  nn.Table
	blocks []nn.Block
	norm   nn.Norm
	head   nn.Linear

	forest nn.Forest
	caches []*nn.Cache
	tree   tree.Tree
	x      nn.Buffer
	bufs   nn.BlockBuffers
}

// NewNetwork returns a network of zeros whose products run as kind (F32 or BF16) on the pool.
func NewNetwork(s Shape, pool *par.Pool, kind gemm.Type) (*Network, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	n := &Network{Shape: s, Params: nn.NewParams(kind), exec: nn.NewExec(pool)}
	var err error
	matrix := func(name string, out, in int) *gemm.Matrix {
		w, e := n.Params.Matrix(name, out, in)
		if err == nil {
			err = e
		}
		return w
	}
	linear := func(name string, out, in int) nn.Linear { return nn.Linear{W: matrix(name, out, in)} }
	norm := func(name string, width int) nn.Norm {
		return nn.Norm{Weight: n.Params.Vector(name, width), Eps: s.NormEps}
	}
	q, kv := s.Heads*s.HeadDim, s.KVHeads*s.HeadDim
	w := matrix("model.embed_tokens.weight", s.Vocab, s.Hidden)
	n.embed, n.head = w, nn.Linear{W: w}
	rope := nn.NewRope(nn.Frequencies(s.RopeBase, s.HeadDim, nil), false)
	for i := range s.Layers {
		name := func(part string) string { return fmt.Sprintf("model.layers.%d.%s.weight", i, part) }
		qn, kn := norm(name("self_attn.q_norm"), s.HeadDim), norm(name("self_attn.k_norm"), s.HeadDim)
		gate := linear(name("mlp.gate_proj"), s.FFN, s.Hidden)
		n.blocks = append(n.blocks, nn.Block{
			AttnNorm: norm(name("input_layernorm"), s.Hidden),
			MLPNorm:  norm(name("post_attention_layernorm"), s.Hidden),
			Attn:     nn.Attention{Heads: s.Heads, KVHeads: s.KVHeads, Dim: s.HeadDim, Rope: rope, QNorm: &qn, KNorm: &kn},
			QKV: []nn.Linear{linear(name("self_attn.q_proj"), q, s.Hidden), linear(name("self_attn.k_proj"), kv, s.Hidden),
				linear(name("self_attn.v_proj"), kv, s.Hidden)},
			Out: linear(name("self_attn.o_proj"), s.Hidden, q),
			MLP: nn.MLP{Gate: &gate, Up: linear(name("mlp.up_proj"), s.FFN, s.Hidden), Down: linear(name("mlp.down_proj"), s.Hidden, s.FFN)},
		})
	}
	n.norm = norm("model.norm.weight", s.Hidden)
	if err != nil {
		return nil, err
	}
	n.tape = nn.NewTape(n.exec, n.Params)
	n.pages = nn.Pages{Layers: s.Layers, Heads: s.KVHeads, Dim: s.HeadDim}
	return n, nil
}

// Init draws the weights: normal with deviation 1/√in in matrices (those that write to the residual
// stream smaller, so that it grows no faster for more layers), small in the embedding, ones in norms.
func (n *Network) Init(seed uint64) {
	for i, p := range n.Params.All() {
		r := rand.New(rand.NewPCG(seed, uint64(i)))
		switch {
		case p.Vector:
			for j := range p.Data {
				p.Data[j] = 1
			}
			continue
		case p.Name == "model.embed_tokens.weight":
			fillNormal(r, p.Data, 0.02)
		case residualWriter(p.Name):
			fillNormal(r, p.Data, 1/math.Sqrt(float64(p.Cols)*2*float64(n.Shape.Layers)))
		default:
			fillNormal(r, p.Data, 1/math.Sqrt(float64(p.Cols)))
		}
	}
	n.Pack()
}

func fillNormal(r *rand.Rand, v []float32, deviation float64) {
	for i := range v {
		v[i] = float32(r.NormFloat64() * deviation)
	}
}

// Pack makes the network compute with the parameters as they stand. Call it after changing them.
func (n *Network) Pack() { n.Params.Pack(n.tape.Products()) }

// Forward runs rows of tokens, each a sequence of its own, up to the final norm's input.
func (n *Network) forward(tokens []int32, length int) nn.Mat {
	n.forest.Reset()
	rows := len(tokens) / length
	for len(n.caches) < rows {
		n.caches = append(n.caches, n.pages.NewCache())
	}
	for i := range rows {
		n.tree.ResetChain(tokens[i*length : (i+1)*length])
		n.forest.Add(n.caches[i], &n.tree)
		n.caches[i].Reserve(length)
	}
	x := n.exec.Mat(&n.x, len(tokens), n.Shape.Hidden)
	n.exec.Embed(n.embed, tokens, x)
	for i := range n.blocks {
		n.exec.Block(&n.blocks[i], i, &n.forest, x, &n.bufs)
	}
	return x
}

// Loss runs rows of the given length and returns their loss; without a gradient.
func (n *Network) Loss(tokens []int32, length int, targets nn.Targets) nn.Loss {
	n.tape.Detach()
	defer n.tape.Attach()
	x := n.forward(tokens, length)
	return n.exec.CrossEntropy(nn.Source{X: x, Norm: &n.norm}, &n.head, targets, 1)
}

// Gradient is Loss, and adds scale times the loss's gradient to the parameters'.
func (n *Network) Gradient(tokens []int32, length int, targets nn.Targets, scale float32) nn.Loss {
	n.tape.Reset()
	x := n.forward(tokens, length)
	l := n.exec.CrossEntropy(nn.Source{X: x, Norm: &n.norm}, &n.head, targets, scale)
	n.tape.Backward()
	return l
}
