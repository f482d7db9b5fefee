package model

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
)

// falconH1 is Falcon-H1: every layer has Mamba-2 beside its attention, of one input.
var falconH1 = architecture{
	name: "falcon-h1", modelType: "falcon_h1", class: "FalconH1ForCausalLM",
	keys:   rmsAnd(mambaKeys),
	fields: "embedding_multiplier",
	defaults: hfConfig{HiddenAct: "silu", RMSNormEps: 1e-5, KVHeads: 8,
		MambaHeads: 128, MambaGroups: 1, MambaStateDim: 256, MambaHeadDim: "auto", MambaKernel: 4, MambaExpand: 2,
		MambaConvBias: true, MambaWidth: 1024, NormBeforeGate: true, EmbedMultiplier: 1, FolderScales: noScales},
	top: []part{
		llamaTop[0],
		{name: "output_norm", folder: "model.final_layernorm", out: hidden},
		llamaTop[2],
	},
	layer: append(mambaParts("mamba.", nil),
		query, key, value, attnOutput, attnNorm,
		part{name: "ffn_norm", whole: true, folder: "pre_ff_layernorm", out: hidden},
		part{name: "ffn_gate", folder: "feed_forward.gate_proj", out: inner, in: hidden},
		part{name: "ffn_up", folder: "feed_forward.up_proj", out: inner, in: hidden},
		part{name: "ffn_down", folder: "feed_forward.down_proj", out: hidden, in: inner}),
	biases:            map[string]string{"mamba_conv_bias": "ssm_conv1d"},
	parallelRecurrent: true,

	recurrent: (*builder).mamba,
	readKeys: func(k *keys, c *Config) {
		readMambaKeys(k, c)
		c.Mamba.Plain = !k.HasTensor("blk.0.ssm_norm.weight")
	},
	writeKeys:   writeMambaKeys,
	readFields:  readFalconFields,
	writeFields: writeFalconFields,
}

// FolderScales are the numbers that a folder of Falcon-H1 has beside its matrices, and GGUF files have in them.
type FolderScales struct {
	Embed    floating    `json:"-"` // a field of others too
	Head     floating    `json:"lm_head_multiplier"`
	AttnIn   floating    `json:"attention_in_multiplier"`
	AttnOut  floating    `json:"attention_out_multiplier"`
	Key      floating    `json:"key_multiplier"`
	MambaIn  floating    `json:"ssm_in_multiplier"`
	MambaOut floating    `json:"ssm_out_multiplier"`
	Mamba    [5]floating `json:"ssm_multipliers"` // of the rows z, x, B, C and dt
	MLP      [2]floating `json:"mlp_multipliers"` // of gate and down

	tied bool // the output matrix is the folder's embedding, by Head in place of Embed
}

var noScales = FolderScales{1, 1, 1, 1, 1, 1, 1, [5]floating{1, 1, 1, 1, 1}, [2]floating{1, 1}, false}

// fields are the numbers by config.json's names.
func (s *FolderScales) fields() map[string][]floating {
	return map[string][]floating{
		"embedding_multiplier": {s.Embed}, "lm_head_multiplier": {s.Head}, "key_multiplier": {s.Key},
		"attention_in_multiplier": {s.AttnIn}, "attention_out_multiplier": {s.AttnOut},
		"ssm_in_multiplier": {s.MambaIn}, "ssm_out_multiplier": {s.MambaOut},
		"ssm_multipliers": s.Mamba[:], "mlp_multipliers": s.MLP[:],
	}
}

func readFalconFields(h *hfConfig, c *Config) error {
	width := cmp.Or(int(h.MambaWidth), h.MambaExpand*c.Hidden)
	c.Kernel = h.MambaKernel
	c.Mamba = MambaConfig{Heads: h.MambaHeads, Groups: h.MambaGroups, StateDim: h.MambaStateDim, Plain: !h.MambaNorm}
	c.Mamba.HeadDim = h.mambaHeadDim(width)
	s := h.FolderScales
	s.Embed = floating(h.EmbedMultiplier)
	if s != noScales {
		c.Scales = &s
	}
	for name, list := range s.fields() {
		if slices.ContainsFunc(list, func(x floating) bool { return !positive(float64(x)) }) {
			return fmt.Errorf("field %q is %g: want positive numbers", name, list)
		}
	}
	switch {
	case c.Mamba.inner() != width:
		return fmt.Errorf("field mamba_d_ssm is %d, but field mamba_n_heads is %d and field mamba_d_head %d: want their product",
			width, c.Mamba.Heads, c.Mamba.HeadDim)
	case h.MambaNorm && h.NormBeforeGate:
		return errors.New("mamba_norm_before_gate is true: grove computes the norm after the gate, as llama.cpp does")
	case c.Tied && s.Embed != s.Head:
		c.Tied, s.tied = false, true
	}
	return h.checkTimeSteps()
}

func writeFalconFields(c *Config, m map[string]any) error {
	s := noScales
	if c.Scales != nil {
		s = *c.Scales
	}
	maps.Copy(m, map[string]any{
		"mamba_d_ssm": c.Mamba.inner(), "mamba_n_heads": c.Mamba.Heads, "mamba_d_head": c.Mamba.HeadDim,
		"mamba_n_groups": c.Mamba.Groups, "mamba_d_state": c.Mamba.StateDim, "mamba_d_conv": c.Kernel,
		"mamba_conv_bias": true, "mamba_rms_norm": !c.Mamba.Plain, "mamba_norm_before_gate": false,
	})
	for name, list := range s.fields() {
		m[name] = list
		if len(list) == 1 {
			m[name] = list[0]
		}
	}
	return nil
}

// factors are those of the rows of a part; nil: 1.
func (c *Config) factors(part string) func(row int) [2]float32 {
	s := c.Scales
	a, b := floating(1), floating(1)
	switch part {
	case "token_embd":
		a = s.Embed
	case "output":
		a = s.Head
	case "attn_q", "attn_v":
		a = s.AttnIn
	case "attn_k":
		a, b = s.Key, s.AttnIn
	case "attn_output":
		a = s.AttnOut
	case "ssm_in":
		return c.mambaFactors
	case "ssm_out":
		a = s.MambaOut
	case "ffn_gate":
		a = s.MLP[0]
	case "ffn_down":
		a = s.MLP[1]
	}
	if a == 1 && b == 1 {
		return nil
	}
	return func(int) [2]float32 { return [2]float32{float32(a), float32(b)} }
}

// mambaFactors are those of a row of Mamba-2's first product.
func (c *Config) mambaFactors(row int) [2]float32 {
	m, i := &c.Mamba, 0
	for keys := m.Groups * m.StateDim; i < 4; i++ {
		n := []int{m.inner(), m.inner(), keys, keys}[i]
		if row < n {
			break
		}
		row -= n
	}
	return [2]float32{float32(c.Scales.MambaIn), float32(c.Scales.Mamba[i])}
}
