package headfile

import (
	"fmt"

	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/tensor"
)

// GGUFOnly is embedded by a Shape whose heads exist only as GGUF files, and implements the methods for folders.
type GGUFOnly struct{}

// Folders reports that no folders can be written.
func (GGUFOnly) Folders() (authors, speculators bool) { return false, false }

// ReadFolder refuses every folder.
func (GGUFOnly) ReadFolder(*File) (layout string, err error) {
	return "", fmt.Errorf("%w: heads of this kind are GGUF files, and this is a folder", ErrKind)
}

// FolderFields returns an error.
func (GGUFOnly) FolderFields(map[string]any, tensor.Type, []tensor.Tensor, *model.Config) (map[string]any, string, error) {
	return nil, "", fmt.Errorf("heads of this kind can only be written as GGUF files")
}

// Place returns the tensor's own name.
func (GGUFOnly) Place(name, _ string) Place { return Place{Name: name} }
