package train

import (
	"path/filepath"

	"github.com/grovellm/grove/draft/eagle"
	"github.com/grovellm/grove/tensor"
)

// export writes the finished head in every form, the plot of its loss, and what a model card says of the training text. The
// Q8_0 file, which ships, has no tokenizer: the target's is the same.
func (h *EagleHead) export(dir, name string, tokens []int32, text *corpus) error {
	if err := exportRun(dir, text); err != nil {
		return err
	}
	weights, err := eagle.Tensors(h.Params.All())
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
	for _, t := range exported {
		vocabulary := text.vocabulary
		if t.kind == tensor.Q8_0 {
			vocabulary = nil
		}
		if err := eagle.WriteGGUF(filepath.Join(dir, t.file), name, h.Config(), weights, tokens, vocabulary, t.kind); err != nil {
			return err
		}
	}
	if err := eagle.WriteFolder(filepath.Join(dir, "hf"), h.Config(), whole, tokens); err != nil {
		return err
	}
	if h.net.Version == 2 {
		return nil // vLLM's format is of EAGLE-3
	}
	return eagle.WriteSpeculators(filepath.Join(dir, "speculators"), h.Config(), whole, tokens, h.target.Shape.config())
}
