// Heads in files: GGUF as llama.cpp's eagle3 has it, and the Hugging Face folders of EAGLE's authors and of vLLM's speculators.

package eagle

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/headfile"
	"github.com/grovellm/grove/model"
	"github.com/grovellm/grove/tensor"
)

// Head is an open head of a target. It is immutable: any number of drafters run it.
type Head struct {
	*Network
	Name string // the file it came from
}

// ErrKind is the error of a file that is no EAGLE head.
var ErrKind = errors.New("not an EAGLE head")

// File is an open file of a head: what it says, with the data of its tensors as they are. Of its Config Taps are nil where the file
// leaves them to the target's depth; see Config.For.
type File struct {
	Config
	Weights []tensor.Tensor // by GGUF name; rows in the order that Rope.Neighbours says
	Tokens  []int32         // of a draft vocabulary
	*headfile.File

	first string // what a folder calls the first layer
}

// Read opens a file. Its tensors' data last until it is closed.
func Read(h draft.Head) (*File, error) {
	f, err := headfile.Open(h)
	if err != nil {
		return nil, headfile.Named(h, err)
	}
	x := &File{File: f}
	if f.GGUF != nil {
		err = x.readGGUF()
	} else {
		err = f.Faulty(x.readFolder())
	}
	if err == nil {
		err = x.check(x.Weights, x.Tokens, x.called)
	}
	if err != nil {
		return nil, headfile.Named(h, errors.Join(err, f.Close()))
	}
	return x, nil
}

// called is what the file calls a tensor.
func (f *File) called(name string) string {
	if f.GGUF != nil {
		return name
	}
	return folderName(name, f.first)
}

// Own reports whether the head has an output matrix of its own.
func (f *File) Own() bool { return has(f.Weights, "output.weight") }

// ReadConfig reads the shape of a head for a target, and not its weights.
func ReadConfig(h draft.Head, target model.Config) (Config, error) {
	f, err := Read(h)
	if err != nil {
		return Config{}, err
	}
	c, err := f.For(target)
	return c, headfile.Named(h, errors.Join(err, f.Close()))
}

// For is the shape of the head for a target, whose depth says which layers are tapped where the file does not; or an error
// that says why it is not one for the target.
func (c Config) For(target model.Config) (Config, error) {
	if c.Taps == nil {
		layers := target.Layers
		if c.TargetLayers > 0 {
			layers = c.TargetLayers
		} else if target.Padded > 0 {
			return c, fmt.Errorf("the head does not say which layers it taps, and padding hides how many the target has: convert the head first, with --target")
		}
		c.Taps = defaultTaps(c.Version, layers)
	}
	if err := c.Validate(); err != nil {
		return c, err
	}
	return c, c.Fits(target)
}

// defaultTaps are the layers of a target of so many that heads tap where nothing is said: of EAGLE-3 the inputs of layers 2, n/2 and n−3.
func defaultTaps(version, layers int) []int {
	if version == 2 {
		return []int{layers}
	}
	return []int{min(2, layers), layers / 2, max(layers-3, 0)}
}

// somehow is the shape with as many taps as it will have, where they are left to the target.
func (c *Config) somehow() Config {
	x := *c
	if x.Taps == nil {
		x.Taps = defaultTaps(x.Version, cmp.Or(x.TargetLayers, 3))
	}
	return x
}

// Open loads a head for a target, of which it uses what it has not of its own. A head is loaded once for all drafters of a target.
func Open(h draft.Head, target draft.Target) (*Head, error) {
	type key struct{ name string } // of this package
	v, err := target.Shared.Get(key{h.Name}, func() (any, error) { return load(h, target) })
	if err != nil {
		return nil, headfile.Named(h, err)
	}
	return v.(*Head), nil
}

// Find opens the first of the target's heads that is of a version.
func Find(target draft.Target, version int) (*Head, error) {
	h, ok, err := headfile.Find(target, ErrKind, func(h draft.Head) (draft.Head, error) {
		f, err := Read(h)
		if err != nil {
			return h, err
		}
		if err := f.Close(); err != nil {
			return h, err
		}
		if f.Version != version {
			return h, ErrKind
		}
		return h, nil
	})
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, fmt.Errorf("there is no EAGLE-%d head: name one with model=FILE, or open the target with one", version)
	}
	return Open(h, target)
}

func load(h draft.Head, target draft.Target) (_ *Head, err error) {
	m := target.Model
	if m == nil {
		return nil, fmt.Errorf("the target is no model of package model, whose taps the head reads")
	}
	f, err := Read(h)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	c, err := f.For(m.Config)
	if err != nil {
		return nil, err
	}
	w := model.NewLoader(f.Weights, c.fileArch())
	n, err := NewNetwork(c, w, f.Tokens, &m.Network)
	if err != nil {
		return nil, err
	}
	return &Head{Network: n, Name: h.Name}, w.Pack(m.Pool())
}

// fileArch is the architecture that a GGUF file names.
func (c *Config) fileArch() string {
	if c.Version == 2 {
		return model.Eagle2
	}
	return model.Eagle3
}

// check refuses tensors that do not make the head that c describes, whose taps may be left to the target. called is what errors call
// them; nil: their names.
func (c *Config) check(weights []tensor.Tensor, tokens []int32, called func(string) string) error {
	x := c.somehow()
	if err := x.Validate(); err != nil {
		return err
	}
	if err := x.shapes().Check(weights, called); err != nil {
		return err
	}
	return checkTokens(&x, model.NewLoader(weights, x.fileArch()), tokens)
}

// shapes are the tensors of a head. The embedding and the output head are the target's where a file has none.
func (c *Config) shapes() headfile.Shapes {
	h, q, kv := c.Hidden, c.Heads*c.HeadDim, c.KVHeads*c.HeadDim
	s := headfile.Shapes{}
	linear := func(name string, out, in int) {
		s.Need(name+".weight", out, in)
		s.May(name+".bias", out)
	}
	norm := func(name string, n int) { s.Need(name+".weight", n) }
	s.May("token_embd.weight", c.Vocab, h)
	s.May("output.weight", c.DraftVocab, h)
	s.May("output.bias", c.DraftVocab)
	for i := range c.Layers {
		in, part := h, func(name string) string { return fmt.Sprintf("blk.%d.%s", i, name) }
		if i == 0 && c.Version == 3 {
			in = 2 * h
		}
		linear(part("attn_q"), q, in)
		linear(part("attn_k"), kv, in)
		linear(part("attn_v"), kv, in)
		linear(part("attn_output"), h, q)
		linear(part("ffn_gate"), c.FFN, h)
		linear(part("ffn_up"), c.FFN, h)
		linear(part("ffn_down"), h, c.FFN)
		norm(part("ffn_norm"), h)
		if i > 0 || c.Version == 3 {
			norm(part("attn_norm"), h)
		}
		if c.Arch == "qwen3" {
			norm(part("attn_q_norm"), c.HeadDim)
			norm(part("attn_k_norm"), c.HeadDim)
		}
	}
	if c.Version == 2 {
		linear("fc", h, 2*h)
		return s
	}
	linear("fc", h, len(c.Taps)*h)
	norm("blk.0.attn_norm_2", h)
	norm("output_norm", h)
	if c.NormBeforeFC {
		norm(inputNorm, len(c.Taps)*h)
	}
	for i := range c.Taps {
		if c.FCNorm {
			norm(fmt.Sprintf("fc_norm.%d", i), h)
		}
	}
	return s
}

// inputNorm is the norm of the joined taps.
const inputNorm = "enc.output_norm"
