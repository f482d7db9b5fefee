package model

import (
	"errors"
	"fmt"
	"math"
)

// gemma is Gemma 1 and CodeGemma: Llama's layers with GeGLU, and larger embeddings.
var gemma = architecture{
	name: "gemma", modelType: "gemma", class: "GemmaForCausalLM",
	keys:     rmsKeys,
	defaults: hfConfig{HiddenAct: "gelu_pytorch_tanh", RMSNormEps: 1e-6, KVHeads: 16, HeadDim: 256, Tied: true},
	layer:    llamaLayer,
	biases:   map[string]string{"attention_bias": "attn_q attn_k attn_v attn_output"},
	shifted:  true,

	implied: func(c *Config) { c.EmbedScale = math.Sqrt(float64(c.Hidden)) },
	readFields: func(h *hfConfig, c *Config) error {
		h.QueryScalar = float64(c.HeadDim)
		return c.readGemma(h)
	},
	check: func(c *Config) error {
		switch {
		case !c.Tied:
			return errors.New("an output matrix separate from the embedding: GGUF files of gemma have none")
		case float32(c.EmbedScale) != float32(math.Sqrt(float64(c.Hidden))):
			return errGemmaScale
		}
		return nil
	},
}

// gemma2 is Gemma 2: norms before and after each half, soft caps, a window in every other layer.
var gemma2 = architecture{
	name: "gemma2", modelType: "gemma2", class: "Gemma2ForCausalLM",
	keys:   rmsAnd("attention.scale attn_logit_softcapping final_logit_softcapping rope.freq_base_swa " + windowPattern),
	fields: "attn_logit_softcapping final_logit_softcapping",
	defaults: hfConfig{HiddenAct: "gelu_pytorch_tanh", RMSNormEps: 1e-6, KVHeads: 4, HeadDim: 256, Window: 4096,
		AttnCap: 50, LogitCap: 30, QueryScalar: 256, Tied: true},
	layer:   gemmaLayer,
	biases:  map[string]string{"attention_bias": "attn_q attn_k attn_v attn_output"},
	shifted: true, window: 2, listed: true,

	implied: func(c *Config) {
		c.AttnCap, c.LogitCap = 50, 30
		c.SetWindow(4096)
		c.impliedGemma(46)
	},
	readKeys:  func(k *keys, c *Config) { c.readLocalBase(k) },
	writeKeys: writeLocalBase,
	readFields: func(h *hfConfig, c *Config) error {
		c.AttnCap, c.LogitCap = float64(h.AttnCap), float64(h.LogitCap)
		return c.readGemma(h)
	},
	writeFields: func(c *Config, m map[string]any) error {
		m["attn_logit_softcapping"], m["final_logit_softcapping"] = orNull(c.AttnCap), orNull(c.LogitCap)
		if c.LocalRope != nil {
			return errors.New("key rope.freq_base_swa: config.json of gemma2 cannot express it")
		}
		return c.writeGemma(m)
	},
	check: func(c *Config) error { return c.checkGemma(46) },
}

