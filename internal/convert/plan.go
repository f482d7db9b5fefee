package convert

import (
	"github.com/grovellm/grove/internal/model"
)

// layout is the configuration of a model, which determines where both formats place its rows.
type layout struct{ model.Config }

// plan lists a model's tensors in the order of a GGUF file, with an output matrix even where it is
// tied.
func (l *layout) plan() []model.Part {
	c := l.Config
	c.Tied = false
	return c.Parts()
}
