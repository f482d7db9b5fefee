// freq and freq-pa: the most frequent tokens. Their rows are stored in order of rank, so a list of
// any size is a prefix of one matrix.

package shortlist

import (
	"github.com/grovellm/grove/internal/kernels/gemm"
	"github.com/grovellm/grove/internal/kernels/par"
	"github.com/grovellm/grove/internal/nn/output"
	"github.com/grovellm/grove/sample"
)

// Frequent lists the most frequent tokens, the same for every sequence.
type Frequent struct {
	stateless
	steps []*List // the last one also serves all later steps
}

// lastStep is the last step that has a list of its own. Each list needs a tail, which takes a while
// to compute.
const lastStep = 15

// NewFrequent lists size tokens by rank; if positionAware is set, size at steps 0 and 1, and
// size/(step + 1) at later steps (DynaSpec, appendix A.1). Sizes are rounded up to whole panels.
func NewFrequent(pool *par.Pool, head *Head, r *Ranks, size int, positionAware bool) (*Frequent, error) {
	tokens := r.First(size)
	ordered, err := output.NewOrderedHead(pool, head.TokenHead, tokens)
	if err != nil {
		return nil, err
	}
	f := &Frequent{}
	for step := 0; ; step++ {
		n := max(1, budget(size, step, positionAware))
		panels := min((max(n, r.Kept)+gemm.Panel-1)/gemm.Panel, ordered.Panels())
		if last := len(f.steps) - 1; last >= 0 && f.steps[last].Len() == panels*gemm.Panel {
			f.steps = append(f.steps, f.steps[last])
		} else {
			l := &List{}
			t, err := newTail(pool, head, r.Order[min(panels*gemm.Panel, len(tokens)):])
			if err != nil {
				return nil, err
			}
			l.Add(ordered, 0, panels)
			l.end(t, 0)
			f.steps = append(f.steps, l)
		}
		if !positionAware || n <= max(gemm.Panel, r.Kept) || step == lastStep {
			return f, nil
		}
	}
}

// budget returns the number of tokens at a step: K_fr of DynaSpec, appendix A.1.
func budget(size, step int, positionAware bool) int {
	if positionAware && step > 1 {
		return size / (step + 1)
	}
	return size
}

func (f *Frequent) list(step int) *List { return f.steps[min(max(step, 0), len(f.steps)-1)] }

func (f *Frequent) Begin(*sample.Params) State { return f }
func (f *Frequent) Fork() Method               { return f }

func (f *Frequent) Choose(queries []Query, lists []*List) {
	for i, q := range queries {
		lists[i] = f.list(q.Step)
	}
}
