// The GGUF form: architecture dflash, with llama.cpp's names and keys (reference jetspec.md §6.1).

package jet

import (
	"fmt"

	"github.com/grovellm/grove/gguf"
	"github.com/grovellm/grove/internal/headfile"
	"github.com/grovellm/grove/model"
	"github.com/grovellm/grove/tensor"
)

// Keys beyond those of a model and the taps. llama.cpp reads all but the causal one, which is its generic key for the mask of attention:
// it runs every head as if it saw both ways.
const (
	blockKey  = model.BlockHead + ".block_size"
	causalKey = model.BlockHead + ".attention.causal"
	maskKey   = "tokenizer.ggml.mask_token_id"
)

// readGGUF reads the shape of a head from a GGUF file.
func readGGUF(f *headfile.File) (Config, error) {
	k := f.GGUF.Keys()
	if arch := k.String("general.architecture"); k.Err() == nil && arch != model.BlockHead {
		return Config{}, fmt.Errorf("%w: general.architecture is %q: want %s", ErrKind, arch, model.BlockHead)
	}
	for _, name := range []string{"markov_w1.weight", "conf_proj.weight"} { // DSpark's files bear the same name
		if f.Has(name) {
			return Config{}, fmt.Errorf("tensor %s: this is a DSpark head, which grove does not run: want a JetSpec or DFlash head", name)
		}
	}
	base, err := f.ReadLayers(model.BlockHead, "qwen3", blockKey, causalKey)
	if err != nil {
		return Config{}, err
	}
	c := Config{Config: base, Block: k.Int(blockKey, 16), Causal: k.Bool(causalKey, false), Mask: int32(k.Int(maskKey))}
	if c.Taps, c.TargetLayers, err = f.ReadTaps(model.BlockHead); err != nil {
		return c, err
	}
	if err := k.Err(); err != nil {
		return c, err
	}
	return c, c.Validate()
}

// SetGGUF sets the keys of a head's file, all but the tokenizer's. Of those it sets the mask token, and so comes after them.
func (c *Config) SetGGUF(w *gguf.Writer, name string, typ tensor.Type) {
	c.Config.SetGGUF(w, model.BlockHead, name, typ)
	w.Set(blockKey, uint32(c.Block))
	headfile.SetTaps(w, model.BlockHead, c.Taps, c.TargetLayers)
	w.Set(causalKey, c.Causal)
	w.Set(maskKey, uint32(c.Mask))
}

// GGUFTensors are the tensors of a GGUF file.
func (c *Config) GGUFTensors(weights []tensor.Tensor) ([]headfile.Out, error) {
	if err := c.check(weights); err != nil {
		return nil, err
	}
	return headfile.Outs(weights), nil
}

// WriteGGUF writes a head that has the weights, by GGUF name. The rest is as headfile.WriteGGUF has it.
func WriteGGUF(path, name string, c *Config, weights []tensor.Tensor, vocabulary *gguf.File, t tensor.Type) error {
	list, err := c.GGUFTensors(weights)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return headfile.WriteGGUF(path, &c.Config, func(w *gguf.Writer) { c.SetGGUF(w, name, t) }, list, vocabulary, t)
}

// check refuses weights that do not make the head that c describes.
func (c *Config) check(weights []tensor.Tensor) error {
	if err := c.Validate(); err != nil {
		return err
	}
	return c.shapes().Check(weights, nil)
}

// shapes are the tensors of a head. The embedding and the output head are the target's where a file has none.
func (c *Config) shapes() headfile.Shapes {
	h, s := c.Hidden, headfile.Shapes{}
	s.May("token_embd.weight", c.Vocab, h)
	s.May("output.weight", c.Vocab, h)
	s.Need("fc.weight", h, len(c.Taps)*h)
	s.Need("enc.output_norm.weight", h)
	s.Need("output_norm.weight", h)
	for i := range c.Layers {
		s.Layer(&c.Config, i)
	}
	return s
}
