// The GGUF form: architecture specblock, in the likeness of llama.cpp's eagle3. Rows of queries and keys are as in folders.

package specblock

import (
	"fmt"
	"math"

	"github.com/grovellm/grove/gguf"
	"github.com/grovellm/grove/internal/headfile"
	"github.com/grovellm/grove/model"
	"github.com/grovellm/grove/nn"
	"github.com/grovellm/grove/tensor"
)

// Keys beyond those of a model. The ways of the released code are false where a file does not say them, broadcast and shift are true.
const (
	blockKey     = model.SpecBlock + ".block_size"
	tapsKey      = model.SpecBlock + ".target_layers"
	rankKey      = model.SpecBlock + ".rank_length"
	shiftKey     = model.SpecBlock + ".shift"
	broadcastKey = model.SpecBlock + ".broadcast"
	positionKey  = model.SpecBlock + ".same_position"
	normedKey    = model.SpecBlock + ".rank_normed"
)

// readGGUF reads an open GGUF file.
func (x *File) readGGUF() error {
	f := x.GGUF
	k := f.Keys()
	if arch := k.String("general.architecture"); k.Err() == nil && arch != model.SpecBlock {
		return fmt.Errorf("%w: general.architecture is %q: want %s", ErrKind, arch, model.SpecBlock)
	}
	layers := "llama"
	if x.Has("blk.0.attn_q_norm.weight") {
		layers = "qwen3"
	}
	base, err := model.ReadGGUFKeys(f, model.SpecBlock, layers)
	if err != nil {
		return err
	}
	c := Config{Config: base}
	c.Tied, c.Rope.Neighbours = false, false
	if c.Vocab == 0 {
		c.Vocab = k.Int(model.SpecBlock+".vocab_size", 0)
	}
	c.Block = k.Int(blockKey)
	for _, t := range k.Ints(tapsKey) {
		c.Taps = append(c.Taps, int(min(max(t, -1), math.MaxInt32)))
	}
	c.RankWidth = k.Int(rankKey, 0)
	c.Shift, c.Broadcast = k.Bool(shiftKey, true), k.Bool(broadcastKey, true)
	c.SamePosition, c.RankNormed = k.Bool(positionKey, false), k.Bool(normedKey, false)
	c.TargetLayers = k.Int(model.TargetLayersKey, 0)
	if err := k.Err(); err != nil {
		return err
	}
	if c.Taps == nil {
		return fmt.Errorf("key %q names no layers: want those of the target that the head reads", tapsKey)
	}
	x.Config = c
	if x.Tokens, err = x.File.Tokens(x.Vocab); err != nil {
		return err
	}
	if x.Tokens != nil {
		x.DraftVocab = len(x.Tokens)
	}
	for _, name := range x.Names() {
		if name == headfile.TokensName {
			continue
		}
		t, err := x.Load(name)
		if err != nil {
			return err
		}
		x.Weights = append(x.Weights, t)
	}
	return nil
}

// SetGGUF sets the keys of a head's file, all but the tokenizer's.
func (c *Config) SetGGUF(w *gguf.Writer, name string, typ tensor.Type) {
	c.Config.SetGGUF(w, model.SpecBlock, name, typ)
	taps := make([]int32, len(c.Taps))
	for i, t := range c.Taps {
		taps[i] = int32(t)
	}
	w.Set(blockKey, uint32(c.Block))
	w.Set(tapsKey, taps)
	w.Set(rankKey, uint32(c.RankWidth))
	w.Set(shiftKey, c.Shift)
	w.Set(broadcastKey, c.Broadcast)
	w.Set(positionKey, c.SamePosition)
	w.Set(normedKey, c.RankNormed)
	if c.TargetLayers > 0 {
		w.Set(model.TargetLayersKey, uint32(c.TargetLayers))
	}
}

// GGUFTensors are the tensors of a GGUF file.
func (c *Config) GGUFTensors(weights []tensor.Tensor, tokens []int32) ([]headfile.Out, error) {
	if err := c.check(weights, tokens, nil); err != nil {
		return nil, err
	}
	list := headfile.GGUFTokens(tokens)
	for _, w := range weights {
		list = append(list, headfile.Out{Tensor: w})
	}
	return list, nil
}

// WriteGGUF writes a head that has the weights, by GGUF name. tokens are those of a draft vocabulary; nil: it is the whole one.
// vocabulary is an open file of its target, whose tokenizer goes into the head's; nil: the file has none, and is the smaller for it.
// Matrices are encoded as t (F32, F16, BF16 or Q8_0), vectors as F32.
func WriteGGUF(path, name string, c *Config, weights []tensor.Tensor, tokens []int32, vocabulary *gguf.File, t tensor.Type) error {
	list, err := c.GGUFTensors(weights, tokens)
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
