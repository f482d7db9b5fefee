// Configurations in the form of GGUF files; ggufsource.go reads what this file writes.

package model

import (
	"slices"

	"github.com/grovellm/grove/gguf"
	"github.com/grovellm/grove/internal/files/ggufkeys"
	"github.com/grovellm/grove/tensor"
)

// SetGGUF sets the keys that describe the model, its name and the type of its matrices. arch is the
// file's architecture: c's own, or that of a drafter's head with these layers. ReadGGUF and
// ReadGGUFKeys are its inverses.
func (c *Config) SetGGUF(w *gguf.Writer, arch, name string, typ tensor.Type) {
	w.Set("general.architecture", arch)
	w.Set("general.type", "model")
	w.Set("general.name", name)
	ggufkeys.SetFileType(w, typ)
	set := func(key string, v any) { w.Set(arch+"."+key, v) }
	for _, k := range []struct {
		key string
		v   int
	}{{"vocab_size", c.Vocab}, {"context_length", c.Context}, {"embedding_length", c.Hidden},
		{"block_count", c.stored() + c.Ahead},
		{"feed_forward_length", c.FFN}, {"attention.head_count", c.Heads}, {"rope.dimension_count", c.Rope.Dims}} {
		set(k.key, uint32(k.v))
	}
	if c.Ahead > 0 {
		set(aheadKey, uint32(c.Ahead))
	}
	if c.PoolLast {
		set(poolingKey, uint32(poolLast))
	}
	if c.Experts > 0 {
		set("expert_count", uint32(c.Experts))
		set("expert_used_count", uint32(c.Used))
	}
	set("rope.freq_base", float32(c.Rope.Base))
	c.Rope.setGGUF(set)
	a := c.arch()
	if !a.layerNorm || c.KVHeads != c.Heads {
		set("attention.head_count_kv", c.kvHeadsKey())
	}
	if a.layerNorm && !a.rmsEps {
		set("attention.layer_norm_epsilon", float32(c.NormEps))
	} else {
		set("attention.layer_norm_rms_epsilon", float32(c.NormEps))
	}
	if !a.square || c.HeadDim*c.Heads != c.Hidden {
		set("attention.key_length", uint32(c.HeadDim))
		set("attention.value_length", uint32(c.HeadDim))
	}
	c.setFeatures(a, set)
	for at, name := range xieluNames {
		list := make([]float32, len(c.XIELU))
		for i, x := range c.XIELU {
			list[i] = x[at]
		}
		if len(list) > 0 {
			w.Set(xieluKey+name, list)
		}
	}
	if a.writeKeys != nil {
		a.writeKeys(c, set)
	}
}

// kvHeadsKey returns the number of key/value heads as a key of a GGUF file: one number or, where
// layers are recurrent, one for each layer.
func (c *Config) kvHeadsKey() any {
	if !c.arch().heads {
		return uint32(c.KVHeads)
	}
	list := make([]uint32, c.Layers+c.Ahead)
	for i := range list {
		if c.attends(i) {
			list[i] = uint32(c.KVHeads)
		}
	}
	return list
}

// setGGUF sets the keys that scale positions.
func (r *RopeConfig) setGGUF(set func(string, any)) {
	switch {
	case r.Long != nil:
		set("rope.scaling.type", "longrope")
	case r.Yarn != nil:
		set("rope.scaling.type", "yarn")
		set("rope.scaling.yarn_beta_fast", float32(r.Yarn.Fast))
		set("rope.scaling.yarn_beta_slow", float32(r.Yarn.Slow))
		if r.Yarn.Between {
			set(yarnTruncate, false)
		}
		if r.Yarn.LogMul != 0 {
			set("rope.scaling.yarn_log_multiplier", float32(r.Yarn.LogMul))
		}
	case r.Scale != 1:
		set("rope.scaling.type", "linear")
	}
	if r.Scale != 1 {
		set("rope.scaling.factor", float32(r.Scale))
	}
	if r.Original != 0 {
		set("rope.scaling.original_context_length", uint32(r.Original))
	}
	if r.Attn != 0 && r.Attn != 1 {
		set("rope.scaling.attn_factor", float32(r.Attn))
	}
}

// setFeatures sets the keys of numbers that have an effect and that the architecture obeys, and
// those of windows.
func (c *Config) setFeatures(a *architecture, set func(string, any)) {
	for _, f := range c.features() {
		if *f.v != 0 && slices.Contains(a.keys.Obeyed, f.key) {
			set(f.key, float32(*f.v))
		}
	}
	if c.Window == 0 {
		return
	}
	set("attention.sliding_window", uint32(c.Window))
	if slices.Contains(a.keys.Obeyed, windowPattern) && !slices.Equal(c.Windowed, a.windows(c.Layers)) {
		set(windowPattern, c.Windowed)
	}
}

const windowPattern = "attention.sliding_window_pattern"

// yarnTruncate is a key that only grove uses: false if YaRN's blend may begin and end between two
// pairs (Yarn.Between). Other programs round.
const yarnTruncate = "rope.scaling.yarn_truncate"

// windows returns which layers have a window by the architecture's rule.
func (a *architecture) windows(layers int) []bool {
	list := make([]bool, layers)
	last := 1
	if a.leading {
		last = 0
	}
	for i := range list {
		list[i] = a.window == 1 || a.window > 1 && (i+last)%a.window != 0
	}
	return list
}

// feature is a number of a configuration and its key in GGUF files.
type feature struct {
	key string
	v   *float64
}

func (c *Config) features() []feature {
	return []feature{
		{"attention.scale", &c.AttnScale},
		{"attn_logit_softcapping", &c.AttnCap},
		{"final_logit_softcapping", &c.LogitCap},
		{"embedding_scale", &c.EmbedScale},
		{"residual_scale", &c.ResidualScale},
		{"logit_scale", &c.LogitScale},
	}
}
