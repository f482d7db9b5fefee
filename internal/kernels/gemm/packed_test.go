package gemm

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/grovellm/grove/internal/kernels/cpu"
	"github.com/grovellm/grove/internal/kernels/num"
)

// A matrix packed from its transpose is the one packed from its file encoding, and its products
// with another are those of Mul, or go on from there; at every level.
func TestPacked(t *testing.T) {
	levels(t, func(t *testing.T, l cpu.Level) {
		r := rand.New(rand.NewPCG(uint64(l), 7))
		for range 150 {
			typ := []Type{F32, BF16}[r.IntN(2)]
			wild := r.IntN(2) == 0
			out := 1 + r.IntN(100)
			in := 1 + r.IntN(200)
			n := 1 + r.IntN(100)
			m, src := transposedPack(t, r, typ, out, in, wild)
			a, rows := transposedPack(t, r, typ, n, in, wild)
			stride := out + r.IntN(9)
			const guard = 12345
			dst := make([]float32, n*stride)
			add := r.IntN(2) == 0
			for i := range dst {
				dst[i] = guard
				if add {
					dst[i] = value(r, wild)
				}
			}
			old := append([]float32(nil), dst...)
			a0, p0 := r.IntN(a.Panels()), r.IntN(m.Panels())
			a1, p1 := a0+1+r.IntN(a.Panels()-a0), p0+1+r.IntN(m.Panels()-p0)
			m.MulPacked(dst, stride, a, a0, a1, p0, p1, add)
			for i, got := range dst {
				row, o := i/stride, i%stride
				want := old[i]
				if row >= a0*Panel && row < a1*Panel && o >= p0*Panel && o < min(p1*Panel, out) {
					start := float32(0)
					if add {
						start = old[i]
					}
					want = chain(typ, src[o*in:][:in], rows[row*in:][:in], start)
				}
				if !same(got, want) {
					t.Fatalf("%v %d×%d by %d rows, add %v: row %d output %d is %x, want %x", typ, out, in, n, add, row, o, got, want)
				}
			}
		}
	})
}

// A matrix in another shape has the memory that it had, where that is enough, and no more where it is not.
func TestResize(t *testing.T) {
	m, most := Empty(BF16), 0
	for _, shape := range [][2]int{{70, 90}, {33, 40}, {1, 3}, {90, 70}, {200, 90}, {70, 90}, {90, 200}} {
		before := m.data[:cap(m.data)]
		if err := m.Resize(shape[0], shape[1]); err != nil {
			t.Fatal(err)
		}
		size := PackedBytes(BF16, shape[0], shape[1])
		if m.Out() != shape[0] || m.In() != shape[1] || m.Bytes() != size {
			t.Errorf("%d × %d of %d bytes, want %v of %d", m.Out(), m.In(), m.Bytes(), shape, size)
		}
		if size <= len(before) && &m.data[0] != &before[0] {
			t.Errorf("%v has other memory", shape)
		}
		most = max(most, size)
		if cap(m.data) != most {
			t.Errorf("%v holds %d bytes, want %d", shape, cap(m.data), most)
		}
	}
	if m.Resize(0, 3) == nil {
		t.Error("a matrix without outputs is no error")
	}
}

// transposedPack draws a matrix and packs it from its transpose. It returns its elements too, as packed.
func transposedPack(t *testing.T, r *rand.Rand, typ Type, out, in int, wild bool) (*Matrix, []float32) {
	t.Helper()
	stride := out + r.IntN(7)
	src := make([]float32, in*stride)
	for i := range src {
		src[i] = value(r, wild)
	}
	m, err := New(typ, out, in)
	if err != nil {
		t.Fatal(err)
	}
	mid := m.Panels() / 2
	m.PackTransposed(src, stride, 0, mid)
	m.PackTransposed(src, stride, mid, m.Panels())
	elements, file := make([]float32, out*in), make([]byte, 0, out*in*4)
	for o := range out {
		for k := range in {
			v := src[k*stride+o]
			if typ == BF16 {
				h := num.ToBF16(flush(v))
				v = num.BF16(h)
				file = binary.LittleEndian.AppendUint16(file, h)
			} else {
				file = binary.LittleEndian.AppendUint32(file, math.Float32bits(v))
			}
			elements[o*in+k] = v
		}
	}
	want := pack(t, typ, out, in, file)
	if string(want.data) != string(m.data) {
		t.Fatalf("%v %d×%d: packed from its transpose it has other bytes", typ, out, in)
	}
	return m, elements
}

// chain is the definition of an element that starts from some value.
func chain(t Type, w, x []float32, acc float32) float32 {
	if t == F32 {
		for k, v := range x {
			acc = num.FMA(w[k], v, acc)
		}
		return acc
	}
	for k := 0; k < len(x); k += 2 {
		if k+1 < len(x) {
			acc = fmaFlushBig(w[k+1], x[k+1], acc)
		} else {
			acc = fmaFlushBig(0, 0, acc)
		}
		acc = fmaFlushBig(w[k], x[k], acc)
	}
	return acc
}
