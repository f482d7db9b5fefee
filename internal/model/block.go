package model

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/grovellm/grove/internal/kernels/gemm"
	"github.com/grovellm/grove/internal/nn"
)

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
	if p := b.part(i, "attn_output"); p != nil && !c.recurrent(i) {
		block.Out = b.linear(name("attn_output"), c.Hidden, size(p.in))
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
	if a.averaged && block.Experts != nil && has("ffn_up_shexp") {
		block.Experts.Scale, block.MLP.Down.Scale = 0.5, 0.5
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
