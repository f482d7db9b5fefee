package main

import (
	"fmt"
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// The kernels of the K types (kquants.go of package gemm has their layout). A step is 256 elements: two groups of
// four blocks of 32.
const (
	kX      = 32 + 12
	kHalves = 32
	kSum    = 40
	kScales = 64  // bytes of scales before a packed block's elements
	kFactor = 128 // bytes of a factor of all outputs, unpacked
	kWords  = 128 // bytes of four elements of all outputs
	kLow    = 4 * kWords
	kBlocks = 4 // of a group of activations
	kSparse = 2 // prefetches of a block where many calls share them
	kRows   = 6 // AVX-512: as many as leave registers for sums of a block and of a group
	kKept   = 4 // of so many the whole sums are in registers too
)

// kQuant is a kernel of one of them.
type kQuant struct {
	kernel
	bits   int
	before int  // bytes of a packed block before its elements
	spread int  // AVX2: turns whose sums fit into 16 bits
	wide   bool // blocks were unpacked: [2][Panel]f32 of factors, [8][Panel][4]u8 of elements
	vnni   bool // AVX2 with AVX-VNNI
	table  bool // the elements are numbers of values in a table, which takes the place of the upper bits' mask

	inRegisters int // AVX2: of so many rows the sums of a group, or the whole ones of a block type, are in registers
}

// head is the bytes of a step's d and dmin, high those of a block's bits above the low four.
func (k *kQuant) head() int {
	if k.wide {
		return 0
	}
	return map[int]int{2: 128, 3: 64, 4: 128, 5: 128, 6: 64}[k.bits]
}

// few reports whether blocks have two low bits for each element instead of four.
func (k *kQuant) few() bool { return k.bits < 4 }

// halves reports whether the halves of a block have factors of their own.
func (k *kQuant) halves() bool { return k.few() || k.bits == 6 }

func (k *kQuant) low() int {
	if k.few() {
		return kLow / 2
	}
	return kLow
}

func (k *kQuant) high() int {
	if k.few() {
		return (k.bits - 2) * kWords
	}
	return (k.bits - 4) * kWords
}

// added is what is added to unpacked elements, from which kernels of Q6_K subtract 32: Q3_K's own is 4.
func (k *kQuant) added() Op {
	if k.bits == 3 {
		return zero28
	}
	return nil
}

// Constants of the types of two and three bits.
var zero28, fifteen, thirtySecond Mem

// A block is walked in turns: four elements of all outputs.
const kTurns = 8

func kQuants() {
	low := kMask("nibbles", 0x0f0f0f0f)
	fifth := kMask("fifthBits", 0x10101010)
	ones := kMask("words", 0x00010001)
	two := kMask("twoBits", 0x03030303)
	lows := map[int]Mem{2: two, 3: two, 4: low, 5: low, 6: low}
	uppers := map[int]Mem{3: kMask("thirdBits", 0x04040404), 5: fifth, 6: kMask("upperBits", 0x30303030)}
	zero28 = kMask("zero28", 0x1c1c1c1c)
	fifteen = kMask("fifteen", 15)
	thirtySecond = kMask("thirtySecond", math.Float32bits(1./32))
	for _, k := range []kQuant{
		{kernel: kernel{name: "mulQ2KAVX512", maxRows: kRows, zmm: true}, bits: 2},
		{kernel: kernel{name: "mulQ3KAVX512", maxRows: kRows, zmm: true}, bits: 3},
		{kernel: kernel{name: "mulQ4KAVX512", maxRows: kRows, zmm: true}, bits: 4},
		{kernel: kernel{name: "mulQ5KAVX512", maxRows: kRows, zmm: true}, bits: 5},
		{kernel: kernel{name: "mulQ6KAVX512", maxRows: kRows, zmm: true}, bits: 6},
		{kernel: kernel{name: "mulWide5KAVX512", maxRows: kRows, zmm: true}, bits: 5, wide: true},
		{kernel: kernel{name: "mulWide6KAVX512", maxRows: kRows, zmm: true}, bits: 6, wide: true},
	} {
		k.doc = k.describe("a")
		k.avx512(lows[k.bits], uppers[k.bits])
	}
	// Sums of so many products of two fit into 16 bits: 2·127·15·8, 2·127·31·4, 2·127·63·2, 2·127·127.
	for _, k := range []kQuant{
		{kernel: kernel{name: "mulQ2KAVX2", maxRows: 3}, inRegisters: 2, bits: 2, spread: 4},
		{kernel: kernel{name: "mulQ3KAVX2", maxRows: 3}, inRegisters: 2, bits: 3, spread: 4},
		{kernel: kernel{name: "mulQ4KAVX2", maxRows: 6}, inRegisters: 3, bits: 4, spread: 8},
		{kernel: kernel{name: "mulQ5KAVX2", maxRows: 3}, inRegisters: 2, bits: 5, spread: 4},
		{kernel: kernel{name: "mulQ6KAVX2", maxRows: 3}, inRegisters: 2, bits: 6, spread: 2},
		{kernel: kernel{name: "mulWide4KAVX2", maxRows: 6}, inRegisters: 3, bits: 4, spread: 8, wide: true},
		{kernel: kernel{name: "mulWide5KAVX2", maxRows: 3}, inRegisters: 2, bits: 5, spread: 4, wide: true},
		{kernel: kernel{name: "mulWide6KAVX2", maxRows: 3}, inRegisters: 2, bits: 6, spread: 2, wide: true},
		// elements up to 127
		{kernel: kernel{name: "mulWide7KAVX2", maxRows: 3}, inRegisters: 2, bits: 6, spread: 1, wide: true},
		{kernel: kernel{name: "mulQ2KAVXVNNI", maxRows: vnniRows}, inRegisters: vnniRows, bits: 2, vnni: true},
		{kernel: kernel{name: "mulQ3KAVXVNNI", maxRows: vnniRows}, inRegisters: vnniRows, bits: 3, vnni: true},
		{kernel: kernel{name: "mulQ4KAVXVNNI", maxRows: vnniRows}, inRegisters: vnniRows, bits: 4, vnni: true},
		{kernel: kernel{name: "mulQ5KAVXVNNI", maxRows: vnniRows}, inRegisters: vnniRows, bits: 5, vnni: true},
		{kernel: kernel{name: "mulQ6KAVXVNNI", maxRows: vnniRows}, inRegisters: vnniRows, bits: 6, vnni: true},
		{kernel: kernel{name: "mulWide4KAVXVNNI", maxRows: vnniRows}, inRegisters: vnniRows, bits: 4, vnni: true, wide: true},
		{kernel: kernel{name: "mulWide5KAVXVNNI", maxRows: vnniRows}, inRegisters: vnniRows, bits: 5, vnni: true, wide: true},
		{kernel: kernel{name: "mulWide6KAVXVNNI", maxRows: vnniRows}, inRegisters: vnniRows, bits: 6, vnni: true, wide: true},
	} {
		k.doc = k.describe("half a")
		k.avx2(lows[k.bits], uppers[k.bits], ones)
	}
	for _, k := range []kQuant{
		{bits: 3, kernel: kernel{name: "unpackQ3KAVX512", zmm: true}},
		{bits: 5, kernel: kernel{name: "unpackQ5KAVX512", zmm: true}},
		{bits: 6, kernel: kernel{name: "unpackQ6KAVX512", zmm: true}},
		{bits: 3, kernel: kernel{name: "unpackQ3KAVX2"}},
		{bits: 4, kernel: kernel{name: "unpackQ4KAVX2"}},
		{bits: 5, kernel: kernel{name: "unpackQ5KAVX2"}},
		{bits: 6, kernel: kernel{name: "unpackQ6KAVX2"}},
	} {
		k.before = kScales
		k.unpack(lows[k.bits], uppers[k.bits])
	}
	blockQuants(low, fifth, ones)
}

// describe sets what comes before a block's elements, and returns the kernel's doc.
func (k *kQuant) describe(part string) string {
	how := ""
	k.before = kScales
	if k.wide {
		k.before, how = 2*kFactor, ", unpacked,"
	}
	return fmt.Sprintf("%s multiplies %s Q%d_K panel%s by groups of int8.", k.name, part, k.bits, how)
}

func kMask(name string, bits uint32) Mem {
	m := GLOBL(name, RODATA|NOPTR)
	for i := range 16 {
		DATA(i*4, U32(bits))
	}
	return m
}

// valueTable is a table of values for lookUp, more by add.
func valueTable(name string, values [16]int8, add int) Mem {
	m := GLOBL(name, RODATA|NOPTR)
	for i := range 64 {
		DATA(i, U8(uint8(int(values[i%16])+add)))
	}
	return m
}

func (k *kQuant) block() int {
	if k.wide {
		return k.before + kTurns*kWords
	}
	return k.before + k.low() + k.high()
}

// unpack emits the function that makes bytes of a panel's elements, and f32 of its factors: for
// many rows that is less work than every few of them doing it anew.
func (k *kQuant) unpack(low, upper Mem) {
	function(k.name, "(dst, src *byte, n int)", fmt.Sprintf("%s unpacks n blocks of 256 of a Q%d_K panel.", k.name, k.bits))
	Load(Param("dst"), reg.RDI)
	Load(Param("src"), w)
	Load(Param("n"), n)
	dst, head := reg.RDI, tmp
	Label("step")
	MOVQ(w, head)
	ADDQ(imm(k.head()), w)
	MOVL(U32(2*kBlocks), left.As32())
	Label("block")
	for i := range 2 {
		for v := range kFactor / k.width() {
			k.factor(i, v, w, head, k.vec(0), k.vec(1))
			VMOVUPS(k.vec(0), Mem{Base: dst, Disp: i*kFactor + v*k.width()})
		}
	}
	k.unpackElements(dst, 2*kFactor, low, upper, k.added())
	DECQ(left)
	JNZ(LabelRef("block"))
	DECQ(n)
	JNZ(LabelRef("step"))
	VZEROUPPER()
	RET()
}

// copyBytes copies so many from the weights.
func copyBytes(dst reg.Register, size int) {
	for at := 0; at < size; at += 32 {
		VMOVDQU(Mem{Base: w, Disp: at}, Y(0))
		VMOVDQU(Y(0), Mem{Base: dst, Disp: at})
	}
}

// unpackElements makes bytes of a packed block's elements, more by what add has, after so many
// others, and goes on to the next.
func (k *kQuant) unpackElements(dst reg.Register, after int, low, upper, add Op) {
	for i := range kTurns {
		ws := []reg.VecPhysical{Y(0), Y(1), Y(2), Y(3)}
		if k.zmm {
			ws = []reg.VecPhysical{Z(0), Z(1)}
		}
		k.elements(i, low, upper, Y(4), ws...)
		for v, wv := range ws {
			if add != nil {
				VPADDB(add, wv, wv)
			}
			VMOVUPS(wv, Mem{Base: dst, Disp: after + i*kWords + v*k.width()})
		}
	}
	ADDQ(imm(k.block()), w)
	ADDQ(imm(after+kTurns*kWords), dst)
}

// elements loads turn i into neighbouring registers. t is for AVX2.
func (k *kQuant) elements(i int, low, upper Op, t reg.VecPhysical, ws ...reg.VecPhysical) {
	switch {
	case k.wide:
		for v, wv := range ws {
			at := Mem{Base: w, Disp: k.before + i*kWords + v*k.width()}
			if k.zmm {
				VMOVUPS(at, wv)
			} else {
				VMOVDQU(at, wv)
			}
		}
	case k.zmm:
		k.lower512(i, low, ws)
		if k.high() > 0 {
			k.upper512(i, upper, ws)
		}
		if k.table {
			lookUp(upper, ws)
		}
	default:
		k.lower2(i, low, ws)
		if k.high() > 0 {
			k.upper2(i, upper, t, ws)
		}
		if k.table {
			VMOVDQU(upper, t)
			lookUp(t, ws)
		}
	}
}

// lookUp makes numbers of values the values.
func lookUp(table Op, ws []reg.VecPhysical) {
	for _, wv := range ws {
		VPSHUFB(wv, table, wv)
	}
}

// lowerAt is where the low bits of turn i are.
func (k *kQuant) lowerAt(i int) (at, bit int) {
	if k.few() {
		return k.before + i/4*kWords, i % 4 * 2
	}
	return k.before + i%4*kWords, i / 4 * 4
}

// upperAt is where the bits of turn i above the low ones are, and how far left of their place: where negative, right.
func (k *kQuant) upperAt(i int) (at, left int) {
	switch k.bits {
	case 3:
		return k.before + k.low(), i - 2
	case 6:
		return k.before + kLow + i/4*kWords, i%4*2 - 4
	}
	return k.before + kLow, i - 4
}

// lower512 loads the low bits of turn i.
func (k *kQuant) lower512(i int, mask Op, ws []reg.VecPhysical) {
	at, bit := k.lowerAt(i)
	for v, wv := range ws {
		m := Mem{Base: w, Disp: at + v*64}
		if bit == 0 {
			VMOVUPS(m, wv)
		} else {
			VPSRLW(U8(bit), m, wv)
		}
		VPANDD(mask, wv, wv)
	}
}

// upper512 adds the bits above them.
func (k *kQuant) upper512(i int, mask Op, ws []reg.VecPhysical) {
	t := Z(29)
	at, left := k.upperAt(i)
	for v, wv := range ws {
		m := Mem{Base: w, Disp: at + v*64}
		switch {
		case left < 0:
			VPSLLW(U8(-left), m, t)
		case left == 0:
			VMOVUPS(m, t)
		default:
			VPSRLW(U8(left), m, t)
		}
		VPTERNLOGD(U8(0xf8), mask, t, wv) // wv | t & mask
	}
}

// lower2 is lower512 for registers of half the size.
func (k *kQuant) lower2(i int, mask Op, ws []reg.VecPhysical) {
	at, bit := k.lowerAt(i)
	for v, wv := range ws {
		VMOVDQU(Mem{Base: w, Disp: at + v*32}, wv)
		if bit > 0 {
			VPSRLW(U8(bit), wv, wv)
		}
		VPAND(mask, wv, wv)
	}
}

// upper2 is upper512 for them.
func (k *kQuant) upper2(i int, mask Op, t reg.VecPhysical, ws []reg.VecPhysical) {
	at, left := k.upperAt(i)
	for v, wv := range ws {
		VMOVDQU(Mem{Base: w, Disp: at + v*32}, t)
		switch {
		case left < 0:
			VPSLLW(U8(-left), t, t)
		case left > 0:
			VPSRLW(U8(left), t, t)
		}
		VPAND(mask, t, t)
		VPOR(t, wv, wv)
	}
}

// factor is the i-th of a block, of the v-th vector of outputs: the product of its integers at
// scales and of the halves at head. Q2_K has four: scales of both halves, then minimums, which
// are divided by 32 because kHalves is −32·Σ.
func (k *kQuant) factor(i, v int, scales, head reg.Register, to, t reg.VecPhysical) {
	if k.wide {
		VMOVUPS(Mem{Base: scales, Disp: i*kFactor + v*k.width()}, to)
		return
	}
	at, half := Mem{Base: scales, Disp: i*32 + v*k.width()/4}, Mem{Base: head, Disp: v * k.width() / 2}
	switch k.bits {
	case 2:
		at.Disp -= i / 2 * 64
		half.Disp += i / 2 * 64 // dmin
		VPMOVZXBD(at, to)
		switch {
		case i > 1:
			VPSRLD(U8(4), to, to)
		case k.zmm:
			VPANDD(fifteen, to, to)
		default:
			VPAND(fifteen, to, to)
		}
	case 3, 6:
		VPMOVSXBD(at, to)
	default:
		VPMOVZXBD(at, to)
		half.Disp += i * 64 // dmin
	}
	VCVTDQ2PS(to, to)
	VCVTPH2PS(half, t)
	VMULPS(t, to, to)
	if k.bits == 2 && i > 1 {
		VMULPS(thirtySecond, to, to)
	}
}

// scale adds the sums of a block, or of its half h, to the parts.
func (k *kQuant) scale(r, h int, scales, head reg.Register, to, t reg.VecPhysical, sum,
	part func(row, v int) reg.VecPhysical) {
	for v := range vecs {
		k.factor(h, v, scales, head, to, t)
		for row := range r {
			VCVTDQ2PS(sum(row, v), sum(row, v))
			VFMADD231PS(to, sum(row, v), part(row, v))
		}
	}
}
