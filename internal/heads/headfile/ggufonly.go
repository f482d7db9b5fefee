package headfile

import (
	"fmt"

	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/tensor"
)

// GGUFOnly answers for a Shape whose heads are GGUF files only. Such a Shape embeds it.
type GGUFOnly struct{}

// Folders says that no folders can be written.
func (GGUFOnly) Folders() (authors, speculators bool) { return false, false }

// ReadFolder refuses every folder.
func (GGUFOnly) ReadFolder(*File) (layout string, err error) {
	return "", fmt.Errorf("%w: a folder, where a GGUF file is wanted", ErrKind)
}

// FolderFields has none.
func (GGUFOnly) FolderFields(map[string]any, tensor.Type, []tensor.Tensor, *model.Config) (map[string]any, string, error) {
	return nil, "", fmt.Errorf("heads of this kind are GGUF files only")
}

// Place is under the tensor's name.
func (GGUFOnly) Place(name, _ string) Place { return Place{Name: name} }
