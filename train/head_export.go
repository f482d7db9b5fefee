package train

import (
	"path/filepath"

	"github.com/grovellm/grove/draft/jet"
	"github.com/grovellm/grove/tensor"
)

// export writes the finished head in every form, the plot of its loss, and what a model card says of the training text.
func (h *BlockHead) export(dir, name string, text *corpus) error {
	if err := exportRun(dir, text); err != nil {
		return err
	}
	weights, err := jet.Tensors(h.Params.All())
	if err != nil {
		return err
	}
	for _, t := range exported {
		if err := jet.WriteGGUF(filepath.Join(dir, t.file), name, h.Config(), weights, text.vocabulary, t.kind); err != nil {
			return err
		}
	}
	return jet.WriteFolder(filepath.Join(dir, "hf"), h.Config(), weights)
}

// exported are the GGUF files of a finished run.
var exported = []struct {
	file string
	kind tensor.Type
}{{"model-f32.gguf", tensor.F32}, {"model-q8_0.gguf", tensor.Q8_0}}
