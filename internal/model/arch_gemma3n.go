package model

import (
	"fmt"
	"math"
	"slices"

	"github.com/grovellm/grove/gguf"
	"github.com/grovellm/grove/internal/nn"
)

// gemma3n is the text part of Gemma 3n: Gemma 4's tables and layers that read other layers' keys and values, several
// residual streams (nn.AltUp), a shortcut around attention (nn.Laurel), and MLPs whose gates are mostly zero.
// llama.cpp takes some numbers as given: 20 layers with keys, 10 with such gates, a shortcut of 64, a table of 256.
var gemma3n = architecture{
	name: "gemma3n", modelType: "gemma3n_text", class: "Gemma3nForCausalLM",
	keys: rmsAnd(`final_logit_softcapping rope.freq_base_swa attention.shared_kv_layers embedding_length_per_layer_input
		altup.active_idx altup.num_inputs activation_sparsity_scale ` + windowPattern),
	fields: "final_logit_softcapping rope_local_base_freq",
	defaults: hfConfig{HiddenAct: "gelu_pytorch_tanh", RMSNormEps: 1e-6, KVHeads: 2, HeadDim: 256, Window: 512,
		LogitCap: 30, LocalTheta: 1e4, PerLayer: 256, PerLayerVocab: 262144, SharedKVLayers: 15, Streams: 4, Laurel: 64,
		CorrectScale: true, Tied: true, hfRopes: hfRopes{defaultTheta: 1e6}},
	top: slices.Concat(gemma4Top, []part{
		{name: "altup_proj", folder: "model.altup_projections.*", out: hidden, in: hidden, streams: true},
		{name: "altup_unembd_proj", folder: "model.altup_unembed_projections.*", out: hidden, in: hidden, streams: true},
	}),
	layer: slices.Concat([]part{
		attnNorm, queryNorm, keyNorm, query, key, value, attnOutput, attnPost, // files have all, though some are not used
		{name: "ffn_norm", folder: "pre_feedforward_layernorm", out: hidden},
		ffnGate, ffnUp, ffnDown, ffnPost,
	}, gemma4Output[:3], []part{
		{name: "altup_correct_coef", folder: "altup.correction_coefs", out: streams, in: streams},
		{name: "altup_correct_scale", folder: "altup.correct_output_scale", bare: true, out: hidden},
		{name: "altup_predict_coef", folder: "altup.prediction_coefs", out: streams2, in: streams},
		{name: "altup_router", folder: "altup.modality_router", out: streams, in: hidden},
		{name: "altup_router_norm", folder: "altup.router_norm", out: hidden},
		{name: "laurel_l", folder: "laurel.linear_left", out: laurel, in: hidden},
		{name: "laurel_r", folder: "laurel.linear_right", out: hidden, in: laurel},
		{name: "laurel_post_norm", folder: "laurel.post_laurel_norm", out: hidden},
	}),
	biases: map[string]string{"attention_bias": "attn_q attn_k attn_v attn_output"},
	window: 5, listed: true, varied: true, normedValues: true,

	implied: func(c *Config) {
		c.impliedGemma3n()
		c.SetSparsity(usualSparsity)
	},
	local: func(c *Config) { c.setLocalRope(1e4) },
	readKeys: func(k *keys, c *Config) {
		c.setLocalRope(k.float("rope.freq_base_swa", 1e4))
		c.readGemma3nKeys(k)
	},
	writeKeys: func(c *Config, set func(string, any)) {
		writeLocalBase(c, set)
		set(windowPattern, c.Windowed)
		set("attention.shared_kv_layers", uint32(c.Sharing))
		set("embedding_length_per_layer_input", uint32(c.PerLayer))
		set("altup.active_idx", uint32(0))
		set("altup.num_inputs", uint32(c.Streams))
		set("activation_sparsity_scale", c.Cuts)
	},
	readFields: readGemma3n,
	writeFields: func(c *Config, m map[string]any) error {
		sparsity := make([]floating, len(c.Cuts))
		for i, cut := range c.Cuts {
			sparsity[i] = floating(math.Round(5e5*math.Erfc(-float64(cut)/math.Sqrt2)) / 1e6)
		}
		m["activation_sparsity_pattern"] = sparsity
		m["layer_types"] = c.attentionKinds()
		m["altup_num_inputs"], m["altup_active_idx"] = c.Streams, 0
		m["laurel_rank"], m["num_kv_shared_layers"] = c.Laurel, c.Sharing
		m["hidden_size_per_layer_input"], m["vocab_size_per_layer_input"] = c.PerLayer, c.Vocab
		m["final_logit_softcapping"], m["hidden_activation"] = orNull(c.LogitCap), m["hidden_act"]
		if c.LocalRope != nil {
			m["rope_local_base_freq"] = decimal(c.LocalRope.Base)
		}
		return nil
	},
	check: func(c *Config) error {
		if c.AttnScale != 1 || float32(c.EmbedScale) != float32(math.Sqrt(float64(c.Hidden))) {
			return errGemmaScale
		}
		return nil
	},
}

// usualSparsity is the share of the gates that are zero in the first layers of published models.
var usualSparsity = slices.Repeat([]float64{0.95}, 10)

func (c *Config) impliedGemma3n() {
	c.EmbedScale = math.Sqrt(float64(c.Hidden))
	c.AttnScale, c.LogitCap = 1, 30
	c.Streams, c.Laurel = 4, 64
}

