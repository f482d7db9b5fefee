package nn

import "github.com/grovellm/grove/internal/kernels/gemm"

// rowShape is the part of a row that the pages of a pool hold for each layer.
type rowShape struct {
	heads, dim int
	latent     int // values are the first latent dimensions of the key; 0: they are stored separately
	kv         KVType
}

// values is the number of dimensions of a value.
func (s rowShape) values() int {
	if s.latent > 0 {
		return s.latent
	}
	return s.dim
}

// headFloats is the number of f32 elements of a row for one head.
func (s rowShape) headFloats() int {
	if s.latent > 0 {
		return s.dim
	}
	return 2 * s.dim
}

// shape returns the shape of a pool's pages.
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

// shapeOf returns the shape of a layer.
func (p *Pages) shapeOf(layer int) rowShape {
	s := p.shape(p.poolOf(layer))
	if p.LayerHeads != nil {
		s.heads = p.LayerHeads[layer]
	}
	return s
}

// bare reports whether a layer keeps nothing.
func (p *Pages) bare(layer int) bool { return p.Bare != nil && p.Bare[layer] }

// poolOf returns a layer's pool.
func (p *Pages) poolOf(layer int) int {
	switch {
	case p.recurrent(layer) != nil:
		return recurrentRows
	case p.Windows != nil && p.Windows[layer] > 0:
		return windowed
	}
	return wholeText
}

// layerBytes is the memory of a row's keys and values in one layer.
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
