package nn

import "github.com/grovellm/grove/internal/kernels/gemm"

// rowShape is what the pages of a pool have of a row for each layer.
type rowShape struct {
	heads, dim int
	latent     int // values are so many of the key's dimensions, the first ones; 0: they are stored beside it
	kv         KVType
}

// values is the dimensions of a value.
func (s rowShape) values() int {
	if s.latent > 0 {
		return s.latent
	}
	return s.dim
}

// headFloats is the numbers of a row of f32 for a head.
func (s rowShape) headFloats() int {
	if s.latent > 0 {
		return s.dim
	}
	return 2 * s.dim
}

// shape is that of a pool's pages.
func (p *Pages) shape(pool int) rowShape {
	s := rowShape{p.Heads, p.Dim, p.Latent, p.KV}
	if pool == windowed && p.LocalHeads > 0 {
		s.heads = p.LocalHeads
	}
	if pool == windowed && p.LocalDim > 0 {
		s.dim = p.LocalDim
	}
	return s
}

// shapeOf is that of a layer.
func (p *Pages) shapeOf(layer int) rowShape { return p.shape(p.poolOf(layer)) }

// bare reports whether a layer keeps nothing.
func (p *Pages) bare(layer int) bool { return p.Bare != nil && p.Bare[layer] }

// poolOf is the pool that has a layer.
func (p *Pages) poolOf(layer int) int {
	switch {
	case p.recurrent(layer) != nil:
		return recurrentRows
	case p.Windows != nil && p.Windows[layer] > 0:
		return windowed
	}
	return wholeText
}

// layerBytes is the memory of a row's keys and values of a layer.
func (s rowShape) layerBytes() int {
	if s.kv.panels() {
		return s.heads * s.headBytes() / PageRows
	}
	return s.heads * s.headFloats() * 4
}

// resultWidth is the width of a query's results.
func (s rowShape) resultWidth() int {
	if s.kv.panels() {
		return s.valuePanels() * gemm.Panel
	}
	return s.values()
}