// gemma3 is the text part of Gemma 3: norms of queries and keys, and a window with its own rotation
// in five of six layers.
var gemma3 = architecture{
	name: "gemma3", modelType: "gemma3_text", class: "Gemma3ForCausalLM",
	keys:   rmsAnd("attention.scale final_logit_softcapping rope.freq_base_swa " + windowPattern),
	fields: "final_logit_softcapping rope_local_base_freq",
	defaults: hfConfig{HiddenAct: "gelu_pytorch_tanh", RMSNormEps: 1e-6, KVHeads: 4, HeadDim: 256, Window: 4096,
		QueryScalar: 256, LocalTheta: 1e4, WindowPattern: 6, Tied: true, hfRopes: hfRopes{defaultTheta: 1e6},
		Heads: 8, VocabSize: 262208, MaxPositions: 131072}, // left out in published folders with a text_config
	layer:   append([]part{queryNorm, keyNorm}, gemmaLayer...),
	biases:  map[string]string{"attention_bias": "attn_q attn_k attn_v attn_output"},
	shifted: true, window: 6, listed: true,

	implied:   func(c *Config) { c.impliedGemma(62) },
	local:     func(c *Config) { c.setLocalRope(1e4) },
	readKeys:  func(k *keys, c *Config) { c.setLocalRope(k.float("rope.freq_base_swa", 1e4)) },
	writeKeys: writeLocalBase,
	readFields: func(h *hfConfig, c *Config) error {
		c.LogitCap = float64(h.LogitCap)
		h.setPattern(c)
		c.setLocalRope(h.LocalTheta)
		return c.readGemma(h)
	},
	writeFields: func(c *Config, m map[string]any) error {
		m["final_logit_softcapping"] = orNull(c.LogitCap)
		if c.LocalRope != nil {
			m["rope_local_base_freq"] = decimal(c.LocalRope.Base)
		}
		return c.writeGemma(m)
	},
	check: func(c *Config) error { return c.checkGemma(62) },
}

var gemmaLayer = []part{
	attnNorm, query, key, value, attnOutput,
	attnPost,
	{name: "ffn_norm", folder: "pre_feedforward_layernorm", out: hidden},
	ffnGate, ffnUp, ffnDown, ffnPost,
}

// impliedGemma sets values that GGUF files do not state. The largest model, recognised by its
// number of layers, has a different scale of scores.
func (c *Config) impliedGemma(largest int) {
	c.EmbedScale = math.Sqrt(float64(c.Hidden))
	c.AttnScale = c.rootScale()
	if c.Layers == largest {
		c.AttnScale = 1 / math.Sqrt(float64(c.Hidden/max(c.Heads, 1)))
	}
}

// rootScale is the usual scale of attention scores.
func (c *Config) rootScale() float64 { return 1 / math.Sqrt(float64(c.HeadDim)) }

func (c *Config) readGemma(h *hfConfig) error {
	switch {
	case !(h.QueryScalar > 0):
		return errors.New("query_pre_attn_scalar: want a positive number")
	case h.Activation != "" && h.Activation != h.HiddenAct:
		return fmt.Errorf("hidden_activation is %q: models run here use %q", h.Activation, h.HiddenAct)
	}
	c.EmbedScale, c.AttnScale = math.Sqrt(float64(c.Hidden)), 1/math.Sqrt(h.QueryScalar)
	return nil
}

func (c *Config) writeGemma(m map[string]any) error {
	m["query_pre_attn_scalar"] = math.Round(1e3/(c.AttnScale*c.AttnScale)) / 1e3 // transformers 5 requires an integer
	m["hidden_activation"] = m["hidden_act"]
	return nil
}

// checkGemma refuses scales that other engines would not read from GGUF files of the family.
func (c *Config) checkGemma(largest int) error {
	x := *c
	x.impliedGemma(largest)
	if float32(x.AttnScale) != float32(c.AttnScale) || float32(x.EmbedScale) != float32(c.EmbedScale) {
		return errGemmaScale
	}
	return nil
}

var errGemmaScale = errors.New("GGUF files of the architecture cannot express this scale of attention scores " +
	"(query_pre_attn_scalar) or of embeddings")

// readLocalBase gives layers with a window their own base, if the file has one.
func (c *Config) readLocalBase(k *keys) {
	if base := k.float("rope.freq_base_swa", 0); base != 0 && c.Window > 0 {
		local := c.Rope
		local.Base = base
		c.LocalRope = &local
	}
}

func writeLocalBase(c *Config, set func(string, any)) {
	if c.LocalRope != nil {
		set("rope.freq_base_swa", float32(c.LocalRope.Base))
	}
}

// orNull returns x for config.json, with null for 0.
func orNull(x float64) any {
	if x == 0 {
		return nil
	}
	return floating(decimal(x))
}
