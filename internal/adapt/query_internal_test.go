package adapt

import (
	"slices"
	"testing"

	"github.com/grovellm/grove/internal/drafters/learn"
	"pgregory.net/rapid"
)

// keep keeps the end of a list: as much as fits, at least one text, and no pointer to the others.
func TestKeep(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var texts []*learn.Example
		for _, n := range rapid.SliceOfN(rapid.IntRange(0, 300), 0, 20).Draw(t, "sizes") {
			texts = append(texts, &learn.Example{Taps: make([]float32, n)})
		}
		share := rapid.IntRange(0, 3000).Draw(t, "share")
		a := &Adapter{o: Options{Memory: share * textLists}}
		all := slices.Clone(texts)
		got := a.keep(texts)
		bytes := func(list []*learn.Example) (n int) {
			for _, l := range list {
				n += l.Bytes()
			}
			return n
		}
		n := len(got)
		if !slices.Equal(got, all[len(all)-n:]) {
			t.Fatalf("%d of %d texts are kept, and not the last", n, len(all))
		}
		if n > 1 && bytes(got) > share || n == 0 && len(all) > 0 {
			t.Fatalf("%d texts of %d bytes are kept in %d", n, bytes(got), share)
		}
		if n < len(all) && bytes(all[len(all)-n-1:]) <= share {
			t.Fatalf("%d texts are kept, and another has room", n)
		}
		for _, l := range texts[n:cap(texts)] {
			if l != nil {
				t.Fatal("a text that was dropped is still pointed to")
			}
		}
	})
}
