package nn

import "github.com/grovellm/grove/internal/kernels/gemm"

// MLP is the feed-forward half of a block: Down·(act(Gate·x) · Up·x) when Gate is set,
// else Down·gelu(Up·x).
type MLP struct {
	Gate     *Linear
	Up, Down Linear
	Act      Activation // of an MLP with a gate; None: SiLUMul
}

// gated is the activation of an MLP with a gate.
func (m *MLP) gated() Activation {
	if m.Act == None {
		return SiLUMul
	}
	return m.Act
}

// Bytes is the size of the packed weights.
func (m *MLP) Bytes() int {
	size := m.Up.W.Bytes() + m.Down.W.Bytes()
	if m.Gate != nil {
		size += m.Gate.W.Bytes()
	}
	return size
}

// Block is one transformer layer.
type Block struct {
	AttnNorm, MLPNorm Norm  // of what each half reads; without weights there is none (OLMo 2)
	AttnPost, MLPPost *Norm // of what each half adds; nil: none
	Attn              Attention
	QKV               []Linear  // one fused product, or queries, keys, values
	Recurrent         Recurrent // in place of Attn and QKV; nil: none
	Out               Linear
	MLP               MLP
	Experts           *Experts // in place of MLP; nil: none
	Parallel          bool     // attention and MLP both read the block's input (GPT-NeoX), instead of one after the other
}

// BlockBuffers is the activation memory of a block, shared by the blocks of a pass.
type BlockBuffers struct {
	qkv, attn, out, gate, up, down Buffer

	in, mixed Buffer // of short convolutions: a strip may be ahead of another that reads attention's
	delta     deltaBuffers
	gated     Buffer // queries and gates

	scores, results Buffer // of experts
	routing         routing
}

// Block runs a layer over the forest: x (n × hidden) becomes x + attention + MLP.
func (e *Exec) Block(b *Block, layer int, f *Forest, x Mat, m *BlockBuffers) {
	e.Hold()
	src := Source{X: x, Norm: b.AttnNorm.orNil()}
	if b.Parallel { // the MLP reads x as it was: nothing is added before
		out, down := e.Mat(&m.out, x.Rows, x.Cols), e.Mat(&m.down, x.Rows, x.Cols)
		e.attention(b, layer, f, src, Proj{Linear: &b.Out, Dst: out}, m)
		e.feedForward(b, x, Proj{Linear: &b.MLP.Down, Dst: down}, m)
		e.Add(x, out)
		e.Add(x, down)
		e.Release()
		return
	}
	e.Attention(b, layer, f, src, x, m)
	e.MLP(b, x, m)
	e.Release()
}

// Attention is the first half of a layer, for rows that come from src: x += attention(src).
func (e *Exec) Attention(b *Block, layer int, f *Forest, src Source, x Mat, m *BlockBuffers) {
	e.Hold()
	out := proj(&b.Out, e.Mat(&m.out, x.Rows, x.Cols), x, b.AttnPost)
	e.attention(b, layer, f, src, out, m)
	e.addPost(x, out.Dst, b.AttnPost)
	e.Release()
}

// proj is the last product of a half, whose results are added to x at once, or after a norm of
// their own.
func proj(l *Linear, dst, x Mat, post *Norm) Proj {
	if post != nil {
		return Proj{Linear: l, Dst: dst}
	}
	return Proj{Linear: l, Dst: dst, To: x}
}

// addPost computes x += post(y), unless there is no such norm. y is overwritten.
func (e *Exec) addPost(x, y Mat, post *Norm) {
	if post == nil {
		return
	}
	to := y
	if e.records != nil {
		to = e.records.Mat(y.Rows, y.Cols)
	}
	e.Normalise(post, y, to)
	e.Add(x, to)
}

// MLP is the second half: x += MLP(norm(x)).
func (e *Exec) MLP(b *Block, x Mat, m *BlockBuffers) {
	e.Hold()
	down := proj(&b.MLP.Down, e.Mat(&m.out, x.Rows, x.Cols), x, b.MLPPost)
	e.feedForward(b, x, down, m)
	e.addPost(x, down.Dst, b.MLPPost)
	e.Release()
}

