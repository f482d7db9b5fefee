package model

import (
	"fmt"
	"math"
	"slices"

	"github.com/grovellm/grove/internal/kernels/gemm"
	"github.com/grovellm/grove/internal/nn"
)

// Weights gives a network its tensors, by GGUF name: loaded ones for serving, trainable ones for training.
type Weights interface {
	Has(name string) bool // the weights determine whether there are biases
	Matrix(name string, out, in int) (*gemm.Matrix, error)
	Vector(name string, n int) ([]float32, error)
	Table(name string, rows, cols int) (nn.Table, error) // a matrix used only for look-ups
}

// Network is the layers of a model over its weights.
type Network struct {
	Config Config
	Embed  nn.Table
	Blocks []nn.Block
	Norm   nn.Norm // before the head
	Head   nn.Linear

	Positions nn.Table // a vector for each position, added to the token's; nil: none

	PerLayer *nn.PerLayerTable // each token's input to each layer; nil: none
	Streams  *nn.Streams       // of blocks with AltUp; nil: none

	Optional []string // the optional tensors that exist

	layerBytes int // of the packed weights of a layer
}

// NewNetwork builds the network that c describes.
func NewNetwork(c Config, w Weights) (*Network, error) {
	b, err := newBuilder(&c, w)
	if err != nil {
		return nil, err
	}
	n := &Network{Config: c}
	if c.Tied {
		head := b.matrix("token_embd.weight", c.Vocab, c.Hidden)
		n.Head, n.Embed = nn.Linear{W: head, Bias: b.bias("output", c.Vocab)}, head
	} else {
		n.Head = b.linear("output", c.Vocab, c.Hidden)
		n.Embed = b.table("token_embd.weight", c.Vocab, c.Hidden)
	}
	if c.LogitScale != 0 {
		n.Head.Scale = unless1(1 / c.LogitScale)
	}
	n.Head.Cap = float32(c.LogitCap)
	if s := unless1(c.EmbedScale); s != 0 {
		n.Embed = &scaledTable{n.Embed, s}
	}
	if b.arch.has("position_embd") {
		n.Positions = b.table("position_embd.weight", c.Context, c.Hidden)
	}
	n.Norm = b.weightless()
	if !b.arch.weightless {
		n.Norm = b.norm(b.arch.named("output_norm"), c.Hidden)
	}
	if c.PerLayer > 0 {
		n.PerLayer = b.perLayer()
	}
	if c.Streams > 0 {
		n.Streams = b.streams()
	}
	n.Blocks = b.blocks()
	if b.err == nil {
		n.layerBytes = (n.WeightBytes() - n.Head.W.Bytes()) / len(n.Blocks)
	}
	n.Optional = b.optional
	return n, b.err
}

// NewBlocks builds only the blocks of the network that c describes, for a drafter's head whose rows
// come from elsewhere.
func NewBlocks(c *Config, w Weights) ([]nn.Block, error) {
	b, err := newBuilder(c, w)
	if err != nil {
		return nil, err
	}
	return b.blocks(), b.err
}

// WeightBytes is the size of the packed weights that each pass reads.
func (n *Network) WeightBytes() int {
	size := n.Head.W.Bytes()
	if n.PerLayer != nil {
		size += n.PerLayer.Project.W.Bytes()
	}
	if n.Streams != nil {
		size += n.Streams.Bytes()
	}
	for i := range n.Blocks {
		size += n.Blocks[i].Bytes()
	}
	return size
}

// Observer receives the residual stream as it passes the layers: 0 is the embedding, i the output
// of the i-th block. An error ends the pass.
type Observer interface {
	Layer(i int, x nn.Mat) error
}

// Planner is an Observer that uses x only in operations of the pass's Exec, so it may be called for
// a layer before that layer is computed.
type Planner interface {
	Observer
	Plans()
}

// RunLayers runs the rows of a forest, with the given tokens, through the embedding and all blocks,
// leaving the residual stream before the final norm in x (rows × Hidden). o may be nil.
func (n *Network) RunLayers(e *nn.Exec, f *nn.Forest, tokens []int32, x nn.Mat, m *nn.BlockBuffers, o Observer) error {
	_, plans := o.(Planner)
	plans = plans || o == nil
	together := n.together(len(tokens))
	m.Fit(n.Blocks)
	e.Hold()
	e.Embed(n.Embed, tokens, x)
	if n.Positions != nil {
		e.AddPositions(n.Positions, n.Config.Context, f, x, m)
	}
	if n.PerLayer != nil {
		e.PerLayerInputs(n.PerLayer, tokens, x, m)
	}
	if n.Streams != nil {
		e.SpreadStreams(n.Streams, x, m)
	}
	for i := range n.Blocks {
		if !plans || i > 0 && i%together == 0 {
			e.Release()
			e.Hold()
		}
		if o != nil {
			if err := o.Layer(i, x); err != nil {
				e.Release()
				return err
			}
		}
		e.Block(&n.Blocks[i], i, f, x, m)
	}
	if n.Streams != nil {
		e.MergeStreams(n.Streams, x, m)
	}
	if plans && o != nil {
		defer e.Release()
		return o.Layer(len(n.Blocks), x)
	}
	e.Release()
	if o != nil {
		return o.Layer(len(n.Blocks), x)
	}
	return nil
}

