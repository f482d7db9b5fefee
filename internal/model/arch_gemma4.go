package model

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/grovellm/grove/internal/nn"
)

// gemma4 is the text part of Gemma 4: heads of another width in layers without a window, last layers
// that read other layers' keys and values, and a table with an entry for each token and layer.
var gemma4 = architecture{
	name: "gemma4", modelType: "gemma4_text", class: "Gemma4ForCausalLM",
	keys: rmsAnd(`final_logit_softcapping rope.freq_base_swa rope.dimension_count_swa attention.key_length_swa
		attention.value_length_swa attention.shared_kv_layers embedding_length_per_layer_input ` + windowPattern),
	fields: "final_logit_softcapping use_bidirectional_attention",
	defaults: hfConfig{HiddenAct: "gelu_pytorch_tanh", RMSNormEps: 1e-6, KVHeads: 4, HeadDim: 256,
		GlobalHeadDim: 512, Window: 512, PerLayer: 256, PerLayerVocab: 262144, Tied: true},
	top: gemma4Top,
	layer: slices.Concat(gemma4Attention,
		[]part{ffnPost, {name: "ffn_norm", folder: "pre_feedforward_layernorm", out: hidden}, ffnGate, ffnUp,
			ffnDown}, gemma4Output),
	biases: map[string]string{"attention_bias": "attn_q attn_k attn_v attn_output"},
	window: 6, listed: true, varied: true, normedValues: true, factored: true, ownRope: true,

	implied:     func(c *Config) { c.impliedGemma4() },
	readKeys:    func(k *keys, c *Config) { c.readGemma4Keys(k) },
	writeKeys:   func(c *Config, set func(string, any)) { c.writeGemma4Keys(set) },
	readFields:  readGemma4,
	writeFields: writeGemma4,
	check:       func(c *Config) error { return c.checkGemma4() },
}

// gemma4unified is Gemma 4 12B, which reads images and sound without towers.
var gemma4unified = func() architecture {
	a := gemma4
	a.modelType = "gemma4_unified_text"
	a.class = "Gemma4UnifiedForCausalLM"
	a.defaults.PerLayer = 0
	a.defaults.Window = 1024
	return a
}()

// gemma4moe is Gemma 4 with experts alongside its MLPs.
var gemma4moe = func() architecture {
	a := gemma4
	a.keys.Obeyed = slices.Concat(a.keys.Obeyed, strings.Fields(expertKeys+" expert_feed_forward_length"))
	a.fields += " num_experts"
	a.experts = "num_experts"
	a.act = nn.GELUMul
	a.layer = slices.Concat(gemma4Attention, []part{
		ffnPost,
		{name: "post_ffw_norm_1", folder: "post_feedforward_layernorm_1", out: hidden},
		{name: "post_ffw_norm_2", folder: "post_feedforward_layernorm_2", out: hidden},
		{name: "ffn_norm", folder: "pre_feedforward_layernorm", out: hidden},
		{name: "pre_ffw_norm_2", folder: "pre_feedforward_layernorm_2", out: hidden},
		ffnGate, ffnUp, ffnDown,
		{name: "ffn_gate_inp", folder: "router.proj", out: experts, in: hidden},
		{name: "ffn_gate_inp", ending: ".scale", folder: "router.scale", bare: true, out: hidden},
		{name: "ffn_gate_up_exps", folder: "experts.gate_up_proj", bare: true, out: expertInner2, in: hidden, each: true},
		{name: "ffn_down_exps", folder: "experts.down_proj", bare: true, out: hidden, in: expertInner, each: true},
		{name: "ffn_down_exps", ending: ".scale", folder: "router.per_expert_scale", bare: true, out: experts},
	}, gemma4Output)
	return a
}()

