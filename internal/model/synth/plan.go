package synth

import (
	"cmp"
	"math"
	"strings"

	"github.com/grovellm/grove/internal/model"
)

// planned is one tensor to write. Numbers are drawn for Hugging Face's order of rows; GGUF
// reorders some of them.
type planned struct {
	gguf string
	hf   string // empty if Hugging Face folders have no such tensor

	rows, cols int               // a vector's elements are rows of 1
	matrix     bool              // written in the file's type; vectors are F32 unless uniform
	uniform    bool              // vectors, too, are written in the file's type
	order      func(row int) int // maps GGUF's rows to Hugging Face's; nil if they are the same
	columns    func(col int) int // the same for columns
	mean, std  float64
	shift      float64   // GGUF's numbers minus Hugging Face's
	fixed      []float32 // the numbers themselves, if they are not random

	experts, half int   // as model.Part has them
	split         int   // the same
	param, conv   bool  // the same
	sides, turned bool  // the same
	flat, row     bool  // the same
	dims          []int // the same
	decay         bool  // the same; the numbers drawn are those of GGUF files
	factors       func(row int) [2]float32
	mixed         *model.Mixed
	plain         bool // F32 in GGUF files, whatever the file's type

	// of returns the GGUF file's tensor, and its row, that row i equals; nil: this tensor's own rows.
	of func(i int) (*planned, int)

	// cell does the same for each number of a tensor whose rows are another's columns.
	cell func(row, col int) (t *planned, r, c int)
}

func (t *planned) elements() int { return t.rows * t.cols }

// shape returns the dimensions, outermost first.
func (t *planned) shape() []int {
	switch {
	case t.dims != nil:
		return t.dims
	case t.experts > 0 && !t.matrix:
		return []int{t.experts, t.rows / t.experts}
	case t.experts > 0:
		return []int{t.experts, t.rows / t.experts, t.cols}
	case t.row && t.uniform:
		return []int{1, t.rows}
	case t.flat && t.uniform:
		return []int{t.rows * t.cols}
	case t.conv && t.uniform:
		return []int{t.rows, 1, t.cols}
	case t.matrix:
		return []int{t.rows, t.cols}
	}
	return []int{t.rows}
}

