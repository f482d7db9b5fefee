// Weights in PyTorch's own files, read only.

package safetensors

import (
	"github.com/grovellm/grove/internal/files/infile"
	"github.com/grovellm/grove/internal/files/torch"
)

// parseTorch is parseFile for a PyTorch file. Its errors lack the file.
func parseTorch(file *infile.File) (*header, error) {
	list, err := torch.Parse(file, file.Size())
	if err != nil {
		return nil, fault("", "", "save the weights as safetensors, or fetch the file again", "%w", err)
	}
	h := &header{}
	for _, t := range list {
		dtype, _ := dtypeOf(t.Type)
		h.tensors = append(h.tensors, Info{Name: t.Name, DType: dtype, Type: t.Type, Shape: t.Shape,
			Offset: t.Offset, Size: t.Size})
	}
	return h, nil
}
