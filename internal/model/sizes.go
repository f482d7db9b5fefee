// The widths of a layer's tensors, by name.

package model

import "cmp"

// dim is a size that a configuration gives.
type dim uint8

const (
	none dim = iota
	vocab
	hidden
	hidden2
	queries       // of all heads
	keyHeads      // keys, or values, of all heads
	narrowQueries // as wide as values of all heads
	narrowKeys    // values of all heads, if they may be narrower than keys
	qkv
	inner // the width of the MLP
	inner2
	head // a head's dimensions
	positions
	experts // of a layer
	headCount
	keyHeadCount
	gateCount   // of attention
	expertInner // the width of an expert
	expertInner2
	sharedInner // the width of the experts that all rows use
	latent      // the width of the experts' input
	perLayer    // of a table's entry for a token and a layer
	perLayers   // for all layers
	streams     // residual streams
	streams2
	laurel // the width of the shortcut around attention
	one
	convIn // the input of a short convolution
	kernel // the length of a convolution
	queriesGates
	deltaChannels // of gated DeltaNet: queries, keys and values
	deltaValues
	deltaHeads // value heads
	deltaHead  // dimensions of one
	deltaGates // two numbers for each value head

	latentRank      // of latent attention: the latent vector's dimensions
	latentKey       // those and the rotated ones
	latentQueries   // all heads' queries, as they are before KeyUp
	latentQueryRank // of the input of queries
	latentPlain     // dimensions of a head's key that are not rotated
	latentValue     // dimensions of a head's value
	latentValues    // of all heads
	latentHeads     // all heads' keys without the rotated dimensions, and values

	mambaIn // the rows of Mamba-2's first product
	mambaChannels
	mambaInner
	mambaHeads
	mambaGroups
	mambaGroup // the numbers of a group's heads
	mambaBoth  // of Mamba: the rows of its first product
	mambaSteps // those of its second
	mambaRank
	mambaState
)

// size returns a dimension of a layer as a number.
func (c *Config) size(d dim, layer int) int {
	width := c.headDim(layer)
	if (d == latentQueries || d == latentValues) && c.recurrent(layer) { // of Kimi Linear
		d = deltaValues
	}
	q, kv := c.heads(layer)*width, c.kvHeads(layer)*width
	delta, mamba := &c.Delta, &c.Mamba
	l := &c.Latent
	values := delta.ValueHeads * delta.ValueDim
	gates := q
	if c.HeadGates {
		gates = c.heads(layer)
	}
	return [...]int{
		vocab: c.Vocab, hidden: c.Hidden, hidden2: 2 * c.Hidden, one: 1, positions: c.Context,
		convIn: 3 * c.Hidden, kernel: c.Kernel,

		queries: q, keyHeads: kv, qkv: q + 2*kv, queriesGates: 2 * q, gateCount: gates, head: width,
		headCount: c.heads(layer), keyHeadCount: c.kvHeads(layer),
		narrowQueries: c.heads(layer) * cmp.Or(c.ValueDim, width),
		narrowKeys:    c.kvHeads(layer) * cmp.Or(c.ValueDim, width),

		inner: c.ffn(layer), inner2: 2 * c.ffn(layer),
		experts: c.Experts, expertInner: c.expertFFN(), expertInner2: 2 * c.expertFFN(), sharedInner: c.SharedFFN,
		latent: cmp.Or(c.Narrow, c.Hidden),

		perLayer: c.PerLayer, perLayers: c.Layers * c.PerLayer,
		streams: c.Streams, streams2: c.Streams * c.Streams, laurel: c.Laurel,

		deltaChannels: 2*delta.KeyHeads*delta.KeyDim + values, deltaValues: values,
		deltaHeads: delta.ValueHeads, deltaGates: 2 * delta.ValueHeads, deltaHead: delta.ValueDim,

		latentRank: l.Rank, latentKey: l.Rank + c.Rope.Dims, latentQueryRank: l.QueryRank,
		latentQueries: c.Heads * (l.PlainDim + c.Rope.Dims), latentPlain: l.PlainDim, latentValue: l.ValueDim,
		latentHeads: c.Heads * (l.PlainDim + l.ValueDim), latentValues: c.Heads * l.ValueDim,

		mambaIn: mamba.inner() + mamba.channels() + mamba.Heads, mambaChannels: mamba.channels(),
		mambaInner: mamba.inner(), mambaHeads: mamba.Heads, mambaGroups: mamba.Groups,
		mambaGroup: mamba.inner() / max(mamba.Groups, 1), mambaBoth: 2 * mamba.inner(),
		mambaSteps: mamba.Rank + 2*mamba.StateDim, mambaRank: mamba.Rank, mambaState: mamba.StateDim,
	}[d]
}
