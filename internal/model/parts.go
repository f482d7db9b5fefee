package model

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/grovellm/grove/internal/kernels/gemm"
	"github.com/grovellm/grove/internal/nn"
)

// part is a tensor of an architecture, without .weight or .bias.
type part struct {
	name    string // in GGUF files; in a layer, without "blk.N."
	folder  string // in folders
	out, in dim    // rows and columns; a vector has no columns
	heads   bool   // the rows are heads of queries or keys, to be rotated
	fused   bool   // folders have query, key and value head by head
	half    int    // 1, 2: in folders it is the first or second half of a tensor's rows
	as      string // the part that does the same in most architectures, if its name differs
	split   bool   // of latent attention: one matrix per head; in folders, both halves share one tensor
	each    bool   // one for each expert. A * in the folder's name is an expert's number
	streams bool   // one for each residual stream but the first, in the way of each
	short   bool   // folders may lack the last rows, which are 0 then
	sides   bool   // with param: the halves lie side by side instead of taking turns
	param   bool   // belongs to no module in folders: see folderparam.go
	bare    bool   // the folder's name has no ending
	ending  string // of GGUF's name, if it is not .weight
	whole   bool   // GGUF's name has no ending
	conv    bool   // of a convolution: folders have a dimension of 1 between rows and columns
	row     bool   // folders have the vector as a matrix of one row
	flat    bool   // folders have its numbers as a vector
	plain   bool   // of a norm: not stored less 1, as others are
	decay   bool   // folders have the logarithm of the negated number
	apart   string // the folder's name of each expert's tensor, where experts are separate
	tiled   bool   // folders order the rows, or columns, of value heads differently: see Grouped
	mixed   int    // 1, 2, 3: the place among parts that folders have in one tensor, grouped by key head

	dims func(rows, cols int) []int      // the shape that the tensor has in both formats; nil: the usual one
	when func(c *Config, layer int) bool // the layers that have it; nil: all
}

// The parts that most architectures share, with the names that most folders use.
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

// Part is a tensor that every model of a configuration has, with its names without .weight or .bias.
type Part struct {
	Name       string // in GGUF files
	Folder     string // in Hugging Face folders
	Rows, Cols int    // a vector of Rows elements has no columns

	// ToGGUF returns the row of a folder's tensor that is row i in a GGUF file, ToFolder the
	// inverse; nil: the same row.
	ToGGUF, ToFolder func(i int) int

	// ColsToGGUF and ColsToFolder do the same for columns.
	ColsToGGUF, ColsToFolder func(i int) int

	Half int // 1, 2: it is the first or second half of the folder's tensor, or of each expert's; of Mixed: its place

	// Mixed describes how parts share the rows of a folder's tensor, where they are not halves;
	// nil: they do not.
	Mixed *Mixed

	// Param: in transformers it is a parameter of no module. Its name in folders has no ending
	// (InFolder), experts' matrices are transposed, and rows of the two halves alternate.
	Param bool
	Sides bool // except that the halves lie side by side

	// Experts is how many matrices of Rows × Cols follow one another in a GGUF file's tensor; 0:
	// one, which belongs to no expert. A * in Folder is an expert's number.
	Experts int

	// Split is, for matrices of latent attention, how many rows the folder's tensor has for each
	// head. Experts is the number of heads.
	Split int

	// Shift is the difference of a GGUF file's numbers from a folder's.
	Shift float32

	// Factors says what row i of a folder's tensor is multiplied by, one after the other; nil: nothing.
	Factors func(i int) [2]float32

	Optional bool // a model may lack it

	Ending string // of its name in GGUF files: .weight, with a few exceptions
	Bare   bool   // its name in folders has no ending
	Conv   bool   // folders have a dimension of 1 between rows and columns
	Row    bool   // folders have the vector as a matrix of one row
	Short  bool   // folders may lack the last rows, which are 0 then
	Flat   bool   // folders have its numbers as a vector
	Decay  bool   // folders have the logarithm of the negated number
	Dims   []int  // the shape that the tensor has in both formats; nil: the usual one

	Apart string // the folder's name of each expert's tensor, if there is no tensor called Folder
}

