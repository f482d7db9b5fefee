package traintest_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/grovellm/grove/internal/nn"
	"github.com/grovellm/grove/internal/testing/cases"
	"github.com/grovellm/grove/internal/train"
	"github.com/grovellm/grove/tensor"
)

// With features on disk, a head reads the same from its target, to the bit: when they are computed
// and stored, when they are read, with a head on other layers, after damage, and without space. The
// folder stays within its limit.
func TestFeatures(t *testing.T) {
	s := tinyShapes(t)[0]
	m := randomTarget(t, s, tensor.Q8_0)
	cases.Check(t, 25, func(r *rapid.T) {
		dir, err := os.MkdirTemp("", "features")
		if err != nil {
			r.Fatal(err)
		}
		defer os.RemoveAll(dir)
		limit := rapid.Int64Range(0, 40000).Draw(r, "limit")
		token := rapid.Int32Range(0, int32(m.Config.Vocab-1))
		for range 3 {
			features, err := train.OpenFeatures(dir, limit, func(string) {})
			if err != nil {
				r.Fatal(err)
			}
			layers := rapid.SliceOfNDistinct(rapid.IntRange(0, s.Layers), 1, s.Layers, rapid.ID).Draw(r, "layers")
			plain, kept := train.NewFrozen(m, layers), train.NewFrozen(m, layers)
			kept.Features = features
			length := rapid.IntRange(1, 4).Draw(r, "length")
			var texts [][]int32
			for range rapid.IntRange(1, 3).Draw(r, "texts") {
				texts = append(texts, rapid.SliceOfN(token, length, length).Draw(r, "text"))
			}
			for range 3 {
				want, got := clone(plain.Read(texts)), clone(kept.Read(texts))
				if !slices.Equal(want, got) || !slices.Equal(clone(plain.Taps), clone(kept.Taps)) {
					r.Fatal("with features on disk the rows are others")
				}
				damage(r, dir)
			}
			if n := size(r, dir); n > limit {
				r.Fatalf("%d bytes of %d", n, limit)
			}
		}
	})
}

// Existing features are read: after an unnoticed change of the target's weights, a
// head gets the old rows.
func TestFeaturesAreRead(t *testing.T) {
	s := tinyShapes(t)[0]
	m := randomTarget(t, s, tensor.F32)
	features, err := train.OpenFeatures(t.TempDir(), 1<<20, func(s string) { t.Log(s) })
	if err != nil {
		t.Fatal(err)
	}
	f := train.NewFrozen(m, []int{1})
	f.Features = features
	texts := [][]int32{{1, 2, 3}}
	first := clone(f.Read(texts))
	for i := range m.Blocks {
		m.Blocks[i].AttnNorm.Weight = make([]float32, s.Hidden)
	}
	if !slices.Equal(first, clone(f.Read(texts))) {
		t.Error("the rows were computed again")
	}
}

func clone(m nn.Mat) (all []float32) {
	for i := range m.Rows {
		all = append(all, m.Row(i)...)
	}
	return all
}

// damage cuts or changes one file, or none.
func damage(r *rapid.T, dir string) {
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(files) == 0 || rapid.Bool().Draw(r, "whole") {
		return
	}
	file := rapid.SampledFrom(files).Draw(r, "file")
	b, err := os.ReadFile(file)
	if err != nil {
		r.Fatal(err)
	}
	if len(b) > 0 && rapid.Bool().Draw(r, "changed") {
		b[rapid.IntRange(0, len(b)-1).Draw(r, "at")] ^= 1 << rapid.IntRange(0, 7).Draw(r, "bit")
	} else {
		b = b[:rapid.IntRange(0, len(b)).Draw(r, "cut")]
	}
	if err := os.WriteFile(file, b, 0o666); err != nil {
		r.Fatal(err)
	}
}

func size(r *rapid.T, dir string) (n int64) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		r.Fatal(err)
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			r.Fatal(err)
		}
		n += info.Size()
	}
	return n
}
