package nn

import "github.com/grovellm/grove/internal/kernels/gemm"

// MLP is the feed-forward half of a block: Down·(act(Gate·x) · Up·x) when Gate is set,
// else Down·act(Up·x).
type MLP struct {
	Gate     *Linear
	Up, Down Linear
	XIELU    *XIELU     // for XIELUOf
	Cut      float32    // for SparseGELUMul and CappedSiLUMul
	Inner    *Norm      // of the rows between them and Down; nil: none (BitNet)
	Act      Activation // None: SiLUMul with a gate, GELU without one
}

// act is the activation.
func (m *MLP) act() Activation {
	switch {
	case m.Act != None:
		return m.Act
	case m.Gate == nil:
		return GELU
	}
	return SiLUMul
}

// Bytes is the size of the packed weights.
func (m *MLP) Bytes() int {
	if m.Up.W == nil { // there is no MLP
		return 0
	}
	size := m.Up.W.Bytes() + m.Down.W.Bytes()
	if m.Gate != nil {
		size += m.Gate.W.Bytes()
	}
	return size
}

// Block is one transformer layer.
type Block struct {
	AttnNorm, MLPNorm Norm  // of each half's input; no weights: no norm (OLMo 2)
	AttnPost, MLPPost *Norm // of each half's output, before it is added; nil: none
	AttnInner         *Norm // of attention's results, before Out; nil: none (BitNet)
	Rounded           bool  // inputs of products are (Source.Rounded)
	Attn              Attention
	QKV               []Linear           // one fused product, or queries, keys, values, and gates where Attn is gated; nil: Out alone
	Latent            *Latent            // in place of QKV (multi-head latent attention); nil: none
	Recurrent         Recurrent          // in place of Attn and QKV; nil: none
	ParallelRecurrent *ParallelRecurrent // alongside attention: same input, added to the same output; nil: none
	Out               Linear             // without weights: no attention and nothing in its place
	MLP               MLP                // without weights and without Experts: no second half
	Experts           *Experts           // in place of MLP, or alongside it if there is one; nil: none
	AltUp             *AltUp             // around the rest, with Laurel and PerLayer; nil: rows have one residual stream
	Laurel            *Laurel            // after attention; nil: none
	PerLayer          *PerLayer          // after the MLP; nil: none
	OutScale          float32            // multiplies the block's output; 0: 1
	OutNorm           *Norm              // of the block's output; nil: none
	Parallel          bool               // attention and MLP both read the block's input (GPT-NeoX) instead of one following the other
}

// BlockBuffers is the activation memory of a block, shared by the blocks of a pass.
type BlockBuffers struct {
	qkv, attn, out, gate, up, down Buffer

	scores, results, expertGate, expertUp Buffer // of experts
	mlpGate                               Buffer // of the MLP alongside them
	parallel                              Buffer // their sum with that MLP, in parallel to attention
	narrow, narrowSum                     Buffer // between Experts.Narrow and Widen
	routing                               routing

	positions []int32 // of the rows (AddPositions)

	perLayer, perLayerGate Buffer
	PerLayer               Mat // each layer's table entries for the rows (PerLayerInputs)

	streams, merged, modes, low Buffer // of AltUp and Laurel

	in, mixed Buffer // of short convolutions: one strip may be ahead of another that still reads attention's buffers
	delta     deltaBuffers
	gated     Buffer // queries and gates
	latent    latentBuffers

	widest widths
}

// widths are the minimum widths of the buffers' rows. Rows of all blocks lie at the same places in
// a buffer, so that a worker that has its own rows and is ahead does not touch the rows of others.
type widths struct{ qkv, attn, inner int }

// Fit makes the buffers' rows as wide as the widest rows of the given blocks, where widths differ.
func (m *BlockBuffers) Fit(blocks []Block) {
	for i := range blocks {
		a, w := &blocks[i].Attn, &m.widest
		w.qkv = max(w.qkv, a.QKVCols())
		w.attn = max(w.attn, a.Heads*a.Dim)
		if up := blocks[i].MLP.Up.W; up != nil {
			w.inner = max(w.inner, up.Out())
		}
	}
}

