package model

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/grovellm/grove/tensor"
)

// bitnet is Microsoft's BitNet b1.58 2B4T: a norm before the last product of each half, and inputs of a layer's
// products rounded to eight bits, each row with one scale. Its GGUF files are those of bitnet.cpp: llama.cpp gives
// the layers of its own architecture bitnet another activation, and rounds inputs as the type of the weights does.
var bitnet = architecture{
	name: "bitnet-b1.58", modelType: "bitnet", class: "BitNetForCausalLM",
	keys: rmsKeys,
	defaults: hfConfig{HiddenAct: "relu2", RMSNormEps: 1e-5, KVHeads: 5,
		hfRopes: hfRopes{defaultTheta: 5e5}},
	layer: []part{
		attnNorm, query, key, value,
		{name: "attn_sub_norm", folder: "self_attn.attn_sub_norm", out: queries},
		attnOutput, ffnNorm, ffnGate, ffnUp,
		{name: "ffn_sub_norm", folder: "mlp.ffn_sub_norm", out: inner},
		ffnDown,
	},
	biases: map[string]string{"attention_bias": "attn_q attn_k attn_v attn_output"},
	square: true, rounded: true, of: func(h *hfConfig) bool { return h.HiddenAct != "silu" },

	readFields: func(h *hfConfig, _ *Config) error { return h.Quantization.checkTernary() },
	writeFields: func(_ *Config, m map[string]any) error {
		m["quantization_config"] = map[string]any{"quant_method": ternaryMethod, "linear_class": "autobitlinear",
			"quantization_mode": "offline", "modules_to_not_convert": []string{"lm_head"}}
		return nil
	},
}

// bitnetSiLU is the first reproduction of BitNet b1.58, by 1bitLLM: the same with SiLU, as llama.cpp's converter
// writes it.
var bitnetSiLU = func() architecture {
	a := bitnet
	a.name, a.of = "bitnet", nil
	a.defaults.HiddenAct = "silu"
	return a
}()

const ternaryMethod = "bitnet"

// checkTernary refuses folders whose products are not those of BitNet. Without a quantization_config, transformers
// rounds neither inputs nor weights.
func (q *quantization) checkTernary() error {
	switch {
	case q == nil || q.Method != ternaryMethod:
		return fmt.Errorf("quantization_config: want one with quant_method %q, as the published folders have", ternaryMethod)
	case q.OwnNorm:
		return errors.New("quantization_config: use_rms_norm is true: want false")
	case len(q.Kept) > 0 && !slices.Equal(q.Kept, []string{"lm_head"}):
		return fmt.Errorf("quantization_config: modules_to_not_convert is %v: want only lm_head", q.Kept)
	case q.online() && q.Mode != "online" || !q.online() && q.Mode != "" && q.Mode != "offline":
		return fmt.Errorf("quantization_config: quantization_mode is %q: want offline, or online with linear_class autobitlinear", q.Mode)
	case !slices.Contains([]string{"", "bitlinear", "autobitlinear"}, q.Class):
		return fmt.Errorf("quantization_config: linear_class is %q: want bitlinear or autobitlinear", q.Class)
	}
	return nil
}

// online reports whether the folder has weights before they are rounded to −1, 0 and 1.
func (q *quantization) online() bool { return q.Mode == "online" && q.Class == "autobitlinear" }

// products are the parts whose inputs are rounded.
func (a *architecture) products() (list []part) {
	for _, p := range a.layer {
		if a.rounded && p.in != none {
			list = append(list, p)
		}
	}
	return list
}

// scales returns the tensors of scales that a folder has beside weights that include them: ones.
func (c *Config) scales() (list []tensor.Tensor, err error) {
	a := c.arch()
	for i := range c.Layers {
		for _, p := range a.products() {
			name := fmt.Sprintf("%s%d.%s.weight_scale", a.prefix, i, p.folder)
			t, err := tensor.FromFloat32s(name, tensor.F32, []int{1}, []float32{1})
			if err != nil {
				return nil, err
			}
			list = append(list, t)
		}
	}
	return list, nil
}

// isProduct reports whether a folder's tensor is the weights of a product whose input is rounded.
func (a *architecture) isProduct(name string) bool {
	return strings.HasPrefix(name, a.prefix) && slices.ContainsFunc(a.products(), func(p part) bool {
		return strings.HasSuffix(name, "."+p.folder+".weight")
	})
}
