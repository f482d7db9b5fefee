// The rotation of positions in config.json, which versions of transformers keep in different
// fields.

package model

import (
	"cmp"
	"fmt"
)

// hfRopes are the fields that say something of the rotation.
type hfRopes struct {
	Theta      *float64 `json:"rope_theta"`
	RotaryBase *float64 `json:"rotary_emb_base"` // GPT-NeoX's
	RotaryPct  *float64 `json:"rotary_pct"`      // GPT-NeoX's
	Partial    *float64 `json:"partial_rotary_factor"`
	Params     *hfRope  `json:"rope_parameters"` // transformers 5
	Scaling    *hfRope  `json:"rope_scaling"`
}

// hfRope is the object of rope_parameters or rope_scaling.
type hfRope struct {
	Type     string   `json:"rope_type"`
	OldType  string   `json:"type"`
	Theta    *float64 `json:"rope_theta"`
	Partial  *float64 `json:"partial_rotary_factor"`
	Factor   float64  `json:"factor"`
	Low      float64  `json:"low_freq_factor"`
	High     float64  `json:"high_freq_factor"`
	Original float64  `json:"original_max_position_embeddings"`
}

// scaling returns what an object says of the scaling alone.
func (r *hfRope) scaling() hfRope {
	if r == nil {
		return hfRope{}
	}
	return hfRope{Type: cmp.Or(r.Type, r.OldType), Factor: r.Factor, Low: r.Low, High: r.High, Original: r.Original}
}

// rope reads the rotation. Where two fields say the same thing, they must agree.
func (h *hfRopes) rope(c *Config) error {
	thetas, parts := []*float64{h.Theta}, []*float64{h.Partial}
	share := 1.0
	if c.Arch == "gptneox" {
		share = 0.25 // transformers' default
		thetas, parts = append(thetas, h.RotaryBase), append(parts, h.RotaryPct)
	}
	for _, r := range []*hfRope{h.Params, h.Scaling} {
		if r != nil {
			thetas, parts = append(thetas, r.Theta), append(parts, r.Partial)
		}
	}
	var err error
	if c.Rope.Base, err = agreed("rope_theta", 10000, thetas); err != nil { // transformers' default
		return err
	}
	if share, err = agreed("rotary_pct, or partial_rotary_factor,", share, parts); err != nil {
		return err
	}
	switch {
	case !(share > 0 && share <= 1):
		return fmt.Errorf("rotary_pct, or partial_rotary_factor, is %g: want more than 0, at most 1", share)
	case c.Arch != "gptneox" && share != 1:
		return fmt.Errorf("partial_rotary_factor is %g: want 1 for a %s model", share, c.Arch)
	}
	c.Rope.Dims = int(share * float64(c.HeadDim))
	s, params := h.Scaling.scaling(), h.Params.scaling()
	if s == (hfRope{}) {
		s = params
	} else if params.Type != "" && params != s {
		return fmt.Errorf("rope_scaling and rope_parameters disagree: leave one of them out")
	}
	return s.apply(c)
}

// agreed returns the value that fields state, or def where none does.
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
	switch r.Type {
	case "", "default":
		if r.Factor != 0 && r.Factor != 1 {
			return fmt.Errorf("rope_scaling: factor is %g, and the type does not use it: "+
				"want the type linear or llama3", r.Factor)
		}
	case "linear":
		if !(r.Factor > 0) {
			return fmt.Errorf("rope_scaling: factor is %g: want a positive number", r.Factor)
		}
		c.Rope.Scale = r.Factor
	case "llama3":
		positive := r.Factor > 0 && r.Low > 0 && r.High > r.Low && r.Original > 0
		if !positive || c.Rope.Dims < 2 || c.Rope.Dims > maxWidth {
			return fmt.Errorf("rope_scaling: llama3 scaling wants positive factor, " +
				"low_freq_factor < high_freq_factor and original_max_position_embeddings")
		}
		c.Rope.Factors = Llama3Factors(c.Rope.Base, c.Rope.Dims, r.Factor, r.Low, r.High, r.Original)
	default:
		return fmt.Errorf("rope_scaling: type %q is not supported: want linear or llama3", r.Type)
	}
	return nil
}