var (
	ownKeys    = func(c *Config, layer int) bool { return !c.reads(layer) }
	withTables = func(c *Config, _ int) bool { return c.PerLayer > 0 }

	gemma4Top = slices.Concat(llamaTop, []part{
		{name: "per_layer_token_embd", folder: "model.embed_tokens_per_layer", out: vocab, in: perLayers, short: true,
			when: withTables},
		{name: "per_layer_model_proj", folder: "model.per_layer_model_projection", out: perLayers,
			in: hidden, when: withTables},
		{name: "per_layer_proj_norm", folder: "model.per_layer_projection_norm", out: perLayer, when: withTables},
	})
	gemma4Attention = []part{
		attnNorm, queryNorm,
		{name: "attn_k_norm", folder: "self_attn.k_norm", out: head, when: ownKeys},
		query,
		{name: "attn_k", folder: "self_attn.k_proj", out: keyHeads, in: hidden, heads: true, when: ownKeys},
		{name: "attn_v", folder: "self_attn.v_proj", out: keyHeads, in: hidden,
			when: func(c *Config, layer int) bool { return !c.reads(layer) && (!c.KeyValues || c.windowed(layer)) }},
		attnOutput, attnPost,
	}
	gemma4Output = []part{
		{name: "inp_gate", folder: "per_layer_input_gate", out: perLayer, in: hidden, when: withTables},
		{name: "proj", folder: "per_layer_projection", out: hidden, in: perLayer, when: withTables},
		{name: "post_norm", folder: "post_per_layer_input_norm", out: hidden, when: withTables},
		{name: "layer_output_scale", folder: "layer_scalar", bare: true, out: one},
	}
)

// impliedGemma4 sets values that GGUF files need not state. Layers without a window rotate a
// quarter of the pairs of dimensions.
func (c *Config) impliedGemma4() {
	c.EmbedScale = math.Sqrt(float64(c.Hidden))
	c.AttnScale = 1
	c.LogitCap = 30
	c.Rope.Factors = proportional(c.HeadDim, 0.25)
	c.SetWindow(512)
	c.LocalRope = &RopeConfig{Base: 1e4, Dims: c.HeadDim, Scale: 1}
	c.LocalHeadDim, c.LocalKVHeads = c.HeadDim, c.KVHeads
}

// SetGemma4Layers sets the heads of layers with a window.
func (c *Config) SetGemma4Layers(headDim, kvHeads int) {
	c.LocalHeadDim, c.LocalKVHeads = headDim, kvHeads
	c.LocalRope.Dims = headDim
}

// unrotated is the frequency divisor of pairs that are not rotated.
const unrotated = 1e30

// proportional returns the frequency divisors with which a share of the pairs is rotated.
func proportional(dims int, share float64) []float32 {
	f := make([]float32, dims/2)
	for i := range f {
		f[i] = unrotated
		if i < int(share*float64(dims)/2) {
			f[i] = 1
		}
	}
	return f
}

