package synth

import (
	"fmt"
	"math"
)

// planned is one tensor to write. Numbers are drawn for Hugging Face's order of rows; GGUF
// reorders some of them.
type planned struct {
	gguf string
	hf   string // empty where Hugging Face folders have no such tensor

	rows, cols int               // a vector has its elements as rows of 1
	matrix     bool              // written as the file's type; vectors are F32 unless uniform
	uniform    bool              // a vector, too, is written as the file's type
	order      func(row int) int // the Hugging Face row that GGUF's row is; nil for the same
	mean, std  float64
	fixed      []float32 // the numbers themselves, where they are not random
}

func (t *planned) elements() int { return t.rows * t.cols }

// shape is outermost first.
func (t *planned) shape() []int {
	if t.matrix {
		return []int{t.rows, t.cols}
	}
	return []int{t.rows}
}

// plan lists the tensors in file order, with the distribution of each.
//
// Every block's output gets a standard deviation of about 1/√(2·Layers), so that the residual
// stream ends near 1 and each of the 2·Layers blocks has the same say. The embedding starts at
// 0.6/√Hidden: a tied head then sees little of the token it has just read, else greedy text
// would repeat it for ever.
func (s Shape) plan() []planned {
	neox := s.Arch == "gptneox"
	h, q, kv := s.Hidden, s.Heads*s.HeadDim, s.KVHeads*s.HeadDim
	inv := 1 / math.Sqrt(float64(h))
	block := 1 / math.Sqrt(2*float64(s.Layers))
	const (
		logits = 4    // standard deviation of the logits
		score  = 4    // of attention scores
		embed  = 0.6  // of an embedding's norm
		act    = 0.62 // root mean square of silu(x)·y, x and y standard normal
		gelu   = 1    // of gelu(x) it is 0.65 too, but a good part of that is the same for every token
		mix    = 0.5  // the same for a mean of values under such scores, roughly
	)

	var ts []planned
	matrix := func(gguf, hf string, rows, cols int, std float64) *planned {
		ts = append(ts, planned{gguf: gguf + ".weight", hf: hf + ".weight", rows: rows, cols: cols, matrix: true, std: std})
		return &ts[len(ts)-1]
	}
	vector := func(gguf, hf string, n int, mean, std float64) *planned {
		ts = append(ts, planned{gguf: gguf, hf: hf, rows: n, cols: 1, mean: mean, std: std})
		return &ts[len(ts)-1]
	}
	// norm weights spread around mean by a tenth; a LayerNorm has a bias as well
	norm := func(gguf, hf string, n int, mean float64) {
		vector(gguf+".weight", hf+".weight", n, mean, mean/10)
		if neox {
			vector(gguf+".bias", hf+".bias", n, 0, 0.1)
		}
	}

	embedName, normName, headName, layer := "model.embed_tokens", "model.norm", "lm_head", "model.layers."
	if neox {
		embedName, normName, headName, layer = "gpt_neox.embed_in", "gpt_neox.final_layer_norm", "embed_out", "gpt_neox.layers."
	}
	matrix("token_embd", embedName, s.Vocab, h, embed*inv)
	if f := s.ropeFactors(); f != nil {
		ts = append(ts, planned{gguf: "rope_freqs.weight", rows: len(f), cols: 1, fixed: f})
	}
	if s.Tied {
		norm("output_norm", normName, h, logits/embed)
	} else {
		norm("output_norm", normName, h, 1)
		matrix("output", headName, s.Vocab, h, logits*inv)
	}
	for i := range s.Layers {
		g, f := fmt.Sprintf("blk.%d.", i), fmt.Sprintf("%s%d.", layer, i)
		norm(g+"attn_norm", f+"input_layernorm", h, 1)
		norm(g+"ffn_norm", f+"post_attention_layernorm", h, 1)
		if neox {
			w := matrix(g+"attn_qkv", f+"attention.query_key_value", 3*h, h, math.Sqrt(score)*inv)
			w.order = s.fusedRow
			b := vector(g+"attn_qkv.bias", f+"attention.query_key_value.bias", 3*h, 0, 0.1)
			b.order = s.fusedRow
			matrix(g+"attn_output", f+"attention.dense", h, h, block/mix*inv)
			vector(g+"attn_output.bias", f+"attention.dense.bias", h, 0, 0.1*block)
			matrix(g+"ffn_up", f+"mlp.dense_h_to_4h", s.FFN, h, inv)
			vector(g+"ffn_up.bias", f+"mlp.dense_h_to_4h.bias", s.FFN, 0, 0.1)
			matrix(g+"ffn_down", f+"mlp.dense_4h_to_h", h, s.FFN, block/gelu/math.Sqrt(float64(s.FFN)))
			vector(g+"ffn_down.bias", f+"mlp.dense_4h_to_h.bias", h, 0, 0.1*block)
			continue
		}
		qk := math.Sqrt(score) * inv
		if s.Arch == "qwen3" {
			qk = inv // the norms over heads make the score
			norm(g+"attn_q_norm", f+"self_attn.q_norm", s.HeadDim, math.Sqrt(score))
			norm(g+"attn_k_norm", f+"self_attn.k_norm", s.HeadDim, math.Sqrt(score))
		}
		for _, p := range []struct {
			gguf, hf string
			rows     int
			std      float64
		}{{"attn_q", "self_attn.q_proj", q, qk}, {"attn_k", "self_attn.k_proj", kv, qk}, {"attn_v", "self_attn.v_proj", kv, inv}} {
			w := matrix(g+p.gguf, f+p.hf, p.rows, h, p.std)
			if s.Arch == "llama" && p.gguf != "attn_v" {
				w.order = s.neighbourRow
			}
			if s.Arch == "qwen2" {
				vector(g+p.gguf+".bias", f+p.hf+".bias", p.rows, 0, 0.2)
			}
		}
		matrix(g+"attn_output", f+"self_attn.o_proj", h, q, block/mix/math.Sqrt(float64(q)))
		matrix(g+"ffn_gate", f+"mlp.gate_proj", s.FFN, h, inv)
		matrix(g+"ffn_up", f+"mlp.up_proj", s.FFN, h, inv)
		matrix(g+"ffn_down", f+"mlp.down_proj", h, s.FFN, block/act/math.Sqrt(float64(s.FFN)))
	}
	return ts
}

