// The GGUF form: architecture eagle3, with llama.cpp's names and keys (reference jetspec.md §6.2); eagle2 is grove's own, in its likeness.

package eagle

import (
	"fmt"

	"github.com/grovellm/grove/gguf"
	"github.com/grovellm/grove/internal/headfile"
	"github.com/grovellm/grove/model"
	"github.com/grovellm/grove/tensor"
)

// Keys beyond those of a model and the taps, after the architecture. llama.cpp reads the first three; it knows neither fc_norm, whose
// tensors it refuses, nor norm_output.
const (
	targetHiddenKey = ".target_hidden_size"
	residualKey     = ".norm_before_residual"
	beforeFCKey     = ".norm_before_fc"
	fcNormKey       = ".fc_norm"
	outputKey       = ".norm_output"
)

// readGGUF reads an open GGUF file.
func (x *File) readGGUF() error {
	f := x.GGUF
	k := f.Keys()
	arch := k.String("general.architecture")
	if k.Err() == nil && arch != model.Eagle3 && arch != model.Eagle2 {
		return fmt.Errorf("%w: general.architecture is %q: want %s or %s", ErrKind, arch, model.Eagle3, model.Eagle2)
	}
	base, err := x.ReadLayers(arch, x.LayerArch("blk.0.attn_q_norm.weight"), targetHiddenKey, residualKey, beforeFCKey,
		fcNormKey, outputKey)
	if err != nil {
		return err
	}
	c := Config{Config: base, Version: 3}
	if arch == model.Eagle2 {
		c.Version = 2
	}
	if c.Taps, c.TargetLayers, err = x.ReadTaps(arch); err != nil {
		return err
	}
	if n := k.Int(arch+targetHiddenKey, c.Hidden); n != c.Hidden {
		return fmt.Errorf("key %q is %d and the head's own width %d: heads narrower or wider than their target are not supported", arch+targetHiddenKey, n, c.Hidden)
	}
	c.NormBeforeResidual = k.Bool(arch+residualKey, false)
	c.NormBeforeFC = k.Bool(arch+beforeFCKey, false)
	c.FCNorm = k.Bool(arch+fcNormKey, false)
	c.NormOutput = k.Bool(arch+outputKey, false)
	if err := k.Err(); err != nil {
		return err
	}
	x.Config, x.DraftVocab = c, c.Vocab
	if x.Tokens, err = x.File.Tokens(c.Vocab); err != nil {
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
	arch := c.fileArch()
	c.Config.SetGGUF(w, arch, name, typ)
	headfile.SetTaps(w, arch, c.Taps, c.TargetLayers)
	w.Set(arch+targetHiddenKey, uint32(c.Hidden))
	for _, flag := range []struct {
		key    string
		on     bool
		always bool
	}{{residualKey, c.NormBeforeResidual, c.Version == 3}, {beforeFCKey, c.NormBeforeFC, c.Version == 3}, {fcNormKey, c.FCNorm, false}, {outputKey, c.NormOutput, false}} {
		if flag.on || flag.always {
			w.Set(arch+flag.key, flag.on)
		}
	}
}

// Foreign says why llama.cpp does not run the head as it is; empty: it does.
func (c *Config) Foreign() string {
	switch {
	case c.Version != 3:
		return "llama.cpp has no EAGLE-2"
	case len(c.Taps) != 3:
		return fmt.Sprintf("llama.cpp wants three tapped layers, the head has %d", len(c.Taps))
	case c.Layers != 1:
		return fmt.Sprintf("llama.cpp wants one layer, the head has %d", c.Layers)
	case c.Arch != "llama":
		return "llama.cpp has no norms of queries and keys there"
	case c.FCNorm || c.NormOutput:
		return "llama.cpp does not normalise each tap (fc_norm) or what goes on (norm_output)"
	}
	return ""
}

// GGUFTensors are the tensors of a GGUF file of weights, whose rows are in the order that Rope.Neighbours says.
func (c *Config) GGUFTensors(weights []tensor.Tensor, tokens []int32) ([]headfile.Out, error) {
	if err := c.check(weights, tokens, nil); err != nil {
		return nil, err
	}
	order, err := c.order(true)
	if err != nil {
		return nil, err
	}
	list := headfile.GGUFTokens(tokens)
	for _, w := range weights {
		list = append(list, headfile.Out{Tensor: w, Order: order(w.Name)})
	}
	return list, nil
}

// WriteGGUF writes a head that has the weights, by GGUF name with rows in the order that c.Rope.Neighbours says. tokens are those of a draft
// vocabulary; nil: it is the whole one. The rest is as headfile.WriteGGUF has it.
func WriteGGUF(path, name string, c *Config, weights []tensor.Tensor, tokens []int32, vocabulary *gguf.File, t tensor.Type) error {
	list, err := c.GGUFTensors(weights, tokens)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return headfile.WriteGGUF(path, &c.Config, func(w *gguf.Writer) { c.SetGGUF(w, name, t) }, list, vocabulary, t)
}
