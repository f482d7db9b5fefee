package model

import (
	"errors"
	"strings"
)

// BlockHead is the architecture, by llama.cpp's name, of files that hold a drafter's block head and no model (package
// draft/jet). Its layers are those of qwen3.
const BlockHead = "dflash"

var errHead = errors.New("the file is a drafter's head, not a model: open the model it drafts for, with this head (--head FILE)")

// Hugging Face names of the tensors, by GGUF name. "blk.N." and the layer prefix are swapped
// by HFName, and so are the endings .weight and .bias.
var (
	hfTop = map[string]map[string]string{
		"": {
			"token_embd":  "model.embed_tokens",
			"output_norm": "model.norm",
			"output":      "lm_head",
		},
		"gptneox": {
			"token_embd":  "gpt_neox.embed_in",
			"output_norm": "gpt_neox.final_layer_norm",
			"output":      "embed_out",
		},
		BlockHead: {
			"fc":              "fc",
			"enc.output_norm": "hidden_norm",
			"output_norm":     "norm",
			"token_embd":      "embed_tokens",
			"output":          "lm_head",
		},
	}
	hfLayer = map[string]map[string]string{
		"": {
			"attn_norm":   "input_layernorm",
			"attn_q":      "self_attn.q_proj",
			"attn_k":      "self_attn.k_proj",
			"attn_v":      "self_attn.v_proj",
			"attn_q_norm": "self_attn.q_norm",
			"attn_k_norm": "self_attn.k_norm",
			"attn_output": "self_attn.o_proj",
			"ffn_norm":    "post_attention_layernorm",
			"ffn_gate":    "mlp.gate_proj",
			"ffn_up":      "mlp.up_proj",
			"ffn_down":    "mlp.down_proj",
		},
		"gptneox": {
			"attn_norm":   "input_layernorm",
			"attn_qkv":    "attention.query_key_value",
			"attn_output": "attention.dense",
			"ffn_norm":    "post_attention_layernorm",
			"ffn_up":      "mlp.dense_h_to_4h",
			"ffn_down":    "mlp.dense_4h_to_h",
		},
	}
)

// HFName translates a GGUF tensor name of an architecture; ok is false for tensors Hugging Face files do not have.
func HFName(arch, name string) (string, bool) {
	family, layerPrefix := "", "model.layers."
	switch arch {
	case "gptneox":
		family, layerPrefix = arch, "gpt_neox.layers."
	case BlockHead:
		family, layerPrefix = arch, "layers."
	}
	dot := strings.LastIndexByte(name, '.')
	if dot < 0 {
		return "", false
	}
	stem, ending := name[:dot], name[dot:]
	if rest, ok := strings.CutPrefix(stem, "blk."); ok {
		n, part, _ := strings.Cut(rest, ".")
		parts := hfLayer[family]
		if parts == nil {
			parts = hfLayer[""]
		}
		hf, ok := parts[part]
		return layerPrefix + n + "." + hf + ending, ok
	}
	hf, ok := hfTop[family][stem]
	return hf + ending, ok
}
