package model

import (
	"errors"
	"slices"
	"strings"
)

// Architectures of files that hold a drafter's head and no model: of block heads (package draft/jet, whose layers are those of qwen3)
// and of EAGLE-3's (draft/eagle) by llama.cpp's names, of EAGLE-2's, SpecBlock's (draft/specblock) and routers (shortlist) by grove's own.
const (
	BlockHead = "dflash"
	Eagle3    = "eagle3"
	Eagle2    = "eagle2"
	SpecBlock = "specblock"
	Router    = "router"
)

// IsHead reports whether an architecture is one of heads.
func IsHead(arch string) bool {
	return slices.Contains([]string{BlockHead, Eagle3, Eagle2, SpecBlock, Router}, arch)
}

// TargetLayersKey is the key of a head's GGUF file that says how many layers the target has that it was made for. It is
// grove's own.
const TargetLayersKey = "grove.target.block_count"

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
