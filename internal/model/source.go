package model

import (
	"github.com/grovellm/grove/tensor"
	"github.com/grovellm/grove/tokenizer"
)

// source is an open model file.
type source interface {
	tensors
	// names returns the names of the tensors in the file, except those that follow from the
	// configuration.
	names() []string
	config() (Config, error)
	// tokenizer returns nil if the file has none.
	tokenizer() (*tokenizer.Tokenizer, error)
	// CheckInPlace returns an error if the data read came from files that do not belong together.
	CheckInPlace() error
	Close() error
}

// tensors are those of a file, under GGUF's names (llama.cpp's), whatever the file calls them.
type tensors interface {
	// tensor returns a tensor, or ok false if the file has none with that name.
	tensor(name string) (t tensor.Tensor, ok bool, err error)
}