func (c *Config) readGemma4Keys(k *keys) {
	c.Rope.Factors = nil // they are in the file's tensor
	c.LocalHeadDim = k.int("attention.key_length_swa", c.HeadDim)
	if v := k.int("attention.value_length_swa", c.LocalHeadDim); v != c.LocalHeadDim {
		k.refuse("attention.value_length_swa", fmt.Sprintf("is %d, but key %q is %d", v,
			k.name("attention.key_length_swa"), c.LocalHeadDim))
	}
	c.LocalRope = &RopeConfig{Base: k.float("rope.freq_base_swa", 1e4), Dims: k.int("rope.dimension_count_swa",
		c.LocalHeadDim), Scale: 1}
	c.Sharing = k.int("attention.shared_kv_layers", 0)
	if k.prefix != c.Arch+"." { // of a head, whose layers have no keys and values
		c.Borrows = c.Sharing == c.Layers
		c.Sharing, c.LogitCap = 0, 0
	}
	if c.Sharing < 0 || c.Sharing >= c.Layers {
		k.refuse("attention.shared_kv_layers", fmt.Sprintf("is %d of %d layers", c.Sharing, c.Layers))
	}
	if c.Rope.Dims != c.HeadDim {
		k.refuse("rope.dimension_count", fmt.Sprintf("is %d of %d dimensions", c.Rope.Dims, c.HeadDim))
	}
	c.PerLayer = k.int("embedding_length_per_layer_input", 0)
	if c.Experts > 0 {
		c.ExpertFFN = k.int("expert_feed_forward_length")
	}
	for i, n := range k.each("attention.head_count_kv", c.Layers, c.Heads) {
		if c.windowed(i) {
			c.LocalKVHeads = n
		} else {
			c.KVHeads = n
		}
	}
	c.KeyValues = !c.Borrows && !k.HasTensor(fmt.Sprintf("blk.%d.attn_v.weight", c.firstWhole()))
	widths := k.each("feed_forward_length", c.Layers)
	if n := len(widths); c.Sharing > 0 && n > 0 {
		c.FFN = widths[0]
		c.WideSharing = widths[n-1] == 2*c.FFN
	}
	for i, n := range k.each("attention.head_count_kv", c.Layers, c.Heads) {
		if n != c.kvHeads(i) {
			k.refuse("attention.head_count_kv", "differs among layers of a kind")
		}
	}
	for i, n := range widths {
		if n != c.ffn(i) {
			k.refuse("feed_forward_length", fmt.Sprintf("is not the same in all layers, or twice that in as many of the last layers as %q says",
				k.name("attention.shared_kv_layers")))
		}
	}
}

// firstWhole is the first layer without a window.
func (c *Config) firstWhole() int {
	for i := range c.Layers {
		if !c.windowed(i) {
			return i
		}
	}
	return 0
}

func (c *Config) writeGemma4Keys(set func(string, any)) {
	set("attention.key_length", uint32(c.HeadDim))
	set("attention.value_length", uint32(c.HeadDim))
	local := uint32(c.LocalRope.Dims)
	set("attention.key_length_swa", local)
	set("attention.value_length_swa", local)
	set("rope.dimension_count_swa", local)
	set("rope.freq_base_swa", float32(c.LocalRope.Base))
	sharing := c.Sharing
	if c.Borrows {
		sharing = c.Layers
	}
	set("attention.shared_kv_layers", uint32(sharing))
	set("embedding_length_per_layer_input", uint32(c.PerLayer))
	set(windowPattern, c.Windowed)
	if c.Experts > 0 {
		set("expert_feed_forward_length", uint32(c.ExpertFFN))
	}
	if c.LogitCap == 0 { // the default without the key is 30
		set("final_logit_softcapping", float32(0))
	}
	heads, widths := make([]uint32, c.Layers), make([]uint32, c.Layers)
	for i := range heads {
		heads[i], widths[i] = uint32(c.kvHeads(i)), uint32(c.ffn(i))
	}
	set("attention.head_count_kv", heads)
	if c.WideSharing {
		set("feed_forward_length", widths)
	}
}

// hfLayer holds the fields of a single layer, as newer versions of transformers write them.
type hfLayer struct {
	HeadDim int `json:"head_dim"`
	KVHeads int `json:"num_key_value_heads"`
}

