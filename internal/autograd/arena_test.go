package autograd

import (
	"testing"

	"pgregory.net/rapid"
)

// Whatever steps allocate, in whatever order, no two pieces of a step share memory, and the memory
// held between steps is little more than that of the largest step.
func TestArenaHoldsWhatAStepTakes(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		var a arena
		most := slabSize
		for range rapid.IntRange(1, 12).Draw(r, "steps") {
			a.reset()
			total := 0
			var pieces [][]float32
			for i := range rapid.IntRange(1, 6).Draw(r, "pieces") {
				n := rapid.OneOf(rapid.IntRange(0, 40), rapid.IntRange(0, slabSize+slabSize/4)).Draw(r, "n")
				if rapid.Bool().Draw(r, "scratch") {
					p := a.mark()
					scratch := a.take(n)
					for j := range scratch {
						scratch[j] = -1
					}
					a.release(p)
				}
				piece := a.take(n)
				if len(piece) != n {
					r.Fatalf("%d elements, want %d", len(piece), n)
				}
				if n > 0 {
					piece[0], piece[n-1] = float32(i), float32(i)
				}
				pieces = append(pieces, piece)
				total += n + 15
			}
			for i, p := range pieces {
				if n := len(p); n > 0 && (p[0] != float32(i) || p[n-1] != float32(i)) {
					r.Fatalf("piece %d of %d elements holds %g and %g", i, n, p[0], p[n-1])
				}
			}
			most = max(most, total)
		}
		a.reset()
		held := 0
		for _, s := range a.slabs {
			held += len(s)
		}
		if held > most+most/4 {
			r.Fatalf("%d elements are held, and no step took more than %d", held, most)
		}
	})
}
