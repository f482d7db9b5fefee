// Heads in files: GGUF of architecture specblock, which is grove's own, and Hugging Face folders as the release has them.

package specblock

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/headfile"
	"github.com/grovellm/grove/model"
	"github.com/grovellm/grove/nn"
	"github.com/grovellm/grove/tensor"
)

// Head is an open head of a target. It is immutable: any number of drafters run it.
type Head struct {
	*Network
	Name string // the file it came from
}

// ErrKind is the error of a file that is no SpecBlock head.
var ErrKind = errors.New("not a SpecBlock head")

// File is an open file of a head: what it says, with the data of its tensors as they are. Of its Config Taps are nil where the file
// leaves them to the target's depth; see Config.For.
type File struct {
	Config
	Weights []tensor.Tensor // by GGUF name
	Tokens  []int32         // of a draft vocabulary
	*headfile.File
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
	return f.place(name).name
}

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
		c.Taps = defaultTaps(layers)
	}
	if err := c.Validate(); err != nil {
		return c, err
	}
	return c, c.Fits(target)
}

// defaultTaps are the layers of a target of so many that heads tap where nothing is said: the inputs of layers 2, n/2 and n−3.
func defaultTaps(layers int) []int { return []int{min(2, layers), layers / 2, max(layers-3, 0)} }

// somehow is the shape with as many taps as it will have, where they are left to the target.
func (c *Config) somehow() Config {
	x := *c
	if x.Taps == nil {
		x.Taps = defaultTaps(cmp.Or(x.TargetLayers, 3))
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

// Find opens the first of the target's heads that is of this kind.
func Find(target draft.Target) (*Head, error) {
	h, ok, err := headfile.Find(target, ErrKind, func(h draft.Head) (*Head, error) { return Open(h, target) })
	if err == nil && !ok {
		err = fmt.Errorf("there is no SpecBlock head: name one with model=FILE, or open the target with one")
	}
	return h, err
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
	w := model.NewLoader(f.Weights, model.SpecBlock)
	embed, head := m.Embed, m.Head
	if w.Has("token_embd.weight") {
		if embed, err = w.Table("token_embd.weight", c.Vocab, c.Hidden); err != nil {
			return nil, err
		}
	}
	if w.Has("output.weight") {
		matrix, err := w.Matrix("output.weight", c.Output(), c.Hidden)
		if err != nil {
			return nil, err
		}
		head = nn.Linear{W: matrix}
	}
	n, err := NewNetwork(c, w, embed, head, f.Tokens)
	if err != nil {
		return nil, err
	}
	return &Head{Network: n, Name: h.Name}, w.Pack(m.Pool())
}

// check refuses tensors that do not make the head that c describes, whose taps may be left to the target. called is what errors call
// them; nil: their names.
func (c *Config) check(weights []tensor.Tensor, tokens []int32, called func(string) string) error {
	x := c.somehow()
	if err := x.Validate(); err != nil {
		return err
	}
	if x.Rope.Neighbours {
		return fmt.Errorf("rows of queries and keys in neighbouring pairs: want halves, as files of this kind have them")
	}
	if err := x.shapes().Check(weights, called); err != nil {
		return err
	}
	return x.checkVocabulary(tokens, model.NewLoader(weights, model.SpecBlock).Has("output.weight"))
}

// checkVocabulary refuses a draft vocabulary without its list, and a list of what is not there.
func (c *Config) checkVocabulary(tokens []int32, own bool) error {
	switch {
	case tokens == nil && c.DraftVocab > 0 && c.DraftVocab < c.Vocab:
		return fmt.Errorf("a draft vocabulary of %d tokens of %d, but not which: want their ids", c.DraftVocab, c.Vocab)
	case tokens != nil && len(tokens) != c.Output():
		return fmt.Errorf("%d tokens of a draft vocabulary of %d: want as many", len(tokens), c.Output())
	case tokens != nil && !own:
		return fmt.Errorf("a draft vocabulary of %d tokens, but no tensor output.weight: want an output of its own", c.Output())
	}
	return nil
}

// shapes are the tensors of a head. The embedding and the output head are the target's where a file has none.
func (c *Config) shapes() headfile.Shapes {
	h, q, kv := c.Hidden, c.Heads*c.HeadDim, c.KVHeads*c.HeadDim
	s := headfile.Shapes{}
	s.May("token_embd.weight", c.Vocab, h)
	s.May("output.weight", c.Output(), h)
	s.Need("fc.weight", h, len(c.Taps)*h)
	s.Need("query.weight", c.Block, h)
	for _, name := range []string{"cond", "token", "query"} {
		s.Need(name+"_norm.weight", h)
		s.Need("fuse_"+name+".weight", h, h)
	}
	s.Need("output_norm.weight", h)
	if c.RankWidth > 0 {
		s.Need("rank_hidden.weight", c.RankWidth, h)
		s.Need("rank_features.weight", c.RankWidth, Features)
		s.Need("rank_out.weight", RankBuckets, c.RankWidth)
	}
	for i := range c.Layers {
		part := func(name string) string { return fmt.Sprintf("blk.%d.%s.weight", i, name) }
		for name, out := range map[string]int{"attn_q": q, "attn_k": kv, "attn_v": kv, "ffn_gate": c.FFN, "ffn_up": c.FFN} {
			s.Need(part(name), out, h)
		}
		s.Need(part("attn_output"), h, q)
		s.Need(part("ffn_down"), h, c.FFN)
		s.Need(part("attn_norm"), h)
		s.Need(part("ffn_norm"), h)
		if c.Arch == "qwen3" {
			s.Need(part("attn_q_norm"), c.HeadDim)
			s.Need(part("attn_k_norm"), c.HeadDim)
		}
		if c.Shift && i < c.Layers-1 {
			s.Need(part("shift_own"), h, h)
			s.Need(part("shift_prev"), h, h)
		}
	}
	return s
}
