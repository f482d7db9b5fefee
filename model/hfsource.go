// Hugging Face folders as a source of models' weights: safetensors, and the tokenizer beside them.

package model

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/grovellm/grove/safetensors"
	"github.com/grovellm/grove/tensor"
	"github.com/grovellm/grove/tokenizer"
)

type hfSource struct {
	dir string
	c   Config
	*safetensors.File
}

func openHF(dir string) (source, error) {
	f, noWeights := safetensors.OpenFolder(dir) // before anything else of the folder is read: see CheckInPlace
	c, err := ReadFolder(dir)
	if err == nil {
		err = noWeights
	}
	if err != nil {
		if f != nil {
			f.Close()
		}
		return nil, err
	}
	return &hfSource{dir: dir, c: c, File: f}, nil
}

func (s *hfSource) config() (Config, error) { return s.c, nil }

func (s *hfSource) tensor(name string) (tensor.Tensor, bool, error) {
	hf, ok := HFName(s.c.Arch, name)
	if !ok {
		return tensor.Tensor{}, false, nil
	}
	if _, ok := s.Tensor(hf); !ok {
		return tensor.Tensor{}, false, nil
	}
	t, err := s.Load(hf)
	if err == nil && strings.Contains(hf, "query_key_value.") {
		t, err = s.splitHeads(t)
	}
	return t, err == nil, err
}

// splitHeads reorders GPT-NeoX's fused projection, which holds query, key and value of each
// head in turn, into all queries, all keys, all values.
func (s *hfSource) splitHeads(t tensor.Tensor) (tensor.Tensor, error) {
	h, d := s.c.Heads, s.c.HeadDim
	if len(t.Shape) == 0 || t.Shape[0] != 3*h*d {
		return t, fmt.Errorf("%s: tensor %q has shape %v: want %d rows, 3 for each dimension of %d heads", s.dir, t.Name, t.Shape, 3*h*d, h)
	}
	return t.Reordered(func(row int) int {
		part, head := row/(h*d), row%(h*d)/d
		return (3*head+part)*d + row%d
	})
}

func (s *hfSource) tokenizer() (*tokenizer.Tokenizer, error) {
	if _, err := os.Stat(filepath.Join(s.dir, "tokenizer.json")); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return tokenizer.FromJSON(s.dir)
}
