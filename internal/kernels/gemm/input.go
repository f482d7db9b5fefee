package gemm

import (
	"encoding/binary"
	"fmt"
	"math"
	"unsafe"

	"github.com/grovellm/grove/internal/kernels/cpu"
	"github.com/grovellm/grove/internal/kernels/num"
)

// Input holds rows of activations in the form that the kernels of a weight type read. A row is
//
//	F32, F16  [K]f32
//	BF16      [K/2][2]bf16 for VDPBF16PS, else [K]f32 already rounded to bf16; K padded to even
//	Q8_0      blocks { [32]int8; int32 = −128·Σ of them; f32 scale; f32 = −Σ·scale }
//	K types   groups { 4 × { [32]int8; int32 = −32·Σ of the first 16; int32 = −32·Σ of the others; f32 = −Σ }; f32 scale }
//	IQ1_S     the same with −64·Σ; so for all types of package codebook
//
// with rows an odd number of cache lines apart, so that eight rows at one k never compete for the
// same cache set.
type Input struct {
	t      Type
	level  cpu.Level // the level at Reset, whose kernels will read the rows
	pairs  bool      // BF16: pairs of bf16
	n, in  int
	stride int // bytes between rows
	buf    []byte
}

// Reset makes x hold n rows of in activations for products with matrices of type t. It allocates
// only when the rows need more memory than ever before.
func (x *Input) Reset(t Type, n, in int) {
	if t >= NumTypes || n < 0 || in < 0 || in%t.whole() != 0 {
		panic(fmt.Sprintf("gemm: input of %d rows × %d for %v", n, in, t))
	}
	t = t.Activations()
	l := cpu.Active()
	x.reset(t, n, in, l, t == BF16 && pairsAt(l))
}

func (x *Input) reset(t Type, n, in int, l cpu.Level, pairs bool) {
	x.t = t
	x.n = n
	x.in = in
	x.level = l
	x.pairs = pairs
	size := in * 4
	switch {
	case pairs:
		size = (in + 1) / 2 * 4
	case t == BF16:
		size = (in + 1) / 2 * 8
	case t.integer():
		size = quantizedBytes(t, in)
	}
	x.stride = (size+63)&^63 | 64
	if need := n * x.stride; len(x.buf) < need {
		need += need / 4 // rows that have grown will grow again
		b := make([]byte, need+63)
		off := int(-uintptr(unsafe.Pointer(unsafe.SliceData(b))) & 63)
		x.buf = b[off : off+need]
	}
}

// Rows is the number of rows passed to Reset.
func (x *Input) Rows() int { return x.n }

// SetRow converts v to row i. Rows may be set in parallel.
func (x *Input) SetRow(i int, v []float32) {
	if i < 0 || i >= x.n || len(v) != x.in {
		panic(fmt.Sprintf("gemm: row %d of %d elements for an input of %d rows × %d", i, len(v), x.n, x.in))
	}
	x.set(x.buf[i*x.stride:][:x.stride], v)
}

// SetWholeRow is SetRow with one scale for all groups of an integer type, the row's largest magnitude / 127. It is
// exact for rows that count such steps.
func (x *Input) SetWholeRow(i int, v []float32) {
	if !x.t.integer() {
		x.SetRow(i, v)
		return
	}
	row := x.buf[i*x.stride:][:quantizedBytes(x.t, x.in)]
	scale, inv := groupScale(v)
	group := block
	if x.t >= Q4_K {
		group = Group
	}
	for to := row; len(v) > 0; v = v[group:] {
		to = writeGroup(to, v[:group], x.t, scale, inv, 1)
	}
	if x.t.coded() {
		doubleHalves(row)
	}
}