func readGemma4(h *hfConfig, c *Config) error {
	c.LocalHeadDim, c.HeadDim = h.HeadDim, h.GlobalHeadDim
	c.LocalKVHeads = c.KVHeads
	if h.KeyEqualsValue && h.GlobalKVHeads > 0 {
		c.KVHeads = h.GlobalKVHeads
	}
	if err := c.readLayerFields(h.PerLayerFields); err != nil {
		return err
	}
	bidirectional, _ := h.Bidirectional.(string)
	switch {
	case h.Activation != "" && h.Activation != h.HiddenAct:
		return fmt.Errorf("hidden_activation is %q: models run here use %q", h.Activation, h.HiddenAct)
	case h.Bidirectional != nil && h.Bidirectional != false && bidirectional != "vision":
		return fmt.Errorf("use_bidirectional_attention is %v: want null, or vision", h.Bidirectional)
	case h.PerLayer > 0 && h.PerLayerVocab != c.Vocab:
		return fmt.Errorf("vocab_size_per_layer_input is %d and vocab_size is %d: want the same number", h.PerLayerVocab, c.Vocab)
	case h.Scaling != nil:
		return errors.New("rope_scaling: gemma4 has only rope_parameters")
	case c.Window == 0:
		return errors.New("use_sliding_window, sliding_window and layer_types: want layers with a window")
	}
	c.KeyValues, c.PerLayer = h.KeyEqualsValue, h.PerLayer
	c.Sharing, c.WideSharing = h.SharedKVLayers, h.DoubleWide && h.SharedKVLayers > 0
	c.ExpertFFN = int(h.ExpertFFN)
	if c.Experts == 0 {
		c.ExpertFFN = 0
	}
	c.EmbedScale = math.Sqrt(float64(c.Hidden))
	c.AttnScale = 1
	c.LogitCap = float64(h.LogitCap)
	if n := len(c.Windowed); h.LayerTypes == nil && n > 0 {
		c.Windowed[n-1] = false
	}
	return c.readGemma4Rope(h.Params)
}

// readLayerFields reads the fields that a folder states layer by layer: all layers without a window must agree.
func (c *Config) readLayerFields(layers map[string]hfLayer) error {
	for i := range c.Layers {
		l, ok := layers[strconv.Itoa(i)]
		if !ok {
			continue
		}
		if c.windowed(i) {
			return fmt.Errorf("per_layer_config has layer %d, which has a window: want only layers without one", i)
		}
		if l.HeadDim > 0 {
			c.HeadDim = l.HeadDim
		}
		if l.KVHeads > 0 {
			c.KVHeads = l.KVHeads
		}
	}
	for i := range c.Layers {
		l, ok := layers[strconv.Itoa(i)]
		if len(layers) > 0 && !c.windowed(i) && (!ok || l.HeadDim > 0 && l.HeadDim != c.HeadDim || l.KVHeads > 0 &&
			l.KVHeads != c.KVHeads) {
			return fmt.Errorf("per_layer_config of layer %d differs from that of other layers without a window: want the same", i)
		}
	}
	return nil
}

func (c *Config) readGemma4Rope(r *hfRope) error {
	full := hfRope{Type: "proportional"}
	local := hfRope{Type: "default"}
	if r != nil && r.Full != nil {
		full = *r.Full
	}
	if r != nil && r.Sliding != nil {
		local = *r.Sliding
	}
	base := func(theta *float64, def float64) float64 {
		if theta != nil {
			return *theta
		}
		return def
	}
	share := base(full.Partial, 0.25)
	switch {
	case r != nil && r.Full == nil && r.Sliding == nil:
		return errors.New("rope_parameters: want the objects full_attention and sliding_attention")
	case full.Type != "proportional" || full.Factor != 0 && full.Factor != 1 || !(share > 0 && share <= 1):
		return fmt.Errorf("rope_parameters: full_attention has the type %q, factor %g, partial_rotary_factor %g: "+
			"want proportional, without factor, more than 0 and at most 1", full.Type, full.Factor, share)
	case local.Type != "default" && local.Type != "" || local.Partial != nil && *local.Partial != 1:
		return fmt.Errorf("rope_parameters: sliding_attention has the type %q: want default, without partial_rotary_factor", local.Type)
	}
	c.Rope = RopeConfig{Base: base(full.Theta, 1e6), Dims: c.HeadDim, Scale: 1}
	if c.HeadDim > 0 && c.HeadDim <= maxWidth {
		c.Rope.Factors = proportional(c.HeadDim, share)
	}
	c.LocalRope = &RopeConfig{Base: base(local.Theta, 1e4), Dims: c.LocalHeadDim, Scale: 1}
	return nil
}

