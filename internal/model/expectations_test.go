package model_test

import (
	"slices"
	"strings"

	"github.com/grovellm/grove/internal/model/synth"
)

// expectations describe what the files of a small shape may have, and which parts of them are
// obeyed, where this differs from most architectures: see usual.
type expectations struct {
	obeyedKeys string // keys that are obeyed here, but change nothing in most models
	inertKeys  string // keys that change nothing here, in addition to those that never do
	looseKeys  string // keys that are obeyed, but may change nothing
	structural string // keys that tensors contradict

	tensors string // tensors that change the logits if files have them
	own     string // tensors of a layer here that most architectures lack

	foreign string // fields of config.json that transformers' class does not read
	window  bool   // the field sliding_window suffices for windows

	// The fields of config.json that give the parts of a layer biases. "": biases are refused. "-": always a bias.
	queryBias, outputBias, downBias, denseBias string
}

// Tensors that many architectures may have.
const (
	topTensors    = "output.weight output.bias rope_freqs.weight "
	untiedTensors = "output.bias rope_freqs.weight "
	queryBiases   = "blk.0.attn_q.bias blk.0.attn_k.bias blk.0.attn_v.bias "
	outputBias    = "blk.1.attn_output.bias "
	mlpBiases     = "blk.0.ffn_gate.bias blk.1.ffn_down.bias blk.0.ffn_up.bias"
	routerBiases  = queryBiases + outputBias + "blk.0.ffn_gate_inp.bias"
)

// Keys of windows and of experts.
const (
	windowKeys = "attention.sliding_window_pattern attention.sliding_window "
	expertKeys = "expert_count expert_used_count "
	groupKeys  = expertKeys + "expert_group_count expert_group_used_count expert_weights_norm expert_weights_scale expert_gating_func "
)

// Fields of config.json that one class reads and others do not.
const (
	rotaryFields = "use_parallel_residual rotary_pct rotary_emb_base "
	rmsFields    = "layer_norm_eps " + rotaryFields
)

// usual describes most architectures.
var usual = expectations{
	inertKeys: "attention.layer_norm_epsilon use_parallel_residual",
	tensors:   topTensors + queryBiases + outputBias + mlpBiases,
	foreign:   rmsFields,
}

