// Drafters' heads, which know themselves what their tensors are in either format.

package convert

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/draft/eagle"
	"github.com/grovellm/grove/draft/jet"
	"github.com/grovellm/grove/draft/specblock"
	"github.com/grovellm/grove/gguf"
	"github.com/grovellm/grove/internal/atomicfile"
	"github.com/grovellm/grove/internal/headfile"
	"github.com/grovellm/grove/model"
	"github.com/grovellm/grove/safetensors"
	"github.com/grovellm/grove/tensor"
)

// head is an open file of one.
type head struct {
	path    string
	c       *model.Config // its layers'
	weights []tensor.Tensor
	close   func() error

	fits   func(target model.Config) error // and completes what the file leaves to the target
	set    func(w *gguf.Writer, name string, t tensor.Type)
	gguf   func() ([]headfile.Out, error)
	folder func(weights []tensor.Tensor, t tensor.Type, target *model.Config) (map[string]any, []headfile.Out, error) // target nil: not a speculator
	notes  func() []string                                                                                            // of a GGUF file; nil: there are none
	own    bool                                                                                                       // other programs want an output matrix in the folder
}

// openHead opens a file that is a head of these kinds; nil for others, and where there is none.
func openHead(path string) (*head, error) {
	if _, err := os.Stat(path); err != nil {
		return nil, nil
	}
	for _, open := range []func(h draft.Head) (*head, error){jetHead, eagleHead, specblockHead} {
		x, err := open(draft.Head{Name: path})
		switch {
		case err == nil:
			x.path = path
			return x, nil
		case !errors.Is(err, jet.ErrKind) && !errors.Is(err, eagle.ErrKind) && !errors.Is(err, specblock.ErrKind):
			return nil, err
		}
	}
	return nil, nil
}

func jetHead(h draft.Head) (*head, error) {
	f, err := jet.Read(h)
	if err != nil {
		return nil, err
	}
	return &head{c: &f.Config.Config, weights: f.Weights, close: f.Close, set: f.SetGGUF, fits: f.Fits,
		gguf: func() ([]headfile.Out, error) { return f.GGUFTensors(f.Weights) },
		folder: func(weights []tensor.Tensor, t tensor.Type, target *model.Config) (map[string]any, []headfile.Out, error) {
			if target != nil {
				return nil, nil, fmt.Errorf("a block head: grove writes vLLM's speculators of EAGLE-3 heads alone")
			}
			return f.Config.Folder(weights, t)
		},
	}, nil
}

func eagleHead(h draft.Head) (*head, error) {
	f, err := eagle.Read(h)
	if err != nil {
		return nil, err
	}
	c := &f.Config
	return &head{c: &c.Config, weights: f.Weights, close: f.Close, own: !f.Own(), set: c.SetGGUF,
		fits: func(target model.Config) (err error) {
			*c, err = c.For(target)
			return err
		},
		gguf: func() ([]headfile.Out, error) {
			if c.Taps == nil {
				return nil, fmt.Errorf("the folder does not say which layers its head taps: say whose they are (--target FILE)")
			}
			return c.GGUFTensors(f.Weights, f.Tokens)
		},
		folder: func(weights []tensor.Tensor, t tensor.Type, target *model.Config) (map[string]any, []headfile.Out, error) {
			return c.Folder(weights, f.Tokens, t, target)
		},
		notes: func() []string {
			if why := c.Foreign(); why != "" {
				return []string{"grove runs the file, llama.cpp does not: " + why}
			}
			return nil
		},
	}, nil
}

func specblockHead(h draft.Head) (*head, error) {
	f, err := specblock.Read(h)
	if err != nil {
		return nil, err
	}
	c := &f.Config
	return &head{c: &c.Config, weights: f.Weights, close: f.Close, set: c.SetGGUF,
		fits: func(target model.Config) (err error) {
			*c, err = c.For(target)
			return err
		},
		gguf: func() ([]headfile.Out, error) {
			if c.Taps == nil {
				return nil, fmt.Errorf("the folder does not say which layers its head taps: say whose they are (--target FILE)")
			}
			return c.GGUFTensors(f.Weights, f.Tokens)
		},
		folder: func(weights []tensor.Tensor, t tensor.Type, target *model.Config) (map[string]any, []headfile.Out, error) {
			if target != nil {
				return nil, nil, fmt.Errorf("vLLM's speculators have no SpecBlock heads")
			}
			return c.Folder(weights, f.Tokens, t)
		},
	}, nil
}