func writeGemma4(c *Config, m map[string]any) error {
	rotated := slices.Index(c.Rope.Factors, unrotated)
	if rotated < 0 {
		rotated = len(c.Rope.Factors)
	}
	local := c.LocalRope.Dims
	whole := c.Rope
	whole.Factors = nil
	switch {
	case !slices.Equal(c.Rope.Factors, proportional(c.HeadDim, share(2*rotated, c.HeadDim))) ||
		!whole.plain() || c.Rope.Scale != 1:
		return errors.New("tensor rope_freqs.weight or keys rope.scaling: config.json of gemma4 can only express the rotation of part of the pairs")
	case c.LocalRope.Scale != 1 || !c.LocalRope.plain():
		return errors.New("config.json of gemma4 cannot express a scaling of positions in layers with a window")
	}
	m["rope_parameters"] = map[string]any{
		"full_attention": map[string]any{"rope_type": "proportional", "rope_theta": decimal(c.Rope.Base),
			"partial_rotary_factor": share(2*rotated, c.HeadDim)},
		"sliding_attention": map[string]any{"rope_type": "default", "rope_theta": decimal(c.LocalRope.Base)},
	}
	delete(m, "rope_theta")
	m["hidden_activation"] = m["hidden_act"]
	m["head_dim"], m["global_head_dim"] = local, c.HeadDim
	m["num_key_value_heads"] = c.kvHeads(c.firstWindowed())
	m["num_global_key_value_heads"] = nil
	if c.KeyValues {
		m["num_global_key_value_heads"] = c.KVHeads
	}
	m["attention_k_eq_v"] = c.KeyValues
	m["num_kv_shared_layers"], m["use_double_wide_mlp"] = c.Sharing, c.WideSharing
	m["hidden_size_per_layer_input"], m["vocab_size_per_layer_input"] = c.PerLayer, c.Vocab
	m["final_logit_softcapping"] = orNull(c.LogitCap)
	m["enable_moe_block"] = c.Experts > 0
	m["top_k_experts"], m["moe_intermediate_size"] = nil, nil
	if c.Experts > 0 {
		m["top_k_experts"], m["moe_intermediate_size"] = c.Used, c.ExpertFFN
		delete(m, "num_experts_per_tok")
	}
	m["layer_types"] = c.attentionKinds()
	return nil
}

// firstWindowed is the first layer with a window.
func (c *Config) firstWindowed() int { return max(0, slices.Index(c.Windowed, true)) }

// attentionKinds lists the kinds of all layers.
func (c *Config) attentionKinds() []string {
	types := make([]string, c.Layers)
	for i := range types {
		types[i] = attentionKind(c.windowed(i))
	}
	return types
}

// attentionKind returns the kind of a layer in config.json.
func attentionKind(windowed bool) string {
	if windowed {
		return "sliding_attention"
	}
	return "full_attention"
}

// checkGemma4 refuses values that files of Gemma 4 do not have.
func (c *Config) checkGemma4() error {
	switch {
	case c.Window == 0 || c.windowed(c.Layers-1):
		return errors.New("gemma4 has layers with a window, and the last layer has none")
	case c.LocalRope == nil || c.LocalRope.Dims != c.headDim(c.firstWindowed()):
		return errors.New("gemma4 rotates all dimensions of layers with a window")
	case !c.KeyValues && c.LocalKVHeads > 0 && c.LocalKVHeads != c.KVHeads:
		return errors.New("gemma4 has the same number of key/value heads in all layers, unless values are keys")
	case c.AttnScale != 1 || float32(c.EmbedScale) != float32(math.Sqrt(float64(c.Hidden))):
		return errors.New("gemma4 cannot express a different scale of attention scores or embeddings")
	}
	return nil
}
