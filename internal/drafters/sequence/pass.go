package sequence

import (
	"fmt"

	"github.com/grovellm/grove/draft"
)

// PassOf is a pass as a drafter sees it that asked for some of its taps, in an order of its own:
// which of the pass's each is.
type PassOf struct {
	draft.Pass
	Taps []int
}

// Tap is Pass.Tap.
func (p *PassOf) Tap(t, sequence, node int) []float32 {
	if t >= len(p.Taps) {
		panic(fmt.Sprintf("tap %d of a drafter whose Taps lists %d layers: list the layer there", t, len(p.Taps)))
	}
	return p.Pass.Tap(p.Taps[t], sequence, node)
}
