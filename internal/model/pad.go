package model

import (
	"fmt"
	"slices"
)

// Cost padding. The text of a small model is real, but verifying it is cheap, which hides the
// benefit of speculation. A padded model computes the same logits to the bit, while its passes read
// and multiply as many weights as those of a model of the requested size:
//
//   - layers are added at the end whose output projections are zero: whatever they compute, what they add to the
//     residual stream is zero;
//   - the feed-forward halves of all layers get the same, larger width. In the model's own layers the columns of the
//     down projection that are new are zero, and a product's chain (package gemm) goes on over them by adding zeros.
//     Activations that share a scale are all the model's own or all new, since its width is whole blocks of the weights' type.

// PaddingKey is the key of a GGUF file for the number of its parameters that are padding.
const PaddingKey = "grove.padding.parameters"

// Added layers have about paddedLayer parameters, as in a model of half a billion, unless the
// model's own are larger; if that would give fewer than paddedLayers layers, they are smaller.
const (
	paddedLayer  = 10_000_000
	paddedLayers = 48
)

// Parameters is the number of weights, including padding; biases, which only some files have, are
// left out except those of norms.
func (c *Config) Parameters() int64 {
	a := c.arch()
	n := c.layersParameters(c.FFN)
	for _, p := range a.top {
		if c.hasPart(p, 0) && (p.name != "output" || !c.Tied) {
			n += c.elements(a, p, 0)
		}
	}
	return n
}

// layersParameters returns the parameters of all layers, if feed-forward halves had width ffn.
func (c *Config) layersParameters(ffn int) (n int64) {
	for i := range c.stored() {
		n += c.layerParameters(ffn, i)
	}
	return n
}

// layerParameters returns the parameters of a layer, if its feed-forward half had width ffn.
func (c *Config) layerParameters(ffn, layer int) (n int64) {
	wide, a := *c, c.arch()
	wide.FFN = ffn
	for _, p := range a.layer {
		if c.hasPart(p, layer) {
			n += wide.elements(a, p, layer)
		}
	}
	return n
}

// elements returns the number of weights in a part.
func (c *Config) elements(a *architecture, p part, layer int) int64 {
	n := int64(c.size(p.out, layer))
	switch {
	case p.each:
		n *= int64(c.Experts)
	case p.streams:
		n *= int64(c.Streams - 1)
	}
	switch {
	case p.in != none:
		n *= int64(c.size(p.in, layer))
	case a.layerNorm && !a.biasless:
		n *= 2
	}
	return n
}

// Products is how many multiplications a row takes, not counting attention: the number of elements
// in the matrices that it is multiplied by.
func (c *Config) Products() int {
	n, a := c.Vocab*c.Hidden, c.arch()
	for i := range c.Layers {
		for _, p := range a.layer {
			if !c.hasPart(p, i) {
				continue
			}
			x := c.size(p.out, i) * c.size(p.in, i)
			if p.each {
				x *= c.Used
			}
			n += x
		}
	}
	return n + (c.size(perLayers, 0)+2*max(0, c.Streams-1)*c.Hidden)*c.Hidden
}

// AttentionProducts is how many multiplications the attention of a row takes that sees the given
// number of positions, including its own: for each layer and head, those of a query with keys, and
// as many of weights with values. A layer with a window sees only the window.
func (c *Config) AttentionProducts(positions int) int {
	seen := 0
	for i := range c.Layers {
		if !c.attends(i) {
			continue
		}
		if c.windowed(i) {
			seen += min(positions, c.Window) * c.headDim(i) * c.heads(i)
		} else {
			seen += positions * c.headDim(i) * c.heads(i)
		}
	}
	return 2 * seen
}

// ffnColumn is the number of a layer's weights for each unit of feed-forward width.
func (c *Config) ffnColumn() int64 { return c.layerParameters(1, 0) - c.layerParameters(0, 0) }

// extended returns a list by layer, continued with false unless it is nil.
func extended(list []bool, n int) []bool {
	if list == nil {
		return nil
	}
	return append(slices.Clone(list), make([]bool, n-len(list))...)
}

// padded returns the shape of c after padding: about total parameters, to within a layer. The
// feed-forward width grows to a multiple of unit.
func (c Config) padded(total int64, unit int) (Config, error) {
	if err := c.Validate(); err != nil {
		return c, err
	}
	if c.arch().rounded {
		return c, fmt.Errorf("padding: layers of this %s model have a norm of the MLP's inner rows, which may not grow: "+
			"take a model without", c.Arch)
	}
	if c.uneven() {
		return c, fmt.Errorf("padding: layers of this %s model differ, and padding adds layers like the first: "+
			"take a model whose layers are alike", c.Arch)
	}
	have := c.Parameters()
	if total <= have {
		return c, fmt.Errorf("padding to %d parameters: the model has %d already: want more", total, have)
	}
	own := c.layerParameters(c.FFN, 0)
	layers := total - (have - c.layersParameters(c.FFN)) // for all layers together
	each := max(own, min(paddedLayer, layers/paddedLayers))
	n := max(int64(c.Layers)+1, (layers+each/2)/each)
	wide := (layers/n - c.layerParameters(0, 0)) / c.ffnColumn() / int64(unit) * int64(unit)
	p := c
	if c.Experts == 0 { // experts keep their width
		p.FFN = int(min(max(wide, int64(c.FFN)), maxWidth+1))
	}
	each = p.layerParameters(p.FFN, 0)
	more := (layers - p.layersParameters(p.FFN) + each/2) / each // layers like the first
	p.Layers = int(min(int64(c.Layers)+max(1, more), maxLayers+1))
	if c.recurrent(0) {
		p.Recurrent = append(slices.Clone(c.Recurrent), slices.Repeat([]bool{true}, p.Layers-c.Layers)...)
	}
	if err := p.Validate(); err != nil {
		return c, fmt.Errorf("padding to %d parameters: %w", total, err)
	}
	p.Padded += p.Parameters() - have
	p.Windowed, p.NoRope = extended(c.Windowed, p.Layers), extended(c.NoRope, p.Layers)
	return p, nil
}
