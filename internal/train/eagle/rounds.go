package eagle

import (
	"github.com/grovellm/grove/internal/drafters/eagle"
	"github.com/grovellm/grove/internal/drafters/grow"
	"github.com/grovellm/grove/internal/train"
)

// rounds decodes a text, whose taps the target has left, from its first tokens on with trees of the
// drafter that serves: see train.Rounds.
func (h *Head) rounds(text []int32, first, most int, shape grow.Shape, budget int) (rounds, tokens int, err error) {
	d, err := eagle.New(h.net, shape, false, nil, h.Exec.Pool())
	if err != nil {
		return 0, 0, err
	}
	return train.Rounds(d, h.Target.Taps, h.net.Hidden, text, first, most, budget)
}
