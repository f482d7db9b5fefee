package convert

import (
	"fmt"
	"math"
	"strconv"

	"github.com/grovellm/grove/gguf"
	"github.com/grovellm/grove/tensor"
)

// fileTypes are llama.cpp's numbers for "mostly this type".
var fileTypes = map[tensor.Type]uint32{tensor.F32: 0, tensor.F16: 1, tensor.Q8_0: 7, tensor.BF16: 32}

// setMeta sets the keys that describe a model.
func (c *config) setMeta(w *gguf.Writer, name string, typ tensor.Type) {
	w.Set("general.architecture", c.arch)
	w.Set("general.type", "model")
	w.Set("general.name", name)
	if n, ok := fileTypes[typ]; ok {
		w.Set("general.file_type", n)
	}
	w.Set("general.quantization_version", uint32(2))
	set := func(key string, v any) { w.Set(c.arch+"."+key, v) }
	for _, k := range []struct {
		key string
		v   int
	}{{"vocab_size", c.vocab}, {"context_length", c.context}, {"embedding_length", c.hidden}, {"block_count", c.layers},
		{"feed_forward_length", c.ffn}, {"attention.head_count", c.heads}, {"rope.dimension_count", c.ropeDims}} {
		set(k.key, uint32(k.v))
	}
	set("rope.freq_base", float32(c.ropeBase))
	if c.linear != 1 {
		set("rope.scaling.type", "linear")
		set("rope.scaling.factor", float32(c.linear))
	}
	if c.arch == "gptneox" {
		set("attention.layer_norm_epsilon", float32(c.eps))
		set("use_parallel_residual", c.parallel)
		return
	}
	set("attention.head_count_kv", uint32(c.kvHeads))
	set("attention.layer_norm_rms_epsilon", float32(c.eps))
	if c.arch != "qwen2" || c.headDim*c.heads != c.hidden {
		set("attention.key_length", uint32(c.headDim))
		set("attention.value_length", uint32(c.headDim))
	}
}

// readMeta reads them back.
func readMeta(f *gguf.File) (*config, error) {
	k := f.Keys()
	c := &config{linear: 1}
	c.arch = k.String("general.architecture")
	key := func(name string) string { return c.arch + "." + name }
	switch c.arch {
	case "llama", "qwen2", "qwen3":
		c.eps = decimal(k.Float(key("attention.layer_norm_rms_epsilon")))
	case "gptneox":
		c.eps = decimal(k.Float(key("attention.layer_norm_epsilon")))
		c.parallel = k.Bool(key("use_parallel_residual"), true)
	default:
		if err := k.Err(); err != nil {
			return nil, err
		}
		return nil, fmt.Errorf("%s: general.architecture %q is not one grove converts: want llama, qwen2, qwen3 or gptneox", f.Path, c.arch)
	}
	c.hidden, c.layers, c.ffn = k.Int(key("embedding_length")), k.Int(key("block_count")), k.Int(key("feed_forward_length"))
	c.context, c.heads = k.Int(key("context_length")), k.Int(key("attention.head_count"))
	c.kvHeads = k.Int(key("attention.head_count_kv"), c.heads)
	c.headDim = k.Int(key("attention.key_length"), c.hidden/max(c.heads, 1))
	c.ropeBase, c.ropeDims = decimal(k.Float(key("rope.freq_base"), 10000)), k.Int(key("rope.dimension_count"), c.headDim)
	for _, other := range []string{"attention.sliding_window", "expert_count"} {
		if k.Int(key(other), 0) != 0 {
			return nil, fmt.Errorf("%s: key %q is set: models with it are not supported", f.Path, key(other))
		}
	}
	switch kind := k.String(key("rope.scaling.type"), "none"); kind {
	case "none":
	case "linear":
		c.linear = decimal(k.Float(key("rope.scaling.factor"), 1))
	default:
		return nil, fmt.Errorf("%s: key %q is %q: want none or linear", f.Path, key("rope.scaling.type"), kind)
	}
	if err := k.Err(); err != nil {
		return nil, err
	}
	embed, err := f.Load("token_embd.weight")
	if err != nil {
		return nil, err
	}
	c.vocab = embed.Shape[0]
	_, untied := f.Tensor("output.weight")
	c.tied = !untied
	if err := c.check(); err != nil {
		return nil, fmt.Errorf("%s: %w", f.Path, err)
	}
	return c, c.readFactors(f)
}

func (c *config) readFactors(f *gguf.File) error {
	if _, ok := f.Tensor("rope_freqs.weight"); !ok {
		return nil
	}
	t, err := f.Load("rope_freqs.weight")
	if err != nil {
		return err
	}
	v, err := t.Float32s()
	if err != nil {
		return err
	}
	if len(v) != c.ropeDims/2 {
		return fmt.Errorf("%s: tensor rope_freqs.weight has %d numbers: want half of the %d rotated dimensions", f.Path, len(v), c.ropeDims)
	}
	if c.llama3, err = findLlama3(v, c.ropeBase, c.ropeDims); err != nil {
		return fmt.Errorf("%s: %w", f.Path, err)
	}
	return nil
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
func (c *config) fields(typ tensor.Type, special map[string]int32) map[string]any {
	m := map[string]any{
		"torch_dtype":             map[tensor.Type]string{tensor.F32: "float32", tensor.F16: "float16", tensor.BF16: "bfloat16"}[typ],
		"hidden_size":             c.hidden,
		"num_hidden_layers":       c.layers,
		"num_attention_heads":     c.heads,
		"intermediate_size":       c.ffn,
		"vocab_size":              c.vocab,
		"max_position_embeddings": c.context,
		"tie_word_embeddings":     c.tied,
	}
	for name, id := range special {
		m[name] = id
	}
	var scaling map[string]any
	switch {
	case c.llama3 != nil:
		scaling = map[string]any{"rope_type": "llama3", "factor": c.llama3.factor, "low_freq_factor": c.llama3.low,
			"high_freq_factor": c.llama3.high, "original_max_position_embeddings": c.llama3.original}
	case c.linear != 1:
		scaling = map[string]any{"rope_type": "linear", "type": "linear", "factor": c.linear}
	}
	if scaling != nil {
		m["rope_scaling"] = scaling
	}
	if c.arch == "gptneox" {
		m["architectures"], m["model_type"], m["hidden_act"] = []string{"GPTNeoXForCausalLM"}, "gpt_neox", "gelu"
		m["layer_norm_eps"], m["use_parallel_residual"], m["attention_bias"] = c.eps, c.parallel, true
		m["rotary_emb_base"], m["rotary_pct"] = c.ropeBase, share(c.ropeDims, c.headDim)
		return m
	}
	class := map[string]string{"llama": "LlamaForCausalLM", "qwen2": "Qwen2ForCausalLM", "qwen3": "Qwen3ForCausalLM"}[c.arch]
	m["architectures"], m["model_type"], m["hidden_act"] = []string{class}, c.arch, "silu"
	m["num_key_value_heads"], m["rms_norm_eps"], m["rope_theta"] = c.kvHeads, c.eps, c.ropeBase
	if c.arch != "qwen2" {
		m["head_dim"], m["attention_bias"] = c.headDim, false
	}
	return m
}

// share is a part of whole as readers turn it back into a number: part = int(share · whole).
func share(part, whole int) float64 {
	x := float64(part) / float64(whole)
	if int(x*float64(whole)) < part {
		x = math.Nextafter(x, 1)
	}
	return x
}
