// The architectures, and what grove does with the keys of their GGUF files and the fields of their
// config.json. The lists are what llama.cpp (src/llama-arch.cpp, llama-model.cpp, models) and
// transformers 5 (the configuration classes) read.

package model

import (
	"fmt"
	"slices"
	"strings"

	"github.com/grovellm/grove/gguf"
)

// architecture is what grove knows of an architecture's files.
type architecture struct {
	name      string     // in GGUF files
	modelType string     // in config.json
	class     string     // of transformers
	keys      gguf.Rules // of GGUF files, beside modelKeys

	// defaults are transformers' values of fields that config.json lacks. Its hidden_act is the
	// only one that grove runs.
	defaults hfConfig

	// biases are the parts, by GGUF's names, that may have a bias in a folder, by the field of
	// config.json that gives it. Those of "" always have one.
	biases map[string]string
}

// architectures are those that grove runs.
var architectures = []*architecture{
	{
		name: "llama", modelType: "llama", class: "LlamaForCausalLM", keys: rmsKeys,
		defaults: hfConfig{HiddenAct: "silu", RMSNormEps: 1e-6},
		biases: map[string]string{
			"attention_bias": "attn_q attn_k attn_v attn_output",
			"mlp_bias":       "ffn_gate ffn_up ffn_down",
		},
	},
	{
		name: "qwen2", modelType: "qwen2", class: "Qwen2ForCausalLM", keys: rmsKeys,
		defaults: hfConfig{HiddenAct: "silu", RMSNormEps: 1e-6, KVHeads: 32},
		biases:   map[string]string{"": "attn_q attn_k attn_v"},
	},
	{
		name: "qwen3", modelType: "qwen3", class: "Qwen3ForCausalLM", keys: rmsKeys,
		defaults: hfConfig{HiddenAct: "silu", RMSNormEps: 1e-6, KVHeads: 32, HeadDim: 128},
		biases:   map[string]string{"attention_bias": "attn_q attn_k attn_v attn_output"},
	},
	{
		name: "gptneox", modelType: "gpt_neox", class: "GPTNeoXForCausalLM",
		keys: gguf.Rules{
			Obeyed:  strings.Fields("attention.layer_norm_epsilon use_parallel_residual"),
			Ignored: strings.Fields("attention.layer_norm_rms_epsilon"),
		},
		defaults: hfConfig{HiddenAct: "gelu", LayerNormEps: 1e-5, AttentionBias: true},
		biases: map[string]string{
			"attention_bias": "attn_qkv attn_output",
			"":               "ffn_up ffn_down attn_norm ffn_norm output_norm",
		},
	},
}

// rmsKeys are keys of architectures with RMSNorm. Early files of Qwen 1.5 set
// use_parallel_residual, although their layers are not parallel.
var rmsKeys = gguf.Rules{
	Obeyed:  strings.Fields("attention.layer_norm_rms_epsilon"),
	Ignored: strings.Fields("attention.layer_norm_epsilon use_parallel_residual"),
}

// modelKeys are the keys of every architecture, after its name and a dot. An ignored key repeats
// what the tensors say, or matters only beside a value that is refused (a window, yarn).
var modelKeys = gguf.Rules{
	Obeyed: strings.Fields(`context_length embedding_length block_count feed_forward_length
		attention.head_count attention.head_count_kv attention.key_length attention.value_length
		attention.sliding_window rope.dimension_count rope.freq_base
		rope.scaling.type rope.scaling.factor rope.scale_linear`),
	Ignored: strings.Fields(`vocab_size tensor_data_layout attention.sliding_window_pattern
		rope.scaling.original_context_length rope.scaling.finetuned
		rope.scaling.yarn_beta_fast rope.scaling.yarn_beta_slow`),
	Neutral: map[string][]any{
		"attention.causal":                 {true},
		"attention.clamp_kqv":              {0},
		"attention.key_length_mla":         {0},
		"attention.max_alibi_bias":         {0},
		"attention.output_scale":           {0, 1},
		"attention.scale":                  {0},
		"attention.shared_kv_layers":       {0},
		"attention.temperature_length":     {0},
		"attention.temperature_scale":      {0},
		"attention.value_length_mla":       {0},
		"attention.value_scale":            {0, 1},
		"attn_logit_softcapping":           {0},
		"embedding_scale":                  {0, 1},
		"expert_count":                     {0},
		"expert_feed_forward_length":       {0},
		"expert_gating_func":               {0},
		"expert_group_count":               {0},
		"expert_group_used_count":          {0},
		"expert_shared_count":              {0},
		"expert_used_count":                {0},
		"expert_weights_norm":              {false},
		"expert_weights_scale":             {0, 1},
		"final_logit_softcapping":          {0},
		"leading_dense_block_count":        {0},
		"logit_scale":                      {0, 1},
		"moe_every_n_layers":               {0},
		"nextn_predict_layers":             {0},
		"num_loops":                        {0, 1},
		"pooling_type":                     {0},
		"residual_scale":                   {0, 1},
		"rope.dimension_sections":          {0},
		"rope.scaling.alpha":               {0},
		"rope.scaling.attn_factor":         {1},
		"rope.scaling.yarn_attn_factor":    {1},
		"rope.scaling.yarn_ext_factor":     {0, -1},
		"rope.scaling.yarn_log_multiplier": {0},
		"router_logit_softcapping":         {0},
		"swin_norm":                        {false},
	},
}

