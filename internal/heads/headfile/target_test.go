package headfile

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/grovellm/grove/gguf"
	"github.com/grovellm/grove/internal/drafters/registry"
	"github.com/grovellm/grove/internal/files/ggufkeys"
	"github.com/grovellm/grove/internal/model"
)

// The taps in a file come back from it. A file without any is refused with an error that names the key.
func TestTapsInFiles(t *testing.T) {
	read := func(set func(w *gguf.Writer)) (taps []int, layers int, err error) {
		w := new(gguf.Writer)
		w.Set("general.architecture", "head")
		set(w)
		var b bytes.Buffer
		if _, err := w.WriteTo(&b); err != nil {
			return nil, 0, err
		}
		f, err := Open(registry.Head{Name: "head", Data: b.Bytes()})
		if err != nil {
			return nil, 0, err
		}
		defer f.Close()
		return readTaps(ggufkeys.Of(f.GGUF), "head")
	}
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.SliceOfN(rapid.IntRange(0, 1<<20), 1, 9).Draw(t, "taps")
		layers := rapid.IntRange(0, 100).Draw(t, "layers")
		taps, of, err := read(func(w *gguf.Writer) { SetTaps(w, "head", want, layers) })
		if err != nil || !slices.Equal(taps, want) || of != layers {
			t.Fatalf("%v of %d came back as %v of %d, %v", want, layers, taps, of, err)
		}
	})
	for name, set := range map[string]func(w *gguf.Writer){
		"none": func(w *gguf.Writer) { SetTaps(w, "head", nil, 3) }, "no key": func(*gguf.Writer) {},
	} {
		if _, _, err := read(set); err == nil || !strings.Contains(err.Error(), "head.target_layers") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A head's taps are its file's. If the file has none, they are the default for the depth that the
// file or the target gives, and exist in the target. Padding hides the target's depth.
func TestTapsFor(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		target := &model.Config{Layers: rapid.IntRange(1, 90).Draw(t, "layers")}
		made := rapid.SampledFrom([]int{0, target.Layers, 7}).Draw(t, "made for")
		own := []int{rapid.IntRange(0, 99).Draw(t, "tap")}
		if taps, err := TapsFor(target, own, made, new(Base).DefaultTaps); err != nil || !slices.Equal(taps, own) {
			t.Fatalf("%v became %v, %v", own, taps, err)
		}
		depth := target.Layers
		if made > 0 {
			depth = made
		}
		taps, err := TapsFor(target, nil, made, new(Base).DefaultTaps)
		if err != nil || !slices.Equal(taps, new(Base).DefaultTaps(depth)) || CheckTaps(taps, depth) != nil {
			t.Fatalf("of %d layers %v, %v", depth, taps, err)
		}
		target.Padded = 1
		if _, err := TapsFor(target, nil, made, new(Base).DefaultTaps); made == 0 &&
			(err == nil || !strings.Contains(err.Error(), "--target")) || made > 0 && err != nil {
			t.Fatalf("padded, made for %d: %v", made, err)
		}
	})
}