// neighbourRow: GGUF's llama rotates dimensions (2i, 2i+1) of a head together, Hugging Face's
// rotates (i, i+HeadDim/2).
func (s Shape) neighbourRow(row int) int {
	head, d := row/s.HeadDim, row%s.HeadDim
	return head*s.HeadDim + d%2*(s.HeadDim/2) + d/2
}

// fusedRow: GGUF's gptneox has all queries, then all keys, then all values; Hugging Face's has
// query, key and value of one head after another.
func (s Shape) fusedRow(row int) int {
	part, head, d := row/s.Hidden, row%s.Hidden/s.HeadDim, row%s.HeadDim
	return (3*head+part)*s.HeadDim + d
}

// ropeFactors are the divisors of the rotations' frequencies that llama.cpp reads in place of
// Llama 3's scaling: wavelengths short against the original context are kept, long ones are
// slowed by the whole factor, those between by a blend.
func (s Shape) ropeFactors() []float32 {
	r := s.Llama3
	if r == nil {
		return nil
	}
	f := make([]float32, s.RopeDims/2)
	for i := range f {
		turns := float64(r.Original) / (2 * math.Pi * math.Pow(s.RopeBase, 2*float64(i)/float64(s.RopeDims))) // within the original context
		blend := (turns - r.Low) / (r.High - r.Low)
		f[i] = float32(1 / (float64((1-blend)/r.Factor) + blend))
		switch {
		case turns > r.High:
			f[i] = 1
		case turns < r.Low:
			f[i] = float32(r.Factor)
		}
	}
	return f
}
