package model

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/grovellm/grove/internal/kernels/gemm"
	"github.com/grovellm/grove/internal/nn"
)

// part is a tensor of an architecture, without .weight or .bias.
type part struct {
	name    string // in GGUF files, in a layer without "blk.N."
	folder  string // in folders
	out, in dim    // rows and columns; a vector has no columns
	heads   bool   // the rows are heads' queries or keys, to be rotated
	fused   bool   // folders have query, key and value of one head after another
	half    int    // 1, 2: folders have it as the first or the second half of a tensor's rows
	as      string // the name of the part that does the same in most architectures, where it is not name
	each    bool   // there is one for each expert. A * in the folder's name is an expert's number
	param   bool   // of no module in folders: see folderparam.go
	conv    bool   // of a convolution: folders have a dimension of 1 between rows and columns
	on      layers // the layers that have it
	bare    bool   // its names are whole: they have no ending .weight
	plain   bool   // of a norm: not less 1 where others are
	decay   bool   // folders have the logarithm of the number negated
}

// layers is some of a model's layers.
type layers uint8

const (
	allLayers layers = iota
	attentionLayers
	recurrentLayers
)

// has reports whether layer i is one of some.
func (c *Config) has(on layers, i int) bool {
	return on == allLayers || c.recurrent(i) == (on == recurrentLayers)
}

// dim is a size that a configuration gives.
type dim uint8

const (
	none dim = iota
	vocab
	hidden
	queries  // of all heads
	keyHeads // keys, or values, of all heads
	qkv
	inner // the width of the MLP
	inner2
	head    // a head's dimensions
	experts // of a layer
	headCount
	convIn // what a short convolution reads
	kernel // the length of a convolution
	queriesGates
	deltaChannels // of gated DeltaNet: queries, keys and values
	deltaValues
	deltaHeads // value heads
	deltaHead  // dimensions of one
)

// size is a dimension in numbers.
func (c *Config) size(d dim) int {
	switch q, kv := c.Heads*c.HeadDim, c.KVHeads*c.HeadDim; d {
	case vocab:
		return c.Vocab
	case hidden:
		return c.Hidden
	case queries:
		return q
	case keyHeads:
		return kv
	case qkv:
		return q + 2*kv
	case inner:
		return c.FFN
	case inner2:
		return 2 * c.FFN
	case head:
		return c.HeadDim
	case experts:
		return c.Experts
	case headCount:
		return c.Heads
	case convIn:
		return 3 * c.Hidden
	case kernel:
		return c.Kernel
	case queriesGates:
		return 2 * q
	case deltaChannels:
		return 2*c.Delta.KeyHeads*c.Delta.KeyDim + c.Delta.ValueHeads*c.Delta.ValueDim
	case deltaValues:
		return c.Delta.ValueHeads * c.Delta.ValueDim
	case deltaHeads:
		return c.Delta.ValueHeads
	case deltaHead:
		return c.Delta.ValueDim
	}
	return 0
}

// The parts that most architectures share, by the names that most folders have for them.
var (
	llamaTop = []part{
		{name: "token_embd", folder: "model.embed_tokens", out: vocab, in: hidden},
		{name: "output_norm", folder: "model.norm", out: hidden},
		{name: "output", folder: "lm_head", out: vocab, in: hidden},
	}
	attnNorm   = part{name: "attn_norm", folder: "input_layernorm", out: hidden}
	ffnNorm    = part{name: "ffn_norm", folder: "post_attention_layernorm", out: hidden}
	queryNorm  = part{name: "attn_q_norm", folder: "self_attn.q_norm", out: head}
	keyNorm    = part{name: "attn_k_norm", folder: "self_attn.k_norm", out: head}
	query      = part{name: "attn_q", folder: "self_attn.q_proj", out: queries, in: hidden, heads: true}
	key        = part{name: "attn_k", folder: "self_attn.k_proj", out: keyHeads, in: hidden, heads: true}
	value      = part{name: "attn_v", folder: "self_attn.v_proj", out: keyHeads, in: hidden}
	attnOutput = part{name: "attn_output", folder: "self_attn.o_proj", out: hidden, in: queries}
	ffnGate    = part{name: "ffn_gate", folder: "mlp.gate_proj", out: inner, in: hidden}
	ffnUp      = part{name: "ffn_up", folder: "mlp.up_proj", out: inner, in: hidden}
	ffnDown    = part{name: "ffn_down", folder: "mlp.down_proj", out: hidden, in: inner}

	attnPost = part{name: "post_attention_norm", folder: "post_attention_layernorm", out: hidden}
	ffnPost  = part{name: "post_ffw_norm", folder: "post_feedforward_layernorm", out: hidden}

	router     = part{name: "ffn_gate_inp", folder: "mlp.gate", out: experts, in: hidden}
	expertGate = part{name: "ffn_gate_exps", folder: "mlp.experts.*.gate_proj", out: inner, in: hidden, each: true}
	expertUp   = part{name: "ffn_up_exps", folder: "mlp.experts.*.up_proj", out: inner, in: hidden, each: true}
	expertDown = part{name: "ffn_down_exps", folder: "mlp.experts.*.down_proj", out: hidden, in: inner, each: true}

	expertParts = []part{router, expertGate, expertUp, expertDown}

	llamaLayer = []part{attnNorm, ffnNorm, query, key, value, attnOutput, ffnGate, ffnUp, ffnDown}
)

