// Configurations in the form of Hugging Face folders; hfsource.go reads what this file writes.

package model

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/grovellm/grove/tensor"
)

// Fields returns the configuration as fields of a Hugging Face config.json, for matrices of type
// typ; ReadFolder is its inverse.
func (c *Config) Fields(typ tensor.Type) (map[string]any, error) {
	a := c.folderArch()
	switch {
	case a == nil:
		return nil, fmt.Errorf("architecture %q is not one grove runs", c.Arch)
	case c.Rope.Factors != nil && c.Rope.Scale != 1:
		return nil, fmt.Errorf("tensor rope_freqs.weight and rope.scaling.factor together: " +
			"config.json can express only one of them")
	case a.rotated == 0 && c.Rope.Dims != c.HeadDim:
		return nil, fmt.Errorf("%d of %d dimensions of a head are rotated: config.json of a %s model rotates all",
			c.Rope.Dims, c.HeadDim, c.Arch)
	}
	eps, base := decimal(float64(c.NormEps)), decimal(c.Rope.Base)
	m := map[string]any{
		"torch_dtype":             map[tensor.Type]string{tensor.F32: "float32", tensor.F16: "float16", tensor.BF16: "bfloat16"}[typ],
		"hidden_size":             c.Hidden,
		"num_hidden_layers":       c.stored(),
		"num_attention_heads":     c.Heads,
		"num_key_value_heads":     c.KVHeads,
		"intermediate_size":       c.FFN,
		"vocab_size":              c.Vocab,
		"max_position_embeddings": c.Context,
		"tie_word_embeddings":     c.Tied,
		"rope_theta":              base,
	}
	if a.layerNorm && !a.rmsEps {
		m["layer_norm_eps"] = eps
	} else {
		m["rms_norm_eps"] = eps
	}
	if !a.ownRope {
		scaling, err := c.Rope.fields()
		if err != nil {
			return nil, err
		}
		if scaling != nil {
			m["rope_scaling"] = scaling
		}
	}
	switch {
	case c.Ahead > 0 && a.gated:
		m["mtp_num_hidden_layers"] = c.Ahead
	case c.Ahead > 0:
		m["num_nextn_predict_layers"] = c.Ahead
	}
	if c.Experts > 0 {
		m[a.experts], m["num_experts_per_tok"] = c.Experts, c.Used
	}
	m["architectures"] = []string{a.class}
	m["model_type"] = a.modelType
	m["hidden_act"] = a.defaults.HiddenAct
	if !a.square || c.HeadDim*c.Heads != c.Hidden {
		m["head_dim"] = c.HeadDim
	}
	if _, ok := a.biases["attention_bias"]; ok {
		m["attention_bias"] = false
	}
	if a.hybrid {
		types := make([]string, c.Layers)
		for i := range types {
			types[i] = a.attentionKind()
			if c.recurrent(i) {
				types[i] = a.kind
			}
		}
		m["layer_types"] = types
	}
	if a.window != 0 && (a.listed || c.Window > 0) {
		c.windowFields(a, m)
	}
	if a.writeFields != nil {
		return m, a.writeFields(c, m)
	}
	return m, nil
}

// windowFields sets the fields of sliding windows.
func (c *Config) windowFields(a *architecture, m map[string]any) {
	m["sliding_window"] = nil
	if c.Window == 0 {
		return
	}
	m["sliding_window"] = c.Window
	if a.listed && slices.Equal(c.Windowed, a.windows(c.Layers)) {
		return
	}
	m["layer_types"] = c.attentionKinds()
}

// fields returns the scaling of positions as an object of config.json; nil for none.
func (r *RopeConfig) fields() (map[string]any, error) {
	switch {
	case r.Long != nil:
		return map[string]any{"rope_type": "longrope", "type": "longrope", "long_factor": r.Long, "short_factor": r.Short,
			"original_max_position_embeddings": r.Original, "attention_factor": decimal(cmp.Or(r.Attn, 1))}, nil
	case r.Yarn != nil:
		m := map[string]any{"rope_type": "yarn", "type": "yarn", "factor": decimal(r.Scale),
			"original_max_position_embeddings": r.Original, "beta_fast": decimal(r.Yarn.Fast), "beta_slow": decimal(r.Yarn.Slow)}
		if r.Yarn.Between {
			m["truncate"] = false
		}
		switch {
		case r.Yarn.Plain:
			m["mscale"], m["mscale_all_dim"] = floating(decimal(r.Yarn.LogMul)), floating(decimal(r.Yarn.LogMul))
		case r.Yarn.LogMul != 0 && r.Attn == 0:
			m["mscale"], m["mscale_all_dim"] = 1, decimal(r.Yarn.LogMul)
		default:
			m["attention_factor"] = r.factor()
		}
		return m, nil
	case r.Attn != 0 && r.Attn != 1:
		return nil, fmt.Errorf("key rope.scaling.attn_factor is %g: config.json cannot express it", r.Attn)
	case r.Factors != nil:
		l, err := findLlama3(r.Factors, r.Base, r.Dims)
		if err != nil {
			return nil, err
		}
		return map[string]any{"rope_type": "llama3", "factor": l.factor, "low_freq_factor": l.low,
			"high_freq_factor": l.high, "original_max_position_embeddings": l.original}, nil
	case r.Scale != 1:
		return map[string]any{"rope_type": "linear", "type": "linear", "factor": decimal(r.Scale)}, nil
	}
	return nil, nil
}

// decimal returns the shortest decimal number that a GGUF f32 may stand for: 1e-06, not 9.999999974752427e-07.
func decimal(x float64) float64 {
	if float64(float32(x)) != x || math.IsInf(x, 0) {
		return x
	}
	d, err := strconv.ParseFloat(strconv.FormatFloat(x, 'g', -1, 32), 64)
	if err != nil {
		return x
	}
	return d
}

// floating is a number that is written to JSON with a point: transformers refuses integers in fields declared as float.
type floating float64

func (x floating) MarshalJSON() ([]byte, error) {
	text := strconv.FormatFloat(float64(x), 'g', -1, 64)
	if !strings.ContainsAny(text, ".eIN") {
		text += ".0"
	}
	return []byte(text), nil
}

// share returns the fraction that readers turn back into a number: part = int(share · whole).
func share(part, whole int) float64 {
	x := float64(part) / float64(whole)
	if int(x*float64(whole)) < part {
		x = math.Nextafter(x, 1)
	}
	return x
}

// llama3Rope is the RoPE scaling of Llama 3.1, with config.json's terms.
type llama3Rope struct{ factor, low, high, original float64 }

// findLlama3 finds the scaling that gives the factors in a GGUF file, among those with the
// frequency bounds that Llama's models use, or Step 3.5's, and an original context that is a power of two.
func findLlama3(factors []float32, base float64, dims int) (*llama3Rope, error) {
	top := float32(1)
	for _, f := range factors {
		top = max(top, f)
	}
	for _, high := range []float64{4, 32} {
		for original := 128.0; original <= 1<<24; original *= 2 {
			r := &llama3Rope{float64(top), 1, high, original}
			same := true
			for i, f := range Llama3Factors(base, dims, r.factor, r.low, r.high, r.original) {
				if math.Abs(float64(f-factors[i])) > 1e-5*float64(f) {
					same = false
					break
				}
			}
			if same {
				return r, nil
			}
		}
	}
	return nil, fmt.Errorf("tensor rope_freqs.weight is not Llama 3's scaling: config.json cannot express it")
}
