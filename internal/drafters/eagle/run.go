// The passes of a head. Every operation records itself on a tape, so that training runs the same code.

package eagle

import "github.com/grovellm/grove/internal/nn"

// Pages returns the memory of caches for the network's rows. They hold f32, which a tape needs: a
// head learns from its drafts.
func (n *Network) Pages() nn.Pages {
	return nn.Pages{Layers: n.keeping(), Heads: n.KVHeads, Dim: n.HeadDim, Latent: n.Latent.Rank,
		Rope: n.Blocks[0].Attn.Rope}
}

// keeping returns how many layers, from the first on, have keys and values.
func (n *Network) keeping() int {
	last := len(n.Blocks) - 1
	for n.Blocks[last].Out.W == nil {
		last--
	}
	return last + 1
}

// Buffers is the activation memory of a head.
type Buffers struct {
	normed, embed, fused, x nn.Buffer
	block                   nn.BlockBuffers
	projs                   [2]nn.Proj
}

// Width returns the width of a row's taps, one after the other.
func (c *Config) Width() int { return len(c.Taps) * c.Hidden }

// Features makes the features of places of the text, g (rows × Hidden), from the target's taps there (rows × Width).
func (n *Network) Features(e *nn.Exec, taps, g nn.Mat, m *Buffers) {
	switch {
	case n.StateFirst || n.Unnormed:
		e.Normalise(nil, taps, g)
		return
	case n.last():
		e.Normalise(&n.GNorm, taps, g)
		return
	}
	if n.FCNorm {
		normed := e.Mat(&m.normed, taps.Rows, taps.Cols)
		for i := range n.TapNorms {
			from, to := i*n.Hidden, (i+1)*n.Hidden
			e.Normalise(&n.TapNorms[i], taps.Columns(from, to), normed.Columns(from, to))
		}
		taps = normed
	}
	e.Linear(nn.Source{X: taps, Norm: n.InputNorm}, nn.Proj{Linear: &n.Fuse, Dst: g})
}

// Run computes rows of a forest from each row's token and its feature in g (rows × Hidden). It puts
// their states into x (rows × Hidden), which must not be g. The states are the features of the rows'
// children; Head of Output(x) gives their logits.
//
// A row's position depends only on its depth, and what it sees only on its ancestors. So the
// training-time test (EAGLE-3, arXiv 2503.01840) is a forest that begins with the text's entries. The
// draft of an entry j tokens further is a chain of j rows below it.
func (n *Network) Run(e *nn.Exec, f *nn.Forest, tokens []int32, g, x nn.Mat, m *Buffers) {
	n.RunInputs(e, f, n.embed(e, tokens, m), g, x, m)
}

// RunInputs is Run with the rows' embeddings (rows × Hidden) instead of tokens.
func (n *Network) RunInputs(e *nn.Exec, f *nn.Forest, embed, g, x nn.Mat, m *Buffers) {
	n.attend(e, f, embed, g, x, m)
	n.finish(e, f, x, m)
}

// embed returns the embeddings of tokens.
func (n *Network) embed(e *nn.Exec, tokens []int32, m *Buffers) nn.Mat {
	embed := e.Mat(&m.embed, len(tokens), n.Hidden)
	e.Embed(n.Embed, tokens, embed)
	return embed
}

// Keep puts into the forest's caches what Run does, for rows whose states are not wanted. If only the
// head's first layer has attention, it computes only keys and values, where these are equally wide.
func (n *Network) Keep(e *nn.Exec, f *nn.Forest, tokens []int32, g nn.Mat, m *Buffers) {
	if n.keeping() > 1 || n.Blocks[0].Attn.ValueDim > 0 {
		n.Run(e, f, tokens, g, e.Mat(&m.x, g.Rows, g.Cols), m)
		return
	}
	first := &n.Blocks[0]
	if first.Latent != nil {
		e.LatentKeys(first, 0, f, n.source(e, n.embed(e, tokens, m), g, m), &m.block)
		return
	}
	half := first.Attn.KVHeads * first.Attn.Dim
	kv := e.Mat(&m.x, g.Rows, 2*half)
	m.projs = [2]nn.Proj{{Linear: &first.QKV[1], Dst: kv.Columns(0, half)},
		{Linear: &first.QKV[2], Dst: kv.Columns(half, 2*half)}}
	e.Linear(n.source(e, n.embed(e, tokens, m), g, m), m.projs[:]...)
	e.Keys(&first.Attn, 0, f, kv)
}

// source returns the input of the first layer's attention.
func (n *Network) source(e *nn.Exec, embed, g nn.Mat, m *Buffers) nn.Source {
	if n.Version == 3 {
		return nn.Source{X: embed, Norm: &n.Blocks[0].AttnNorm, With: g, WithNorm: &n.GNorm}
	}
	in, out := nn.Source{X: embed, With: g}, nn.Source{X: e.Mat(&m.fused, g.Rows, g.Cols)}
	if n.Version == Native {
		in.Norm = &n.InNorms[0]
		in.WithNorm = &n.InNorms[1]
		out.Norm = &n.Blocks[0].AttnNorm
	}
	if n.StateFirst {
		in.X, in.With = in.With, in.X
		in.Norm, in.WithNorm = in.WithNorm, in.Norm
	}
	e.Linear(in, nn.Proj{Linear: &n.Fuse, Dst: out.X})
	return out
}

// attend is Run up to the end of the first layer's attention.
func (n *Network) attend(e *nn.Exec, f *nn.Forest, embed, g, x nn.Mat, m *Buffers) {
	src := n.source(e, embed, g, m)
	m.block.Fit(n.Blocks)
	switch {
	case n.Version != 3:
		e.Normalise(nil, src.X, x)
	case n.NormBeforeResidual:
		e.Normalise(&n.GNorm, g, x)
	default:
		e.Normalise(nil, g, x)
	}
	e.Attention(&n.Blocks[0], 0, f, src, x, &m.block)
}

// finish is the rest of Run, in place.
func (n *Network) finish(e *nn.Exec, f *nn.Forest, x nn.Mat, m *Buffers) {
	e.MLP(&n.Blocks[0], x, &m.block)
	for i := 1; i < len(n.Blocks); i++ {
		e.Block(&n.Blocks[i], i, f, x, &m.block)
	}
	if n.outNorm != nil {
		e.Normalise(n.outNorm, x, x)
	}
}

// RunToMLP is RunInputs up to the end of the last layer's attention, and LastMLP is the rest, row by row.
func (n *Network) RunToMLP(e *nn.Exec, f *nn.Forest, embed, g, x nn.Mat, m *Buffers) {
	n.attend(e, f, embed, g, x, m)
	for i := 1; i < len(n.Blocks); i++ {
		e.MLP(&n.Blocks[i-1], x, &m.block)
		e.Attention(&n.Blocks[i], i, f, nn.Source{X: x, Norm: &n.Blocks[i].AttnNorm}, x, &m.block)
	}
}

// LastMLP completes what RunToMLP began, in place.
func (n *Network) LastMLP(e *nn.Exec, x nn.Mat, m *Buffers) {
	e.MLP(&n.Blocks[len(n.Blocks)-1], x, &m.block)
	if n.outNorm != nil {
		e.Normalise(n.outNorm, x, x)
	}
}

// Output returns the states x as Head reads them.
func (n *Network) Output(x nn.Mat) nn.Source { return nn.Source{X: x, Norm: n.Norm} }
