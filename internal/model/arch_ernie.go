package model

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/grovellm/grove/internal/files/ggufkeys"
)

// ernie45 is Baidu's dense Ernie 4.5.
var ernie45 = architecture{
	name: "ernie4_5", modelType: "ernie4_5", class: "Ernie4_5ForCausalLM",
	keys: rmsKeys,
	defaults: hfConfig{HiddenAct: "silu", RMSNormEps: 1e-5, KVHeads: 2, HeadDim: 128, Tied: true,
		hfRopes: hfRopes{defaultTheta: 5e5}},
	layer:      llamaLayer,
	biases:     map[string]string{"use_bias": "attn_q attn_k attn_v attn_output ffn_gate ffn_up ffn_down"},
	neighbours: true, interleaved: true,
}

// ernie45moe is Ernie 4.5 with experts after dense first layers, alongside shared ones that all
// rows use. Experts are chosen by a softmax over all of them and a bias.
var ernie45moe = architecture{
	name: "ernie4_5-moe", modelType: "ernie4_5_moe", class: "Ernie4_5_MoeForCausalLM",
	keys: func() (r ggufkeys.Rules) {
		r = rmsAnd(expertKeys + " expert_feed_forward_length expert_shared_feed_forward_length leading_dense_block_count")
		r.Ignored = append(strings.Fields("expert_shared_count"), r.Ignored...)
		r.Neutral = map[string][]any{"interleave_moe_layer_step": {1}}
		return r
	}(),
	defaults: hfConfig{HiddenAct: "silu", RMSNormEps: 1e-5, KVHeads: 4, Tied: true, hfRopes: hfRopes{defaultTheta: 5e5},
		MoEExperts: 64, MoEUsed: 6, ExpertFFN: 1536, MoEShared: 2, SparseFrom: 1, SparseTo: -1, SparseEvery: 1},
	layer: slices.Concat([]part{attnNorm, ffnNorm, query, key, value, attnOutput},
		grouped(part{folder: "mlp.moe_statics.e_score_correction_bias", row: true, when: isSparse})),
	neighbours: true, interleaved: true, experts: "moe_num_experts",

	implied: func(c *Config) { c.Rule.All, c.Rule.Norm = true, true },
	readKeys: func(k *keys, c *Config) {
		c.Dense = k.int("leading_dense_block_count", 0)
		c.ExpertFFN = k.int("expert_feed_forward_length")
		c.SharedFFN = k.int("expert_shared_feed_forward_length", 0)
		c.checkGrouped(k, "expert_shared_feed_forward_length")
	},
	writeKeys: func(c *Config, set func(string, any)) {
		set("interleave_moe_layer_step", uint32(1))
		set("leading_dense_block_count", uint32(c.Dense))
		set("expert_feed_forward_length", uint32(c.ExpertFFN))
		set("expert_shared_count", uint32(c.SharedFFN/c.ExpertFFN))
		set("expert_shared_feed_forward_length", uint32(c.SharedFFN))
	},
	readFields: func(h *hfConfig, c *Config) error {
		c.Rule.All, c.Rule.Norm = true, true
		c.Dense = min(h.SparseFrom, c.Layers)
		c.ExpertFFN = int(h.ExpertFFN)
		c.SharedFFN = c.ExpertFFN * h.MoEShared
		switch {
		case h.UseBias:
			return errors.New("use_bias is true: want false")
		case h.MoEShared < 1:
			return errors.New("moe_num_shared_experts: want 1 or more")
		case h.SparseEvery != 1 || h.SparseFrom < 0 || h.SparseTo != -1 && h.SparseTo < c.Layers-1:
			return fmt.Errorf("moe_layer_start_index, moe_layer_end_index and moe_layer_interval are %d, %d and %d: "+
				"want experts in all layers after the first ones", h.SparseFrom, h.SparseTo, h.SparseEvery)
		}
		return nil
	},
	writeFields: func(c *Config, m map[string]any) error {
		delete(m, "num_experts_per_tok")
		m["moe_k"] = c.Used
		m["moe_layer_start_index"], m["moe_layer_interval"] = c.Dense, 1
		m["moe_intermediate_size"], m["moe_num_shared_experts"] = c.ExpertFFN, c.SharedFFN/c.ExpertFFN
		if c.SharedFFN%c.ExpertFFN != 0 {
			return fmt.Errorf("key expert_shared_feed_forward_length is %d, not a multiple of %d: config.json cannot express it",
				c.SharedFFN, c.ExpertFFN)
		}
		return nil
	},
}