// together returns how many layers of a pass are planned at once: several in a small network, whose
// layers finish soon. Between other layers an observer is asked whether to continue.
func (n *Network) together(rows int) int {
	const much = 16 << 20 // weights times rows, from 16 rows on: some 100 µs
	work := n.layerBytes * max(1, rows/16)
	return max(1, much/max(1, work))
}

// builder keeps the first error, so that the network above and the block below read like lists of
// their parts.
type builder struct {
	c           *Config
	arch        *architecture
	w           Weights
	rope, local *nn.Rope // of all layers; of those with a window, if different
	optional    []string // see Network
	err         error
}

func newBuilder(c *Config, w Weights) (*builder, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	b := &builder{c: c, arch: c.arch(), w: w, rope: c.Rope.rope()}
	if b.arch == nil {
		return nil, fmt.Errorf("architecture %q is not one grove runs", c.Arch)
	}
	if c.LocalRope != nil {
		b.local = c.LocalRope.rope()
	}
	return b, nil
}

// perLayer builds the table of each token's inputs to the layers.
func (b *builder) perLayer() *nn.PerLayerTable {
	c := b.c
	all := c.size(perLayers, 0)
	t := &nn.PerLayerTable{Project: b.linear("per_layer_model_proj", all, c.Hidden),
		Norm:  b.norm("per_layer_proj_norm", c.PerLayer),
		Scale: float32(1 / math.Sqrt2)}
	t.Project.Scale = float32(1 / math.Sqrt(float64(c.Hidden)))
	t.Table = &scaledTable{b.table("per_layer_token_embd.weight", c.Vocab, all), float32(math.Sqrt(float64(c.PerLayer)))}
	return t
}

func (b *builder) blocks() (blocks []nn.Block) {
	stored := b.c.stored()
	for i := 0; i < stored && b.err == nil; i++ {
		blocks = append(blocks, b.block(i))
	}
	for i := stored; i < b.c.Layers && b.err == nil; i++ {
		blocks = append(blocks, blocks[i-stored])
	}
	for i := stored; i < len(blocks) && !b.c.Unnormed; i += stored {
		norm := b.norm(b.arch.named("output_norm"), b.c.Hidden)
		blocks[i-1].OutNorm = &norm
	}
	return blocks
}

func (b *builder) matrix(name string, out, in int) *gemm.Matrix {
	m, err := b.w.Matrix(name, out, in)
	b.keep(err)
	return m
}

func (b *builder) table(name string, rows, cols int) nn.Table {
	t, err := b.w.Table(name, rows, cols)
	b.keep(err)
	return t
}

func (b *builder) vector(name string, n int) []float32 {
	v, err := b.w.Vector(name, n)
	b.keep(err)
	return v
}

// linear builds the product called name, with its bias if there is one.
func (b *builder) linear(name string, out, in int) nn.Linear {
	return nn.Linear{W: b.matrix(name+".weight", out, in), Bias: b.bias(name, out)}
}

// bias returns the bias of the product called name; nil if there is none.
func (b *builder) bias(name string, out int) []float32 {
	if !b.has(name + ".bias") {
		return nil
	}
	return b.vector(name+".bias", out)
}

// has reports whether an optional tensor exists.
func (b *builder) has(name string) bool {
	if !b.w.Has(name) {
		return false
	}
	b.optional = append(b.optional, name)
	return true
}

// norm builds the normalisation called name: RMSNorm, or LayerNorm.
func (b *builder) norm(name string, n int) nn.Norm { return b.normOf(name, ".weight", n) }

// normOf is norm for weights whose names have this ending.
func (b *builder) normOf(name, ending string, n int) nn.Norm {
	norm := nn.Norm{Weight: b.vector(name+ending, n), Eps: b.c.NormEps, Center: b.arch.layerNorm}
	if norm.Center && !b.arch.biasless {
		norm.Bias = b.vector(name+".bias", n)
	}
	return norm
}

// weightless builds a LayerNorm without weights.
func (b *builder) weightless() nn.Norm {
	return nn.Norm{Weight: slices.Repeat([]float32{1}, b.c.Hidden), Eps: b.c.NormEps, Center: true}
}

func (b *builder) keep(err error) {
	if b.err == nil && err != nil {
		b.err = err
	}
}
