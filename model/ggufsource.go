package model

import (
	"errors"
	"fmt"
	"math"

	"github.com/grovellm/grove/gguf"
	"github.com/grovellm/grove/tensor"
	"github.com/grovellm/grove/tokenizer"
)

type ggufSource struct {
	c Config
	*gguf.File
}

func openGGUF(f *gguf.File, err error) (source, error) {
	if err != nil {
		return nil, err
	}
	c, err := ReadGGUF(f)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &ggufSource{c, f}, nil
}

func (s *ggufSource) config() (Config, error) { return s.c, nil }

// ReadGGUF reads the configuration of a GGUF file.
func ReadGGUF(f *gguf.File) (Config, error) {
	k := f.Keys()
	arch := k.String("general.architecture")
	if err := k.Err(); err != nil {
		return Config{}, err
	}
	kind := k.String("general.type", "model")
	switch {
	case IsHead(arch):
		return Config{}, errHead
	case archNamed(arch) == nil:
		return Config{}, fmt.Errorf("general.architecture %q is not one grove runs: want llama, qwen2, qwen3 or gptneox", arch)
	case kind != "model":
		return Config{}, fmt.Errorf("general.type is %q: want a model; merge an adapter into its model first", kind)
	}
	c, err := ReadGGUFKeys(f, arch, arch)
	if err != nil {
		return c, err
	}
	return c, c.Validate()
}

// ReadGGUFKeys reads from the keys that begin with prefix the configuration of a model whose layers
// are those of arch. It may lack a vocabulary, where the file has no embedding: a drafter's head
// has its target's. The caller obeys the further keys in obeyed, which are without the prefix.
// ReadGGUFKeys refuses other keys that change what the model computes.
func ReadGGUFKeys(f *gguf.File, prefix, arch string, obeyed ...string) (Config, error) {
	if err := f.CheckKeys(prefix+".", modelKeys, archNamed(arch).keys, gguf.Rules{Obeyed: obeyed}); err != nil {
		return Config{}, err
	}
	k := f.Keys()
	c := Config{Arch: arch, Name: k.String("general.name", "")}
	key := func(name string) string { return prefix + "." + name }
	if arch == "gptneox" {
		c.NormEps = float32(k.Float(key("attention.layer_norm_epsilon")))
		c.Parallel = k.Bool(key("use_parallel_residual"), true)
	} else {
		c.NormEps = float32(k.Float(key("attention.layer_norm_rms_epsilon")))
	}
	c.Hidden = k.Int(key("embedding_length"))
	c.Layers = k.Int(key("block_count"))
	c.FFN = k.Int(key("feed_forward_length"))
	c.Context = k.Int(key("context_length"))
	c.Heads = k.Int(key("attention.head_count"))
	c.KVHeads = k.Int(key("attention.head_count_kv"), c.Heads)
	c.HeadDim = k.Int(key("attention.key_length"), c.Hidden/max(c.Heads, 1))
	if v := k.Int(key("attention.value_length"), c.HeadDim); v != c.HeadDim {
		return c, fmt.Errorf("key %q is %d and not the keys' %d: not supported", key("attention.value_length"), v, c.HeadDim)
	}
	if w := k.Int(key("attention.sliding_window"), 0); w != 0 && w < c.Context {
		return c, fmt.Errorf("key %q is %d, less than the context of %d: attention within a window is not supported", key("attention.sliding_window"), w, c.Context)
	}
	// The embedding knows the vocabulary better than the optional metadata does.
	if t, ok := f.Tensor("token_embd.weight"); ok && len(t.Shape) == 2 {
		c.Vocab = t.Shape[0]
	}
	_, untied := f.Tensor("output.weight")
	c.Tied = !untied
	c.Rope = RopeConfig{
		Base:       k.Float(key("rope.freq_base"), 10000),
		Dims:       k.Int(key("rope.dimension_count"), c.HeadDim),
		Neighbours: arch == "llama",
		Scale:      1,
	}
	factor := k.Float(key("rope.scaling.factor"), k.Float(key("rope.scale_linear"), 0)) // the old name; 0: none
	switch kind := k.String(key("rope.scaling.type"), "linear"); kind {                 // llama.cpp's default
	case "none":
	case "linear":
		if factor != 0 {
			c.Rope.Scale = factor
		}
	default:
		return c, fmt.Errorf("key %q is %q: want none or linear (Llama 3's scaling is the tensor rope_freqs.weight)", key("rope.scaling.type"), kind)
	}
	if k.Has(PaddingKey) {
		n, ok := f.Uint(PaddingKey)
		if !ok || n > math.MaxInt64 {
			return c, fmt.Errorf("key %q: want a number of parameters", PaddingKey)
		}
		c.Padded = int64(n)
	}
	if err := k.Err(); err != nil {
		return c, err
	}
	return c, ropeFactors(f, &c)
}

// factorsName is the tensor of RopeConfig.Factors.
const factorsName = "rope_freqs.weight"

// ropeFactors reads Llama 3's scaling, a tensor of divisors.
func ropeFactors(f *gguf.File, c *Config) error {
	if _, ok := f.Tensor(factorsName); !ok {
		return nil
	}
	t, err := f.Load(factorsName)
	if err != nil {
		return err
	}
	if n := t.Elements(); n != c.Rope.Dims/2 {
		return fmt.Errorf("tensor rope_freqs.weight has %d elements: want half of the %d rotated dimensions", n, c.Rope.Dims)
	}
	c.Rope.Factors, err = t.Float32s()
	return err
}

func (s *ggufSource) tensor(name string) (tensor.Tensor, bool, error) {
	if _, ok := s.File.Tensor(name); !ok {
		return tensor.Tensor{}, false, nil
	}
	t, err := s.Load(name)
	return t, err == nil, err
}

func (s *ggufSource) names() (list []string) {
	for _, t := range s.Tensors {
		if t.Name != factorsName {
			list = append(list, t.Name)
		}
	}
	return list
}

func (s *ggufSource) tokenizer() (*tokenizer.Tokenizer, error) {
	if _, ok := s.String("tokenizer.ggml.model"); !ok {
		return nil, nil
	}
	return tokenizer.FromGGUF(s.File)
}
