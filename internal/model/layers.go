package model

import (
	"errors"
	"fmt"
	"math"

	"github.com/grovellm/grove/internal/nn"
)

// stored returns how many layers files have.
func (c *Config) stored() int { return c.Layers / max(c.Loops, 1) }

// local returns whole for a layer, or local if it has a window and those layers have a number of their own.
func (c *Config) local(layer, whole, local int) int {
	if local > 0 && c.windowed(layer) {
		return local
	}
	return whole
}

// headDim returns the dimensions of a layer's heads.
func (c *Config) headDim(layer int) int { return c.local(layer, c.HeadDim, c.LocalHeadDim) }

// heads returns the number of query heads of a layer.
func (c *Config) heads(layer int) int { return c.local(layer, c.Heads, c.LocalHeads) }

// setHeads sets the query heads of layers by a list of all layers'.
func (c *Config) setHeads(list []int) error {
	if len(list) != c.Layers {
		return fmt.Errorf("heads of %d layers: want %d", len(list), c.Layers)
	}
	c.Heads = list[c.firstWhole()]
	c.LocalHeads = 0
	if n := list[c.firstWindowed()]; n != c.Heads {
		c.LocalHeads = n
	}
	for i, n := range list {
		if n != c.heads(i) {
			return fmt.Errorf("heads of layers are %v: want one number for all with a window, and one for all others", list)
		}
	}
	return nil
}

// headsByLayer lists the query heads of layers.
func (c *Config) headsByLayer() []uint32 {
	list := make([]uint32, c.Layers)
	for i := range list {
		list[i] = uint32(c.heads(i))
	}
	return list
}

// kvHeads returns the number of key/value heads of a layer.
func (c *Config) kvHeads(layer int) int {
	if c.LayerKVHeads != nil {
		return c.LayerKVHeads[layer]
	}
	return c.local(layer, c.KVHeads, c.LocalKVHeads)
}

// reads reports whether a layer reads the keys and values of another one.
func (c *Config) reads(layer int) bool {
	return c.Borrows || c.Sharing > 0 && layer >= c.Layers-c.Sharing
}

// ffn returns the width of a layer's MLP.
func (c *Config) ffn(layer int) int {
	if c.LayerFFN != nil {
		return c.LayerFFN[layer]
	}
	if c.WideSharing && c.reads(layer) {
		return 2 * c.FFN
	}
	return c.FFN
}

// expertFFN returns the width of an expert.
func (c *Config) expertFFN() int {
	if c.ExpertFFN > 0 {
		return c.ExpertFFN
	}
	return c.FFN
}

// uneven reports whether layers differ in more than windows and rotation.
func (c *Config) uneven() bool {
	return c.LocalHeadDim > 0 || c.LocalHeads > 0 || c.LocalKVHeads > 0 || c.Sharing > 0 || c.PerLayer > 0 ||
		c.Dense > 0 || c.Every > 0 || c.ExpertFFN > 0 || c.SharedFFN > 0 || c.KeyValues || c.Bare != nil || c.Loops > 1 ||
		c.LayerKVHeads != nil || c.LayerFFN != nil
}

// sources returns the layer whose keys and values each layer reads; nil: its own.
func (c *Config) sources() []int {
	if c.Sharing == 0 {
		return nil
	}
	list := make([]int, c.Layers)
	for i := range list {
		list[i] = i
		if !c.reads(i) {
			continue
		}
		for s := c.Layers - c.Sharing - 1; s >= 0; s-- {
			if c.windowed(s) == c.windowed(i) {
				list[i] = s
				break
			}
		}
	}
	return list
}

// layOutPages sets what caches of the model store.
func (c *Config) layOutPages(p *nn.Pages, blocks []nn.Block, kv nn.KVType) {
	p.Layers = c.Layers
	p.KV = kv.Of(blocks)
	p.Sources = c.sources()
	p.Heads, p.Dim = c.KVHeads, c.HeadDim
	p.Bare = c.Bare
	p.LayerHeads = c.LayerKVHeads
	p.LocalHeads, p.LocalDim = c.LocalKVHeads, c.LocalHeadDim
	p.Latent = c.Latent.Rank
	if c.arch().parallelRecurrent {
		p.Layers += c.Layers
	}
	p.Ropes, p.Windows = make([]*nn.Rope, p.Layers), make([]int, p.Layers)
	keeps := func(layer int, r nn.Recurrent) {
		if p.Recurrent == nil {
			p.Recurrent = make([]*nn.RecurrentShape, p.Layers)
		}
		p.Recurrent[layer] = r.Shape()
	}
	for i := range blocks {
		b := &blocks[i]
		p.Ropes[i], p.Windows[i] = b.Attn.Rope, b.Attn.Window
		if b.Recurrent != nil {
			keeps(i, b.Recurrent)
		}
		if b.ParallelRecurrent != nil {
			keeps(b.ParallelRecurrent.Layer, b.ParallelRecurrent)
		}
	}
}

