package gemm

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/grovellm/grove/internal/kernels/cpu"
	"pgregory.net/rapid"
)

// Rows that are quantised and stored as outputs of a panel are there what they are quantised to,
// within a step of what they were, at every level the same; and they stay when other outputs are
// stored or copied.
func TestLanesHoldTheirRows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 7))
		blocks := rapid.IntRange(1, 9).Draw(t, "blocks")
		n, scale := blocks*block, math.Ldexp(1, rapid.IntRange(-10, 10).Draw(t, "scale"))
		panel := make([]byte, blocks*BlockBytes)
		rows := make([][]float32, Panel)
		store := func(lane int) {
			v := make([]float32, n)
			for i := range v {
				v[i] = float32(r.NormFloat64() * scale)
			}
			var held []float32
			for _, l := range cpu.Levels() {
				restore := cpu.Use(l)
				b := QuantizeBlocks(make([]byte, QuantizedBytes(n)), v)
				restore()
				b.StoreLane(panel, lane)
				got := make([]float32, n)
				LoadLane(got, panel, lane)
				for i, x := range got {
					if held != nil && x != held[i] {
						t.Fatalf("element %d is %g at %v, %g portably", i, x, l, held[i])
					}
					top := 0.0
					for _, y := range v[i/block*block:][:block] {
						top = max(top, math.Abs(float64(y)))
					}
					if math.Abs(float64(x-v[i])) > top/126 {
						t.Fatalf("element %d, %g of at most %g, is %g", i, v[i], top, x)
					}
				}
				held = got
			}
			rows[lane] = held
		}
		for range rapid.IntRange(1, 60).Draw(t, "rows") {
			lane := r.IntN(Panel)
			if from := r.IntN(Panel); rows[from] != nil && r.IntN(3) == 0 {
				CopyLane(panel, lane, panel, from)
				rows[lane] = rows[from]
			} else {
				store(lane)
			}
		}
		for lane, want := range rows {
			got := make([]float32, len(want))
			LoadLane(got, panel, lane)
			for i := range want {
				if got[i] != want[i] {
					t.Fatalf("output %d, element %d is %g, want %g", lane, i, got[i], want[i])
				}
			}
		}
	})
}
