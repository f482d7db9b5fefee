// The rotation of positions in config.json, which different versions of transformers keep in
// different fields.

package model

import (
	"cmp"
	"fmt"
	"math"
	"reflect"
)

// hfRopes are the fields that describe the rotation.
type hfRopes struct {
	Theta      numbers  `json:"rope_theta"`
	RotaryBase *float64 `json:"rotary_emb_base"` // GPT-NeoX's
	RotaryPct  *float64 `json:"rotary_pct"`      // GPT-NeoX's
	Partial    *float64 `json:"partial_rotary_factor"`
	RotaryDim  int      `json:"rotary_dim"`      // MiniMax's
	Params     *hfRope  `json:"rope_parameters"` // transformers 5
	Scaling    *hfRope  `json:"rope_scaling"`

	defaultTheta float64 // the architecture's default; 0: 10000
}

// hfRope is the object of rope_parameters or rope_scaling.
type hfRope struct {
	Type        string    `json:"rope_type"`
	OldType     string    `json:"type"`
	Theta       *float64  `json:"rope_theta"`
	Partial     *float64  `json:"partial_rotary_factor"`
	Factor      float64   `json:"factor"`
	Low         float64   `json:"low_freq_factor"`
	High        float64   `json:"high_freq_factor"`
	Original    float64   `json:"original_max_position_embeddings"`
	Fast        float64   `json:"beta_fast"`
	Slow        float64   `json:"beta_slow"`
	MScale      float64   `json:"mscale"`
	MScaleAll   float64   `json:"mscale_all_dim"`
	AttnFactor  float64   `json:"attention_factor"`
	AttnTimes   float64   `json:"attn_factor"` // multiplies YaRN's own factor, as in vLLM
	Long        []float32 `json:"long_factor"`
	Short       []float32 `json:"short_factor"`
	LongScale   float64   `json:"long_mscale"` // of the rotated dimensions, in Phi-3.5-MoE
	ShortScale  float64   `json:"short_mscale"`
	Truncate    *bool     `json:"truncate"`             // YaRN's; missing: true
	TemperScale float64   `json:"llama_4_scaling_beta"` // Ministral 3's
	Alpha       float64   `json:"alpha"`                // Hunyuan's
	Full        *hfRope   `json:"full_attention"`       // where layers with a window have a different rotation
	Sliding     *hfRope   `json:"sliding_attention"`
}

// scaling returns the part of an object that describes the scaling.
func (r *hfRope) scaling() hfRope {
	if r == nil {
		return hfRope{}
	}
	s := *r
	s.Type = cmp.Or(r.Type, r.OldType)
	s.OldType = ""
	s.Theta, s.Partial = nil, nil
	s.Full, s.Sliding = nil, nil
	return s
}

// rope reads the rotation. If two fields state the same thing, they must agree.
func (h *hfConfig) rope(a *architecture, c *Config) error {
	thetas, parts := make([]*float64, 1), []*float64{h.Partial}
	switch len(h.Theta) {
	case 0:
	case 1:
		thetas[0] = &h.Theta[0]
	default:
		return fmt.Errorf("rope_theta is a list of %d numbers: want one", len(h.Theta))
	}
	rotated := cmp.Or(a.rotated, 1)
	if a.obeys("rotary_dim") && h.RotaryDim != 0 {
		rotated = share(h.RotaryDim, c.HeadDim)
	}
	if a.obeys("rotary_pct") {
		thetas, parts = append(thetas, h.RotaryBase), append(parts, h.RotaryPct)
	}
	if p := h.Params; p != nil && p.Full != nil && a.obeys("rope_local_base_freq") {
		h.Params = p.Full
		if s := p.Sliding; s != nil {
			if kind := cmp.Or(s.Type, s.OldType, "default"); kind != "default" {
				return fmt.Errorf("rope_parameters: sliding_attention has the type %q: want default", kind)
			}
			if s.Theta != nil {
				h.LocalTheta = *s.Theta
			}
		}
	}
	for _, r := range []*hfRope{h.Params, h.Scaling} {
		if r != nil {
			thetas, parts = append(thetas, r.Theta), append(parts, r.Partial)
		}
	}
	c.Rope.Neighbours = a.interleaved
	def := cmp.Or(a.defaults.defaultTheta, 10000) // transformers'
	var err error
	if c.Rope.Base, err = agreed("rope_theta", def, thetas); err != nil {
		return err
	}
	if rotated, err = agreed("rotary_pct, or partial_rotary_factor,", rotated, parts); err != nil {
		return err
	}
	switch {
	case !(rotated > 0 && rotated <= 1):
		return fmt.Errorf("rotary_pct, partial_rotary_factor, or rotary_dim of head_dim, is %g: want more than 0, at most 1", rotated)
	case a.rotated == 0 && rotated != 1:
		return fmt.Errorf("partial_rotary_factor is %g: want 1 for a %s model", rotated, c.Arch)
	}
	c.Rope.Dims = int(rotated * float64(c.HeadDim))
	s, params := h.Scaling.scaling(), h.Params.scaling()
	if reflect.DeepEqual(s, hfRope{}) {
		s = params
	} else if params.Type != "" && !reflect.DeepEqual(params, s) {
		return fmt.Errorf("rope_scaling and rope_parameters disagree: leave one of them out")
	}
	if a.dynamic && s.Type == "dynamic" {
		s.Type, s.Factor = "", 0
	}
	s.Original = cmp.Or(s.Original, float64(h.OriginalPositions))
	return s.apply(c)
}

