package convert

import (
	"fmt"
	"strings"
)

// layout is what both formats need to know of a model to place its rows.
type layout struct {
	arch           string // as GGUF calls it
	layers         int
	heads, kvHeads int
	headDim        int
}

// entry is a tensor of a model: its name in both formats, without .weight or .bias.
type entry struct {
	gguf, hf string
	rows     reordering
	optional bool
}

// reordering says how a tensor's rows differ between the formats.
type reordering uint8

const (
	sameRows  reordering = iota
	queryRows            // llama's rotated projections
	keyRows
	fusedRows // GPT-NeoX's query_key_value
)

var families = map[string]struct {
	layer      string
	top, block [][2]string
}{
	"": {
		layer: "model.layers.",
		top:   [][2]string{{"token_embd", "model.embed_tokens"}, {"output_norm", "model.norm"}, {"output", "lm_head"}},
		block: [][2]string{{"attn_norm", "input_layernorm"}, {"attn_q", "self_attn.q_proj"}, {"attn_k", "self_attn.k_proj"}, {"attn_v", "self_attn.v_proj"},
			{"attn_q_norm", "self_attn.q_norm"}, {"attn_k_norm", "self_attn.k_norm"}, {"attn_output", "self_attn.o_proj"},
			{"ffn_norm", "post_attention_layernorm"}, {"ffn_gate", "mlp.gate_proj"}, {"ffn_up", "mlp.up_proj"}, {"ffn_down", "mlp.down_proj"}},
	},
	"gptneox": {
		layer: "gpt_neox.layers.",
		top:   [][2]string{{"token_embd", "gpt_neox.embed_in"}, {"output_norm", "gpt_neox.final_layer_norm"}, {"output", "embed_out"}},
		block: [][2]string{{"attn_norm", "input_layernorm"}, {"attn_qkv", "attention.query_key_value"}, {"attn_output", "attention.dense"},
			{"ffn_norm", "post_attention_layernorm"}, {"ffn_up", "mlp.dense_h_to_4h"}, {"ffn_down", "mlp.dense_4h_to_h"}},
	},
}

// plan lists a model's tensors in the order of a GGUF file.
func (l *layout) plan() []entry {
	family, ok := families[l.arch]
	if !ok {
		family = families[""]
	}
	var es []entry
	for _, t := range family.top {
		es = append(es, entry{gguf: t[0], hf: t[1], optional: t[0] == "output"})
	}
	for i := range l.layers {
		for _, t := range family.block {
			e := entry{gguf: fmt.Sprintf("blk.%d.%s", i, t[0]), hf: fmt.Sprintf("%s%d.%s", family.layer, i, t[1])}
			switch t[0] {
			case "attn_q":
				if l.arch == "llama" {
					e.rows = queryRows
				}
			case "attn_k":
				if l.arch == "llama" {
					e.rows = keyRows
				}
			case "attn_qkv":
				e.rows = fusedRows
			case "attn_q_norm", "attn_k_norm":
				if l.arch != "qwen3" {
					continue
				}
			}
			es = append(es, e)
		}
	}
	return es
}

// rowsOf is the number of rows that a reordering is made for; 0 for any.
func (l *layout) rowsOf(r reordering) int {
	switch r {
	case queryRows:
		return l.heads * l.headDim
	case keyRows:
		return l.kvHeads * l.headDim
	case fusedRows:
		return 3 * l.heads * l.headDim
	}
	return 0
}

// toGGUF returns which row of the Hugging Face tensor is row i of GGUF's; nil where they are the same.
func (l *layout) toGGUF(r reordering) func(int) int {
	d := l.headDim
	switch r {
	case queryRows, keyRows: // GGUF rotates (2i, 2i+1) together, Hugging Face (i, i+d/2)
		return func(i int) int { return i/d*d + i%d%2*(d/2) + i%d/2 }
	case fusedRows: // (part, head, d) from (head, part, d)
		return func(i int) int {
			part, head := i/(l.heads*d), i/d%l.heads
			return (3*head+part)*d + i%d
		}
	}
	return nil
}

// toHF is the inverse.
func (l *layout) toHF(r reordering) func(int) int {
	d := l.headDim
	switch r {
	case queryRows, keyRows:
		return func(i int) int { return i/d*d + i%d%(d/2)*2 + i%d/(d/2) }
	case fusedRows:
		return func(i int) int {
			head, part := i/(3*d), i/d%3
			return (part*l.heads+head)*d + i%d
		}
	}
	return nil
}

// ignored tells tensors that Hugging Face folders hold and that follow from the configuration.
func ignored(name string) bool {
	for _, end := range []string{".rotary_emb.inv_freq", ".attention.bias", ".attention.masked_bias"} {
		if strings.HasSuffix(name, end) {
			return true
		}
	}
	return false
}
