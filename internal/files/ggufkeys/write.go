package ggufkeys

import (
	"errors"
	"strings"

	"github.com/grovellm/grove/gguf"
	"github.com/grovellm/grove/tensor"
)

// fileTypes are llama.cpp's numbers for "mostly this type".
var fileTypes = map[tensor.Type]uint32{tensor.F32: 0, tensor.F16: 1, tensor.Q4_0: 2, tensor.Q4_1: 3, tensor.Q8_0: 7,
	tensor.Q5_0: 8, tensor.Q5_1: 9, tensor.Q4_K: 14, tensor.Q5_K: 16, tensor.Q6_K: 18, tensor.IQ4_NL: 25,
	tensor.BF16: 32, tensor.MXFP4: 38}

// SetFileType records the type of most of the file's matrices, if llama.cpp has a number for it.
func SetFileType(w *gguf.Writer, t tensor.Type) {
	if n, ok := fileTypes[t]; ok {
		w.Set("general.file_type", n)
	}
	w.Set("general.quantization_version", uint32(2))
}

// SetAll copies the metadata of an open file, bit for bit, except the keys that say how that file was split.
func SetAll(w *gguf.Writer, f *gguf.File) {
	for key, value := range f.Meta() {
		if !strings.HasPrefix(key, "split.") {
			w.Set(key, value)
		}
	}
}

// SetTokenizer copies the tokenizer of an open file.
func SetTokenizer(w *gguf.Writer, f *gguf.File) error {
	found := false
	for key, value := range f.Meta() {
		if strings.HasPrefix(key, "tokenizer.") {
			w.Set(key, value)
			found = true
		}
	}
	if !found {
		return fault(f, "keys tokenizer.*", "take the file of a model with its tokenizer",
			errors.New("are missing: the file has no vocabulary"))
	}
	return nil
}