// mat returns a matrix over a buffer whose rows are at least widest wide.
func (e *Exec) mat(b *Buffer, rows, cols, widest int) Mat {
	return e.Mat(b, rows, max(cols, widest)).Columns(0, cols)
}

// Block runs a layer over the forest: x (n × hidden) becomes x + attention + MLP.
func (e *Exec) Block(b *Block, layer int, f *Forest, x Mat, m *BlockBuffers) {
	if e.records != nil && b.Rounded {
		panic("nn: a layer with rounded inputs has no gradient")
	}
	e.Hold()
	src := Source{X: x, Norm: b.AttnNorm.orNil(), Rounded: b.Rounded}
	if b.Parallel { // the MLP reads the original x: nothing is added before that
		out, down := e.Mat(&m.out, x.Rows, x.Cols), e.Mat(&m.down, x.Rows, x.Cols)
		e.attention(b, layer, f, src, Proj{Linear: &b.Out, Dst: out}, m)
		if b.Experts != nil && b.MLP.Up.W != nil {
			sum := e.Mat(&m.parallel, x.Rows, x.Cols)
			e.sum(b, x, sum, m)
			down = sum
		} else {
			e.feedForward(b, x, Proj{Linear: &b.MLP.Down, Dst: down}, m)
		}
		e.Add(x, out)
		e.Add(x, down)
		e.Release()
		return
	}
	if h := b.Experts; h != nil && h.Early {
		e.Linear(Source{X: x}, h.route(h.scores(e, x.Rows, m)))
	}
	if b.AltUp != nil {
		e.predict(b.AltUp, x, m)
	}
	e.Attention(b, layer, f, src, x, m)
	if b.Laurel != nil {
		e.laurel(b, x, m)
	}
	e.MLP(b, x, m)
	if b.AltUp != nil {
		e.correct(b.AltUp, x, m)
	}
	if b.PerLayer != nil {
		e.perLayer(b, layer, x, m)
	}
	if b.OutScale != 0 {
		e.scale(x, b.OutScale)
	}
	if b.OutNorm != nil {
		e.Normalise(b.OutNorm, x, x)
	}
	e.Release()
}

// Attention is the first half of a layer, for rows read from src: x += attention(src).
func (e *Exec) Attention(b *Block, layer int, f *Forest, src Source, x Mat, m *BlockBuffers) {
	if b.Out.W == nil {
		return
	}
	e.Hold()
	var second Mat
	if b.ParallelRecurrent != nil {
		second = b.ParallelRecurrent.run(e, f, src, m)
	}
	out := proj(&b.Out, e.Mat(&m.out, x.Rows, x.Cols), x, b.AttnPost)
	e.attention(b, layer, f, src, out, m)
	e.addPost(x, out.Dst, b.AttnPost)
	if b.ParallelRecurrent != nil {
		e.Add(x, second)
	}
	e.Release()
}

// proj is the last product of a half. Its results are added to x directly, or after a norm of their
// own.
func proj(l *Linear, dst, x Mat, post *Norm) Proj {
	if post != nil {
		return Proj{Linear: l, Dst: dst}
	}
	return Proj{Linear: l, Dst: dst, To: x}
}

// addPost computes x += post(y), or nothing if post is nil. y is overwritten.
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
	if b.Experts == nil && b.MLP.Up.W == nil {
		return
	}
	e.Hold()
	if b.Experts != nil && b.MLP.Up.W != nil {
		e.both(b, x, m)
		e.Release()
		return
	}
	down := proj(&b.MLP.Down, e.Mat(&m.out, x.Rows, x.Cols), x, b.MLPPost)
	e.feedForward(b, x, down, m)
	e.addPost(x, down.Dst, b.MLPPost)
	e.Release()
}

