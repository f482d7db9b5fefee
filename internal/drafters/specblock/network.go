package specblock

import (
	"fmt"

	"github.com/grovellm/grove/internal/heads/headfile"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/nn"
)

// Network has the layers of a head (SpecBlock §3.1, §3.2), over loaded weights to serve or trained
// ones to train.
//
// A block is K rows that begin with the same condition and token, and differ only in the query of
// their slot. The condition of a first block comes from the target's states (Condition), that of a
// later one is the head's own state of the row that it starts from. Row k of a block becomes the
// state from which Head·Norm predicts the token k + 1 places after the block's own.
type Network struct {
	Config
	Fuse nn.Linear // W_cond: joined taps to Hidden

	// W_fuse·[condition | token | query], each normalised, as one product for each.
	ConditionNorm, TokenNorm, QueryNorm nn.Norm
	FuseCondition, FuseToken, FuseQuery nn.Linear
	Queries                             nn.Table // K × Hidden
	slots                               []int32  // of a block

	Blocks []nn.Block
	Shifts []Shift // after each layer except the last; nil if Config.Shift is not set
	Norm   nn.Norm // before Head

	// The rank head: RankOut·silu(RankHidden·state + RankFeatures·features); RankWidth 0: there is
	// none.
	RankHidden, RankFeatures, RankOut nn.Linear

	headfile.Ends
	Tokens []int32 // the target's token for each row of Head; nil: the same
}

// Shift is W_shift of equation 3 in two halves: a row becomes Own·(its state) + Before·(the state of
// the row before it in the block). For the first row the one before is the row itself.
type Shift struct{ Own, Before nn.Linear }

// NewNetwork builds the head that c describes. The embedding and the output matrix are the target's
// if w has none; with an empty target only the layers can run. Weights have the names of files, which
// are llama.cpp's where it has any. tokens has the target's token for each row of the head's output;
// nil: row i is token i.
func NewNetwork(c Config, w model.Weights, tokens []int32, target *model.Network) (*Network, error) {
	if err := headfile.CheckWeights(&c, w, tokens); err != nil {
		return nil, err
	}
	n := layOut(c)
	n.Tokens, n.Ends = tokens, headfile.EndsOf(target, tokens)
	return n, n.Tensors().Load(w)
}

// layOut returns a network without weights.
func layOut(c Config) *Network {
	norm := nn.Norm{Eps: c.NormEps}
	n := &Network{Config: c, ConditionNorm: norm, TokenNorm: norm, QueryNorm: norm, Norm: norm}
	if c.Shift {
		n.Shifts = make([]Shift, c.Layers-1)
	}
	for slot := range int32(c.Block) {
		n.slots = append(n.slots, slot)
	}
	return n
}

// Parts lists the tensors of a head.
func (c *Config) Parts() headfile.Parts { return layOut(*c).Tensors() }

// Tensors lists the network's tensors, in the order in which random weights are drawn.
func (n *Network) Tensors() headfile.Parts {
	c, h := &n.Config, n.Hidden
	linear := func(name string, l *nn.Linear, out, in int) headfile.Part {
		return headfile.Linear(name, l, out, in, false)
	}
	list := headfile.Parts{
		n.Ends.Part(c, false),
		linear("fc", &n.Fuse, h, len(c.Taps)*h),
		headfile.Norm("cond_norm", &n.ConditionNorm, h), headfile.Norm("token_norm", &n.TokenNorm, h),
		headfile.Norm("query_norm", &n.QueryNorm, h),
		linear("fuse_cond", &n.FuseCondition, h, h), linear("fuse_token", &n.FuseToken, h, h),
		linear("fuse_query", &n.FuseQuery, h, h),
		headfile.Table("query", &n.Queries, c.Block, h),
		&headfile.Blocks{Of: &c.Config, To: &n.Blocks},
	}
	for i := range n.Shifts {
		name := fmt.Sprintf("blk.%d.shift_", i)
		list = append(list, linear(name+"own", &n.Shifts[i].Own, h, h), linear(name+"prev", &n.Shifts[i].Before, h, h))
	}
	list = append(list, headfile.Norm("output_norm", &n.Norm, h))
	if c.RankWidth > 0 {
		list = append(list, linear("rank_hidden", &n.RankHidden, c.RankWidth, h),
			linear("rank_features", &n.RankFeatures, c.RankWidth, Features),
			linear("rank_out", &n.RankOut, RankBuckets, c.RankWidth))
	}
	return list
}

// Pages returns the memory of caches: a row of a block is a row of theirs. They hold f32, which a
// tape needs: a head learns from its drafts.
func (n *Network) Pages() nn.Pages {
	return nn.Pages{Layers: n.Layers, Heads: n.KVHeads, Dim: n.HeadDim, Rope: n.Blocks[0].Attn.Rope}
}

// Buffers is the activation memory of a head.
type Buffers struct {
	token, base, more nn.Buffer
	query, slots      nn.Buffer
	spread, before    nn.Buffer
	state             [2]nn.Buffer
	kv                nn.Buffer
	rank, features    nn.Buffer
	block             nn.BlockBuffers
}