// attention ends in the product out of attend(QKV·src), or of what a recurrent layer makes of src.
func (e *Exec) attention(b *Block, layer int, f *Forest, src Source, out Proj, m *BlockBuffers) {
	if b.Recurrent != nil {
		if e.records != nil {
			panic("nn: recurrent layers have no gradient: they can be a target's, not a head's or a trained model's")
		}
		b.Recurrent.mix(e, layer, f, src, out, m)
		return
	}
	if b.Attn.Gated {
		e.gatedAttention(b, layer, f, src, out, m)
		return
	}
	qkv := e.Mat(&m.qkv, src.X.Rows, b.Attn.QKVCols())
	var projs [3]Proj
	at := 0
	for i := range b.QKV {
		w := b.QKV[i].W.Out()
		projs[i] = Proj{Linear: &b.QKV[i], Dst: qkv.Columns(at, at+w)}
		at += w
	}
	width := b.Attn.Heads * b.Attn.Dim
	if n := src.X.Rows; e.strips(n, b.Bytes()) {
		s := e.strip(n)
		e.product(s, src, projs[:len(b.QKV)]...)
		e.normaliseAll(&b.Attn, qkv)
		s.ops = append(s.ops, e.storing(&b.Attn, layer, f, qkv, b.Attn.Heads))
		e.plan.open = nil // all keys and values are there before any row attends
		attn := e.Mat(&m.attn, n, width)
		s = e.strip(n)
		s.ops = append(s.ops, e.attending(&b.Attn, layer, f, qkv, attn))
		e.product(s, Source{X: attn}, out)
		return
	}
	if e.records == nil && b.wholePanels() && !b.Attn.normsAll() {
		e.projectHeads(src, projs[:len(b.QKV)], e.storing(&b.Attn, layer, f, qkv, b.Attn.Heads))
		if width/b.Attn.KVHeads%gemm.Group == 0 {
			o := e.plan.linears.next()
			o.intake.await(e, Source{X: Mat{Rows: src.X.Rows, Cols: width}}, o.ready(e, out))
			e.attend(&b.Attn, layer, f, qkv, Mat{}, &o.intake)
			e.plan.product(o)
			return
		}
		attn := e.Mat(&m.attn, src.X.Rows, width)
		e.attend(&b.Attn, layer, f, qkv, attn, nil)
		e.Linear(Source{X: attn}, out)
		return
	}
	e.Linear(src, projs[:len(b.QKV)]...)
	e.normaliseAll(&b.Attn, qkv)
	attn := e.Mat(&m.attn, src.X.Rows, width)
	e.Attend(&b.Attn, layer, f, qkv, attn)
	e.Linear(Source{X: attn}, out)
}

// Bytes is the size of the layer's packed weights.
func (b *Block) Bytes() int {
	size := b.Out.W.Bytes()
	if b.Recurrent != nil {
		size += b.Recurrent.Bytes()
	}
	for i := range b.QKV {
		size += b.QKV[i].W.Bytes()
	}
	if b.Experts != nil {
		return size + b.Experts.Bytes()
	}
	return size + b.MLP.Bytes()
}

// wholePanels says that each head of queries, keys and values is whole panels of its product.
func (b *Block) wholePanels() bool {
	for i := range b.QKV {
		if b.QKV[i].W.Out()%gemm.Panel != 0 {
			return false
		}
	}
	return b.Attn.Dim%gemm.Panel == 0
}

// feedForward is the second half's MLP, or its experts.
func (e *Exec) feedForward(b *Block, x Mat, out Proj, m *BlockBuffers) {
	if b.Experts != nil {
		e.experts(b, x, out, m)
		return
	}
	e.mlp(b, x, out, m)
}

// mlp ends in the product down of the MLP's inner rows.
func (e *Exec) mlp(b *Block, x Mat, down Proj, m *BlockBuffers) {
	mlp, src := &b.MLP, Source{X: x, Norm: b.MLPNorm.orNil()}
	if e.strips(x.Rows, b.Bytes()) {
		s, up := e.strip(x.Rows), e.Mat(&m.up, x.Rows, mlp.Up.W.Out())
		inner := Source{X: up, Act: GELU}
		if mlp.Gate == nil {
			e.product(s, src, Proj{Linear: &mlp.Up, Dst: up})
		} else {
			gate := e.Mat(&m.gate, x.Rows, mlp.Gate.W.Out())
			e.product(s, src, Proj{Linear: mlp.Gate, Dst: gate}, Proj{Linear: &mlp.Up, Dst: up})
			inner = Source{X: gate, Act: mlp.gated(), Up: up}
		}
		e.product(s, inner, down)
		return
	}
	if mlp.Gate == nil {
		if !e.projectInner(src, GELU, down, &mlp.Up) {
			up := e.Mat(&m.up, x.Rows, mlp.Up.W.Out())
			e.Linear(src, Proj{Linear: &mlp.Up, Dst: up})
			e.Linear(Source{X: up, Act: GELU}, down)
		}
		return
	}
	if !e.projectInner(src, mlp.gated(), down, mlp.Gate, &mlp.Up) {
		gate, up := e.Mat(&m.gate, x.Rows, mlp.Gate.W.Out()), e.Mat(&m.up, x.Rows, mlp.Up.W.Out())
		e.Linear(src, Proj{Linear: mlp.Gate, Dst: gate}, Proj{Linear: &mlp.Up, Dst: up})
		e.Linear(Source{X: gate, Act: mlp.gated(), Up: up}, down)
	}
}
