//go:build !purego

package gemm

import (
	"testing"

	"github.com/grovellm/grove/internal/cpu"
)

// Where the processor has the level, every type runs its kernels, and every kernel is some number of rows'. Otherwise every
// other test here passes by testing less.
func TestEveryKernelIsReached(t *testing.T) {
	if cpu.Best() < cpu.NEON {
		t.Skip("this processor has no SDOT")
	}
	reached := map[int]bool{}
	for _, typ := range allTypes {
		for n := 1; n <= 20; n++ {
			e, ok := engineFor(typ, cpu.NEON, false)
			if !ok {
				t.Fatalf("%v has no kernel", typ)
			}
			if e.forRows(n); e.wide != 0 && n >= e.many {
				e = engineOf(e.wide)
			}
			reached[e.id] = true
			if e.lanes == 0 || Panel%e.lanes != 0 || e.rows == 0 || e.lanes < Panel && n == 1 {
				t.Errorf("%v, %d rows: kernel %d takes %d outputs of %d rows", typ, n, e.id, e.lanes, e.rows)
			}
		}
	}
	for _, typ := range []Type{F32, BF16} {
		e, ok := packedEngine(typ, cpu.NEON)
		if reached[e.id] = true; !ok {
			t.Errorf("packed %v has no kernel", typ)
		}
	}
	for id := 1; id < len(engines); id++ {
		if !reached[id] {
			t.Errorf("nothing calls kernel %d", id)
		}
	}
}
