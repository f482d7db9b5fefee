// Package headfile is what the files of drafters' heads of all kinds have in common: that they are GGUF or a Hugging Face folder, and
// how tensors go into either.
package headfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/gguf"
	"github.com/grovellm/grove/model"
	"github.com/grovellm/grove/nn"
	"github.com/grovellm/grove/safetensors"
	"github.com/grovellm/grove/tensor"
)

// File is an open file of a head.
type File struct {
	GGUF *gguf.File // nil for a folder

	Folder *safetensors.File
	JSON   []byte // the folder's config.json
	Dir    string
}

// Open opens the file that a head names.
func Open(h draft.Head) (*File, error) {
	if h.Data != nil {
		f, err := gguf.Parse(h.Name, h.Data)
		return &File{GGUF: f}, err
	}
	info, err := os.Stat(h.Name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("there is no such file: want a GGUF file or a Hugging Face folder of a head")
	case err != nil:
		return nil, err
	case !info.IsDir():
		f, err := gguf.Open(h.Name)
		return &File{GGUF: f}, err
	}
	config, err := model.ReadFolderFile(h.Name)
	if err != nil {
		return nil, err
	}
	f, err := safetensors.OpenFolder(h.Name)
	return &File{Folder: f, JSON: config, Dir: h.Name}, err
}

// Close ends the life of the tensors' data.
func (f *File) Close() error {
	if f.GGUF != nil {
		return f.GGUF.Close()
	}
	return f.Folder.Close()
}

// Has reports whether there is a tensor, by the file's own name.
func (f *File) Has(name string) bool {
	_, ok := f.Tensor(name)
	return ok
}

// Tensor returns a tensor of any type, by the file's own name.
func (f *File) Tensor(name string) (tensor.Tensor, bool) {
	if f.GGUF != nil {
		return f.GGUF.Tensor(name)
	}
	return f.Folder.Tensor(name)
}

// Load is Tensor with an error for one that is missing or no numbers.
func (f *File) Load(name string) (tensor.Tensor, error) {
	if f.GGUF != nil {
		return f.GGUF.Load(name)
	}
	return f.Folder.Load(name)
}

// Names are those of the tensors, but for what follows from the configuration.
func (f *File) Names() (names []string) {
	if f.GGUF != nil {
		for _, t := range f.GGUF.Tensors {
			if t.Name != "rope_freqs.weight" {
				names = append(names, t.Name)
			}
		}
		return names
	}
	for _, t := range f.Folder.Tensors {
		if !strings.HasSuffix(t.Name, ".rotary_emb.inv_freq") {
			names = append(names, t.Name)
		}
	}
	return names
}

// Faulty says which file of a folder an error is of.
func (f *File) Faulty(err error) error {
	if err == nil || f.GGUF != nil || strings.Contains(err.Error(), f.Dir) {
		return err
	}
	return fmt.Errorf("%s: %w", filepath.Join(f.Dir, "config.json"), err)
}

// Named puts a head's name before an error that does not say it.
func Named(h draft.Head, err error) error {
	if err == nil || strings.Contains(err.Error(), h.Name) {
		return err
	}
	return fmt.Errorf("%s: %w", h.Name, err)
}

// Shapes are the tensors that a head may have, by GGUF name; of those that are Optional it may lack some.
type Shapes map[string]Shape

// Shape is that of one.
type Shape struct {
	Dims     []int
	Optional bool
}

// Need adds a tensor that must be there.
func (s Shapes) Need(name string, dims ...int) { s[name] = Shape{Dims: dims} }

// May adds a tensor that may be there.
func (s Shapes) May(name string, dims ...int) { s[name] = Shape{dims, true} }

// Check refuses weights that do not make the head of these shapes. called is what errors call a tensor; nil: its name.
func (s Shapes) Check(weights []tensor.Tensor, called func(name string) string) error {
	if called == nil {
		called = func(name string) string { return name }
	}
	seen := map[string]bool{}
	for _, w := range weights {
		shape, ok := s[w.Name]
		name := tensor.Quote(called(w.Name))
		switch {
		case !ok:
			return fmt.Errorf("tensor %s is not one of a head of this shape: this is another kind of head", name)
		case seen[w.Name]:
			return fmt.Errorf("tensor %s is there twice", name)
		case !slices.Equal(shape.Dims, w.Shape):
			return fmt.Errorf("tensor %s has shape %v: want %v", name, w.Shape, shape.Dims)
		}
		seen[w.Name] = true
	}
	for name, shape := range s {
		if !seen[name] && !shape.Optional {
			return fmt.Errorf("tensor %s is missing", called(name))
		}
	}
	return nil
}

// Tensors are trained weights as files have them.
func Tensors(params []*nn.Param) ([]tensor.Tensor, error) {
	var weights []tensor.Tensor
	for _, p := range params {
		t, err := tensor.FromFloat32s(p.Name, tensor.F32, p.Shape(), p.Data)
		if err != nil {
			return nil, err
		}
		weights = append(weights, t)
	}
	return weights, nil
}

// Find opens the first of a target's heads that open takes; open returns an error that is kind for those of other kinds.
func Find[T any](target draft.Target, kind error, open func(h draft.Head) (T, error)) (T, bool, error) {
	for _, h := range target.Heads {
		v, err := open(h)
		if !errors.Is(err, kind) {
			return v, err == nil, err
		}
	}
	var none T
	return none, false, nil
}