// Weight returns its name in GGUF files, including the ending.
func (p *Part) Weight() string { return p.Name + p.Ending }

// Parts lists the tensors of a model in the order of a GGUF file, including those of later layers
// that are of its kind. It leaves out a tied output matrix, biases and tensors of the rotation.
func (c *Config) Parts() (list []Part) {
	a := c.layout()
	if a == nil {
		return nil
	}
	for _, p := range a.top {
		if c.hasPart(p, 0) && (p.name != "output" || !c.Tied) {
			list = append(list, c.part(a, p, 0, "", ""))
		}
	}
	for i := range c.stored() {
		list = append(list, c.layerParts(a, i, fmt.Sprintf("blk.%d.", i), fmt.Sprintf("%s%d.", a.prefix, i))...)
	}
	for i := range c.Ahead {
		if KeepsAhead(c.Arch) {
			list = append(list, c.AheadParts(i, c.AheadNames(i))...)
		}
	}
	return list
}

// layerParts lists the tensors of a layer, with the given prefixes of names in GGUF files and in folders.
func (c *Config) layerParts(a *architecture, layer int, prefix, folder string) (list []Part) {
	for _, p := range a.layer {
		if c.hasPart(p, layer) {
			list = append(list, c.part(a, p, layer, prefix, folder))
		}
	}
	return list
}

// layout returns the architecture with the names that the configuration's folder uses.
func (c *Config) layout() *architecture {
	if a := byModelType(c.Folder); a != nil {
		return a
	}
	return c.arch()
}

// hasPart reports whether a layer has a part of the architecture.
func (c *Config) hasPart(p part, layer int) bool { return p.when == nil || p.when(c, layer) }

func (c *Config) part(a *architecture, p part, layer int, prefix, folder string) Part {
	x := Part{Name: prefix + p.name, Folder: folder + p.folder, Rows: c.size(p.out, layer), Cols: c.size(p.in, layer),
		Half: p.half, Param: p.param, Ending: p.weightEnding(), Bare: p.bare, Conv: p.conv, Row: p.row, Flat: p.flat,
		Decay: p.decay, Short: p.short, Sides: p.sides, Optional: c.Spare(prefix + p.name + ".")}
	if p.apart != "" {
		x.Apart = folder + p.apart
	}
	if p.dims != nil {
		x.Dims = p.dims(x.Rows, x.Cols)
	}
	if p.mixed != 0 {
		x.Half = p.mixed
		x.Mixed = c.mixed()
	}
	if p.each {
		x.Experts = c.Experts
	}
	if p.streams {
		x.Experts = c.Streams - 1
	}
	if p.split {
		x.Experts, x.Split = c.Heads, c.Latent.PlainDim+c.Latent.ValueDim
	}
	if c.Scales != nil {
		x.Factors = c.factors(p.name)
		if p.name == "output" && c.Scales.tied {
			x.Folder = a.find("token_embd").folder
		}
	}
	switch {
	case p.heads && a.neighbours && !a.interleaved:
		x.ToGGUF, x.ToFolder = Pairs(c.HeadDim), Halves(c.HeadDim)
	case p.fused:
		x.ToGGUF, x.ToFolder = c.unfuse, c.fuse
	case p.tiled && p.in == deltaValues:
		x.ColsToGGUF, x.ColsToFolder = c.Delta.tiles(p.in)
	case p.tiled:
		x.ToGGUF, x.ToFolder = c.Delta.tiles(p.out)
	case x.Cols == 0 && a.shifted && !p.plain:
		x.Shift = 1
	}
	return x
}

// Pairs returns a function from row i of heads in neighbouring pairs, (2i, 2i+1), as in GGUF files of the llama
// family, to the row of heads in halves, whose rotated pairs are (i, i+d/2); Halves returns its inverse.
func Pairs(d int) func(int) int {
	return func(i int) int { return i/d*d + i%d%2*(d/2) + i%d/2 }
}

func Halves(d int) func(int) int {
	return func(i int) int { return i/d*d + i%d%(d/2)*2 + i%d/(d/2) }
}

