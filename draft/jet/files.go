// Heads in files: GGUF as llama.cpp's dflash has it, and Hugging Face folders as JetSpec's and DFlash's heads are published.

package jet

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/gguf"
	"github.com/grovellm/grove/model"
	"github.com/grovellm/grove/nn"
	"github.com/grovellm/grove/safetensors"
)

// Head is an open head of a target. It is immutable: any number of drafters run it.
type Head struct {
	*Network
	Name string // the file it came from
}

// ErrKind is the error of a file that is no block head.
var ErrKind = errors.New("not a block head")

// file is an open file of either format.
type file struct {
	Config
	weights *model.Loader
	tensors []string // by the file's own names
	close   func() error
}

// ReadConfig reads the shape of a head, and not its weights.
func ReadConfig(h draft.Head) (Config, error) {
	f, err := open(h)
	if err != nil {
		return Config{}, named(h, err)
	}
	return f.Config, f.close()
}

// Open loads a head for a target, whose embedding and output head it uses unless it has its own. A head is loaded once
// for all drafters of a target.
func Open(h draft.Head, target draft.Target) (*Head, error) {
	type key struct{ name string } // of this package
	v, err := target.Shared.Get(key{h.Name}, func() (any, error) { return load(h, target) })
	if err != nil {
		return nil, named(h, err)
	}
	return v.(*Head), nil
}

// Find opens the first of the target's heads that is causal, or is not.
func Find(target draft.Target, causal bool) (*Head, error) {
	for _, h := range target.Heads {
		switch c, err := ReadConfig(h); {
		case errors.Is(err, ErrKind):
		case err != nil:
			return nil, err
		case c.Causal == causal:
			return Open(h, target)
		}
	}
	kind := map[bool]string{true: "causal (JetSpec)", false: "bidirectional (DFlash)"}[causal]
	return nil, fmt.Errorf("there is no %s head: name one with model=FILE, or open the target with one", kind)
}

func load(h draft.Head, target draft.Target) (_ *Head, err error) {
	m := target.Model
	if m == nil {
		return nil, fmt.Errorf("the target is no model of package model, whose taps the head reads")
	}
	f, err := open(h)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.close()) }()
	if err := f.Fits(m.Config); err != nil {
		return nil, err
	}
	embed, head := m.Embed, m.Head
	if f.weights.Has("token_embd.weight") {
		if embed, err = f.weights.Table("token_embd.weight", f.Vocab, f.Hidden); err != nil {
			return nil, err
		}
	}
	if f.weights.Has("output.weight") {
		w, err := f.weights.Matrix("output.weight", f.Vocab, f.Hidden)
		if err != nil {
			return nil, err
		}
		head = nn.Linear{W: w}
	}
	n, err := NewNetwork(f.Config, f.weights, embed, head)
	if err != nil {
		return nil, err
	}
	for _, name := range f.tensors {
		if !f.weights.Used(name) {
			return nil, fmt.Errorf("tensor %s has no place in a block head of %d layers: this is another kind of head", name, f.Layers)
		}
	}
	return &Head{Network: n, Name: h.Name}, f.weights.Pack(m.Pool())
}

// open reads what a file says of itself.
func open(h draft.Head) (*file, error) {
	if h.Data != nil {
		f, err := gguf.Parse(h.Name, h.Data)
		if err != nil {
			return nil, err
		}
		return openGGUF(f)
	}
	info, err := os.Stat(h.Name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("there is no such file: want a GGUF file or a Hugging Face folder of a head")
	case err != nil:
		return nil, err
	case info.IsDir():
		return openFolder(h.Name)
	}
	f, err := gguf.Open(h.Name)
	if err != nil {
		return nil, err
	}
	return openGGUF(f)
}

func openGGUF(f *gguf.File) (*file, error) {
	c, err := ReadGGUF(f)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	o := &file{Config: c, weights: model.NewGGUFLoader(f, model.BlockHead), close: f.Close}
	for _, t := range f.Tensors {
		if t.Name != "rope_freqs.weight" { // which is part of the shape
			o.tensors = append(o.tensors, t.Name)
		}
	}
	return o, nil
}

func openFolder(dir string) (*file, error) {
	c, err := ReadFolder(dir)
	if err != nil {
		return nil, err
	}
	f, err := safetensors.OpenFolder(dir)
	if err != nil {
		return nil, err
	}
	o := &file{Config: c, weights: model.NewFolderLoader(f, model.BlockHead), close: f.Close}
	for _, t := range f.Tensors {
		if !strings.HasSuffix(t.Name, ".rotary_emb.inv_freq") { // which follows from the shape
			o.tensors = append(o.tensors, t.Name)
		}
	}
	return o, nil
}

// named puts the head's name before an error that does not say it.
func named(h draft.Head, err error) error {
	if strings.Contains(err.Error(), h.Name) {
		return err
	}
	return fmt.Errorf("%s: %w", h.Name, err)
}
