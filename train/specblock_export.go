package train

import (
	"path/filepath"

	"github.com/grovellm/grove/draft/specblock"
	"github.com/grovellm/grove/tensor"
)

// export writes the finished head in every form, the plot of its loss, and what a model card says of the training text. The
// Q8_0 file, which ships, has no tokenizer: the target's is the same.
func (h *SpecBlock) export(dir, name string, text *corpus) error {
	if err := exportRun(dir, text); err != nil {
		return err
	}
	weights, err := specblock.Tensors(h.Params.All())
	if err != nil {
		return err
	}
	for _, t := range exported {
		vocabulary := text.vocabulary
		if t.kind == tensor.Q8_0 {
			vocabulary = nil
		}
		if err := specblock.WriteGGUF(filepath.Join(dir, t.file), name, h.Config(), weights, nil, vocabulary, t.kind); err != nil {
			return err
		}
	}
	return specblock.WriteFolder(filepath.Join(dir, "hf"), h.Config(), weights, nil)
}
