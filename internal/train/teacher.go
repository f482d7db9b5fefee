package train

import (
	"github.com/grovellm/grove/internal/nn"
)

// Teacher provides soft targets: the distributions of a larger network with the same vocabulary.
type Teacher struct {
	Net   *Network
	Share float32 // of the loss; the rest is cross-entropy against the text

	x nn.Mat
}

// prepare runs the teacher up to its last norm.
func (t *Teacher) prepare(tokens []int32, length int) {
	t.Net.tape.Detach()
	t.x = t.Net.forward(tokens, length, nil)
}

// logits writes the teacher's logits for rows [from, to) to q.
func (t *Teacher) logits(from, to int, q nn.Mat) {
	n := t.Net
	n.exec.Linear(nn.Source{X: t.x.Slice(from, to), Norm: &n.Net.Norm}, nn.Proj{Linear: &n.Net.Head, Dst: q})
}