// setPanel copies the outputs of panel q of m, an F32 or BF16 matrix with as many inputs, to the
// first rows: like SetRow for each, but one cache line of a row at a time.
func (x *Input) setPanel(m *Matrix, q int) {
	ne, le := binary.NativeEndian, binary.LittleEndian
	panel := m.data[q*m.panel:][:m.panel]
	size := 4 // bytes of a row in one step of the panel
	if x.t == BF16 && !x.pairs {
		size = 8
	}
	line := 64 / size
	for from, n := 0, len(panel)/(Panel*4); from < n; from += line {
		steps := panel[from*Panel*4 : min(from+line, n)*Panel*4]
		for i := range min(Panel, m.out-q*Panel) {
			row := x.buf[i*x.stride+from*size:][:len(steps)/Panel/4*size]
			for at := i * 4; at < len(steps); at += Panel * 4 {
				v := le.Uint32(steps[at:])
				if size == 8 {
					ne.PutUint32(row, v<<16)
					ne.PutUint32(row[4:], v&^0xffff)
				} else {
					ne.PutUint32(row, v)
				}
				row = row[size:]
			}
		}
	}
}

// CopyRow copies row `from` to row `to`.
func (x *Input) CopyRow(to, from int) {
	copy(x.buf[to*x.stride:][:x.stride], x.buf[from*x.stride:])
}

// SetPart is SetRow for the elements from at on, a multiple of Group. v must have a multiple of
// Group elements or reach the row's end.
func (x *Input) SetPart(i, at int, v []float32) {
	if end := at + len(v); i < 0 || i >= x.n || at < 0 || end > x.in || at%Group != 0 || end%Group != 0 && end != x.in {
		panic(fmt.Sprintf("gemm: elements [%d, %d) of row %d for an input of %d rows × %d", at, end, i, x.n, x.in))
	}
	off := at / Group * kGroup // a step of the K types is two groups
	if x.t < Q4_K {
		off = xOffset(x.t, at/stepK[x.t], x.pairs)
	}
	x.set(x.buf[i*x.stride:][off:x.stride], v)
}

// set converts v into the beginning of row.
func (x *Input) set(row []byte, v []float32) {
	ne := binary.NativeEndian
	switch {
	case len(v) == 0:
	case x.t.integer():
		if !quantizeRowAsm(row, v, x.t, x.level) {
			quantizeRow(row, v, x.t)
		}
		if x.t.coded() {
			doubleHalves(row[:quantizedBytes(x.t, len(v))])
		}
	case x.t != BF16:
		copy(row, unsafe.Slice((*byte)(unsafe.Pointer(&v[0])), len(v)*4))
	case x.pairs:
		for k := pairRow(row, v); k < len(v); k++ {
			ne.PutUint16(row[k*2:], toBF16(v[k]))
		}
		if len(v)%2 == 1 {
			ne.PutUint16(row[len(v)*2:], 0)
		}
	default:
		for k := roundRow(row, v, x.level); k < len(v); k++ {
			ne.PutUint32(row[k*4:], uint32(toBF16(v[k]))<<16)
		}
		if len(v)%2 == 1 {
			ne.PutUint32(row[len(v)*4:], 0)
		}
	}
}

// toBF16 rounds as VCVTNEPS2BF16 does: a subnormal f32 is zero before rounding.
func toBF16(f float32) uint16 {
	if u := math.Float32bits(f); u&0x7f800000 == 0 {
		return uint16(u>>16) & 0x8000
	}
	return num.ToBF16(f)
}

// quantizeRow writes v as groups of int8. A group's scale is its largest magnitude / 127; that of
// Q8_0 is fitted (fitScale). A group with an infinity or a NaN gets the scale NaN, so that the loss
// is visible; one so small that 127/max overflows becomes zero.
func quantizeRow(row []byte, v []float32, t Type) {
	group := block
	if t >= Q4_K {
		group = Group
	}
	for ; len(v) > 0; v = v[group:] {
		g, narrow := v[:group], float32(1)
		scale, inv := groupScale(g)
		if t == Q8_0 && inv != 0 {
			scale, narrow = fitScale(g, scale, inv)
		}
		row = writeGroup(row, g, t, scale, inv, narrow)
	}
}

