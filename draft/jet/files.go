// Heads in files: GGUF as llama.cpp's dflash has it, and Hugging Face folders as JetSpec's and DFlash's heads are published.

package jet

import (
	"errors"

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

// ErrKind is the error of a file that is no block head.
var ErrKind = errors.New("not a block head")

// File is an open file of a head: what it says, with the data of its tensors as they are.
type File struct {
	Config
	Weights []tensor.Tensor // by GGUF name
	*headfile.File
}

// Read opens a file. Its tensors' data last until it is closed.
func Read(h draft.Head) (*File, error) { return headfile.Read(h, read) }

func read(f *headfile.File) (x *File, err error) {
	x = &File{File: f}
	name := func(gguf string) string { return gguf }
	err = f.Parse(func() (err error) {
		x.Config, err = readGGUF(f)
		return err
	}, func() (err error) {
		x.Config, err = parseFolder(f.JSON)
		name = folderName
		return err
	})
	if err != nil {
		return nil, err
	}
	shapes := x.shapes()
	names := map[string]string{}
	for gguf := range shapes {
		names[name(gguf)] = gguf
	}
	if x.Weights, err = f.ReadWeights(names); err != nil {
		return nil, err
	}
	return x, shapes.Check(x.Weights, name)
}

// ReadConfig reads the shape of a head, and not its weights.
func ReadConfig(h draft.Head) (Config, error) {
	return headfile.With(h, Read, func(f *File) (Config, error) { return f.Config, nil })
}

// Open loads a head for a target, whose embedding and output head it uses unless it has its own. A head is loaded once
// for all drafters of a target.
func Open(h draft.Head, target draft.Target) (*Head, error) {
	return headfile.Load(h, target, Read, func(f *File, m *model.Model) (*Head, error) {
		if err := f.Fits(m.Config); err != nil {
			return nil, err
		}
		w := model.NewLoader(f.Weights, model.BlockHead)
		n, err := NewNetwork(f.Config, w, &m.Network)
		if err != nil {
			return nil, err
		}
		return &Head{Network: n, Name: h.Name}, w.Pack(m.Pool())
	})
}

// Find opens the first of the target's heads that is causal, or is not.
func Find(target draft.Target, causal bool) (*Head, error) {
	called := map[bool]string{true: "causal (JetSpec)", false: "bidirectional (DFlash)"}[causal]
	h, err := headfile.Find(target, ErrKind, called, func(h draft.Head) (draft.Head, error) {
		c, err := ReadConfig(h)
		if err == nil && c.Causal != causal {
			err = ErrKind // for this purpose
		}
		return h, err
	})
	if err != nil {
		return nil, err
	}
	return Open(h, target)
}