// ParallelRecurrent is a recurrent layer alongside the attention of a block (Falcon-H1). In a cache it is a separate
// layer.
type ParallelRecurrent struct {
	Recurrent
	Out   Linear
	Layer int // the cache's
}

// run returns what the layer adds for the rows of src.
func (s *ParallelRecurrent) run(e *Exec, f *Forest, src Source, m *BlockBuffers) Mat {
	y := e.Mat(&m.down, src.X.Rows, s.Out.W.Out())
	e.mixing(s.Recurrent, s.Layer, f, src, Proj{Linear: &s.Out, Dst: y}, m)
	return y
}

// mixing runs a recurrent layer's mix.
func (e *Exec) mixing(r Recurrent, layer int, f *Forest, src Source, out Proj, m *BlockBuffers) {
	if e.records != nil {
		panic("nn: recurrent layers have no gradient: they can be a target's, not a head's or a trained model's")
	}
	r.mix(e, layer, f, src, out, m)
}

// attention ends with the product out of attend(QKV·src), or of a recurrent layer's results for src.
func (e *Exec) attention(b *Block, layer int, f *Forest, src Source, out Proj, m *BlockBuffers) {
	if b.Recurrent != nil {
		e.mixing(b.Recurrent, layer, f, src, out, m)
		return
	}
	if b.Latent != nil {
		e.latentAttention(b, layer, f, src, out, m)
		return
	}
	if b.QKV == nil {
		e.Linear(src, Proj{Linear: out.Linear, Dst: out.Dst})
		e.Add(out.To, out.Dst) // not by the product, which reads the same rows
		return
	}
	if b.Attn.ValueDim > 0 {
		e.narrowAttention(b, layer, f, src, out, m)
		return
	}
	if b.Attn.Gated {
		e.gatedAttention(b, layer, f, src, out, m)
		return
	}
	qkv := e.mat(&m.qkv, src.X.Rows, b.Attn.QKVCols(), m.widest.qkv)
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
		e.plan.open = nil // all keys and values must be stored before any row attends
		attn := e.mat(&m.attn, n, width, m.widest.attn)
		s = e.strip(n)
		s.ops = append(s.ops, e.attending(&b.Attn, layer, f, qkv, attn))
		e.product(s, b.attended(attn), out)
		return
	}
	if e.records == nil && b.wholePanels() && !b.Attn.normsAll() {
		e.projectHeads(src, projs[:len(b.QKV)], e.storing(&b.Attn, layer, f, qkv, b.Attn.Heads))
		if width/b.Attn.KVHeads%gemm.Group == 0 && !b.Rounded && b.AttnInner == nil {
			o := e.plan.linears.next(&e.plan)
			o.intake.await(e, Source{X: Mat{Rows: src.X.Rows, Cols: width}}, o.ready(e, out))
			e.attend(&b.Attn, layer, f, qkv, Mat{}, &o.intake)
			e.plan.product(o)
			return
		}
		attn := e.mat(&m.attn, src.X.Rows, width, m.widest.attn)
		e.attend(&b.Attn, layer, f, qkv, attn, nil)
		e.Linear(b.attended(attn), out)
		return
	}
	e.Linear(src, projs[:len(b.QKV)]...)
	e.normaliseAll(&b.Attn, qkv)
	attn := e.mat(&m.attn, src.X.Rows, width, m.widest.attn)
	e.Attend(&b.Attn, layer, f, qkv, attn)
	e.Linear(b.attended(attn), out)
}

// attended is the input of Out, of attention's results.
func (b *Block) attended(attn Mat) Source {
	return Source{X: attn, Norm: b.AttnInner, Rounded: b.Rounded}
}