// groupScale returns the largest magnitude / 127, and the inverse; with an inverse of 0, all integers are 0.
func groupScale(g []float32) (scale, inv float32) {
	var top uint32
	for _, f := range g {
		top = max(top, math.Float32bits(f)&0x7fffffff)
	}
	switch {
	case top >= 0x7f800000:
		return float32(math.NaN()), 0
	case top < quantFloor:
		return 0, 0
	}
	return math.Float32frombits(top) / 127, 127 / math.Float32frombits(top)
}

// writeGroup writes a group of int8, and returns the rest of the row.
func writeGroup(row []byte, g []float32, t Type, scale, inv, narrow float32) []byte {
	ne := binary.NativeEndian
	size := xBlock
	if t >= Q4_K {
		size = kX
	}
	for ; len(g) > 0; g, row = g[block:], row[size:] {
		var sums [2]int32 // of the halves
		for i, f := range g[:block] {
			q := int8(0)
			if inv != 0 {
				q = int8(math.RoundToEven(float64(float32(float32(f*inv) * narrow))))
			}
			row[i] = byte(q)
			sums[i/(block/2)] += int32(q)
		}
		sum := sums[0] + sums[1]
		if t == Q8_0 {
			ne.PutUint32(row[block:], uint32(-128*sum))
			ne.PutUint32(row[xScale:], math.Float32bits(scale))
			ne.PutUint32(row[xSum:], math.Float32bits(float32(float32(-sum)*scale)))
			continue
		}
		ne.PutUint32(row[kHalves:], uint32(-32*sums[0]))
		ne.PutUint32(row[kHalves+4:], uint32(-32*sums[1]))
		ne.PutUint32(row[kSum:], math.Float32bits(float32(-sum)))
	}
	if t >= Q4_K {
		ne.PutUint32(row, math.Float32bits(scale))
		row = row[4:]
	}
	return row
}

// fitScale chooses the integers of a block and their scale. The integers count steps of the largest
// magnitude / 127 or / 126, whichever fit v better: for integers q, the scale s = Σvq / Σq² leaves
// the least square of v − s·q, which is the smaller, the larger (Σvq)² / Σq² is. It returns the
// scale and the factor by which v·inv is multiplied before rounding. Sums are taken in sixteen
// lanes, element i in lane i%16, folded in halves, then in pairs. Compared with using only the
// first steps, the error is 5 % smaller for Gaussian activations.
func fitScale(v []float32, scale, inv float32) (fitted, narrow float32) {
	var sums [2][2]float32 // for steps of / 127 and of / 126: Σvq, in units of scale, and Σq²
	for c, narrow := range [2]float32{1, narrower} {
		var vq, qq [16]float32
		for i, f := range v {
			x := float32(f * inv)
			q := float32(math.RoundToEven(float64(float32(x * narrow))))
			vq[i%16], qq[i%16] = num.FMA(x, q, vq[i%16]), num.FMA(q, q, qq[i%16])
		}
		sums[c] = [2]float32{fold16(&vq), fold16(&qq)}
	}
	a, b := sums[0], sums[1]
	if float32(float32(b[0]*b[0])*a[1]) > float32(float32(a[0]*a[0])*b[1]) {
		return scale * float32(b[0]/b[1]), narrower
	}
	return scale * float32(a[0]/a[1]), 1
}

const narrower = float32(126) / 127

func fold16(v *[16]float32) float32 {
	for i := range 8 {
		v[i] += v[i+8]
	}
	return ((v[0] + v[1]) + (v[2] + v[3])) + ((v[4] + v[5]) + (v[6] + v[7]))
}

// quantFloor is the bits of 2^-100: well above where 127/x overflows.
const quantFloor = (127 - 100) << 23
