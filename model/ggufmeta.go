// Configurations as GGUF files have them; ggufsource.go reads what is written here.

package model

import (
	"github.com/grovellm/grove/gguf"
	"github.com/grovellm/grove/tensor"
)

// SetGGUF sets the keys that describe the model, its name and the type of its matrices. arch is the file's architecture: c's own,
// or that of a drafter's head with such layers. ReadGGUF and ReadGGUFKeys are its inverses.
func (c *Config) SetGGUF(w *gguf.Writer, arch, name string, typ tensor.Type) {
	w.Set("general.architecture", arch)
	w.Set("general.type", "model")
	w.Set("general.name", name)
	w.SetFileType(typ)
	set := func(key string, v any) { w.Set(arch+"."+key, v) }
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
