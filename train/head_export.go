package train

import (
	"path/filepath"
	"slices"

	"github.com/grovellm/grove/draft/jet"
	"github.com/grovellm/grove/tensor"
)

// export writes the finished head in every form, the plot of its loss, and what a model card says of the training text. The
// Q8_0 file, which ships, has no tokenizer: the target's is the same.
func (h *BlockHead) export(dir, name string, text *corpus) error {
	if err := exportRun(dir, text); err != nil {
		return err
	}
	weights, err := jet.Tensors(h.Params.All())
	if err != nil {
		return err
	}
	for _, t := range exported {
		vocabulary := text.vocabulary
		if t.kind == tensor.Q8_0 {
			vocabulary = nil
		}
		if err := jet.WriteGGUF(filepath.Join(dir, t.file), name, h.Config(), weights, vocabulary, t.kind); err != nil {
			return err
		}
	}
	if slices.Contains(h.Config().Taps, 0) {
		return nil // a folder cannot name the embedding as a tap
	}
	return jet.WriteFolder(filepath.Join(dir, "hf"), h.Config(), weights)
}
