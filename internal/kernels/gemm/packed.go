package gemm

import (
	"encoding/binary"
	"fmt"
	"runtime"
	"unsafe"

	"github.com/grovellm/grove/internal/kernels/cpu"
)

// Training multiplies matrices that change with every step, in two orientations that passes do not
// have. Where the shared dimension is that of the rows (dW = dyᵀ·x), both operands are packed from
// rows as they lie in memory: a panel is 32 columns of them, and no element moves.

// PackTransposed packs the outputs of panels [p0, p1) of an F32 or BF16 matrix from its transpose in f32: in × out,
// rows stride apart, W[o,k] = src[k·stride+o]. BF16 rounds as SetRow does. Disjoint ranges may be packed in parallel.
func (m *Matrix) PackTransposed(src []float32, stride, p0, p1 int) {
	if m.t != F32 && m.t != BF16 {
		panic(fmt.Sprintf("gemm: %v cannot be packed from f32", m.t))
	}
	if need := (m.in-1)*stride + m.out; stride < m.out && m.in > 1 || len(src) < need {
		panic(fmt.Sprintf("gemm: %d elements with stride %d are no transpose of %d × %d", len(src), stride, m.out, m.in))
	}
	for p := p0; p < p1; p++ {
		dst := m.data[p*m.panel : (p+1)*m.panel]
		columns := src[p*Panel:]
		width := min(Panel, m.out-p*Panel)
		if m.t == F32 {
			f := unsafe.Slice((*float32)(unsafe.Pointer(&dst[0])), m.in*Panel)
			for k := range m.in {
				copy(f[k*Panel:k*Panel+width], columns[k*stride:])
			}
			continue
		}
		k := 0
		if width == Panel {
			k = packPairs(dst, columns, stride, m.in)
		}
		for ; k < m.in; k += 2 {
			step := dst[k/2*Panel*4:][:Panel*4]
			for o := range width {
				lo, hi := toBF16(columns[k*stride+o]), uint16(0)
				if k+1 < m.in {
					hi = toBF16(columns[(k+1)*stride+o])
				}
				binary.LittleEndian.PutUint32(step[o*4:], uint32(lo)|uint32(hi)<<16)
			}
		}
	}
	runtime.KeepAlive(m)
}

// MulPacked computes dst[i·stride + o] = Σₖ a[i,k]·m[o,k] for outputs i of a's panels [a0, a1) and o of m's
// panels [p0, p1); with add, each sum starts from the value in dst. The chain is that of Mul. a and m must have
// the same type, F32 or BF16, and the same number of inputs. Disjoint parts of dst may be computed in parallel.
func (m *Matrix) MulPacked(dst []float32, stride int, a *Matrix, a0, a1, p0, p1 int, add bool) {
	if m.t != a.t || m.in != a.in || m.t != F32 && m.t != BF16 {
		panic(fmt.Sprintf("gemm: product of %d %v and %d %v", m.in, m.t, a.in, a.t))
	}
	if p0 < 0 || p1 > m.Panels() || a0 < 0 || a1 > a.Panels() {
		panic(fmt.Sprintf("gemm: panels [%d, %d) of %d and [%d, %d) of %d", p0, p1, m.Panels(), a0, a1, a.Panels()))
	}
	if a0 >= a1 || p0 >= p1 {
		return
	}
	if end := min(p1*Panel, m.out); stride < end || len(dst) < (min(a1*Panel, a.out)-1)*stride+end {
		panic(fmt.Sprintf("gemm: %d results with stride %d cannot hold %d rows of outputs up to %d", len(dst), stride,
			min(a1*Panel, a.out), end))
	}
	b := packedProduct{m: m, dst: dst, stride: stride, add: add}
	l := cpu.Active()
	e, native := packedEngine(m.t, l)
	var x Input
	if !native {
		x.Reset(m.t, Panel, m.in)
		e, b.asm = engineFor(m.t, l, x.pairs)
	}
	for q := a0; q < a1; q++ {
		b.row, b.rows = q*Panel, min(Panel, a.out-q*Panel)
		rows, apart := unsafe.Pointer(&a.data[q*a.panel]), uintptr(4)
		if !native {
			x.setPanel(a, q)
			rows, apart = unsafe.Pointer(&x.buf[0]), uintptr(x.stride)
		}
		for p := p0; p < p1; p++ {
			if native || b.asm {
				b.tiled(&e, p, rows, apart)
			} else {
				b.portable(p, &x)
			}
		}
	}
	runtime.KeepAlive(m)
	runtime.KeepAlive(a)
}

// packedProduct is a panel's worth of rows of a product of two packed matrices.
type packedProduct struct {
	m         *Matrix
	dst       []float32
	stride    int
	add       bool
	asm       bool
	row, rows int
	acc       [Panel * Panel]float32
}

// load and store move the block's part of dst, outputs of panel p, to the accumulators and back.
func (b *packedProduct) load(p int) {
	for i := range b.rows {
		o := p * Panel
		clear(b.acc[i*Panel : (i+1)*Panel])
		if b.add {
			copy(b.acc[i*Panel:(i+1)*Panel], b.dst[(b.row+i)*b.stride+o:(b.row+i)*b.stride+min(o+Panel, b.m.out)])
		}
	}
}

func (b *packedProduct) store(p int) {
	for i := range b.rows {
		o := p * Panel
		copy(b.dst[(b.row+i)*b.stride+o:(b.row+i)*b.stride+min(o+Panel, b.m.out)], b.acc[i*Panel:])
	}
}

func (b *packedProduct) tiled(e *engine, p int, rows unsafe.Pointer, apart uintptr) {
	m := b.m
	w := unsafe.Pointer(&m.data[p*m.panel])
	t := tile{xs: apart, n: uintptr(steps(m.t, m.in)), outs: Panel * 4, pf: uintptr(w)}
	t.first = 1
	if b.add {
		t.first = 0
		b.load(p)
	}
	for r := 0; r < b.rows; r += e.rows {
		t.rows = uintptr(min(e.rows, b.rows-r))
		t.x = unsafe.Add(rows, uintptr(r)*apart)
		for part := range Panel / e.lanes {
			t.acc = unsafe.Pointer(&b.acc[r*Panel+part*e.lanes])
			t.out = t.acc
			t.w = unsafe.Add(w, part*partBytes(m.t, e.lanes))
			e.runBlocks(&t, 1)
		}
	}
	b.store(p)
}

func (b *packedProduct) portable(p int, x *Input) {
	m := b.m
	b.load(p)
	w := m.data[p*m.panel:][:m.panel]
	for i := range b.rows {
		acc := (*[Panel]float32)(b.acc[i*Panel:])
		row := x.buf[i*x.stride:][:x.stride]
		if m.t == F32 {
			rowF32(acc, w, row)
		} else {
			rowBF16(acc, w, row, x.pairs)
		}
	}
	b.store(p)
}