const layersPrefix = "model.layers."

// Part is a tensor that every model of a configuration has, by its names without .weight or .bias.
type Part struct {
	Name       string // in GGUF files
	Folder     string // in Hugging Face folders
	Rows, Cols int    // a vector of Rows elements has no columns

	// ToGGUF says which row of a folder's tensor is row i of a GGUF file's, ToFolder the inverse;
	// nil: the same.
	ToGGUF, ToFolder func(i int) int

	Half int // 1, 2: it is the first or the second half of the folder's tensor, or of each expert's

	// Param: transformers has it as a parameter of no module. Its name in folders has no ending
	// (InFolder), experts' matrices are transposed, and rows of the two halves alternate.
	Param bool

	// Experts is how many matrices of Rows × Cols lie one after another in a GGUF file's tensor; 0:
	// one, and it is no expert's. A * in Folder is an expert's number.
	Experts int

	// Shift is what a GGUF file's numbers are more than a folder's.
	Shift float32

	Conv  bool // folders have a dimension of 1 between rows and columns
	Decay bool // folders have the logarithm of the number negated
	Bare  bool // its names are whole: they have no ending .weight
}

// Parts lists the tensors of a model in the order of a GGUF file. An output matrix that is tied is
// left out, and so are biases and tensors of rotation.
func (c *Config) Parts() (list []Part) {
	a := c.layout()
	if a == nil {
		return nil
	}
	for _, p := range a.top {
		if p.name != "output" || !c.Tied {
			list = append(list, c.part(a, p, "", ""))
		}
	}
	for i := range c.Layers {
		for _, p := range a.layer {
			if c.has(p.on, i) {
				list = append(list, c.part(a, p, fmt.Sprintf("blk.%d.", i), fmt.Sprintf("%s%d.", a.prefix, i)))
			}
		}
	}
	return list
}

// layout is the architecture with the names that the configuration's folder has.
func (c *Config) layout() *architecture {
	if a := byModelType(c.Folder); a != nil {
		return a
	}
	return c.arch()
}

func (c *Config) part(a *architecture, p part, prefix, folder string) Part {
	x := Part{Name: prefix + p.name, Folder: folder + p.folder, Rows: c.size(p.out), Cols: c.size(p.in), Half: p.half,
		Param: p.param, Conv: p.conv, Decay: p.decay, Bare: p.bare}
	if p.each {
		x.Experts = c.Experts
	}
	switch {
	case p.heads && a.neighbours:
		x.ToGGUF, x.ToFolder = pairs(c.HeadDim), halves(c.HeadDim)
	case p.fused:
		x.ToGGUF, x.ToFolder = c.unfuse, c.fuse
	case x.Cols == 0 && a.shifted && !p.plain:
		x.Shift = 1
	}
	return x
}

// pairs returns which row of heads in halves is row i of heads in neighbouring pairs; halves is its
// inverse.
func pairs(d int) func(int) int {
	return func(i int) int { return i/d*d + i%d%2*(d/2) + i%d/2 }
}