var unusual = map[string]expectations{
	"llama": {queryBias: "attention_bias", outputBias: "attention_bias", downBias: "mlp_bias", foreign: rmsFields +
		"use_sliding_window"},
	"nanbeige": {queryBias: "attention_bias", outputBias: "attention_bias", downBias: "mlp_bias",
		obeyedKeys: "num_loops skip_loop_final_norm"},
	"mistral3": {window: true, foreign: rmsFields + "use_sliding_window"},
	"qwen2":    {queryBias: "-", tensors: topTensors + outputBias + mlpBiases},
	"qwen3": {queryBias: "attention_bias", outputBias: "attention_bias",
		tensors: untiedTensors + queryBiases + outputBias + mlpBiases},
	"deci": {
		structural: "attention.value_length", foreign: rmsFields + "num_key_value_heads intermediate_size",
		tensors: untiedTensors + queryBiases + outputBias + mlpBiases,
	},
	"gptneox": {inertKeys: "attention.layer_norm_rms_epsilon", tensors: untiedTensors, foreign: "rms_norm_eps",
		denseBias: "attention_bias"},
	"smollm3": {queryBias: "attention_bias", outputBias: "attention_bias", downBias: "mlp_bias"},
	"granite": {
		obeyedKeys: "rope.scaling.finetuned expert_shared_feed_forward_length",
		inertKeys: usual.inertKeys + // files of Granite 4 have keys of other models of its family
			" ssm.conv_kernel ssm.state_size ssm.group_count ssm.time_step_rank ssm.inner_size",
		queryBias: "attention_bias", outputBias: "attention_bias", downBias: "mlp_bias",
	},
	"olmo2": {
		obeyedKeys: windowKeys, window: true, queryBias: "attention_bias", outputBias: "attention_bias",
		tensors: untiedTensors + queryBiases + outputBias + mlpBiases, foreign: rmsFields + "use_sliding_window",
	},
	"phi3": {
		window: true, foreign: rmsFields + "use_sliding_window",
		tensors: topTensors + outputBias + "blk.1.ffn_down.bias blk.0.attn_qkv.bias",
	},
	"phimoe": {
		obeyedKeys: expertKeys, window: true, foreign: rmsFields + "use_sliding_window", queryBias: "attention_bias",
		outputBias: "attention_bias", tensors: "rope_freqs.weight blk.0.ffn_gate_inp.bias",
	},
	"stablelm": {
		inertKeys: "attention.layer_norm_rms_epsilon use_parallel_residual", queryBias: "use_qkv_bias", own: "model.norm.bias",
		tensors: untiedTensors + queryBiases + outputBias + mlpBiases, foreign: "rms_norm_eps " + rotaryFields,
	},
	"mixtral": {obeyedKeys: expertKeys, window: true, tensors: topTensors + routerBiases, foreign: rmsFields +
		"use_sliding_window"},
	"qwen3moe": {
		obeyedKeys: expertKeys, looseKeys: "feed_forward_length", // experts have their own width
		tensors: topTensors + routerBiases, own: "mlp.gate.weight", foreign: rmsFields + "intermediate_size",
		queryBias: "attention_bias", outputBias: "attention_bias",
	},
	"qwen2moe": {
		obeyedKeys: expertKeys + "expert_shared_feed_forward_length", own: "mlp.gate.weight", queryBias: "-",
		looseKeys: "feed_forward_length",
		tensors:   untiedTensors + outputBias + "blk.0.ffn_gate_inp.bias blk.0.ffn_up_shexp.bias",
		foreign:   rmsFields + "intermediate_size",
	},
	"mellum": {
		obeyedKeys: windowKeys + expertKeys, looseKeys: "feed_forward_length", window: true,
		tensors: untiedTensors + routerBiases, own: "mlp.gate.weight",
		foreign:   rmsFields + "intermediate_size use_sliding_window",
		queryBias: "attention_bias", outputBias: "attention_bias",
	},
	"granitemoe": {
		obeyedKeys: expertKeys + "rope.scaling.finetuned", tensors: topTensors + routerBiases,
		queryBias: "attention_bias", outputBias: "attention_bias",
	},
	"olmoe": {
		obeyedKeys: expertKeys, tensors: untiedTensors + routerBiases, own: "mlp.gate.weight",
		queryBias: "attention_bias", outputBias: "attention_bias",
	},
	"gpt-oss": {
		obeyedKeys: windowKeys + expertKeys, looseKeys: "feed_forward_length", window: true,
		tensors: untiedTensors, own: "self_attn.sinks", foreign: rmsFields + "use_sliding_window",
		queryBias: "-", outputBias: "-",
	},
	"gemma": {queryBias: "attention_bias", outputBias: "attention_bias"},
	"gemma2": {
		obeyedKeys: windowKeys + "final_logit_softcapping", window: true, foreign: rmsFields + "use_sliding_window",
		queryBias: "attention_bias", outputBias: "attention_bias",
	},
	"gemma3": {
		obeyedKeys: windowKeys, window: true, foreign: rmsFields + "use_sliding_window",
		queryBias: "attention_bias", outputBias: "attention_bias",
	},
	"gemma3n": {
		obeyedKeys: windowKeys + "final_logit_softcapping", window: true, structural: "attention.shared_kv_layers",
		tensors: topTensors + "blk.2.attn_q.bias " + queryBiases + outputBias + mlpBiases,
		foreign: rmsFields + "use_sliding_window", queryBias: "attention_bias", outputBias: "attention_bias",
	},
	"gemma4": {
		obeyedKeys: windowKeys + "final_logit_softcapping", structural: "attention.sliding_window_pattern", window: true,
		tensors: "output.weight output.bias blk.2.attn_q.bias " + queryBiases + outputBias + mlpBiases, // it has rope_freqs
		foreign: rmsFields + "rope_theta partial_rotary_factor use_sliding_window",
	},
	"gemma4-experts": {
		obeyedKeys: windowKeys + expertKeys + "final_logit_softcapping", structural: "attention.sliding_window_pattern",
		window:  true,
		tensors: "output.weight output.bias " + routerBiases + " " + mlpBiases,
		foreign: rmsFields + "rope_theta partial_rotary_factor use_sliding_window",
	},
	"glm4":    {queryBias: "attention_bias", tensors: topTensors + queryBiases + outputBias + "blk.1.ffn_down.bias"},
	"chatglm": {queryBias: "attention_bias", tensors: topTensors + queryBiases + outputBias + "blk.1.ffn_down.bias"},
	"glm4moe": {
		obeyedKeys: groupKeys + "expert_shared_count leading_dense_block_count", own: "mlp.gate.weight",
		queryBias: "attention_bias",
		tensors:   topTensors + queryBiases + outputBias + "blk.0.ffn_gate.bias blk.0.ffn_up.bias",
	},
	"deepseek": {
		obeyedKeys: expertKeys + "expert_weights_scale expert_shared_count leading_dense_block_count", own: "mlp.gate.weight",
		tensors:   topTensors + queryBiases + outputBias + "blk.0.ffn_gate.bias blk.0.ffn_up.bias",
		queryBias: "attention_bias", outputBias: "attention_bias",
	},
	"deepseek2": {
		obeyedKeys: groupKeys + "expert_shared_count leading_dense_block_count attention.key_length_mla attention.value_length_mla",
		tensors:    topTensors + "blk.0.attn_q.bias " + outputBias + "blk.0.ffn_gate.bias blk.0.ffn_up.bias",
		own:        "mlp.gate.weight",
	},
	"youtu": {
		structural: "leading_dense_block_count", obeyedKeys: "attention.key_length_mla attention.value_length_mla",
		tensors: topTensors + "blk.0.attn_q.bias " + outputBias + mlpBiases,
	},
	"kimi-linear": {
		obeyedKeys: groupKeys + "expert_shared_count leading_dense_block_count attention.key_length_mla attention.value_length_mla",
		inertKeys:  usual.inertKeys + " rope.freq_base rope.scale_linear rope.scaling.factor rope.scaling.attn_factor",
		tensors:    "output.bias blk.0.attn_q.bias " + outputBias + "blk.0.ffn_gate.bias blk.0.ffn_up.bias",
		own:        "block_sparse_moe.gate.weight",
		foreign:    rmsFields + "head_dim",
		looseKeys:  "expert_weights_norm", // true, as usual
		structural: "kda.head_dim",
	},
	"mistral4": {
		obeyedKeys: groupKeys + "expert_shared_count leading_dense_block_count attention.key_length_mla attention.value_length_mla",
		looseKeys:  "expert_weights_norm attention.temperature_length", // true, as folders have it; beside a scale
		tensors:    topTensors + "blk.0.attn_q.bias " + outputBias + "blk.0.ffn_gate.bias blk.0.ffn_up.bias",
		own:        "mlp.gate.weight",
	},
	"minicpm": {
		obeyedKeys: "embedding_scale residual_scale logit_scale", queryBias: "attention_bias", outputBias: "attention_bias",
	},
	"minicpm3": {
		structural: "attention.value_length rope.dimension_count", tensors: topTensors + outputBias + mlpBiases,
	},
	"apertus": {
		queryBias: "attention_bias", outputBias: "attention_bias",
		tensors: topTensors + queryBiases + outputBias + "blk.1.ffn_down.bias blk.0.ffn_up.bias",
	},
	"seed_oss":       {queryBias: "attention_bias", outputBias: "attention_out_bias", downBias: "mlp_bias"},
	"pangu-embedded": {queryBias: "-", outputBias: "-", tensors: topTensors + mlpBiases},
	"exaone": {
		tensors: untiedTensors + queryBiases + outputBias + mlpBiases, foreign: "rms_norm_eps " + rmsFields,
	},
	"internlm2":     {tensors: untiedTensors + queryBiases + outputBias + mlpBiases},
	"exaone4":       {obeyedKeys: windowKeys, window: true, foreign: rmsFields + "use_sliding_window"},
	"hunyuan-dense": {queryBias: "attention_bias", outputBias: "attention_bias"},
	"ernie4_5":      {queryBias: "use_bias", outputBias: "use_bias", downBias: "use_bias"},
	"ernie4_5-moe": {
		obeyedKeys: expertKeys + "expert_shared_feed_forward_length leading_dense_block_count", own: "mlp.gate.weight",
		inertKeys: usual.inertKeys + " expert_shared_count",
		tensors:   topTensors + queryBiases + outputBias + "blk.0.ffn_gate.bias blk.0.ffn_up.bias",
	},
	"bailingmoe": {
		obeyedKeys: expertKeys + "expert_weights_scale expert_weights_norm expert_shared_count leading_dense_block_count",
		looseKeys:  "expert_weights_norm feed_forward_length", // true, as folders have it; of no layer
		own:        "mlp.gate.weight",
		foreign:    rmsFields + "intermediate_size", // no layer has an MLP
		tensors:    untiedTensors + queryBiases + outputBias + "blk.0.ffn_gate_inp.bias blk.0.ffn_up_shexp.bias",
	},
	"bailingmoe2": {
		obeyedKeys: groupKeys + "expert_shared_count expert_shared_feed_forward_length leading_dense_block_count",
		own:        "mlp.gate.weight",
		tensors:    untiedTensors + outputBias + "blk.0.ffn_gate.bias blk.0.ffn_up.bias blk.0.attn_qkv.bias",
	},
	"afmoe": {
		obeyedKeys: groupKeys + "expert_shared_count leading_dense_block_count attention.sliding_window",
		looseKeys:  "expert_weights_norm", // true, as folders have it
		own:        "mlp.gate.weight", window: true, foreign: rmsFields + "use_sliding_window",
		tensors:   untiedTensors + queryBiases + outputBias + "blk.0.ffn_gate.bias blk.0.ffn_up.bias blk.0.attn_gate.bias",
		queryBias: "attention_bias", outputBias: "attention_bias",
	},
	"hunyuan-moe": {
		obeyedKeys: expertKeys + "expert_shared_feed_forward_length", own: "mlp.gate.wg.weight",
		inertKeys: usual.inertKeys + " expert_shared_count",
		looseKeys: "feed_forward_length",
		tensors:   topTensors + routerBiases + " blk.0.ffn_up_shexp.bias",
		queryBias: "attention_bias", outputBias: "attention_bias",
	},
	"llama4": {
		looseKeys:  "attention.temperature_scale attention.temperature_length", // of every fourth layer's queries
		obeyedKeys: expertKeys + "attention.sliding_window interleave_moe_layer_step",
		tensors:    topTensors + queryBiases + outputBias + "blk.0.ffn_gate.bias blk.0.ffn_up.bias",
		foreign:    rmsFields + "use_sliding_window",
		queryBias:  "attention_bias", outputBias: "attention_bias",
	},
	"laguna": {
		obeyedKeys: groupKeys + windowKeys + "expert_shared_feed_forward_length leading_dense_block_count",
		looseKeys:  "expert_weights_norm", // true, as folders have it
		inertKeys:  usual.inertKeys + " expert_shared_count", own: "mlp.gate.weight", window: true,
		tensors:   untiedTensors + queryBiases + outputBias + "blk.0.ffn_gate.bias blk.0.ffn_up.bias blk.0.attn_gate.bias",
		foreign:   rmsFields + "rope_theta partial_rotary_factor use_sliding_window",
		queryBias: "attention_bias", outputBias: "attention_bias",
	},
	"step35": {
		obeyedKeys: expertKeys + windowKeys + `expert_gating_func expert_weights_norm expert_weights_scale swiglu_clamp_exp
			swiglu_clamp_shexp expert_shared_feed_forward_length leading_dense_block_count`,
		looseKeys: "expert_weights_norm", // true, as folders have it
		inertKeys: usual.inertKeys + " moe_every_n_layers", own: "moe.gate.weight", window: true,
		tensors: "output.bias " + queryBiases + outputBias + "blk.0.ffn_gate.bias blk.0.ffn_up.bias blk.0.attn_gate.bias",
		foreign: rmsFields + "partial_rotary_factor use_sliding_window", queryBias: "attention_bias",
		outputBias: "attention_bias",
	},
	"mimo2": {
		obeyedKeys: windowKeys + groupKeys + "attention.value_scale", looseKeys: "expert_weights_norm",
		structural: "attention.sliding_window_pattern attention.value_length",
		own:        "mlp.gate.weight", window: true, foreign: rmsFields + "use_sliding_window",
		tensors:   untiedTensors + queryBiases + outputBias + "blk.0.ffn_gate.bias blk.0.ffn_up.bias",
		queryBias: "attention_bias",
	},
	"smallthinker": {
		obeyedKeys: expertKeys + "expert_gating_func attention.sliding_window", looseKeys: "feed_forward_length",
		tensors: topTensors + routerBiases, own: "block_sparse_moe.primary_router.weight",
		foreign: rmsFields + "intermediate_size use_sliding_window",
	},
	"dots1": {
		obeyedKeys: groupKeys + "expert_shared_count leading_dense_block_count", own: "mlp.gate.weight",
		queryBias: "attention_bias", outputBias: "attention_bias",
		tensors: untiedTensors + queryBiases + outputBias + "blk.0.ffn_gate.bias blk.0.ffn_up.bias",
	},
	"hy_v3": {
		obeyedKeys: expertKeys + "expert_shared_feed_forward_length expert_gating_func expert_weights_norm expert_weights_scale",
		looseKeys:  "expert_weights_norm", // true, as folders have it
		tensors:    untiedTensors + queryBiases + outputBias + "blk.0.ffn_gate.bias blk.0.ffn_up.bias",
		queryBias:  "attention_bias", outputBias: "attention_bias",
	},
	"exaone-moe": {
		obeyedKeys: groupKeys + windowKeys + "expert_shared_count expert_shared_feed_forward_length leading_dense_block_count",
		looseKeys:  "expert_shared_count", // the other key says it too
		own:        "mlp.gate.weight", window: true, foreign: rmsFields + "use_sliding_window",
		tensors: untiedTensors + queryBiases + outputBias + "blk.0.ffn_gate.bias blk.0.ffn_up.bias",
	},
	"minimax-m2": {
		obeyedKeys: expertKeys + "expert_gating_func", looseKeys: "feed_forward_length",
		tensors: untiedTensors + routerBiases, own: "block_sparse_moe.gate.weight",
	},
	"cohere2": {
		obeyedKeys: "attention.sliding_window logit_scale",
		inertKeys:  "attention.layer_norm_rms_epsilon use_parallel_residual",
		window:     true, foreign: "rms_norm_eps " + rotaryFields + "use_sliding_window",
		queryBias: "attention_bias", outputBias: "attention_bias",
	},
	"cohere2moe": {
		obeyedKeys: windowKeys + expertKeys + `logit_scale expert_weights_norm expert_weights_scale expert_gating_func
			expert_shared_count expert_shared_feed_forward_length leading_dense_block_count`,
		looseKeys: "expert_shared_count", // the other key says it too
		inertKeys: "use_parallel_residual", window: true, own: "mlp.gate.weight",
		foreign: rotaryFields + "use_sliding_window", queryBias: "attention_bias", outputBias: "attention_bias",
		tensors: topTensors + queryBiases + outputBias + "blk.0.ffn_gate.bias blk.0.ffn_up.bias",
	},
	"command-r": {
		obeyedKeys: "logit_scale",
		inertKeys:  "attention.layer_norm_rms_epsilon use_parallel_residual",
		foreign:    "rms_norm_eps " + rotaryFields, queryBias: "attention_bias", outputBias: "attention_bias",
	},
	"starcoder2": {
		inertKeys: "attention.layer_norm_rms_epsilon use_parallel_residual", queryBias: "-", outputBias: "-",
		window: true, tensors: topTensors, own: "model.norm.bias",
		foreign: "rms_norm_eps layer_norm_eps " + rotaryFields + "use_sliding_window",
	},
	"gpt2": {
		inertKeys:  "attention.layer_norm_rms_epsilon use_parallel_residual" + unrotated,
		obeyedKeys: "context_length", structural: "context_length", // which is that of position_embd
		tensors: "output.weight output.bias",
		foreign: "rms_norm_eps layer_norm_eps hidden_size num_hidden_layers num_attention_heads num_key_value_heads head_dim " +
			"intermediate_size max_position_embeddings hidden_act " + rotaryFields,
	},
	"phi2": {
		inertKeys: "attention.layer_norm_rms_epsilon use_parallel_residual", queryBias: "-",
		tensors: "rope_freqs.weight", own: "lm_head.bias", foreign: "rms_norm_eps " + rotaryFields,
	},
	"nemotron": {
		inertKeys: "attention.layer_norm_rms_epsilon use_parallel_residual", own: "model.norm.bias",
		queryBias: "attention_bias", outputBias: "attention_bias", downBias: "mlp_bias",
		tensors: untiedTensors + queryBiases + outputBias + "blk.1.ffn_down.bias blk.0.ffn_up.bias",
		foreign: "rms_norm_eps layer_norm_eps " + rotaryFields,
	},
	"olmo": {
		obeyedKeys: "attention.clamp_kqv", inertKeys: "attention.layer_norm_rms_epsilon use_parallel_residual",
		queryBias: "attention_bias", outputBias: "attention_bias",
		foreign: "rms_norm_eps layer_norm_eps " + rotaryFields,
	},
	"jais2": {
		inertKeys: "attention.layer_norm_rms_epsilon use_parallel_residual", queryBias: "-", outputBias: "-", downBias: "-",
		tensors: topTensors, foreign: "rms_norm_eps " + rotaryFields, own: "model.norm.bias",
	},
	"bitnet": {queryBias: "attention_bias", outputBias: "attention_bias"},
	"arcee": {
		queryBias: "attention_bias", outputBias: "attention_bias", downBias: "mlp_bias",
		tensors: topTensors + queryBiases + outputBias + "blk.1.ffn_down.bias blk.0.ffn_up.bias",
	},
	"granitehybrid": {
		obeyedKeys: "rope.scaling.finetuned expert_shared_feed_forward_length", tensors: topTensors + outputBias + mlpBiases,
		foreign: rmsFields + "use_sliding_window", queryBias: "attention_bias", outputBias: "attention_bias",
	},
	"granitehybrid-experts": {
		obeyedKeys: expertKeys + "rope.scaling.finetuned",
		tensors:    topTensors + outputBias + "blk.0.ffn_gate_inp.bias blk.0.ffn_up_shexp.bias",
		foreign:    rmsFields + "use_sliding_window", queryBias: "attention_bias", outputBias: "attention_bias",
	},
	"jamba": {inertKeys: usual.inertKeys + unrotated, tensors: "output.weight output.bias " + outputBias + mlpBiases,
		foreign: rmsFields},
	"jamba-experts": {
		obeyedKeys: expertKeys, inertKeys: usual.inertKeys + unrotated, foreign: rmsFields,
		tensors: "output.weight output.bias " + outputBias + "blk.0.ffn_gate.bias blk.0.ffn_up.bias",
	},
	"falcon-h1":  {tensors: untiedTensors + queryBiases + outputBias + mlpBiases},
	"nemotron_h": {inertKeys: usual.inertKeys + unrotated, tensors: "output.weight output.bias " + outputBias},
	"nemotron_h_moe": {
		obeyedKeys: groupKeys + "moe_latent_size", inertKeys: usual.inertKeys + unrotated + " expert_shared_count",
		tensors: "output.weight output.bias " + outputBias,
	},
}

func init() { unusual["command-r-plus"] = unusual["command-r"] }

// unrotated are the rotation keys of models that do not rotate positions in.
const unrotated = " rope.dimension_count rope.freq_base rope.scale_linear rope.scaling.factor rope.scaling.attn_factor"

// expectationsOf returns the expectations for a small shape.
func expectationsOf(s synth.Shape) expectations {
	e := unusual[s.Name]
	if e.inertKeys == "" {
		e.inertKeys = usual.inertKeys
	}
	if e.tensors == "" {
		e.tensors = usual.tensors
	}
	if e.foreign == "" {
		e.foreign = usual.foreign
	}
	e.tensors = strings.TrimSpace(e.tensors)
	return e
}

// obeys reports whether a key that changes nothing in most models is obeyed.
func (e expectations) obeys(key string) bool {
	return slices.Contains(strings.Fields(e.obeyedKeys), key)
}