// main is the type of the head's matrices.
func (x *head) main() tensor.Type {
	for _, w := range x.weights {
		if w.Name == "fc.weight" {
			return w.Type
		}
	}
	return tensor.F32
}

// toGGUF is ToGGUF of a head that was opened with an error.
func (x *head) toGGUF(ctx context.Context, dir, path string, o Options, err error) (notes []string, _ error) {
	if err != nil {
		return nil, err
	}
	defer x.close()
	w := gguf.NewWriter()
	v := &tokenSource{dir: dir, vocab: x.c.Vocab, fits: x.fits}
	if notes, err = v.add(w, o.Target); err != nil {
		return nil, err
	}
	main := o.Type
	if main == Keep {
		main = x.main()
	}
	list, err := x.gguf()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	x.set(w, modelName(dir), main)
	if err := headfile.SetFactors(w, x.c); err != nil {
		return nil, err
	}
	count := &counter{tell: o.Progress}
	for _, t := range list {
		typ, note := t.Type, ""
		if typ.Decodes() { // and is no list of tokens
			typ, note = encoding(t.Tensor, o.Type, t.Name == outputMatrix)
		}
		if note != "" {
			notes = append(notes, note)
		}
		fill, err := count.stream(ctx, t, typ)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", dir, err)
		}
		w.Add(t.Name, typ, t.Shape, fill)
	}
	if x.notes != nil {
		notes = append(notes, x.notes()...)
	}
	return notes, w.WriteFile(path)
}

// stream is a tensor on its way to a file, whose bytes are counted.
func (c *counter) stream(ctx context.Context, t headfile.Out, typ tensor.Type) (func(io.Writer) error, error) {
	size, err := typ.Size(t.Elements())
	if err != nil {
		return nil, fmt.Errorf("tensor %s: %w", t.Name, err)
	}
	c.total += int64(size)
	return (&stream{ctx, t.Tensor, typ, t.Order, c}).write, nil
}

// toHF is ToHF of a head that was opened with an error.
func (x *head) toHF(ctx context.Context, dir string, o Options, err error) ([]string, error) {
	if err != nil {
		return nil, err
	}
	defer x.close()
	var notes []string
	weights, target := x.weights, (*model.Config)(nil)
	if o.Target != "" {
		c, _, err := readTarget(o.Target)
		if err == nil {
			err = x.fits(c)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", o.Target, err)
		}
		if c.Name == "" {
			c.Name = modelName(o.Target)
		}
		target = &c
	}
	switch {
	case o.Speculators && target == nil:
		return nil, fmt.Errorf("%s: vLLM's speculators name their target: say which (--target FILE)", dir)
	case x.own && target != nil:
		t, close, err := outputOf(o.Target)
		if err != nil {
			return nil, err
		}
		defer close()
		weights = append(weights[:len(weights):len(weights)], t)
	case x.own:
		notes = append(notes, "the head has no output matrix, which other programs want in a folder: give its target's (--target FILE)")
	}
	if !o.Speculators {
		target = nil
	}
	main := mainType(x.main(), o.Type)
	fields, list, err := x.folder(weights, main, target)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	return intoFolder(dir, func(part string) ([]string, error) {
		w, count := safetensors.NewWriter(), &counter{tell: o.Progress}
		w.SetMetadata("format", "pt")
		for _, t := range list {
			typ := folderType(t.Tensor, o.Type, main)
			fill, err := count.stream(ctx, t, typ)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", x.path, err)
			}
			w.Add(t.Name, typ, t.Shape, fill)
		}
		return notes, errors.Join(atomicfile.WriteJSON(filepath.Join(part, "config.json"), fields), w.WriteFile(filepath.Join(part, "model.safetensors")))
	})
}

// outputOf is the output matrix of a model: its embedding, where it has no other.
func outputOf(path string) (_ tensor.Tensor, close func() error, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return tensor.Tensor{}, nil, err
	}
	var f *headfile.File
	names := []string{"output.weight", "token_embd.weight"}
	if info.IsDir() {
		names = []string{"lm_head.weight", "model.embed_tokens.weight"}
	}
	if f, err = headfile.Open(draft.Head{Name: path}); err != nil {
		return tensor.Tensor{}, nil, err
	}
	for _, name := range names {
		if !f.Has(name) {
			continue
		}
		t, err := f.Load(name)
		t.Name = "output.weight"
		return t, f.Close, err
	}
	return tensor.Tensor{}, nil, errors.Join(fmt.Errorf("%s: there is no tensor %s or %s: it is not a model that grove runs", path, names[0], names[1]), f.Close())
}