// Bytes is the size of the layer's packed weights.
func (b *Block) Bytes() int {
	size := b.MLP.Bytes()
	if b.Out.W != nil {
		size += b.Out.W.Bytes()
	}
	if b.Recurrent != nil {
		size += b.Recurrent.Bytes()
	}
	if b.ParallelRecurrent != nil {
		size += b.ParallelRecurrent.Recurrent.Bytes() + b.ParallelRecurrent.Out.W.Bytes()
	}
	if b.Latent != nil {
		size += b.Latent.Bytes()
	}
	for i := range b.QKV {
		size += b.QKV[i].W.Bytes()
	}
	if b.Experts != nil {
		size += b.Experts.Bytes()
	}
	if b.PerLayer != nil {
		size += b.PerLayer.Bytes()
	}
	if b.AltUp != nil {
		size += b.AltUp.Router.W.Bytes() + b.Laurel.Down.W.Bytes() + b.Laurel.Up.W.Bytes()
	}
	return size
}

// wholePanels reports whether each head of queries, keys and values consists of whole panels of its product.
func (b *Block) wholePanels() bool {
	for i := range b.QKV {
		if b.QKV[i].W.Out()%gemm.Panel != 0 {
			return false
		}
	}
	return b.Attn.Dim%gemm.Panel == 0
}

// feedForward is the MLP of the second half, or its experts.
func (e *Exec) feedForward(b *Block, x Mat, out Proj, m *BlockBuffers) {
	if b.Experts != nil {
		e.experts(b, x, out, m)
		return
	}
	e.mlp(b, x, out, m)
}

// mlp ends with the product down of the MLP's inner rows.
func (e *Exec) mlp(b *Block, x Mat, down Proj, m *BlockBuffers) {
	mlp, src := &b.MLP, Source{X: x, Norm: b.MLPNorm.orNil(), XIELU: b.MLP.XIELU, Rounded: b.Rounded}
	whole := mlp.Inner != nil || b.Rounded || mlp.Act == SparseGELUMul || // Down reads rows that must be complete
		mlp.Act == CappedSiLUMul // of few layers, so that the other way need not know the cap
	if e.strips(x.Rows, b.Bytes()) {
		s, up := e.strip(x.Rows), e.mat(&m.up, x.Rows, mlp.Up.W.Out(), m.widest.inner)
		inner := Source{X: up, Act: mlp.act(), XIELU: mlp.XIELU}
		if mlp.Gate == nil {
			e.product(s, src, Proj{Linear: &mlp.Up, Dst: up})
		} else {
			gate := e.mat(&m.gate, x.Rows, mlp.Gate.W.Out(), m.widest.inner)
			e.product(s, src, Proj{Linear: mlp.Gate, Dst: gate}, Proj{Linear: &mlp.Up, Dst: up})
			inner = Source{X: gate, Act: mlp.act(), Cut: mlp.Cut, Up: up}
		}
		inner.Norm, inner.Rounded = mlp.Inner, b.Rounded
		e.product(s, inner, down)
		return
	}
	if mlp.Gate == nil {
		if whole || !e.projectInner(src, mlp.act(), down, &mlp.Up) {
			up := e.mat(&m.up, x.Rows, mlp.Up.W.Out(), m.widest.inner)
			e.Linear(src, Proj{Linear: &mlp.Up, Dst: up})
			e.Linear(Source{X: up, Act: mlp.act(), XIELU: mlp.XIELU, Norm: mlp.Inner, Rounded: b.Rounded}, down)
		}
		return
	}
	if whole || !e.projectInner(src, mlp.act(), down, mlp.Gate, &mlp.Up) {
		gate, up := e.mat(&m.gate, x.Rows, mlp.Gate.W.Out(), m.widest.inner), e.mat(&m.up, x.Rows,
			mlp.Up.W.Out(), m.widest.inner)
		e.Linear(src, Proj{Linear: mlp.Gate, Dst: gate}, Proj{Linear: &mlp.Up, Dst: up})
		inner := Source{X: gate, Act: mlp.act(), Cut: mlp.Cut, Up: up, Norm: mlp.Inner, Rounded: b.Rounded}
		e.Linear(inner, down)
	}
}
