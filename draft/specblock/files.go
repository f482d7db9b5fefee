// Heads in files: GGUF of architecture specblock, which is grove's own, and Hugging Face folders as the release has them.

package specblock

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
	return f.place(name).name
}

// ReadConfig reads the shape of a head for a target, and not its weights.
func ReadConfig(h draft.Head, target model.Config) (Config, error) {
	return headfile.With(h, Read, func(f *File) (Config, error) { return f.For(target) })
}

// For is the shape of the head for a target, whose depth says which layers are tapped where the file does not; or an error
// that says why it is not one for the target.
func (c Config) For(target model.Config) (Config, error) {
	var err error
	if c.Taps, err = headfile.TapsFor(&target, c.Taps, c.TargetLayers, headfile.DefaultTaps); err != nil {
		return c, err
	}
	if err = c.Validate(); err == nil {
		err = c.Fits(target)
	}
	return c, err
}

// somehow is the shape with as many taps as it will have, where they are left to the target.
func (c *Config) somehow() Config {
	x := *c
	if x.Taps == nil {
		x.Taps = headfile.DefaultTaps(cmp.Or(x.TargetLayers, 3))
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
		w := model.NewLoader(f.Weights, model.SpecBlock)
		n, err := NewNetwork(c, w, f.Tokens, &m.Network)
		if err != nil {
			return nil, err
		}
		return &Head{Network: n, Name: h.Name}, w.Pack(m.Pool())
	})
}

// Find opens the first of the target's heads that is of this kind.
func Find(target draft.Target) (*Head, error) {
	return headfile.Find(target, ErrKind, "SpecBlock", func(h draft.Head) (*Head, error) { return Open(h, target) })
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
	h, s := c.Hidden, headfile.Shapes{}
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
		s.Layer(&c.Config, i)
		if c.Shift && i < c.Layers-1 {
			s.Need(fmt.Sprintf("blk.%d.shift_own.weight", i), h, h)
			s.Need(fmt.Sprintf("blk.%d.shift_prev.weight", i), h, h)
		}
	}
	return s
}
