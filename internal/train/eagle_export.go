package train

import (
	"path/filepath"

	"github.com/grovellm/grove/gguf"
	"github.com/grovellm/grove/internal/headfile"
	"github.com/grovellm/grove/tensor"
)

// export writes the finished head in every form.
func (h *EagleHead) export(dir, name string, tokens []int32, text *corpus) error {
	weights, err := headfile.Tensors(h.Params.All())
	if err != nil {
		return err
	}
	rows := h.net.Head.W.Out()
	output := make([]float32, rows*h.net.Hidden)
	for i := range rows {
		h.net.Head.W.Row(output[i*h.net.Hidden:(i+1)*h.net.Hidden], i)
	}
	own, err := tensor.FromFloat32s(outputMatrix, tensor.F32, []int{rows, h.net.Hidden}, output)
	if err != nil {
		return err
	}
	whole := append(weights, own) // other engines want an output matrix
	if tokens != nil {            // and so does a draft vocabulary
		weights = whole
	}
	err = exportHead(dir, text, func(path string, vocabulary *gguf.File, t tensor.Type) error {
		return headfile.WriteGGUF(path, name, h.Config(), weights, tokens, vocabulary, t)
	})
	if err != nil {
		return err
	}
	if err := headfile.WriteFolder(filepath.Join(dir, "hf"), h.Config(), whole, tokens); err != nil {
		return err
	}
	if h.net.Version == 2 {
		return nil // vLLM's format is of EAGLE-3
	}
	return headfile.WriteSpeculators(filepath.Join(dir, "speculators"), h.Config(), whole, tokens, h.target.Shape.config())
}
