package train

import "strings"

// residualWriter tells the matrices whose output is added to the residual stream.
func residualWriter(name string) bool {
	return strings.HasSuffix(name, "o_proj.weight") || strings.HasSuffix(name, "down_proj.weight")
}

var ggufParts = map[string]string{
	"model.embed_tokens":       "token_embd",
	"model.norm":               "output_norm",
	"input_layernorm":          "attn_norm",
	"self_attn.q_proj":         "attn_q",
	"self_attn.k_proj":         "attn_k",
	"self_attn.v_proj":         "attn_v",
	"self_attn.o_proj":         "attn_output",
	"self_attn.q_norm":         "attn_q_norm",
	"self_attn.k_norm":         "attn_k_norm",
	"post_attention_layernorm": "ffn_norm",
	"mlp.gate_proj":            "ffn_gate",
	"mlp.up_proj":              "ffn_up",
	"mlp.down_proj":            "ffn_down",
}

// ggufName translates a parameter's Hugging Face name.
func ggufName(name string) string {
	stem := strings.TrimSuffix(name, ".weight")
	if rest, ok := strings.CutPrefix(stem, "model.layers."); ok {
		n, part, _ := strings.Cut(rest, ".")
		return "blk." + n + "." + ggufParts[part] + ".weight"
	}
	return ggufParts[stem] + ".weight"
}