// SetSparsity sets which share of the gates of each layer's MLP is about zero. The others have none.
func (c *Config) SetSparsity(shares []float64) {
	c.Cuts = nil
	for i := range min(c.Layers, maxLayers) {
		cut := float32(math.Inf(-1))
		if i < len(shares) && shares[i] > 0 { // in f32, as in llama.cpp's converter
			cut = float32(math.Sqrt2) * float32(math.Erfinv(float64(2*float32(shares[i])-1)))
		}
		c.Cuts = append(c.Cuts, cut)
	}
}

func (c *Config) readGemma3nKeys(k *keys) {
	c.Sharing = k.int("attention.shared_kv_layers", 0)
	c.PerLayer = k.int("embedding_length_per_layer_input")
	c.Streams = k.int("altup.num_inputs", c.Streams)
	if i := k.int("altup.active_idx", 0); i != 0 {
		k.refuse("altup.active_idx", fmt.Sprintf("is %d, not 0", i))
	}
	if t, ok := k.file.Tensor("blk.0.laurel_l.weight"); ok && len(t.Shape) == 2 {
		c.Laurel = t.Shape[0]
	}
	const sparsity = "activation_sparsity_scale"
	if k.has(sparsity) {
		c.Cuts, _ = gguf.Get[[]float32](k.file, k.name(sparsity))
		if len(c.Cuts) != c.Layers {
			k.refuse(sparsity, fmt.Sprintf("is no list of %d numbers", c.Layers))
		}
	}
	for key, first := range map[string]int{"feed_forward_length": c.FFN, "attention.head_count_kv": c.KVHeads} {
		if slices.ContainsFunc(k.each(key, c.Layers, first), func(n int) bool { return n != first }) {
			k.refuse(key, "differs among layers")
		}
	}
}

func readGemma3n(h *hfConfig, c *Config) error {
	switch {
	case h.Activation != "" && h.Activation != h.HiddenAct:
		return fmt.Errorf("hidden_activation is %q: models run here use %q", h.Activation, h.HiddenAct)
	case h.ActiveStream != 0 || !h.CorrectScale:
		return fmt.Errorf("altup_active_idx is %d, altup_correct_scale is %v: want 0 and true", h.ActiveStream, h.CorrectScale)
	case h.PerLayerVocab > c.Vocab:
		return fmt.Errorf("vocab_size_per_layer_input is %d and vocab_size is %d: want at most as many", h.PerLayerVocab, c.Vocab)
	case h.Sparsity != nil && len(h.Sparsity) != c.Layers:
		return fmt.Errorf("activation_sparsity_pattern lists %d layers: want %d", len(h.Sparsity), c.Layers)
	case c.Layers < 0 || c.Layers > maxLayers: // which Validate reports
		return nil
	}
	c.impliedGemma3n()
	c.LogitCap = float64(h.LogitCap)
	c.Streams, c.PerLayer = h.Streams, h.PerLayer
	c.Laurel = h.Laurel
	c.setLocalRope(h.LocalTheta)
	if h.SharedKVLayers < c.Layers { // else none, as in transformers
		c.Sharing = h.SharedKVLayers
	}
	shares := h.Sparsity
	if shares == nil && c.Layers > 10 {
		shares = usualSparsity
	}
	c.SetSparsity(shares)
	return nil
}

// validateStreams checks the numbers of Gemma 3n.
func (c *Config) validateStreams() error {
	if c.Streams == 0 {
		return nil
	}
	for i, cut := range c.Cuts {
		if math.IsNaN(float64(cut)) || math.IsInf(float64(cut), 1) {
			return fmt.Errorf("gates of layer %d are zero below %g standard deviations: want a number, or -Inf", i, cut)
		}
	}
	if c.Streams < 2 || c.Streams > 16 || c.Laurel < 1 || c.Laurel > maxWidth || c.PerLayer < 1 ||
		len(c.Cuts) != c.Layers {
		return fmt.Errorf("%d residual streams, a shortcut of width %d, a table of %d: want 2 to 16, and at least 1 each",
			c.Streams, c.Laurel, c.PerLayer)
	}
	return nil
}

// streams builds the products before the first and after the last layer.
func (b *builder) streams() *nn.Streams {
	n, s := b.c.Hidden, &nn.Streams{}
	shape := []int{b.c.Streams - 1, n, n}
	for i := range shape[0] {
		s.Spread = append(s.Spread, b.rows("altup_proj.weight", shape, i*n, (i+1)*n))
		s.Merge = append(s.Merge, b.rows("altup_unembd_proj.weight", shape, i*n, (i+1)*n))
	}
	return s
}

// altUp builds the parts of a layer that work on all streams, and its shortcut.
func (b *builder) altUp(name func(part string) string) (*nn.AltUp, *nn.Laurel) {
	c, n := b.c, b.c.Streams
	a := &nn.AltUp{Norm: b.norm(name("altup_router_norm"), c.Hidden), Router: b.linear(name("altup_router"), n, c.Hidden),
		Predict: b.vectors(name("altup_predict_coef.weight"), n*n, n),
		Correct: b.vectors(name("altup_correct_coef.weight"), n, n),
		Scale:   b.vector(name("altup_correct_scale.weight"), c.Hidden)}
	a.Router.Scale, a.Router.Cap = 1/float32(c.Hidden), 1 // tanh
	return a, &nn.Laurel{Down: b.linear(name("laurel_l"), c.Laurel, c.Hidden),
		Up: b.linear(name("laurel_r"), c.Hidden, c.Laurel), Post: b.norm(name("laurel_post_norm"), c.Hidden)}
}