// validateLayers checks the values that differ from layer to layer.
func (c *Config) validateLayers() error {
	switch {
	case c.LocalHeadDim < 0 || c.LocalHeadDim > maxWidth || c.LocalHeadDim%2 != 0:
		return fmt.Errorf("head dimension of layers with a window is %d: want an even number up to %d", c.LocalHeadDim, maxWidth)
	case c.LocalHeads < 0 || c.LocalHeads > maxHeads || c.LocalHeads%c.KVHeads != 0:
		return fmt.Errorf("%d heads of layers with a window do not share %d key/value heads evenly", c.LocalHeads, c.KVHeads)
	case c.LocalKVHeads < 0 || c.LocalKVHeads > c.Heads || c.LocalKVHeads > 0 && c.Heads%c.LocalKVHeads != 0:
		return fmt.Errorf("%d heads do not share the %d key/value heads of layers with a window evenly", c.Heads, c.LocalKVHeads)
	case c.ValueDim < 0 || c.ValueDim > c.HeadDim:
		return fmt.Errorf("a head's values have %d dimensions: want at most the %d of its key", c.ValueDim, c.HeadDim)
	case c.ValueScale != 0 && !positive(c.ValueScale):
		return fmt.Errorf("scale of values is %g: want a positive number", c.ValueScale)
	case c.PerLayer < 0 || c.PerLayer > maxWidth || int64(c.PerLayer)*int64(c.Layers) > math.MaxInt32:
		return fmt.Errorf("width of a token's part for each layer is %d: want 0 to %d", c.PerLayer, maxWidth)
	case c.ExpertFFN < 0 || c.ExpertFFN > maxWidth || c.SharedFFN < 0 || c.SharedFFN > maxWidth:
		return fmt.Errorf("widths of experts are %d and %d: want 0 to %d", c.ExpertFFN, c.SharedFFN, maxWidth)
	case c.Narrow < 0 || c.Narrow > maxWidth:
		return fmt.Errorf("width of the experts' input is %d: want 0 to %d", c.Narrow, maxWidth)
	case c.Every < 0 || c.Every > c.Layers:
		return fmt.Errorf("experts in every %d-th layer: want 1 to %d", c.Every, c.Layers)
	case c.Dense < 0 || c.Dense > c.Layers:
		return fmt.Errorf("%d layers before those with experts: want 0 to %d", c.Dense, c.Layers)
	case c.Sharing < 0 || c.Sharing >= c.Layers:
		return fmt.Errorf("%d layers read keys and values of others: want fewer than the %d layers", c.Sharing, c.Layers)
	case c.Rule.Groups < 0 || c.Rule.Groups > 1 && (c.Experts%c.Rule.Groups != 0 || c.Rule.Chosen < 1 ||
		c.Rule.Chosen > c.Rule.Groups ||
		c.Used > c.Experts/c.Rule.Groups*c.Rule.Chosen):
		return fmt.Errorf("%d experts in %d groups, %d of them chosen, %d experts used: want equal groups, and no more used than the chosen groups have",
			c.Experts, c.Rule.Groups, c.Rule.Chosen, c.Used)
	case c.Rule.Scale != 0 && !positive(float64(c.Rule.Scale)):
		return fmt.Errorf("scale of experts' weights is %g: want a positive number", c.Rule.Scale)
	}
	if err := errors.Join(c.validateLatent(), c.validateStreams(), c.validateByLayer()); err != nil {
		return err
	}
	for i, s := range c.sources() {
		if c.reads(i) && s == i {
			return fmt.Errorf("layer %d reads keys and values of another, and none of the first %d layers is of its kind: "+
				"want one that, like it, has or has no window", i, c.Layers-c.Sharing)
		}
	}
	return nil
}
