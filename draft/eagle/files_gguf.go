// The GGUF form: architecture eagle3, with llama.cpp's names and keys (reference jetspec.md §6.2); eagle2 is grove's own, in its likeness.

package eagle

import (
	"fmt"
	"math"

	"github.com/grovellm/grove/gguf"
	"github.com/grovellm/grove/internal/headfile"
	"github.com/grovellm/grove/model"
	"github.com/grovellm/grove/nn"
	"github.com/grovellm/grove/tensor"
)

// Keys beyond those of a model, after the architecture. llama.cpp reads the first four; it knows neither fc_norm, whose tensors it
// refuses, nor norm_output.
const (
	tapsKey         = ".target_layers"
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
	layers := "llama"
	if x.Has("blk.0.attn_q_norm.weight") {
		layers = "qwen3"
	}
	base, err := model.ReadGGUFKeys(f, arch, layers)
	if err != nil {
		return err
	}
	c := Config{Config: base, Version: 3, TargetLayers: k.Int(model.TargetLayersKey, 0)}
	if arch == model.Eagle2 {
		c.Version = 2
	}
	if c.Tied = false; c.Vocab == 0 {
		c.Vocab = k.Int(arch+".vocab_size", 0)
	}
	if v, ok := f.Lookup("tokenizer.ggml.tokens"); ok && c.Vocab == 0 {
		c.Vocab = v.Len()
	}
	for _, t := range k.Ints(arch + tapsKey) {
		c.Taps = append(c.Taps, int(min(max(t, -1), math.MaxInt32)))
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
	if c.Taps == nil {
		return fmt.Errorf("key %q names no layers: want those of the target that the head reads", arch+tapsKey)
	}
	x.Config, x.DraftVocab = c, c.Vocab
	if x.Tokens, err = x.File.Tokens(c.Vocab); err != nil {
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
	arch := c.fileArch()
	c.Config.SetGGUF(w, arch, name, typ)
	taps := make([]int32, len(c.Taps))
	for i, t := range c.Taps {
		taps[i] = int32(t)
	}
	w.Set(arch+tapsKey, taps)
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
	if c.TargetLayers > 0 {
		w.Set(model.TargetLayersKey, uint32(c.TargetLayers))
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
// vocabulary; nil: it is the whole one. vocabulary is an open file of its target, whose tokenizer llama.cpp wants in the head's; nil: the
// file has none, and is the smaller for it. Matrices are encoded as t (F32, F16, BF16 or Q8_0), vectors as F32.
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