func halves(d int) func(int) int {
	return func(i int) int { return i/d*d + i%d%(d/2)*2 + i%d/(d/2) }
}

// unfuse returns which row of heads, each with its query, key and value, is row i of all queries,
// all keys, all values.
func (c *Config) unfuse(i int) int {
	d := c.HeadDim
	part, head := i/(c.Heads*d), i/d%c.Heads
	return (3*head+part)*d + i%d
}

// fuse is the inverse.
func (c *Config) fuse(i int) int {
	d := c.HeadDim
	head, part := i/(3*d), i/d%3
	return (part*c.Heads+head)*d + i%d
}

// has reports whether a layer of the architecture has a part.
func (a *architecture) has(name string) bool { return a.find(name) != nil }

// named is the name of the part of no layer that does what one of that name does in most architectures.
func (a *architecture) named(role string) string {
	i := slices.IndexFunc(a.top, func(p part) bool { return cmp.Or(p.as, p.name) == role })
	return a.top[i].name
}

// find returns the part of that name, or nil.
func (a *architecture) find(name string) *part {
	for _, list := range [][]part{a.top, a.layer} {
		for i := range list {
			if list[i].name == name {
				return &list[i]
			}
		}
	}
	return nil
}

// findTensor returns the part of a tensor's name, and the name's ending.
func (a *architecture) findTensor(name string) (p *part, ending string) {
	p = a.find(name)
	if p != nil && p.bare {
		return p, ""
	}
	dot := max(0, strings.LastIndexByte(name, '.'))
	return a.find(name[:dot]), name[dot:]
}

// block builds layer i of an architecture from the parts that it has.
func (b *builder) block(i int) nn.Block {
	c, a := b.c, b.arch
	name := func(part string) string { return fmt.Sprintf("blk.%d.%s", i, part) }
	block := nn.Block{Attn: b.attention(i), Parallel: c.Parallel}
	norm := func(role string) *nn.Norm {
		p := slices.IndexFunc(a.layer, func(p part) bool { return cmp.Or(p.as, p.name) == role && c.has(p.on, i) })
		if p < 0 {
			return nil
		}
		n := b.norm(name(a.layer[p].name), c.size(a.layer[p].out))
		return &n
	}
	for _, n := range []struct {
		norm *nn.Norm
		to   *nn.Norm
	}{{norm("attn_norm"), &block.AttnNorm}, {norm("ffn_norm"), &block.MLPNorm}} {
		if n.norm != nil {
			*n.to = *n.norm
		}
	}
	block.AttnPost, block.MLPPost = norm("post_attention_norm"), norm("post_ffw_norm")
	block.Attn.QNorm, block.Attn.KNorm = norm("attn_q_norm"), norm("attn_k_norm")

	if c.recurrent(i) {
		block.Recurrent, block.Out = a.recurrent(b, name)
	} else if a.gated {
		block.Attn.Gated = true
		block.QKV = []nn.Linear{
			b.linear(name("attn_q"), c.size(queriesGates), c.Hidden),
			b.linear(name("attn_k"), c.size(keyHeads), c.Hidden),
			b.linear(name("attn_v"), c.size(keyHeads), c.Hidden),
		}
	} else if a.has("attn_qkv") || b.w.Has(name("attn_qkv.weight")) {
		block.QKV = []nn.Linear{b.linear(name("attn_qkv"), c.size(qkv), c.Hidden)}
	} else {
		block.QKV = []nn.Linear{
			b.linear(name("attn_q"), c.size(queries), c.Hidden),
			b.linear(name("attn_k"), c.size(keyHeads), c.Hidden),
			b.linear(name("attn_v"), c.size(keyHeads), c.Hidden),
		}
	}
	if !c.recurrent(i) {
		block.Out = b.linear(name("attn_output"), c.Hidden, c.size(queries))
	}

	if strings.HasPrefix(a.defaults.HiddenAct, "gelu") {
		block.MLP.Act = nn.GELUMul
	}
	block.Out.Scale = unless1(c.ResidualScale)
	switch {
	case a.experts != "":
		block.Experts = b.experts(name)
		return block
	case a.has("ffn_gate"):
		gate := b.linear(name("ffn_gate"), c.FFN, c.Hidden)
		block.MLP.Gate, block.MLP.Up = &gate, b.linear(name("ffn_up"), c.FFN, c.Hidden)
	case a.find("ffn_up").out == inner2: // gate and up in one
		both := []int{2 * c.FFN, c.Hidden}
		gate := b.rows(name("ffn_up.weight"), both, 0, c.FFN)
		block.MLP.Gate, block.MLP.Up = &gate, b.rows(name("ffn_up.weight"), both, c.FFN, 2*c.FFN)
	default:
		block.MLP.Up = b.linear(name("ffn_up"), c.FFN, c.Hidden)
	}
	block.MLP.Down = b.linear(name("ffn_down"), c.Hidden, c.FFN)
	block.MLP.Down.Scale = unless1(c.ResidualScale)
	return block
}