// unfuse returns the row of heads, each with its query, key and value, that is row i of all
// queries, all keys, all values.
func (c *Config) unfuse(i int) int {
	d := c.HeadDim
	part, head := i/(c.Heads*d), i/d%c.Heads
	return (3*head+part)*d + i%d
}

// fuse is the inverse of unfuse.
func (c *Config) fuse(i int) int {
	d := c.HeadDim
	head, part := i/(3*d), i/d%3
	return (part*c.Heads+head)*d + i%d
}

// has reports whether a layer of the architecture has a part.
func (a *architecture) has(name string) bool { return a.find(name) != nil }

// weightEnding is the ending of the part's tensor of weights in GGUF files.
func (p *part) weightEnding() string {
	if p.whole {
		return ""
	}
	return cmp.Or(p.ending, ".weight")
}

// is reports whether GGUF files call the part name, given the ending.
func (p *part) is(name, ending string) bool {
	return p.name == name && (ending == p.weightEnding() || p.ending == "" && !p.bare && ending == ".bias")
}

// splitName splits a tensor's name in a GGUF file into the name of its part and the ending.
func splitName(name string) (stem, ending string) {
	dot := strings.LastIndexByte(name, '.')
	if dot < 0 {
		return name, ""
	}
	return name[:dot], name[dot:]
}

// findTensor returns the part to which a tensor belongs, or nil.
func (a *architecture) findTensor(name, ending string) *part {
	for _, list := range [][]part{a.top, a.layer} {
		for i := range list {
			if list[i].is(name, ending) {
				return &list[i]
			}
		}
	}
	return nil
}

// named returns the name of the part outside layers that has the given role in most architectures.
func (a *architecture) named(role string) string {
	i := slices.IndexFunc(a.top, func(p part) bool { return cmp.Or(p.as, p.name) == role })
	return a.top[i].name
}

// find returns the part called name, or nil.
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

// part returns the part called name in layer i, or nil.
func (b *builder) part(i int, name string) *part {
	for k := range b.arch.layer {
		if p := &b.arch.layer[k]; p.name == name && b.c.hasPart(*p, i) {
			return p
		}
	}
	return nil
}