// Condition makes the conditions of entries of text, c (n × Hidden), from each entry's taps, one
// after the other (equation 1).
func (n *Network) Condition(e *nn.Exec, taps, c nn.Mat) {
	e.Linear(nn.Source{X: taps}, nn.Proj{Linear: &n.Fuse, Dst: c})
}

// Run computes the blocks of a pass over the forest's caches. c has the condition of each. It puts
// the rows into x (rows × Hidden) before the last norm: Head·Norm(x) gives their logits, and rows of x
// are the conditions of later blocks.
func (n *Network) Run(e *nn.Exec, p *Pass, c, x nn.Mat, m *Buffers) {
	n.layers(e, p, c, x, m)
	e.Block(&n.Blocks[n.Layers-1], n.Layers-1, &p.Forest, x, &m.block)
}

// Read is Run for rows whose states are not wanted: it puts only their keys and values into the
// caches. The contents of x are undefined afterwards.
func (n *Network) Read(e *nn.Exec, p *Pass, c, x nn.Mat, m *Buffers) {
	n.layers(e, p, c, x, m)
	b, width := &n.Blocks[n.Layers-1], n.KVHeads*n.HeadDim
	kv := e.Mat(&m.kv, x.Rows, 2*width)
	e.Linear(nn.Source{X: x, Norm: &b.AttnNorm}, nn.Proj{Linear: &b.QKV[1], Dst: kv.Columns(0, width)},
		nn.Proj{Linear: &b.QKV[2], Dst: kv.Columns(width, 2*width)})
	e.Keys(&b.Attn, n.Layers-1, &p.Forest, kv)
}

// layers runs all layers except the last, and puts the last one's input into x.
func (n *Network) layers(e *nn.Exec, p *Pass, c, x nn.Mat, m *Buffers) {
	h := x
	if len(n.Shifts) > 0 {
		h = e.Mat(&m.state[0], x.Rows, n.Hidden)
	}
	n.enter(e, p, c, h, m)
	for i := range n.Layers - 1 {
		e.Block(&n.Blocks[i], i, &p.Forest, h, &m.block)
		if i >= len(n.Shifts) {
			continue
		}
		s, own := &n.Shifts[i], x
		if i < len(n.Shifts)-1 {
			own = e.Mat(&m.state[(i+1)%2], x.Rows, n.Hidden)
		}
		before, spread := e.Mat(&m.before, x.Rows, n.Hidden), e.Mat(&m.spread, x.Rows, n.Hidden)
		e.Linear(nn.Source{X: h}, nn.Proj{Linear: &s.Own, Dst: own}, nn.Proj{Linear: &s.Before, Dst: before})
		e.Gather(before, p.before, spread)
		e.Add(own, spread)
		h = own
	}
}

// enter makes the input of the first layer (equation 2).
func (n *Network) enter(e *nn.Exec, p *Pass, c, x nn.Mat, m *Buffers) {
	blocks := len(p.Tokens)
	token := e.Mat(&m.token, blocks, n.Hidden)
	e.Embed(n.Embed, p.Tokens, token)
	base := e.Mat(&m.base, blocks+1, n.Hidden) // after a row of zeros
	clear(base.Row(0))
	entries, more := base.Slice(1, blocks+1), e.Mat(&m.more, blocks, n.Hidden)
	e.Linear(nn.Source{X: c, Norm: &n.ConditionNorm}, nn.Proj{Linear: &n.FuseCondition, Dst: entries})
	e.Linear(nn.Source{X: token, Norm: &n.TokenNorm}, nn.Proj{Linear: &n.FuseToken, Dst: more, To: entries})

	query, slots := e.Mat(&m.query, n.Block, n.Hidden), e.Mat(&m.slots, n.Block, n.Hidden)
	e.Embed(n.Queries, n.slots, query)
	e.Linear(nn.Source{X: query, Norm: &n.QueryNorm}, nn.Proj{Linear: &n.FuseQuery, Dst: slots})

	e.Gather(slots, p.slot, x)
	spread := e.Mat(&m.spread, x.Rows, n.Hidden)
	e.Gather(base, p.entry, spread)
	e.Add(x, spread)
}

// Rank computes the rank head's scores of the buckets (equation 4) from rows' states, as Run makes
// them, and features. out is n × RankBuckets. No gradient goes back to either.
func (n *Network) Rank(e *nn.Exec, states, features, out nn.Mat, m *Buffers) {
	states, features = apart(states), apart(features)
	src := nn.Source{X: states}
	if n.RankNormed {
		src.Norm = &n.Norm
	}
	inner, more := e.Mat(&m.rank, out.Rows, n.RankWidth), e.Mat(&m.features, out.Rows, n.RankWidth)
	e.Hold()
	e.Linear(src, nn.Proj{Linear: &n.RankHidden, Dst: inner})
	e.Linear(nn.Source{X: features}, nn.Proj{Linear: &n.RankFeatures, Dst: more, To: inner})
	e.Linear(nn.Source{X: inner, Act: nn.SiLU}, nn.Proj{Linear: &n.RankOut, Dst: out})
	e.Release()
}

// apart returns a matrix that a tape computes no gradients for.
func apart(m nn.Mat) nn.Mat {
	return nn.Mat{Rows: m.Rows, Cols: m.Cols, Stride: m.Stride, Data: m.Data}
}
