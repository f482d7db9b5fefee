package sequence

import (
	"fmt"
	"slices"

	"github.com/grovellm/grove/draft"
)

// PassOf is a pass as seen by a drafter that asked for some of its taps, in an order of its own. Taps
// has the number of each of them in the pass.
type PassOf struct {
	draft.Pass
	Taps []int
}

// JoinTaps adds the layers that one drafter taps to all layers tapped in a pass, if they are not there yet. It also
// returns the Taps of that drafter's PassOf.
func JoinTaps(all, layers []int) (joined, taps []int) {
	for _, layer := range layers {
		at := slices.Index(all, layer)
		if at < 0 {
			at = len(all)
			all = append(all, layer)
		}
		taps = append(taps, at)
	}
	return all, taps
}

// Tap is Pass.Tap, with the drafter's numbers of taps.
func (p *PassOf) Tap(t, sequence, node int) []float32 {
	if t >= len(p.Taps) {
		panic(fmt.Sprintf("tap %d of a drafter whose Taps lists %d layers: list the layer there", t, len(p.Taps)))
	}
	return p.Pass.Tap(p.Taps[t], sequence, node)
}