// block builds layer i of an architecture from its parts.
func (b *builder) block(i int) nn.Block {
	c, a := b.c, b.arch
	name := func(part string) string { return fmt.Sprintf("blk.%d.%s", i, part) }
	has := func(part string) bool { return b.part(i, part) != nil }
	size := func(d dim) int { return c.size(d, i) }
	block := nn.Block{Attn: b.attention(i), Parallel: c.Parallel, Rounded: a.rounded}
	norm := func(role string) *nn.Norm {
		at := slices.IndexFunc(a.layer, func(p part) bool { return cmp.Or(p.as, p.name) == role && c.hasPart(p, i) })
		if at < 0 {
			return nil
		}
		p := a.layer[at]
		if p.in != none {
			weights := slices.Concat(b.vectors(name(p.name)+p.weightEnding(), size(p.out), size(p.in))...)
			return &nn.Norm{Weight: weights, Eps: c.NormEps, Center: a.layerNorm}
		}
		return new(b.normOf(name(p.name), p.weightEnding(), size(p.out)))
	}
	for _, n := range []struct {
		norm *nn.Norm
		to   *nn.Norm
	}{{norm("attn_norm"), &block.AttnNorm}, {norm("ffn_norm"), &block.MLPNorm}} {
		if n.norm != nil {
			*n.to = *n.norm
		}
	}
	if a.weightless {
		block.AttnNorm, block.MLPNorm = b.weightless(), b.weightless()
	}
	if (c.Parallel || c.bare(i)) && block.MLPNorm.Weight == nil {
		block.MLPNorm = block.AttnNorm
	}
	block.AttnPost, block.MLPPost = norm("post_attention_norm"), norm("post_ffw_norm")
	block.Attn.QNorm = norm("attn_q_norm")
	if !c.reads(i) {
		block.Attn.KNorm = norm("attn_k_norm")
	}
	block.AttnInner = norm("attn_sub_norm")
	if a.chunks && c.HeadNorms && block.Attn.Rope != nil {
		unit := &nn.Norm{Weight: slices.Repeat([]float32{1}, c.HeadDim), Eps: c.NormEps}
		block.Attn.QNorm, block.Attn.KNorm = unit, unit
	}

	switch {
	case c.bare(i):
	case c.recurrent(i):
		block.Recurrent, block.Out = a.recurrent(b, name)
	case a.latent:
		block.Latent = b.latent(i, name)
	case has("attn_qkv") || b.has(name("attn_qkv.weight")):
		block.QKV = []nn.Linear{b.linear(name("attn_qkv"), size(qkv), c.Hidden)}
	default:
		block.QKV = b.projections(i, name)
	}
	if c.attends(i) {
		block.Out = b.linear(name("attn_output"), c.Hidden, size(b.part(i, "attn_output").in))
	}
	block.Out.Scale = unless1(c.ResidualScale)
	if a.parallelRecurrent {
		r, out := a.recurrent(b, name)
		block.ParallelRecurrent = &nn.ParallelRecurrent{Recurrent: r, Out: out, Layer: c.Layers + i}
	}
	if has("ffn_gate_inp") {
		block.Experts = b.experts(i, name)
	}
	if has("ffn_up") || has("ffn_up_shexp") {
		block.MLP = b.mlp(i, name)
		block.MLP.Inner = norm("ffn_sub_norm")
	}
	if has("ffn_gate_inp_shexp") {
		block.Experts.MLPGate = new(b.linear(name("ffn_gate_inp_shexp"), 1, c.Hidden))
	}
	if x := block.Experts; x != nil && has("post_ffw_norm_1") { // Gemma 4's
		x.Norm = norm("pre_ffw_norm_2")
		x.Post = norm("post_ffw_norm_2")
		x.MLPPost = norm("post_ffw_norm_1")
	}
	if has("inp_gate") {
		block.PerLayer = &nn.PerLayer{Gate: b.linear(name("inp_gate"), c.PerLayer, c.Hidden),
			Proj: b.linear(name("proj"), c.Hidden, c.PerLayer),
			Norm: b.norm(name("post_norm"), c.Hidden)}
	}
	if has("altup_router") {
		block.AltUp, block.Laurel = b.altUp(name)
	}
	if has("layer_output_scale") {
		if v := b.vector(name("layer_output_scale.weight"), 1); b.err == nil {
			block.OutScale = v[0]
		}
	}
	return block
}

// projections returns the products that make queries, keys and values of layer i.
func (b *builder) projections(i int, name func(part string) string) []nn.Linear {
	c := b.c
	keys := c.size(keyHeads, i)
	list := []nn.Linear{b.linear(name("attn_q"), c.size(b.part(i, "attn_q").out, i), c.Hidden)}
	switch {
	case c.reads(i):
	case b.part(i, "attn_v") == nil: // values are the keys before norm and rotation
		key := b.linear(name("attn_k"), keys, c.Hidden)
		list = append(list, key, key)
	default:
		list = append(list, b.linear(name("attn_k"), keys, c.Hidden),
			b.linear(name("attn_v"), c.size(b.part(i, "attn_v").out, i), c.Hidden))
		list[2].Scale = unless1(c.ValueScale)
	}
	if p := b.part(i, "attn_gate"); p != nil {
		list = append(list, b.linear(name("attn_gate"), c.size(p.out, i), c.Hidden))
	}
	return list
}