// folderRules are fields of config.json that grove does not obey. It obeys the fields of hfConfig.
// Other fields change no logits, or transformers does not read them for these architectures.
var folderRules = gguf.Rules{Neutral: map[string][]any{
	"add_cross_attention":         {false},
	"alibi":                       {false},
	"attention_multiplier":        {},
	"attn_logit_softcapping":      {0},
	"clip_qkv":                    {0},
	"compression_config":          {},
	"embedding_multiplier":        {1},
	"final_logit_softcapping":     {0},
	"is_causal":                   {true},
	"is_encoder_decoder":          {false},
	"logit_scale":                 {1},
	"logits_scaling":              {1},
	"num_experts":                 {0},
	"num_local_experts":           {0},
	"pruned_heads":                {},
	"quantization_config":         {},
	"residual_multiplier":         {1},
	"rope_interleaved":            {false},
	"use_bidirectional_attention": {false},
}}

// ropeRules are the fields of rope_scaling and rope_parameters. An ignored field matters only
// beside yarn, which is refused.
var ropeRules = gguf.Rules{
	Obeyed: strings.Fields(`rope_type type rope_theta partial_rotary_factor
		factor low_freq_factor high_freq_factor original_max_position_embeddings`),
	Ignored: strings.Fields("beta_fast beta_slow mscale mscale_all_dim truncate finetuned"),
	Neutral: map[string][]any{"attention_factor": {1}},
}

// archNamed returns the architecture that GGUF files call name, or nil.
func archNamed(name string) *architecture {
	return findArch(func(a *architecture) bool { return a.name == name })
}

// byModelType returns the architecture that config.json calls modelType, or nil.
func byModelType(modelType string) *architecture {
	return findArch(func(a *architecture) bool { return a.modelType == modelType })
}

func findArch(is func(a *architecture) bool) *architecture {
	if i := slices.IndexFunc(architectures, is); i >= 0 {
		return architectures[i]
	}
	return nil
}

// biasField returns the field of config.json that gives a part its bias: "" where it always has
// one. ok is false where transformers has none.
func (a *architecture) biasField(part string) (field string, ok bool) {
	for field, parts := range a.biases {
		if slices.Contains(strings.Fields(parts), part) {
			return field, true
		}
	}
	return "", false
}

// BiasField is biasField for the tensor that GGUF files of an architecture call name.bias.
func BiasField(arch, name string) (field string, ok bool) {
	a := archNamed(arch)
	if a == nil {
		return "", false
	}
	_, part := layerPart(name)
	return a.biasField(part)
}

// folderBiases returns the biases that a folder may have, by its names, and their fields.
func (c *Config) folderBiases() map[string]string {
	fields := map[string]string{}
	for field, parts := range archNamed(c.Arch).biases {
		for _, part := range strings.Fields(parts) {
			if name, ok := HFName(c.Arch, part+".bias"); ok {
				fields[name] = field
			}
			for i := range c.Layers {
				if name, ok := HFName(c.Arch, fmt.Sprintf("blk.%d.%s.bias", i, part)); ok {
					fields[name] = field
				}
			}
		}
	}
	return fields
}
