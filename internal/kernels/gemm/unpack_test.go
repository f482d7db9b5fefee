package gemm

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// What was packed comes back byte for byte, whatever the bytes mean.
func TestUnpackRow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		typ := Type(rapid.IntRange(0, int(NumTypes)-1).Draw(t, "type"))
		out, in := rapid.IntRange(1, 70).Draw(t, "out"), rapid.IntRange(1, 5).Draw(t, "in")*typ.whole()
		m, err := New(typ, out, in)
		if err != nil {
			t.Fatal(err)
		}
		src := make([]byte, out*m.RowBytes())
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "bytes"), 1))
		for i := range src {
			src[i] = byte(rng.Uint32())
		}
		m.PackPanels(src, 0, m.Panels())
		row := make([]byte, m.RowBytes())
		for i := range out {
			m.UnpackRow(row, i)
			if want := src[i*len(row):][:len(row)]; !bytes.Equal(row, want) {
				t.Fatalf("%v, row %d: %x, packed %x", typ, i, row, want)
			}
		}
	})
}
