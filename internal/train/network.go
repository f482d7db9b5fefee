package train

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/grovellm/grove/internal/autograd"
	"github.com/grovellm/grove/internal/kernels/gemm"
	"github.com/grovellm/grove/internal/kernels/par"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/nn"
	"github.com/grovellm/grove/tree"
)

// Shape is the size of a model of the Qwen3 architecture with a tied head.
type Shape struct {
	Vocab, Hidden, Layers, Heads, KVHeads, HeadDim, FFN int

	Context  int // the number of tokens that the file claims to support
	RopeBase float64
	NormEps  float32
}

// Config returns the shape in the form of package model.
func (s *Shape) Config() model.Config {
	return model.Config{
		Arch: arch, Vocab: s.Vocab, Hidden: s.Hidden, Layers: s.Layers, Heads: s.Heads, KVHeads: s.KVHeads,
		HeadDim: s.HeadDim,
		FFN:     s.FFN, Context: s.Context, NormEps: s.NormEps, Tied: true,
		Rope: model.RopeConfig{Base: s.RopeBase, Dims: s.HeadDim, Scale: 1},
	}
}

// arch is the architecture of everything trained here.
const arch = "qwen3"

func (s *Shape) check() error {
	c := s.Config()
	if err := c.Validate(); err != nil {
		return fmt.Errorf("shape: %w", err)
	}
	return nil
}

// Network is a model in training: the network that serves (package model), over trained parameters.
// Parameters have GGUF names.
type Network struct {
	Shape  Shape
	Params *autograd.Params

	Net *model.Network // the network that computes with the parameters

	exec  *nn.Exec
	tape  *autograd.Tape
	pages nn.Pages

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
	n := &Network{Shape: s, Params: autograd.NewParams(kind), exec: nn.NewExec(pool)}
	var err error
	if n.Net, err = model.NewNetwork(s.Config(), Trained{Params: n.Params}); err != nil {
		return nil, err
	}
	n.tape = autograd.NewTape(n.exec, n.Params)
	n.pages = nn.Pages{Layers: s.Layers, Heads: s.KVHeads, Dim: s.HeadDim}
	return n, nil
}

// Init draws the weights: normal with deviation 1/√in in matrices (smaller in those that write to
// the residual stream, so that it does not grow faster with more layers), small in the embedding,
// and ones in norms.
func (n *Network) Init(seed uint64) {
	Initialise(n.Params, seed, n.Shape.Layers)
	n.Pack()
}

func Initialise(params *autograd.Params, seed uint64, layers int) {
	for i, p := range params.All() {
		r := rand.New(rand.NewPCG(seed, uint64(i)))
		switch {
		case p.Vector:
			for j := range p.Data {
				p.Data[j] = 1
			}
			continue
		case p.Name == embedding:
			fillNormal(r, p.Data, 0.02)
		case residualWriter(p.Name):
			fillNormal(r, p.Data, 1/math.Sqrt(float64(p.Cols)*2*float64(layers)))
		default:
			fillNormal(r, p.Data, 1/math.Sqrt(float64(p.Cols)))
		}
	}
}

func fillNormal(r *rand.Rand, v []float32, deviation float64) {
	for i := range v {
		v[i] = float32(r.NormFloat64() * deviation)
	}
}

// Pack makes the network compute with the current parameters. Call it after changing them.
func (n *Network) Pack() { n.Params.Pack(n.tape.Products()) }

// forward runs rows of tokens, each a separate sequence, up to the input of the final norm. o,
// which sees the layers, may be nil.
func (n *Network) forward(tokens []int32, length int, o model.Observer) nn.Mat {
	n.forest.Reset()
	rows := len(tokens) / length
	for len(n.caches) < rows {
		n.caches = append(n.caches, n.pages.NewCache())
	}
	for i := range rows {
		n.tree.ResetChain(tokens[i*length : (i+1)*length])
		n.forest.Add(n.caches[i], &n.tree, 0)
		n.caches[i].Reserve(0, length)
	}
	x := n.exec.Mat(&n.x, len(tokens), n.Shape.Hidden)
	_ = n.Net.RunLayers(n.exec, &n.forest, tokens, x, &n.bufs, o) // errors are an observer's, and ours have none
	return x
}

// Loss runs rows of the given length and returns their loss, without a gradient.
func (n *Network) Loss(tokens []int32, length int, targets autograd.Targets) autograd.Loss {
	n.tape.Detach()
	defer n.tape.Attach()
	x := n.forward(tokens, length, nil)
	return n.tape.CrossEntropy(nn.Source{X: x, Norm: &n.Net.Norm}, &n.Net.Head, targets, 1)
}

// Gradient is Loss, and also adds scale times the loss's gradient to the parameters' gradients.
func (n *Network) Gradient(tokens []int32, length int, targets autograd.Targets, scale float32) autograd.Loss {
	n.tape.Reset()
	x := n.forward(tokens, length, nil)
	l := n.tape.CrossEntropy(nn.Source{X: x, Norm: &n.Net.Norm}, &n.Net.Head, targets, scale)
	n.tape.Backward()
	return l
}
