// A head and its target: which layers the head taps, whether the two fit, and what the head takes
// from the target.

package headfile

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/grovellm/grove/gguf"
	"github.com/grovellm/grove/internal/files/ggufkeys"
	"github.com/grovellm/grove/internal/model"
)

// MaxTaps limits the number of tapped layers in a file.
const MaxTaps = 1 << 8

// CheckTaps refuses impossible layers. layers is the number that the head's target has; 0: unknown.
func CheckTaps(taps []int, layers int) error {
	switch {
	case len(taps) < 1 || len(taps) > MaxTaps:
		return fmt.Errorf("the head taps %d layers: want 1 to %d", len(taps), MaxTaps)
	case layers < 0:
		return fmt.Errorf("the target's layer count is %d: want a positive number", layers)
	}
	for _, t := range taps {
		if t < 0 || layers > 0 && t > layers {
			return fmt.Errorf("the head taps layers %v of a target of %d layers: want numbers from 0 (the embedding) to that", taps, layers)
		}
	}
	return nil
}

// Fits returns an error that says what differs if a head of the shape does not fit the target.
func Fits(s Shape, target *model.Config) error {
	c := s.Common()
	hidden, usual := cmp.Or(c.TargetHidden, c.Hidden), s.DefaultTaps(target.Layers)
	switch layers := c.TargetLayers; {
	case !s.Kind().Drafts(target.Arch):
		return fmt.Errorf("the target's architecture is %q: the head reads keys and values of %s", target.Arch, s.Kind().Target)
	case hidden != target.Hidden:
		return fmt.Errorf("the head was made for a target of hidden size %d, and this one's is %d: use a head made for this target", hidden, target.Hidden)
	case c.Vocab != target.Vocab:
		return fmt.Errorf("the head's vocabulary has %d tokens, and the target's %d: use a head made for this target", c.Vocab, target.Vocab)
	case layers > 0 && layers != target.Layers && target.Padded == 0: // padding adds layers
		return fmt.Errorf("the head was made for a target of %d layers, and this one has %d: use a head made for this target", layers, target.Layers)
	case slices.Max(c.Taps) > target.Layers:
		return fmt.Errorf("the head taps layers %v, and the target has %d: use a head made for this target", c.Taps, target.Layers)
	case len(usual) == 1 && c.Taps[0] != usual[0] && target.Padded == 0: // the kind has no choice
		return fmt.Errorf("the head taps layer %d of a target of %d layers: heads of this kind tap the last", c.Taps[0], target.Layers)
	}
	if b, ok := s.(Borrower); ok {
		return b.BorrowsFrom(target)
	}
	return nil
}

// Stated returns the layers that a folder says a head taps. An empty list, like a missing one,
// leaves them to the target: then it returns nil.
func Stated(taps []int) []int {
	if len(taps) == 0 {
		return nil
	}
	return taps
}

// TapsFor returns the layers that a head taps: those in its file, or, if that leaves them to the
// target, the default for the number of layers in the file or else of the target.
func TapsFor(target *model.Config, taps []int, layers int, usual func(layers int) []int) ([]int, error) {
	switch {
	case taps != nil:
		return taps, nil
	case layers > 0:
		return usual(layers), nil
	case target.Padded > 0:
		return nil, fmt.Errorf("the head does not say which layers it taps, and padding hides how many the target has: convert the head first, with --target")
	}
	return usual(target.Layers), nil
}

// DefaultTaps returns the layers that heads tap by default in a target with the given number of
// layers: the inputs of layers 2, n/2 and n−3.
func (*Base) DefaultTaps(layers int) []int {
	return []int{min(2, layers), layers / 2, max(layers-3, 0)}
}

// tapsKey is the key of the tapped layers, after the architecture.
const tapsKey = ".target_layers"

// readTaps reads the layers that the head taps, and the number of layers of the target that it was made for.
func readTaps(k *ggufkeys.Keys, arch string) (taps []int, layers int, err error) {
	for _, t := range k.Ints(arch + tapsKey) {
		taps = append(taps, int(min(max(t, -1), math.MaxInt32)))
	}
	layers = k.Int(model.TargetLayersKey, 0)
	if err = k.Err(); err == nil && taps == nil {
		err = fmt.Errorf("key %q is missing: it lists the layers of the target that the head reads", arch+tapsKey)
	}
	return taps, layers, err
}

// SetTaps sets the keys that readTaps reads.
func SetTaps(w *gguf.Writer, arch string, taps []int, layers int) {
	list := make([]int32, len(taps))
	for i, t := range taps {
		list[i] = int32(t)
	}
	w.Set(arch+tapsKey, list)
	if layers > 0 {
		w.Set(model.TargetLayersKey, uint32(layers))
	}
}
