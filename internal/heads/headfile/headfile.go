// Package headfile has what the files of all kinds of drafters' heads have in common: each is a
// GGUF file or a Hugging Face folder, tensors are read from and written to both in the same way,
// and a head is opened for a target.
package headfile

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"github.com/grovellm/grove/gguf"
	"github.com/grovellm/grove/internal/autograd"
	"github.com/grovellm/grove/internal/drafters/registry"
	"github.com/grovellm/grove/internal/files/ggufkeys"
	"github.com/grovellm/grove/internal/files/safetensors"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/tensor"
)

// tensors is an open file of tensors.
type tensors interface {
	io.Closer            // after which tensors can no longer be read
	CheckInPlace() error // refuses data that were read from files that do not belong together

	Tensor(name string) (tensor.Tensor, bool) // of any type, by the name that the file uses
	Load(name string) (tensor.Tensor, error)  // with an error for one that is missing or does not hold numbers
}

// File is an open file of a head.
type File struct {
	tensors // GGUF or Folder

	GGUF   *gguf.File // nil for a folder
	Folder *safetensors.File
	JSON   []byte // the folder's config.json, as ReadFolder returns it
	Dir    string

	Inside bool          // as in registry.Head
	Target *model.Config // the target's, if the folder is the target's own; otherwise nil
}

// Open opens the file that a head names.
func Open(h registry.Head) (*File, error) {
	if h.Data != nil {
		f, err := gguf.Parse(h.Name, h.Data)
		return &File{tensors: f, GGUF: f, Inside: h.Inside}, err
	}
	info, err := os.Stat(h.Name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%w: want a GGUF file or a Hugging Face folder of a head", syscall.ENOENT)
	case err != nil:
		return nil, err
	case !info.IsDir():
		f, err := gguf.Open(h.Name)
		return &File{tensors: f, GGUF: f, Inside: h.Inside}, err
	}
	x := &File{Dir: h.Name, Inside: h.Inside}
	if h.Inside {
		target, f, err := model.OpenFolder(h.Name)
		x.Target, x.Folder = &target, f
		x.tensors = f
		return x, err
	}
	var noWeights error
	x.Folder, noWeights = safetensors.OpenFolder(h.Name, FileNames()...) // before config.json is read: see CheckInPlace
	x.tensors = x.Folder
	if x.JSON, err = ReadFolder(h.Name); err == nil {
		err = noWeights
	}
	if err != nil {
		if x.Folder != nil {
			x.Folder.Close()
		}
		return nil, err
	}
	var names []string
	for _, t := range x.Folder.Tensors {
		names = append(names, t.Name)
	}
	if err := refuseForeign(nil, names); err != nil {
		return nil, errors.Join(err, x.Close())
	}
	return x, nil
}

// FileNames returns the names of weight files in heads' folders that differ from those in models' folders.
func FileNames() (names []string) {
	for _, k := range kinds {
		if k.File != "" {
			names = append(names, k.File+".safetensors", k.File+".pt")
		}
	}
	return names
}

// Has reports whether there is a tensor with the name that the file uses.
func (f *File) Has(name string) bool {
	_, ok := f.Tensor(name)
	return ok
}

// Names returns the names of the tensors, except those that can be computed from the configuration.
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
		if !model.Follows(t.Name) {
			names = append(names, t.Name)
		}
	}
	return names
}

// layerArch returns the architecture of the layers: qwen3 if there is a query norm with this name, otherwise llama.
func (f *File) layerArch(norm string) string {
	if f.Has(norm) {
		return "qwen3"
	}
	return "llama"
}

// readLayers reads the configuration of the head's layers from a GGUF file of an architecture; for
// a bare kind, only the target's widths. The kind also obeys keys, with or without the architecture
// before them.
func (f *File) readLayers(arch string, keys []string, kind *Kind) (model.Config, error) {
	for i, key := range keys {
		keys[i] = strings.TrimPrefix(key, ".")
	}
	if kind.Bare {
		k := ggufkeys.Of(f.GGUF)
		c := model.Config{Name: k.String("general.name", "")}
		c.Vocab, c.Hidden = k.Int(arch+vocabKey), k.Int(arch+hiddenKey)
		obeyed := ggufkeys.Rules{Obeyed: append(keys, vocabKey[1:], hiddenKey[1:], tapsKey[1:])}
		return c, errors.Join(k.Err(), ggufkeys.Check(f.GGUF, arch+".", obeyed))
	}
	layers := cmp.Or(kind.Target, f.layerArch("blk.0.attn_q_norm.weight"))
	c, err := model.ReadGGUFKeys(f.GGUF, arch, layers, append(keys, tapsKey[1:])...)
	if err != nil {
		return c, err
	}
	k := ggufkeys.Of(f.GGUF)
	c.Tied = false
	if c.Vocab == 0 {
		c.Vocab = k.Int(arch+".vocab_size", 0)
	}
	if v, ok := f.GGUF.Lookup("tokenizer.ggml.tokens"); ok && c.Vocab == 0 {
		c.Vocab = v.Len()
	}
	return c, k.Err()
}

// FolderLayers returns what config.json says of the head's layers, whatever its model_type. norm is the folder's name
// for the query norm of the first layer, which qwen3 layers have. more is what else to read, as for model.ParseFolder.
func (f *File) FolderLayers(norm string, more any) (model.Config, error) {
	c, err := model.ParseFolder(f.JSON, more)
	c.Arch, c.Folder = f.layerArch(norm), "" // the layers' fields may be those of another model
	c.Tied = false
	return c, err
}

// Tensors returns trained weights in the form that files have them.
func Tensors(params []*autograd.Param) ([]tensor.Tensor, error) {
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
