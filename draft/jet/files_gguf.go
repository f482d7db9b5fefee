// The GGUF form: architecture dflash, with llama.cpp's names and keys (reference jetspec.md §6.1).

package jet

import (
	"fmt"

	"github.com/grovellm/grove/gguf"
	"github.com/grovellm/grove/internal/headfile"
	"github.com/grovellm/grove/model"
	"github.com/grovellm/grove/nn"
	"github.com/grovellm/grove/tensor"
)

// Keys beyond those of a model. llama.cpp reads all but the causal one, which is its generic key for the mask of attention, and
// model.TargetLayersKey, which is ours: it runs every head as if it saw both ways.
const (
	blockKey  = model.BlockHead + ".block_size"
	tapsKey   = model.BlockHead + ".target_layers"
	causalKey = model.BlockHead + ".attention.causal"
	maskKey   = "tokenizer.ggml.mask_token_id"
)

// ReadGGUF reads the shape of a head from a GGUF file.
func ReadGGUF(f *gguf.File) (Config, error) {
	k := f.Keys()
	if arch := k.String("general.architecture"); k.Err() == nil && arch != model.BlockHead {
		return Config{}, fmt.Errorf("%w: general.architecture is %q: want %s", ErrKind, arch, model.BlockHead)
	}
	for _, t := range f.Tensors { // DSpark's files bear the same name
		if t.Name == "markov_w1.weight" || t.Name == "conf_proj.weight" {
			return Config{}, fmt.Errorf("tensor %s: this is a DSpark head, which grove does not run: want a JetSpec or DFlash head", t.Name)
		}
	}
	base, err := model.ReadGGUFKeys(f, model.BlockHead, "qwen3")
	if err != nil {
		return Config{}, err
	}
	c := Config{Config: base}
	if c.Vocab == 0 {
		c.Vocab = k.Int(model.BlockHead+".vocab_size", 0)
	}
	if v, ok := f.Lookup("tokenizer.ggml.tokens"); ok && c.Vocab == 0 {
		c.Vocab = v.Len()
	}
	c.Block = k.Int(blockKey, 16)
	c.Causal = k.Bool(causalKey, false)
	c.Mask = int32(k.Int(maskKey))
	c.TargetLayers = k.Int(model.TargetLayersKey, 0)
	for _, t := range k.Ints(tapsKey) {
		c.Taps = append(c.Taps, int(min(max(t, -1), 1<<31-1)))
	}
	if err := k.Err(); err != nil {
		return c, err
	}
	return c, c.Validate()
}

// SetGGUF sets the keys of a head's file, all but the tokenizer's. Of those it sets the mask token, and so comes after them.
func (c *Config) SetGGUF(w *gguf.Writer, name string, typ tensor.Type) {
	c.Config.SetGGUF(w, model.BlockHead, name, typ)
	taps := make([]int32, len(c.Taps))
	for i, t := range c.Taps {
		taps[i] = int32(t)
	}
	w.Set(blockKey, uint32(c.Block))
	w.Set(tapsKey, taps)
	w.Set(causalKey, c.Causal)
	w.Set(maskKey, uint32(c.Mask))
	if c.TargetLayers > 0 {
		w.Set(model.TargetLayersKey, uint32(c.TargetLayers))
	}
}

// GGUFTensors are the tensors of a GGUF file.
func (c *Config) GGUFTensors(weights []tensor.Tensor) ([]headfile.Out, error) {
	if err := c.check(weights); err != nil {
		return nil, err
	}
	var list []headfile.Out
	for _, w := range weights {
		list = append(list, headfile.Out{Tensor: w})
	}
	return list, nil
}

// WriteGGUF writes a head that has the weights, by GGUF name. vocabulary is an open file of its target, whose tokenizer llama.cpp wants in
// the head's; nil: the file has none, and is the smaller for it. Matrices are encoded as t (F32, F16, BF16 or Q8_0), vectors as F32.
func WriteGGUF(path, name string, c *Config, weights []tensor.Tensor, vocabulary *gguf.File, t tensor.Type) error {
	list, err := c.GGUFTensors(weights)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	w := gguf.NewWriter()
	if vocabulary != nil {
		if err := w.SetTokenizer(vocabulary); err != nil {
			return err
		}
	}
	c.SetGGUF(w, name, t)
	if err := headfile.SetFactors(w, &c.Config); err != nil {
		return err
	}
	return headfile.WriteGGUF(path, w, list, t)
}

// Tensors are trained weights as files have them.
func Tensors(params []*nn.Param) ([]tensor.Tensor, error) { return headfile.Tensors(params) }

// check refuses weights that do not make the head that c describes.
func (c *Config) check(weights []tensor.Tensor) error {
	if err := c.Validate(); err != nil {
		return err
	}
	return c.shapes().Check(weights, nil)
}

// shapes are the tensors of a head. The embedding and the output head are the target's where a file has none.
func (c *Config) shapes() headfile.Shapes {
	h, q, kv := c.Hidden, c.Heads*c.HeadDim, c.KVHeads*c.HeadDim
	s := headfile.Shapes{}
	s.May("token_embd.weight", c.Vocab, h)
	s.May("output.weight", c.Vocab, h)
	s.Need("fc.weight", h, len(c.Taps)*h)
	s.Need("enc.output_norm.weight", h)
	s.Need("output_norm.weight", h)
	for i := range c.Layers {
		for part, shape := range map[string][]int{
			"attn_norm": {h}, "attn_q": {q, h}, "attn_k": {kv, h}, "attn_v": {kv, h}, "attn_q_norm": {c.HeadDim}, "attn_k_norm": {c.HeadDim},
			"attn_output": {h, q}, "ffn_norm": {h}, "ffn_gate": {c.FFN, h}, "ffn_up": {c.FFN, h}, "ffn_down": {h, c.FFN},
		} {
			s.Need(fmt.Sprintf("blk.%d.%s.weight", i, part), shape...)
		}
	}
	return s
}