// plan lists the tensors in file order, with the distribution of each.
//
// Every block's output gets a standard deviation of about 1/√(2·Layers), so that the residual
// stream ends near 1 and each of the 2·Layers blocks contributes equally. The embedding starts at
// 0.6/√Hidden, so that a tied head sees little of the token just read; otherwise greedy text
// would repeat that token forever.
func (s Shape) plan() []planned {
	c := s.Config()
	h, q := s.Hidden, s.Heads*s.HeadDim
	inv := 1 / math.Sqrt(float64(h))
	block := 1 / math.Sqrt(2*float64(s.Layers))
	const (
		logits = 4    // standard deviation of the logits
		score  = 4    // of attention scores
		embed  = 0.6  // of an embedding's norm
		act    = 0.62 // root mean square of silu(x)·y, x and y standard normal
		gelu   = 1    // for gelu(x) it is about 0.65 too, but much of that is the same for every token
		mix    = 0.5  // roughly the same for a mean of values weighted by such scores
	)
	parts := map[string]bool{}
	for _, p := range c.Parts() {
		parts[stem(p.Name)] = true
	}
	normed, gated := parts["attn_q_norm"], parts["ffn_gate"] || c.Experts > 0
	qk, down := math.Sqrt(score)*inv, act
	if normed {
		qk = inv // the norms of queries and keys set the scale of scores
	}
	if !gated {
		down = gelu
	}
	std := map[string]float64{
		"token_embd": embed * inv, "output": logits * inv,
		"attn_q": qk, "attn_k": qk, "attn_qkv": qk, "attn_v": inv,
		"attn_output": block / mix / math.Sqrt(float64(q)),
		"ffn_gate":    inv, "ffn_up": inv, "ffn_down": block / down / math.Sqrt(float64(s.FFN)),
	}
	std["position_embd"] = embed * inv
	std["ffn_gate_inp"] = 2 * inv
	std["ffn_gate_up_exps"] = inv
	std["per_layer_token_embd"] = inv
	std["per_layer_model_proj"] = 1 / embed
	std["inp_gate"] = 2 * inv
	std["proj"] = 1 / math.Sqrt(float64(max(c.PerLayer, 1)))
	std["altup_proj"], std["altup_unembd_proj"] = inv, inv
	std["altup_router"] = 0.5 / inv
	std["altup_predict_coef"], std["altup_correct_coef"] = 0.2, 0.2
	std["laurel_l"], std["laurel_r"] = inv, 1/math.Sqrt(float64(max(c.Laurel, 1)))
	std["shortconv.in_proj"], std["shortconv.conv"] = inv, 1/math.Sqrt(float64(max(c.Kernel, 1)))
	std["shortconv.out_proj"] = block * inv
	std["attn_gate"], std["ssm_conv1d"] = inv, std["shortconv.conv"]
	std["ssm_alpha"], std["ssm_beta"] = inv, inv
	std["ssm_ba"] = inv
	std["ssm_out"] = block / act / math.Sqrt(float64(max(1, c.Delta.ValueHeads*c.Delta.ValueDim+
		c.Mamba.Heads*c.Mamba.HeadDim)))
	std["ssm_in"] = inv
	if m := c.Mamba; m.Rank > 0 {
		std["ssm_x"], std["ssm_dt"] = 1/math.Sqrt(float64(m.HeadDim)), 1/math.Sqrt(float64(m.Rank))
	}
	for _, part := range []string{"ssm_conv1d_q", "ssm_conv1d_k", "ssm_conv1d_v"} {
		std[part] = std["ssm_conv1d"]
	}
	std["ssm_f_a"], std["ssm_g_a"] = inv, inv
	std["ssm_f_b"] = 1 / math.Sqrt(float64(max(c.Delta.ValueDim, 1)))
	std["ssm_g_b"] = std["ssm_f_b"]
	if l := c.Latent; l.Rank > 0 {
		root := func(n int) float64 { return 1 / math.Sqrt(float64(max(n, 1))) }
		std["attn_q_a"], std["attn_kv_a_mqa"] = inv, inv
		std["attn_q_b"] = math.Sqrt(score) * root(l.QueryRank)
		std["attn_kv_b"] = root(l.Rank)
		std["attn_k_b"], std["attn_v_b"] = root(l.Rank), root(l.Rank)
		std["attn_output"] = block / mix * root(c.Heads*l.ValueDim)
	}
	std["nextn.eh_proj"] = inv / math.Sqrt2
	std[model.AheadEmbed], std[model.AheadHead] = std["token_embd"], std["output"]
	std["ffn_latent_down"], std["ffn_latent_up"] = inv, 1/math.Sqrt(float64(max(c.Narrow, 1)))
	if s.Arch == "gptneox" { // the same value, rounded differently: stored results of other engines depend on it
		std["attn_output"] = block / mix * inv
	}
	mean := map[string]float64{
		"attn_q_norm": math.Sqrt(score), "attn_k_norm": math.Sqrt(score),
		"post_attention_norm": block, "post_ffw_norm": block, "output_norm": 1,
		"laurel_post_norm": block,
	}
	if s.Tied {
		mean["output_norm"] = logits / embed
	}
	if c.AttnScale == 1 { // the norms of queries and keys then include the usual scale
		mean["attn_q_norm"] /= math.Pow(float64(s.HeadDim), 0.25)
		mean["attn_k_norm"] = mean["attn_q_norm"]
	}
	mean["token_embd_norm"] = mean["output_norm"] // LFM2's name
	biases := map[string]float64{"attn_q": 0.2, "attn_k": 0.2, "attn_v": 0.2, "attn_qkv": 0.1,
		"attn_output": 0.1 * block, "ffn_gate": 0.1, "ffn_up": 0.1, "ffn_down": 0.1 * block}
	for _, part := range []string{"ffn_gate", "ffn_up", "ffn_down"} {
		std[part+"_exps"], biases[part+"_exps"] = std[part], biases[part]
		std[part+"_shexp"] = std[part]
	}
	std["ffn_gate_inp_shexp"] = 2 * inv

	var ts []planned
	for _, p := range c.Parts() {
		part := stem(p.Name)
		t := planned{gguf: p.Weight(), hf: p.InFolder(p.Ending), rows: p.Rows, cols: max(p.Cols, 1),
			matrix: p.Cols > 0, std: std[part], order: p.ToGGUF, columns: p.ColsToGGUF, shift: float64(p.Shift)}
		t.plain = model.InF32(t.gguf)
		t.experts = p.Experts
		t.half, t.mixed = p.Half, p.Mixed
		t.split = p.Split
		t.param = p.Param
		t.sides = p.Sides
		t.turned = p.Turned
		t.conv = p.Conv
		t.flat = p.Flat
		t.row = p.Row
		t.decay = p.Decay
		t.dims = p.Dims
		t.factors = p.Factors
		if t.experts > 0 {
			t.rows *= t.experts
		}
		flat := t.flat || part == "ssm_a" || part == "attn_q_norm" || part == "attn_k_norm"
		if !t.matrix || flat { // norms vary around their mean by a tenth
			t.mean = mean[part]
			t.mean = cmp.Or(t.mean, 1)
			t.std = t.mean / 10
			if part == "ssm_dt" {
				t.mean, t.std = 0, 0.5
				if c.Mamba.Heads > 0 { // for a longer memory
					t.mean = -2.5
				}
			}
			if part == "ssm_a" {
				t.mean, t.std = -1, 0.2
			}
			if part == "attn_sinks" {
				t.std = t.mean
			}
		}
		ts = append(ts, t)
		if field, ok := model.BiasField(s.Arch, p.Name); ok && (field == "" || part == "ssm_conv1d" || s.Arch == "gptneox" ||
			s.Biases && (field == "attention_bias" || field == "lm_head_bias")) {
			b := planned{gguf: p.Name + ".bias", hf: p.InFolder(".bias"), rows: p.Rows, cols: 1, std: 0.1, order: p.ToGGUF,
				half: p.Half, param: p.Param}
			if x := biases[part]; x != 0 {
				b.std = x
			}
			b.experts = p.Experts
			if b.experts > 0 {
				b.rows *= b.experts
			}
			ts = append(ts, b)
		}
		if part == "token_embd" {
			ts = append(ts, s.factors()...)
		}
	}
	return ts
}

// stem returns a name without its layer.
func stem(name string) string {
	if rest, ok := strings.CutPrefix(name, "blk."); ok {
		_, name, _ = strings.Cut(rest, ".")
	}
	return name
}

// factors returns the tensors that GGUF files have for a scaling of positions.
func (s Shape) factors() (ts []planned) {
	add := func(name string, f []float32) {
		if f != nil {
			ts = append(ts, planned{gguf: name + ".weight", rows: len(f), cols: 1, fixed: f})
		}
	}
	c := s.Config()
	r := c.Rope
	add("rope_freqs", c.Divisors())
	add("rope_factors_long", r.Long)
	add("rope_factors_short", r.Short)
	return ts
}

// ropeFactors returns the divisors of rotation frequencies that llama.cpp reads in place of Llama
// 3's scaling: wavelengths that are short relative to the original context are kept, long ones are
// slowed by the whole factor, and those between by a blend.
func (s Shape) ropeFactors() []float32 {
	r := s.Llama3
	if r == nil {
		return nil
	}
	f := make([]float32, s.RopeDims/2)
	for i := range f {
		// rotations within the original context
		turns := float64(r.Original) / (2 * math.Pi * math.Pow(s.RopeBase, 2*float64(i)/float64(s.RopeDims)))
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
