package train

import (
	"path/filepath"
	"slices"

	"github.com/grovellm/grove/gguf"
	"github.com/grovellm/grove/internal/headfile"
	"github.com/grovellm/grove/tensor"
)

// export writes the finished head in every form.
func (h *BlockHead) export(dir, name string, text *corpus) error {
	weights, err := headfile.Tensors(h.Params.All())
	if err != nil {
		return err
	}
	err = exportHead(dir, text, func(path string, vocabulary *gguf.File, t tensor.Type) error {
		return headfile.WriteGGUF(path, name, h.Config(), weights, nil, vocabulary, t)
	})
	if err != nil {
		return err
	}
	if slices.Contains(h.Config().Taps, 0) {
		return nil // a folder cannot name the embedding as a tap
	}
	return headfile.WriteFolder(filepath.Join(dir, "hf"), h.Config(), weights, nil)
}
