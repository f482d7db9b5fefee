// The tensors that a head must have or may have.

package headfile

import (
	"fmt"
	"maps"
	"slices"

	"github.com/grovellm/grove/internal/files/fileerr"
	"github.com/grovellm/grove/tensor"
)

// Shapes are the tensors of a head by GGUF name. It may lack those that are Optional.
type Shapes map[string]shape

// shape is the shape of one tensor.
type shape struct {
	Dims     []int
	Optional bool
}

// Need adds a tensor that is required.
func (s Shapes) Need(name string, dims ...int) { s[name] = shape{Dims: dims} }

// May adds a tensor that is optional.
func (s Shapes) May(name string, dims ...int) { s[name] = shape{dims, true} }

// Check refuses weights that do not make a head of these shapes. called names a tensor in errors; nil: its own name.
func (s Shapes) Check(weights []tensor.Tensor, called func(name string) string) error {
	if called == nil {
		called = func(name string) string { return name }
	}
	seen := map[string]bool{}
	for _, w := range weights {
		want, ok := s[w.Name]
		name := fileerr.Quote(called(w.Name))
		switch {
		case !ok:
			return fmt.Errorf("tensor %s does not belong to the head that the file describes", name)
		case seen[w.Name]:
			return fmt.Errorf("tensor %s occurs twice", name)
		case !slices.Equal(want.Dims, w.Shape):
			return fmt.Errorf("tensor %s has shape %v: want %v", name, w.Shape, want.Dims)
		}
		seen[w.Name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(s)) {
		if !seen[name] && !s[name].Optional {
			return fmt.Errorf("tensor %s is missing", called(name))
		}
	}
	return nil
}
