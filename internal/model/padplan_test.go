package model

import (
	"testing"

	"github.com/grovellm/grove/internal/kernels/gemm"
)

// The shapes that padding makes look like those of models of that size: tens of layers, none of them huge.
func TestPaddedShapes(t *testing.T) {
	small := Config{Arch: "qwen3", Vocab: 16384, Hidden: 256, Layers: 6, Heads: 4, KVHeads: 2, HeadDim: 64,
		FFN: 704, Context: 2048,
		NormEps: 1e-6, Rope: RopeConfig{Base: 1e4, Dims: 64, Scale: 1}, Tied: true}
	large := small
	large.Hidden = 2048
	large.Layers = 28
	large.Heads = 16
	large.KVHeads = 8
	large.HeadDim = 128
	large.FFN = 6144
	for _, c := range []struct {
		from       Config
		to         int64
		least, top int // layers
	}{
		{small, 20e6, 20, 60},
		{small, 100e6, 40, 60},
		{small, 500e6, 45, 55},
		{small, 1e9, 90, 110},
		{large, 2e9, 29, 50},
		{large, 8e9, 100, 250},
	} {
		p, err := c.from.padded(c.to, gemm.Group)
		if err != nil {
			t.Fatal(err)
		}
		layer := p.layerParameters(p.FFN, 0)
		if d := p.Parameters() - c.to; d > layer || d < -layer {
			t.Errorf("to %d: %d parameters in layers of %d", c.to, p.Parameters(), layer)
		}
		if p.Layers < c.least || p.Layers > c.top || p.FFN < c.from.FFN {
			t.Errorf("to %d: %d layers of %d parameters, feed-forward %d", c.to, p.Layers, layer, p.FFN)
		}
		t.Logf("to %d: %d parameters, %d layers of %d, feed-forward %d", c.to, p.Parameters(), p.Layers, layer, p.FFN)
	}
}
