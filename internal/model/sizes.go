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
	head    // a head's dimensions
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
	switch q, kv := c.heads(layer)*width, c.kvHeads(layer)*width; d {
	case vocab:
		return c.Vocab
	case hidden:
		return c.Hidden
	case hidden2:
		return 2 * c.Hidden
	case queries:
		return q
	case keyHeads:
		return kv
	case narrowQueries:
		return c.heads(layer) * cmp.Or(c.ValueDim, width)
	case narrowKeys:
		return c.kvHeads(layer) * cmp.Or(c.ValueDim, width)
	case qkv:
		return q + 2*kv
	case inner:
		return c.ffn(layer)
	case inner2:
		return 2 * c.ffn(layer)
	case head:
		return width
	case experts:
		return c.Experts
	case headCount:
		return c.heads(layer)
	case keyHeadCount:
		return c.kvHeads(layer)
	case gateCount:
		if c.HeadGates {
			return c.heads(layer)
		}
		return q
	case expertInner:
		return c.expertFFN()
	case expertInner2:
		return 2 * c.expertFFN()
	case sharedInner:
		return c.SharedFFN
	case latent:
		return cmp.Or(c.Narrow, c.Hidden)
	case perLayer:
		return c.PerLayer
	case perLayers:
		return c.Layers * c.PerLayer
	case streams:
		return c.Streams
	case streams2:
		return c.Streams * c.Streams
	case laurel:
		return c.Laurel
	case one:
		return 1
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
	case deltaGates:
		return 2 * c.Delta.ValueHeads
	case deltaHead:
		return c.Delta.ValueDim
	case mambaIn:
		return c.Mamba.inner() + c.Mamba.channels() + c.Mamba.Heads
	case mambaChannels:
		return c.Mamba.channels()
	case mambaInner:
		return c.Mamba.inner()
	case mambaHeads:
		return c.Mamba.Heads
	case mambaGroups:
		return c.Mamba.Groups
	case mambaGroup:
		return c.Mamba.inner() / max(c.Mamba.Groups, 1)
	case mambaBoth:
		return 2 * c.Mamba.inner()
	case mambaSteps:
		return c.Mamba.Rank + 2*c.Mamba.StateDim
	case mambaRank:
		return c.Mamba.Rank
	case mambaState:
		return c.Mamba.StateDim
	}
	return c.latentSize(d)
}
