// The tensors that a head must have, and may have.

package headfile

import (
	"fmt"
	"slices"

	"github.com/grovellm/grove/model"
	"github.com/grovellm/grove/tensor"
)

// Shapes are the tensors that a head may have, by GGUF name; of those that are Optional it may lack some.
type Shapes map[string]Shape

// Shape is that of one.
type Shape struct {
	Dims     []int
	Optional bool
}

// Need adds a tensor that must be there.
func (s Shapes) Need(name string, dims ...int) { s[name] = Shape{Dims: dims} }

// May adds a tensor that may be there.
func (s Shapes) May(name string, dims ...int) { s[name] = Shape{dims, true} }

// Check refuses weights that do not make the head of these shapes. called is what errors call a tensor; nil: its name.
func (s Shapes) Check(weights []tensor.Tensor, called func(name string) string) error {
	if called == nil {
		called = func(name string) string { return name }
	}
	seen := map[string]bool{}
	for _, w := range weights {
		shape, ok := s[w.Name]
		name := tensor.Quote(called(w.Name))
		switch {
		case !ok:
			return fmt.Errorf("tensor %s is not one of a head of this shape: this is another kind of head", name)
		case seen[w.Name]:
			return fmt.Errorf("tensor %s is there twice", name)
		case !slices.Equal(shape.Dims, w.Shape):
			return fmt.Errorf("tensor %s has shape %v: want %v", name, w.Shape, shape.Dims)
		}
		seen[w.Name] = true
	}
	for name, shape := range s {
		if !seen[name] && !shape.Optional {
			return fmt.Errorf("tensor %s is missing", called(name))
		}
	}
	return nil
}

// Layer adds the weights of a layer as models have it: without biases, and with norms of queries and keys where c is of a qwen3.
func (s Shapes) Layer(c *model.Config, i int) {
	h, q, kv := c.Hidden, c.Heads*c.HeadDim, c.KVHeads*c.HeadDim
	for part, dims := range map[string][]int{
		"attn_norm": {h}, "attn_q": {q, h}, "attn_k": {kv, h}, "attn_v": {kv, h}, "attn_output": {h, q},
		"ffn_norm": {h}, "ffn_gate": {c.FFN, h}, "ffn_up": {c.FFN, h}, "ffn_down": {h, c.FFN},
	} {
		s.Need(fmt.Sprintf("blk.%d.%s.weight", i, part), dims...)
	}
	if c.Arch == "qwen3" {
		s.Need(fmt.Sprintf("blk.%d.attn_q_norm.weight", i), c.HeadDim)
		s.Need(fmt.Sprintf("blk.%d.attn_k_norm.weight", i), c.HeadDim)
	}
}
