package model

import (
	"github.com/grovellm/grove/tensor"
	"github.com/grovellm/grove/tokenizer"
)

// source is an open model file.
type source interface {
	tensors
	// names are those of the tensors, as the file calls them, without those that follow from the
	// configuration.
	names() []string
	config() (Config, error)
	// tokenizer returns nil where the file has none.
	tokenizer() (*tokenizer.Tokenizer, error)
	// CheckInPlace returns an error where what was read is of files that do not belong together.
	CheckInPlace() error
	Close() error
}

// tensors are those of a file, by GGUF's names (llama.cpp's), whatever the file calls them.
type tensors interface {
	// tensor returns a tensor, or ok false where the file has none of that name.
	tensor(name string) (t tensor.Tensor, ok bool, err error)
}
