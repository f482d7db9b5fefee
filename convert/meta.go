package convert

import (
	"math"
	"strconv"

	"github.com/grovellm/grove/gguf"
	"github.com/grovellm/grove/tensor"
)

// fileTypes are llama.cpp's numbers for "mostly this type".
var fileTypes = map[tensor.Type]uint32{tensor.F32: 0, tensor.F16: 1, tensor.Q8_0: 7, tensor.BF16: 32}

// setMeta sets the keys that describe a model.
func (c *layout) setMeta(w *gguf.Writer, name string, typ tensor.Type) {
	w.Set("general.architecture", c.Arch)
	w.Set("general.type", "model")
	w.Set("general.name", name)
	if n, ok := fileTypes[typ]; ok {
		w.Set("general.file_type", n)
	}
	w.Set("general.quantization_version", uint32(2))
	set := func(key string, v any) { w.Set(c.Arch+"."+key, v) }
	for _, k := range []struct {
		key string
		v   int
	}{{"vocab_size", c.Vocab}, {"context_length", c.Context}, {"embedding_length", c.Hidden}, {"block_count", c.Layers},
		{"feed_forward_length", c.FFN}, {"attention.head_count", c.Heads}, {"rope.dimension_count", c.Rope.Dims}} {
		set(k.key, uint32(k.v))
	}
	set("rope.freq_base", float32(c.Rope.Base))
	if c.Rope.Scale != 1 {
		set("rope.scaling.type", "linear")
		set("rope.scaling.factor", float32(c.Rope.Scale))
	}
	if c.Arch == "gptneox" {
		set("attention.layer_norm_epsilon", float32(c.NormEps))
		set("use_parallel_residual", c.Parallel)
		return
	}
	set("attention.head_count_kv", uint32(c.KVHeads))
	set("attention.layer_norm_rms_epsilon", float32(c.NormEps))
	if c.Arch != "qwen2" || c.HeadDim*c.Heads != c.Hidden {
		set("attention.key_length", uint32(c.HeadDim))
		set("attention.value_length", uint32(c.HeadDim))
	}
}

// decimal is the shortest decimal number that a GGUF f32 may have been: 1e-06, not 9.999999974752427e-07.
func decimal(x float64) float64 {
	if float64(float32(x)) != x || math.IsInf(x, 0) {
		return x
	}
	d, err := strconv.ParseFloat(strconv.FormatFloat(x, 'g', -1, 32), 64)
	if err != nil {
		return x
	}
	return d
}

// fields is config.json.
func (c *layout) fields(typ tensor.Type, special map[string]int32) (map[string]any, error) {
	eps, base := decimal(float64(c.NormEps)), decimal(c.Rope.Base)
	m := map[string]any{
		"torch_dtype":             map[tensor.Type]string{tensor.F32: "float32", tensor.F16: "float16", tensor.BF16: "bfloat16"}[typ],
		"hidden_size":             c.Hidden,
		"num_hidden_layers":       c.Layers,
		"num_attention_heads":     c.Heads,
		"intermediate_size":       c.FFN,
		"vocab_size":              c.Vocab,
		"max_position_embeddings": c.Context,
		"tie_word_embeddings":     c.Tied,
	}
	for name, id := range special {
		m[name] = id
	}
	var scaling map[string]any
	switch {
	case c.Rope.Factors != nil:
		r, err := findLlama3(c.Rope.Factors, c.Rope.Base, c.Rope.Dims)
		if err != nil {
			return nil, err
		}
		scaling = map[string]any{"rope_type": "llama3", "factor": r.factor, "low_freq_factor": r.low,
			"high_freq_factor": r.high, "original_max_position_embeddings": r.original}
	case c.Rope.Scale != 1:
		scaling = map[string]any{"rope_type": "linear", "type": "linear", "factor": decimal(c.Rope.Scale)}
	}
	if scaling != nil {
		m["rope_scaling"] = scaling
	}
	if c.Arch == "gptneox" {
		m["architectures"], m["model_type"], m["hidden_act"] = []string{"GPTNeoXForCausalLM"}, "gpt_neox", "gelu"
		m["layer_norm_eps"], m["use_parallel_residual"], m["attention_bias"] = eps, c.Parallel, true
		m["rotary_emb_base"], m["rotary_pct"] = base, share(c.Rope.Dims, c.HeadDim)
		return m, nil
	}
	class := map[string]string{"llama": "LlamaForCausalLM", "qwen2": "Qwen2ForCausalLM", "qwen3": "Qwen3ForCausalLM"}[c.Arch]
	m["architectures"], m["model_type"], m["hidden_act"] = []string{class}, c.Arch, "silu"
	m["num_key_value_heads"], m["rms_norm_eps"], m["rope_theta"] = c.KVHeads, eps, base
	if c.Arch != "qwen2" {
		m["head_dim"], m["attention_bias"] = c.HeadDim, false
	}
	return m, nil
}

// share is a part of whole as readers turn it back into a number: part = int(share · whole).
func share(part, whole int) float64 {
	x := float64(part) / float64(whole)
	if int(x*float64(whole)) < part {
		x = math.Nextafter(x, 1)
	}
	return x
}