// mlp builds the MLP of layer i, or that of the experts that all rows use.
func (b *builder) mlp(i int, name func(part string) string) (m nn.MLP) {
	c, a := b.c, b.arch
	switch {
	case a.defaults.HiddenAct == "relu2" && b.part(i, "ffn_gate") != nil:
		m.Act = nn.SquaredReLUMul
	case a.defaults.HiddenAct == "relu2":
		m.Act = nn.SquaredReLU
	case c.XIELU != nil:
		m.Act, m.XIELU = nn.XIELUOf, c.xielu(i)
	case c.Cuts != nil && !math.IsInf(float64(c.Cuts[i]), -1):
		m.Act, m.Cut = nn.SparseGELUMul, c.Cuts[i]
	case a.defaults.HiddenAct == "gelu_pytorch_tanh" && a.has("ffn_gate"):
		m.Act = nn.GELUMul
	case a.defaults.HiddenAct == "gelu_pytorch_tanh" || a.defaults.HiddenAct == "gelu_new":
		m.Act = nn.GELUTanh
	}
	if x := limit(c.SharedLimits, i); x != 0 {
		m.Act, m.Cut = nn.CappedSiLUMul, x
	}
	ending, width := "", c.ffn(i)
	if b.part(i, "ffn_up") == nil {
		ending, width = "_shexp", c.SharedFFN
	}
	up := b.part(i, "ffn_up"+ending)
	switch {
	case b.part(i, "ffn_gate"+ending) != nil:
		gate := b.linear(name("ffn_gate"+ending), width, c.Hidden)
		m.Gate, m.Up = &gate, b.linear(name("ffn_up"+ending), width, c.Hidden)
	case up.out == inner2: // gate and up in one
		both := []int{2 * width, c.Hidden}
		gate := b.rows(name("ffn_up.weight"), both, 0, width)
		m.Gate, m.Up = &gate, b.rows(name("ffn_up.weight"), both, width, 2*width)
	default:
		m.Up = b.linear(name("ffn_up"+ending), width, c.Hidden)
	}
	m.Down = b.linear(name("ffn_down"+ending), c.Hidden, width)
	m.Down.Scale = unless1(c.ResidualScale)
	return m
}

// experts builds the experts of a layer, whose tensors are named by name.
func (b *builder) experts(i int, name func(part string) string) *nn.Experts {
	c := b.c
	x := &nn.Experts{Router: b.linear(name("ffn_gate_inp"), c.Experts, c.Hidden), MLPs: make([]nn.MLP, c.Experts),
		Used: c.Used, Rule: c.Rule, Scale: unless1(c.ResidualScale), Early: b.arch.early}
	x.Rule.All = x.Rule.All || b.arch.softmaxAll
	if p := b.part(i, "exp_probs_b"); p != nil && b.w.Has(name("exp_probs_b"+p.weightEnding())) {
		x.Rule.Bias = b.vector(name("exp_probs_b"+p.weightEnding()), c.Experts)
	}
	if b.arch.act == nn.GELUMul { // Gemma 4's
		x.RouterNorm = &nn.Norm{Weight: b.vector(name("ffn_gate_inp.scale"), c.Hidden), Eps: c.NormEps}
		x.Router.Scale = float32(1 / math.Sqrt(float64(c.Hidden)))
		x.Rule.Each = b.vector(name("ffn_down_exps.scale"), c.Experts)
	}
	// each returns the matrices of a tensor, or rows [from, to) of each.
	each := func(part string, rows, from, to, in int) []nn.Linear {
		list, shape := make([]nn.Linear, c.Experts), []int{c.Experts, rows, in}
		out := to - from
		for i := range list {
			list[i] = b.rows(name(part)+".weight", shape, i*rows+from, i*rows+to)
		}
		if bias := name(part) + ".bias"; b.w.Has(bias) {
			for i, v := range b.vectors(bias, c.Experts, out) {
				list[i].Bias = v
			}
		}
		return list
	}
	var gate, up []nn.Linear
	n, width := c.expertFFN(), c.size(latent, i)
	if b.part(i, "ffn_gate_up_exps") != nil || b.w.Has(name("ffn_gate_up_exps.weight")) {
		gate, up = each("ffn_gate_up_exps", 2*n, 0, n, c.Hidden), each("ffn_gate_up_exps", 2*n, n, 2*n, c.Hidden)
	} else {
		up = each("ffn_up_exps", n, 0, n, width)
	}
	if b.part(i, "ffn_gate_exps") != nil && gate == nil {
		gate = each("ffn_gate_exps", n, 0, n, width)
	}
	down := each("ffn_down_exps", width, 0, width, n)
	for e := range x.MLPs {
		x.MLPs[e] = nn.MLP{Up: up[e], Down: down[e], Act: b.arch.act}
		if gate != nil {
			x.MLPs[e].Gate = &gate[e]
		}
		if cut := limit(c.Limits, i); cut != 0 {
			x.MLPs[e].Act, x.MLPs[e].Cut = nn.CappedSiLUMul, cut
		}
	}
	if c.Narrow > 0 {
		narrow, widen := b.linear(name("ffn_latent_down"), width, c.Hidden), b.linear(name("ffn_latent_up"), c.Hidden, width)
		x.Narrow, x.Widen = &narrow, &widen
	}
	return x
}

