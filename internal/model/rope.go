package model

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/grovellm/grove/internal/nn"
)

// Yarn is the scaling of positions of arXiv 2309.00071: RopeConfig's Scale divides the positions of
// slow pairs, fast ones are unchanged, and those in between are blended.
type Yarn struct {
	Fast, Slow float64 // turns within the original context of the pairs where the blend begins and ends
	Between    bool    // the blend may begin and end between two pairs; else its bounds are rounded, as in llama.cpp
	Plain      bool    // the scores are multiplied, not the rotated dimensions (deepseek2)
	LogMul     float64 // the attention factor is m(1)/m(LogMul), where m(x) = 1 + x/10·ln Scale; 0: m(1)
}

// frequencies returns the angle per position of each pair.
func (r *RopeConfig) frequencies() []float64 {
	f := nn.Frequencies(r.Base, r.Dims, r.Factors)
	var low, high float64
	if r.Yarn != nil {
		low, high = r.blend()
	}
	for i, x := range f {
		slow := x / r.Scale
		f[i] = slow
		if r.Yarn != nil {
			share := 1 - min(1, max(0, (float64(i)-low)/max(0.001, high-low))) // of the unscaled frequency
			f[i] = float64(slow*(1-share)) + float64(x*share)
		}
	}
	return f
}

// blend returns the pairs between which YaRN blends.
func (r *RopeConfig) blend() (low, high float64) {
	at := func(turns float64) float64 {
		return float64(r.Dims) * math.Log(float64(r.Original)/(turns*2*math.Pi)) / (2 * math.Log(r.Base))
	}
	low, high = at(r.Yarn.Fast), at(r.Yarn.Slow)
	if !r.Yarn.Between {
		low, high = math.Floor(low), math.Ceil(high)
	}
	return max(0, low), min(float64(r.Dims-1), high)
}

// factor returns the factor of the rotated dimensions.
func (r *RopeConfig) factor() float64 {
	attn := cmp.Or(r.Attn, 1)
	if r.Yarn == nil || r.Yarn.Plain {
		return attn
	}
	return attn * r.Yarn.factor(r.Scale)
}

func (y *Yarn) factor(scale float64) float64 {
	m := func(x float64) float64 { return 1 + x/10*math.Log(max(1, scale)) }
	if y.LogMul != 0 {
		return m(1) / m(y.LogMul)
	}
	return m(1)
}

// rope returns the rotation.
func (r *RopeConfig) rope() *nn.Rope {
	return nn.NewScaledRope(r.frequencies(), r.Neighbours, r.factor())
}

// setContext chooses the frequency divisors for a context, as llama.cpp does when it opens a model.
func (r *RopeConfig) setContext(n int) {
	if r.Long == nil {
		return
	}
	r.Factors = r.Short
	if n > r.Original {
		r.Factors = r.Long
	}
}

// Divisors returns the frequency factors as GGUF files have them; nil: none.
func (c *Config) Divisors() []float32 {
	f := slices.Clone(c.Rope.Factors)
	for c.arch().halved && f != nil && len(f) < c.LocalRope.Dims/2 {
		f = append(f, 1)
	}
	return f
}

// plain reports whether positions are rotated in without YaRN, longrope or a factor.
func (r *RopeConfig) plain() bool {
	return r.Yarn == nil && r.Long == nil && (r.Attn == 0 || r.Attn == 1)
}

// validate checks the numbers of a rotation.
func (r *RopeConfig) validate() error {
	switch {
	case !positive(r.Base):
		return fmt.Errorf("rope base is %g: want a positive number", r.Base)
	case !positive(r.Scale):
		return fmt.Errorf("rope scaling factor is %g: want a positive number", r.Scale)
	case r.Attn != 0 && !positive(r.Attn):
		return fmt.Errorf("rope attention factor is %g: want a positive number", r.Attn)
	case (r.Yarn != nil || r.Long != nil) && r.Original < 1:
		return fmt.Errorf("original context of the rope scaling is %d: want a positive number", r.Original)
	case len(r.Long) != len(r.Short):
		return fmt.Errorf("%d long rope factors and %d short ones: want the same number", len(r.Long), len(r.Short))
	case r.Yarn != nil && !(r.Base > 1):
		return fmt.Errorf("rope base is %g: want more than 1, with yarn", r.Base)
	case r.Yarn != nil && !(positive(r.Yarn.Fast) && positive(r.Yarn.Slow) && r.Yarn.LogMul >= 0):
		return fmt.Errorf("yarn's bounds are %g and %g turns, its multiplier is %g: want positive numbers",
			r.Yarn.Fast, r.Yarn.Slow, r.Yarn.LogMul)
	}
	for _, list := range [][]float32{r.Factors, r.Long, r.Short} {
		if list != nil && len(list) != r.Dims/2 {
			return fmt.Errorf("%d rope factors for %d rotated dimensions: want half as many", len(list), r.Dims)
		}
		for i, f := range list {
			if !positive(float64(f)) {
				return fmt.Errorf("rope factor %d is %g: want a positive number", i, f)
			}
		}
	}
	return nil
}

// Llama3Factors returns the frequency divisors of Llama 3.1's RoPE scaling: long wavelengths are
// slowed by factor, short ones kept, and those in between blended.
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
