// The GGUF form: architecture specblock, in the likeness of llama.cpp's eagle3. Rows of queries and keys are as in folders.

package specblock

import (
	"fmt"

	"github.com/grovellm/grove/gguf"
	"github.com/grovellm/grove/internal/headfile"
	"github.com/grovellm/grove/model"
	"github.com/grovellm/grove/tensor"
)

// Keys beyond those of a model and the taps. The ways of the released code are false where a file does not say them, broadcast and shift
// are true.
const (
	blockKey     = model.SpecBlock + ".block_size"
	rankKey      = model.SpecBlock + ".rank_length"
	shiftKey     = model.SpecBlock + ".shift"
	broadcastKey = model.SpecBlock + ".broadcast"
	positionKey  = model.SpecBlock + ".same_position"
	normedKey    = model.SpecBlock + ".rank_normed"
	offsetKey    = model.SpecBlock + ".rank_offset"
)

// readGGUF reads an open GGUF file.
func (x *File) readGGUF() error {
	f := x.GGUF
	k := f.Keys()
	if arch := k.String("general.architecture"); k.Err() == nil && arch != model.SpecBlock {
		return fmt.Errorf("%w: general.architecture is %q: want %s", ErrKind, arch, model.SpecBlock)
	}
	base, err := x.ReadLayers(model.SpecBlock, x.LayerArch("blk.0.attn_q_norm.weight"),
		blockKey, rankKey, shiftKey, broadcastKey, positionKey, normedKey, offsetKey)
	if err != nil {
		return err
	}
	c := Config{Config: base}
	c.Rope.Neighbours = false
	if c.Taps, c.TargetLayers, err = x.ReadTaps(model.SpecBlock); err != nil {
		return err
	}
	c.Block = k.Int(blockKey)
	c.RankWidth = k.Int(rankKey, 0)
	c.Shift, c.Broadcast = k.Bool(shiftKey, true), k.Bool(broadcastKey, true)
	c.SamePosition, c.RankNormed = k.Bool(positionKey, false), k.Bool(normedKey, false)
	offset := k.Floats(offsetKey, c.RankOffset[:])
	if err := k.Err(); err != nil {
		return err
	}
	if err := c.setOffset(offset); err != nil {
		return fmt.Errorf("%s %w", offsetKey, err)
	}
	x.Config = c
	if x.Tokens, err = x.File.Tokens(x.Vocab); err != nil {
		return err
	}
	if x.Tokens != nil {
		x.DraftVocab = len(x.Tokens)
	}
	x.Weights, err = x.ReadWeights(nil, headfile.TokensName)
	return err
}

// SetGGUF sets the keys of a head's file, all but the tokenizer's.
func (c *Config) SetGGUF(w *gguf.Writer, name string, typ tensor.Type) {
	c.Config.SetGGUF(w, model.SpecBlock, name, typ)
	w.Set(blockKey, uint32(c.Block))
	headfile.SetTaps(w, model.SpecBlock, c.Taps, c.TargetLayers)
	w.Set(rankKey, uint32(c.RankWidth))
	w.Set(shiftKey, c.Shift)
	w.Set(broadcastKey, c.Broadcast)
	w.Set(positionKey, c.SamePosition)
	w.Set(normedKey, c.RankNormed)
	w.Set(offsetKey, c.RankOffset[:])
}

// setOffset takes in the rank head's offsets as a file has them.
func (c *Config) setOffset(v []float32) error {
	if len(v) != RankBuckets {
		return fmt.Errorf("has %d numbers: want %d, one for each bucket", len(v), RankBuckets)
	}
	c.RankOffset = [RankBuckets]float32(v)
	return nil
}

// GGUFTensors are the tensors of a GGUF file.
func (c *Config) GGUFTensors(weights []tensor.Tensor, tokens []int32) ([]headfile.Out, error) {
	if err := c.check(weights, tokens, nil); err != nil {
		return nil, err
	}
	return append(headfile.GGUFTokens(tokens), headfile.Outs(weights)...), nil
}

// WriteGGUF writes a head that has the weights, by GGUF name. tokens are those of a draft vocabulary; nil: it is the whole one. The rest is
// as headfile.WriteGGUF has it.
func WriteGGUF(path, name string, c *Config, weights []tensor.Tensor, tokens []int32, vocabulary *gguf.File, t tensor.Type) error {
	list, err := c.GGUFTensors(weights, tokens)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return headfile.WriteGGUF(path, &c.Config, func(w *gguf.Writer) { c.SetGGUF(w, name, t) }, list, vocabulary, t)
}
