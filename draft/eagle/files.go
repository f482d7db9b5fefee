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
func Read(h draft.Head) (*File, error) { return headfile.Read(h, read) }

func read(f *headfile.File) (*File, error) {
	x := &File{File: f}
	if err := f.Parse(x.readGGUF, x.readFolder); err != nil {
		return nil, err
	}
	return x, x.check(x.Weights, x.Tokens, x.called)
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
	return headfile.With(h, Read, func(f *File) (Config, error) { return f.For(target) })
}

// For is the shape of the head for a target, whose depth says which layers are tapped where the file does not; or an error
// that says why it is not one for the target.
func (c Config) For(target model.Config) (Config, error) {
	var err error
	if c.Taps, err = headfile.TapsFor(&target, c.Taps, c.TargetLayers, c.defaultTaps); err != nil {
		return c, err
	}
	if err = c.Validate(); err == nil {
		err = c.Fits(target)
	}
	return c, err
}

// defaultTaps are the layers of a target of so many that heads of this version tap where nothing is said.
func (c *Config) defaultTaps(layers int) []int {
	if c.Version == 2 {
		return []int{layers}
	}
	return headfile.DefaultTaps(layers)
}

// somehow is the shape with as many taps as it will have, where they are left to the target.
func (c *Config) somehow() Config {
	x := *c
	if x.Taps == nil {
		x.Taps = x.defaultTaps(cmp.Or(x.TargetLayers, 3))
	}
	return x
}

// Open loads a head for a target, of which it uses what it has not of its own. A head is loaded once for all drafters of a target.
func Open(h draft.Head, target draft.Target) (*Head, error) {
	return headfile.Load(h, target, Read, func(f *File, m *model.Model) (*Head, error) {
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
	})
}

// Find opens the first of the target's heads that is of a version.
func Find(target draft.Target, version int) (*Head, error) {
	h, err := headfile.Find(target, ErrKind, fmt.Sprintf("EAGLE-%d", version), func(h draft.Head) (draft.Head, error) {
		return headfile.With(h, Read, func(f *File) (draft.Head, error) {
			if f.Version != version {
				return h, ErrKind
			}
			return h, nil
		})
	})
	if err != nil {
		return nil, err
	}
	return Open(h, target)
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
		s.Layer(&c.Config, i)
		for part, out := range map[string]int{
			"attn_q": q, "attn_k": kv, "attn_v": kv, "attn_output": h, "ffn_gate": c.FFN, "ffn_up": c.FFN, "ffn_down": h,
		} {
			s.May(fmt.Sprintf("blk.%d.%s.bias", i, part), out)
		}
	}
	if c.Version == 2 {
		delete(s, "blk.0.attn_norm.weight")
		linear("fc", h, 2*h)
		return s
	}
	linear("blk.0.attn_q", q, 2*h) // of the embedding beside the feature
	linear("blk.0.attn_k", kv, 2*h)
	linear("blk.0.attn_v", kv, 2*h)
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
