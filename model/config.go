package model

import (
	"fmt"
	"math"

	"github.com/grovellm/grove/nn"
)

// Config is the shape of a model.
type Config struct {
	Arch    string // llama, qwen2, qwen3, gptneox
	Name    string // as the file calls itself; may be empty
	Vocab   int    // rows of the embedding
	Hidden  int    // width of the residual stream
	Layers  int
	Heads   int // query heads
	KVHeads int // key/value heads; divides Heads
	HeadDim int
	FFN     int // width of the MLP
	Context int // tokens the model was made for

	NormEps  float32
	Rope     RopeConfig
	Parallel bool // attention and MLP read the same input (GPT-NeoX)
	Tied     bool // the output head is the embedding

	Padded int64 // of the parameters, how many are padding (Options.Pad)
}

// RopeConfig says how positions are rotated in.
type RopeConfig struct {
	Base       float64
	Dims       int       // rotated dimensions of a head, from its start
	Neighbours bool      // pairs are (2i, 2i+1), as in GGUF files of the llama family; else (i, i+Dims/2)
	Factors    []float32 // divide the frequency of each pair (Llama 3's scaling); nil for none
	Scale      float64   // divides every position (linear scaling); 1 for none
}

// frequencies returns the angle per position of each pair.
func (r *RopeConfig) frequencies() []float64 {
	f := nn.Frequencies(r.Base, r.Dims, r.Factors)
	for i := range f {
		f[i] /= r.Scale
	}
	return f
}

// Llama3Factors are the frequency divisors of Llama 3.1's RoPE scaling: long wavelengths are
// slowed by factor, short ones kept, those between blended.
func Llama3Factors(base float64, dims int, factor, low, high, original float64) []float32 {
	f := make([]float32, dims/2)
	for i, freq := range nn.Frequencies(base, dims, nil) {
		wavelength := 2 * math.Pi / freq
		switch {
		case wavelength < original/high:
			f[i] = 1
		case wavelength > original/low:
			f[i] = float32(factor)
		default:
			smooth := (original/wavelength - low) / (high - low)
			f[i] = float32(1 / ((1-smooth)/factor + smooth))
		}
	}
	return f
}

// Limits on what a file may claim, far above any real model, so that a hostile one cannot
// make us size buffers by its word.
const (
	maxWidth   = 1 << 20
	maxLayers  = 1 << 12
	maxHeads   = 1 << 12
	maxContext = 1 << 26
)

// Validate checks that the numbers make a model.
func (c *Config) Validate() error {
	for _, f := range []struct {
		what      string
		v, lo, hi int
	}{
		{"vocabulary", c.Vocab, 1, 1 << 24},
		{"hidden size", c.Hidden, 1, maxWidth},
		{"layer count", c.Layers, 1, maxLayers},
		{"head count", c.Heads, 1, maxHeads},
		{"key/value head count", c.KVHeads, 1, c.Heads},
		{"head dimension", c.HeadDim, 2, maxWidth},
		{"feed-forward size", c.FFN, 1, maxWidth},
		{"context length", c.Context, 1, maxContext},
		{"rotated dimensions", c.Rope.Dims, 2, c.HeadDim},
	} {
		if f.v < f.lo || f.v > f.hi {
			return fmt.Errorf("%s is %d: want %d to %d", f.what, f.v, f.lo, f.hi)
		}
	}
	switch {
	case c.Heads%c.KVHeads != 0:
		return fmt.Errorf("%d heads do not share %d key/value heads evenly", c.Heads, c.KVHeads)
	case c.Rope.Dims%2 != 0:
		return fmt.Errorf("%d rotated dimensions: want an even number", c.Rope.Dims)
	case c.Rope.Factors != nil && len(c.Rope.Factors) != c.Rope.Dims/2:
		return fmt.Errorf("%d rope factors for %d rotated dimensions: want half as many", len(c.Rope.Factors), c.Rope.Dims)
	case !(c.NormEps > 0 && c.NormEps < 1):
		return fmt.Errorf("norm epsilon is %g: want a small positive number", c.NormEps)
	case !(c.Rope.Base > 0) || math.IsInf(c.Rope.Base, 0):
		return fmt.Errorf("rope base is %g: want a positive number", c.Rope.Base)
	case !(c.Rope.Scale > 0) || math.IsInf(c.Rope.Scale, 0):
		return fmt.Errorf("rope scaling factor is %g: want a positive number", c.Rope.Scale)
	}
	for i, f := range c.Rope.Factors {
		if !(f > 0) || math.IsInf(float64(f), 0) {
			return fmt.Errorf("rope factor %d is %g: want a positive number", i, f)
		}
	}
	return nil
}