// agreed returns the value that the fields state, or def if none does.
func agreed(name string, def float64, stated []*float64) (float64, error) {
	var first *float64
	for _, x := range stated {
		switch {
		case x == nil:
		case first == nil:
			first, def = x, *x
		case *x != *first:
			return 0, fmt.Errorf("%s has two values, %g and %g: leave one of them out", name, *first, *x)
		}
	}
	return def, nil
}

// apply sets the scaling of positions.
func (r *hfRope) apply(c *Config) error {
	c.Rope.Scale = 1
	long := r.Type == "longrope" || r.Type == "su"
	if x, y := cmp.Or(r.AttnFactor, 1), cmp.Or(r.AttnTimes, 1); r.Type != "yarn" && (x != 1 && !long || y != 1) {
		return fmt.Errorf("rope_scaling: attention_factor is %g and attn_factor is %g, which the type does not use: leave them out", x, y)
	}
	switch r.Type {
	case "", "default":
		if r.Factor != 0 && r.Factor != 1 {
			return fmt.Errorf("rope_scaling: factor is %g, which the type does not use: "+
				"want the type linear, llama3 or yarn", r.Factor)
		}
	case "linear":
		c.Rope.Scale = r.Factor
	case "llama3":
		positive := r.Factor > 0 && r.Low > 0 && r.High > r.Low && r.Original > 0
		if !positive || c.Rope.Dims < 2 || c.Rope.Dims > maxWidth {
			return fmt.Errorf("rope_scaling: llama3 scaling wants a positive factor, " +
				"low_freq_factor < high_freq_factor and original_max_position_embeddings")
		}
		c.Rope.Factors = Llama3Factors(c.Rope.Base, c.Rope.Dims, r.Factor, r.Low, r.High, r.Original)
	case "dynamic":
		if !(r.Alpha > 0) || r.Factor != 0 && r.Factor != 1 || c.Rope.Dims < 4 {
			return fmt.Errorf("rope_scaling: dynamic with alpha %g and factor %g: want a positive alpha without factor, "+
				"or the type default, which is the same within max_position_embeddings", r.Alpha, r.Factor)
		}
		c.Rope.Base *= math.Pow(r.Alpha, float64(c.Rope.Dims)/float64(c.Rope.Dims-2))
	case "yarn":
		return r.yarn(c)
	case "longrope", "su":
		return r.longrope(c)
	default:
		return fmt.Errorf("rope_scaling: type %q is not supported: want linear, llama3, yarn or longrope", r.Type)
	}
	return nil
}

// yarn sets YaRN's scaling.
func (r *hfRope) yarn(c *Config) error {
	if !(r.Factor > 0) {
		return fmt.Errorf("rope_scaling: yarn has a factor of %g: want a positive number", r.Factor)
	}
	y := &Yarn{Fast: cmp.Or(r.Fast, 32), Slow: cmp.Or(r.Slow, 1), Between: r.Truncate != nil && !*r.Truncate}
	c.Rope.Yarn, c.Rope.Scale = y, r.Factor
	c.Rope.Original = int(cmp.Or(r.Original, float64(c.Context)))
	c.Context = max(c.Context, int(min(float64(c.Rope.Original)*r.Factor, maxContext))) // as in vLLM
	switch {
	case r.AttnFactor != 0:
		c.Rope.setAttn(r.AttnFactor / y.factor(r.Factor))
	case r.AttnTimes != 0:
		c.Rope.setAttn(r.AttnTimes)
	case r.MScale != 0 && r.MScaleAll != 0:
		y.LogMul = r.MScaleAll
		m := Yarn{LogMul: r.MScale}
		c.Rope.setAttn(1 / m.factor(r.Factor))
	}
	return nil
}

// setAttn sets the factor of the rotated dimensions, or none if it is 1 to within rounding.
func (r *RopeConfig) setAttn(x float64) {
	r.Attn = 0
	if math.Abs(x-1) > 1e-6 {
		r.Attn = x
	}
}

// longrope sets the scaling of Phi 3: factors of frequencies for short and for long contexts (arXiv
// 2402.13753).
func (r *hfRope) longrope(c *Config) error {
	if len(r.Long) == 0 || len(r.Long) != len(r.Short) {
		return fmt.Errorf("rope_scaling: %d elements of long_factor and %d of short_factor: want the same number",
			len(r.Long), len(r.Short))
	}
	original := cmp.Or(r.Original, float64(c.Context))
	c.Rope.Long, c.Rope.Short = r.Long, r.Short
	c.Rope.Original = int(original)
	c.Rope.Attn = r.AttnFactor
	if factor := cmp.Or(r.Factor, float64(c.Context)/original); r.AttnFactor == 0 && factor > 1 {
		c.Rope.Attn = math.Sqrt(1 + math.Log(factor)/math.Log(original))
	}
	return nil
}
