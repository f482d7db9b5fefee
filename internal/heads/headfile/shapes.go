// The tensors that a head must have, and may have.

package headfile

import (
	"fmt"
	"maps"
	"slices"

	"github.com/grovellm/grove/internal/files/fileerr"
	"github.com/grovellm/grove/tensor"
)

// Shapes are the tensors that a head may have, by GGUF name; of those that are Optional it may lack some.
type Shapes map[string]shape

// shape is that of one.
type shape struct {
	Dims     []int
	Optional bool
}

// Need adds a tensor that must be there.
func (s Shapes) Need(name string, dims ...int) { s[name] = shape{Dims: dims} }

// May adds a tensor that may be there.
func (s Shapes) May(name string, dims ...int) { s[name] = shape{dims, true} }

// Check refuses weights that do not make the head of these shapes. called is what errors call a tensor; nil: its name.
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
			return fmt.Errorf("tensor %s is not one of a head of this shape: this is another kind of head", name)
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
