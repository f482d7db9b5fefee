// Heads in files: GGUF as llama.cpp's dflash has it, and Hugging Face folders as JetSpec's and DFlash's heads are published.

package jet

import (
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

// ErrKind is the error of a file that is no block head.
var ErrKind = errors.New("not a block head")

// File is an open file of a head: what it says, with the data of its tensors as they are.
type File struct {
	Config
	Weights []tensor.Tensor // by GGUF name
	*headfile.File
}

// Read opens a file. Its tensors' data last until it is closed.
func Read(h draft.Head) (*File, error) {
	f, err := headfile.Open(h)
	if err != nil {
		return nil, headfile.Named(h, err)
	}
	x := &File{File: f}
	if err := x.read(); err != nil {
		return nil, headfile.Named(h, errors.Join(err, f.Close()))
	}
	return x, nil
}

func (x *File) read() (err error) {
	name := func(gguf string) string { return gguf }
	if x.GGUF != nil {
		x.Config, err = ReadGGUF(x.GGUF)
	} else {
		x.Config, err = ReadFolder(x.Dir)
		name = folderName
	}
	if err != nil {
		return err
	}
	shapes := x.shapes()
	names := map[string]string{} // in GGUF, of the file's
	for gguf := range shapes {
		names[name(gguf)] = gguf
	}
	for _, own := range x.Names() {
		t, err := x.Load(own)
		if err != nil {
			return err
		}
		if gguf, ok := names[own]; ok {
			t.Name = gguf
		}
		x.Weights = append(x.Weights, t)
	}
	return shapes.Check(x.Weights, name)
}

// ReadConfig reads the shape of a head, and not its weights.
func ReadConfig(h draft.Head) (Config, error) {
	f, err := Read(h)
	if err != nil {
		return Config{}, err
	}
	return f.Config, f.Close()
}

// Open loads a head for a target, whose embedding and output head it uses unless it has its own. A head is loaded once
// for all drafters of a target.
func Open(h draft.Head, target draft.Target) (*Head, error) {
	type key struct{ name string } // of this package
	v, err := target.Shared.Get(key{h.Name}, func() (any, error) { return load(h, target) })
	if err != nil {
		return nil, headfile.Named(h, err)
	}
	return v.(*Head), nil
}

// Find opens the first of the target's heads that is causal, or is not.
func Find(target draft.Target, causal bool) (*Head, error) {
	h, ok, err := headfile.Find(target, ErrKind, func(h draft.Head) (draft.Head, error) {
		c, err := ReadConfig(h)
		if err == nil && c.Causal != causal {
			err = ErrKind // for this purpose
		}
		return h, err
	})
	if err != nil {
		return nil, err
	}
	if !ok {
		kind := map[bool]string{true: "causal (JetSpec)", false: "bidirectional (DFlash)"}[causal]
		return nil, fmt.Errorf("there is no %s head: name one with model=FILE, or open the target with one", kind)
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
	if err := f.Fits(m.Config); err != nil {
		return nil, err
	}
	w := model.NewLoader(f.Weights, model.BlockHead)
	embed, head := m.Embed, m.Head
	if w.Has("token_embd.weight") {
		if embed, err = w.Table("token_embd.weight", f.Vocab, f.Hidden); err != nil {
			return nil, err
		}
	}
	if w.Has("output.weight") {
		matrix, err := w.Matrix("output.weight", f.Vocab, f.Hidden)
		if err != nil {
			return nil, err
		}
		head = nn.Linear{W: matrix}
	}
	n, err := NewNetwork(f.Config, w, embed, head)
	if err != nil {
		return nil, err
	}
	return &Head{Network: n, Name: h.Name}, w.Pack(m.Pool())
}