// experts builds the experts of a layer, whose tensors name names.
func (b *builder) experts(name func(part string) string) *nn.Experts {
	c := b.c
	x := &nn.Experts{Router: b.linear(name("ffn_gate_inp"), c.Experts, c.Hidden), MLPs: make([]nn.MLP, c.Experts),
		Used: c.Used, All: b.arch.softmaxAll, Scale: unless1(c.ResidualScale)}
	each := func(part string, out, in int) []nn.Linear {
		list, shape := make([]nn.Linear, c.Experts), []int{c.Experts, out, in}
		for i := range list {
			list[i] = b.rows(name(part)+".weight", shape, i*out, (i+1)*out)
		}
		if bias := name(part) + ".bias"; b.w.Has(bias) {
			for i, v := range b.vectors(bias, c.Experts, out) {
				list[i].Bias = v
			}
		}
		return list
	}
	gate := each("ffn_gate_exps", c.FFN, c.Hidden)
	up := each("ffn_up_exps", c.FFN, c.Hidden)
	down := each("ffn_down_exps", c.Hidden, c.FFN)
	for i := range x.MLPs {
		x.MLPs[i] = nn.MLP{Gate: &gate[i], Up: up[i], Down: down[i], Act: b.arch.act}
	}
	return x
}

// attention is the attention of layer i but its norms.
func (b *builder) attention(i int) nn.Attention {
	c := b.c
	if c.recurrent(i) {
		return nn.Attention{}
	}
	a := nn.Attention{Heads: c.Heads, KVHeads: c.KVHeads, Dim: c.HeadDim, Rope: b.rope,
		Scale: float32(c.AttnScale), Cap: float32(c.AttnCap), Temper: c.Temper}
	if b.arch.has("attn_sinks") {
		a.Sinks = b.vector(fmt.Sprintf("blk.%d.attn_sinks.weight", i), c.Heads)
	}
	if c.windowed(i) {
		a.Window = c.Window
		if b.local != nil {
			a.Rope = b.local
		}
	}
	if i < len(c.NoRope) && c.NoRope[i] {
		a.Rope = nil
	}
	return a
}

// unless1 is a factor, and 0 where it changes nothing.
func unless1(x float64) float32 {
	if x == 1 {
		return 0
	}
	return float32(x)
}

// Slicer is Weights that give some rows of a tensor as a matrix.
type Slicer interface {
	// Rows is the matrix of rows [from, to) of a tensor of the shape given.
	Rows(name string, shape []int, from, to int) (*gemm.Matrix, error)

	// Vectors are those of a tensor of count vectors of n elements.
	Vectors(name string, count, n int) ([][]float32, error)
}

// vectors are those of a tensor.
func (b *builder) vectors(name string, count, n int) (list [][]float32) {
	s, ok := b.w.(Slicer)
	if !ok {
		b.keep(fmt.Errorf("tensor %s is several vectors in one: not supported here", name))
		return nil
	}
	list, err := s.Vectors(name, count, n)
	b.keep(err)
	return list
}

// rows is a product by some rows of a tensor.
func (b *builder) rows(name string, shape []int, from, to int) nn.Linear {
	s, ok := b.w.(Slicer)
	if !ok {
		b.keep(fmt.Errorf("tensor %s is several matrices in one: not supported here", name))
		return nn.Linear{}
	}
	m, err := s.Rows(name, shape, from, to)
	b.keep(err)
	return nn.Linear{W: m}
}