// attention builds the attention of layer i without its norms.
func (b *builder) attention(i int) nn.Attention {
	c := b.c
	if !c.attends(i) {
		return nn.Attention{}
	}
	a := nn.Attention{Heads: c.heads(i), KVHeads: c.kvHeads(i), Dim: c.headDim(i), Rope: b.rope,
		Reads: c.reads(i), Gated: b.arch.gated || b.part(i, "attn_gate") != nil,
		SoftplusGates: b.arch.softplus,
		OwnNorms:      b.part(i, "attn_q_norm") != nil && b.part(i, "attn_q_norm").in != none,
		Scale:         float32(c.AttnScale), Cap: float32(c.AttnCap), Clip: float32(c.Clip),
		Temper: c.Temper, NormLast: b.arch.normLast}
	if b.arch.latent {
		a.Latent, a.Scale = c.Latent.Rank, c.latentScale()
	}
	if b.arch.normedValues {
		a.VNorm = &nn.Norm{Weight: slices.Repeat([]float32{1}, a.Dim), Eps: c.NormEps}
	}
	if b.part(i, "attn_sinks") != nil {
		a.Sinks = b.vector(fmt.Sprintf("blk.%d.attn_sinks.weight", i), a.Heads)
	}
	if c.ValueDim != a.Dim {
		a.ValueDim = c.ValueDim
	}
	if c.windowed(i) {
		a.Window = c.Window
		if b.local != nil {
			a.Rope = b.local
		}
	}
	if i < len(c.NoRope) && c.NoRope[i] {
		a.Rope = nil
	} else if b.arch.chunks {
		a.Chunks, a.Temper = a.Window > 0, nn.Temper{}
	}
	return a
}

// unless1 returns a factor, or 0 if it is 1 and changes nothing.
func unless1(x float64) float32 {
	if x == 1 {
		return 0
	}
	return float32(x)
}

// Slicer is Weights that can provide some rows of a tensor as a matrix.
type Slicer interface {
	// Rows returns the matrix of rows [from, to) of a tensor with the given shape.
	Rows(name string, shape []int, from, to int) (*gemm.Matrix, error)

	// Columns returns such a matrix with the rows as columns.
	Columns(name string, shape []int, from, to int) (*gemm.Matrix, error)

	// Vectors returns the vectors of a tensor that has count vectors of n elements.
	Vectors(name string, count, n int) ([][]float32, error)
}

// vectors returns the vectors of a tensor.
func (b *builder) vectors(name string, count, n int) (list [][]float32) {
	s, ok := b.w.(Slicer)
	if !ok {
		b.keep(fmt.Errorf("tensor %s combines several vectors: not supported here", name))
		return nil
	}
	list, err := s.Vectors(name, count, n)
	b.keep(err)
	return list
}

// rows builds a product with some rows of a tensor.
func (b *builder) rows(name string, shape []int, from, to int) nn.Linear {
	return b.slice(Slicer.Rows, name, shape, from, to)
}

// slice builds a product with some rows of a tensor, as rows or as columns.
func (b *builder) slice(as func(s Slicer, name string, shape []int, from, to int) (*gemm.Matrix, error), name string,
	shape []int, from, to int) nn.Linear {
	s, ok := b.w.(Slicer)
	if !ok {
		b.keep(fmt.Errorf("tensor %s combines several matrices: not supported here", name))
		return nn.Linear{}
	}
	m, err := as(s, name, shape, from, to)
	b.keep(err)
	return nn.Linear{W: m}
}
