package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// The kernels of the types whose blocks are 32 elements (blocks.go of package gemm has their
// layout). A step is a block; a row of activations is blocks { 32 int8, int32 −128·Σ of them, f32
// scale, f32 −Σ·scale } (input.go).
const (
	q8X      = 32 + 12
	q8Start  = 32
	q8Scale  = 36
	q8Sum    = 40
	q8Rows   = 5 // AVX-512: more leave too few registers for activations
	q8Most   = 8 // in a call: of more, two calls take less time
	q8Sparse = 3 // prefetches of a block where many calls share them
)

// blockQuant is a kernel of one of them. Unpacked, a block is [Panel]f32 of scales, as many of minimums if there are
// some, and bytes as Q8_0 has.
type blockQuant struct {
	kQuant
	typ        string
	min        bool // there is a minimum
	bfloat     bool // the scales are bf16
	unpacked   bool // the scales are f32
	offsetBits int  // without a minimum, elements are weights and half of what so many bits hold; 0: k.bits
}

// The values that elements stand for (package num).
var (
	iq4   = [16]int8{-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113}
	mxfp4 = [16]int8{0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12}
)

func blockQuants(low, fifth, ones Mem) {
	tables := map[string]Mem{"IQ4NL": valueTable("unsignedIQ4", iq4, 128), "MXFP4": valueTable("unsignedMXFP4", mxfp4, 16)}
	for _, t := range []blockQuant{
		{typ: "Q8", kQuant: kQuant{bits: 8}},
		{typ: "Q40", kQuant: kQuant{bits: 4}}, {typ: "Q41", kQuant: kQuant{bits: 4}, min: true},
		{typ: "Q50", kQuant: kQuant{bits: 5}}, {typ: "Q51", kQuant: kQuant{bits: 5}, min: true},
		{typ: "IQ4NL", kQuant: kQuant{bits: 4, table: true}, offsetBits: 8},
		{typ: "MXFP4", kQuant: kQuant{bits: 4, table: true}, offsetBits: 5, bfloat: true},
	} {
		t.before, t.wide = 64, t.bits == 8
		if t.min {
			t.before = 128
		}
		fifth := fifth
		if t.table {
			fifth = tables[t.typ]
		} else {
			t.offsetBits = t.bits
		}
		t.xStep, t.wStep = q8X, t.block()

		k := t
		k.describe("AVX512", "a")
		k.maxRows, k.zmm = q8Most, true
		k.avx512(low, fifth)
		if k.bits < 8 {
			k.unpackAVX512(low, fifth)
		}

		k = t
		k.describe("AVXVNNI", "half a")
		k.vnni = true
		k.maxRows, k.inRegisters = vnniRows, vnniRows
		k.avx2(low, fifth, ones)

		k = t
		switch k.offsetBits { // as many turns as fit: see kQuants
		case 4:
			k.spread = 8
			k.maxRows, k.inRegisters = 6, 3
		case 5:
			k.spread = 4
			k.maxRows, k.inRegisters = 3, 2
		default: // q8.go
			continue
		}
		k.describe("AVX2", "half a")
		k.avx2(low, fifth, ones)
		if t.typ == "Q50" {
			k.unpackAVX2(low, fifth)
		}
	}
	for _, min := range []bool{false, true} {
		k := blockQuant{typ: "WideQ8", kQuant: kQuant{bits: 8, wide: true, before: kFactor}, offsetBits: 8, min: min}
		if min {
			k.typ, k.before = "WideMin", 2*kFactor
		}
		k.unpacked = true
		k.xStep, k.wStep = q8X, k.block()
		k.describe("AVX512", "an")
		k.maxRows, k.zmm = q8Rows, true
		k.avx512(low, fifth)
	}
}

func (k *blockQuant) describe(level, part string) {
	k.name = "mul" + k.typ + level
	k.doc = fmt.Sprintf("%s multiplies %s %s panel by blocks of int8.", k.name, part, map[string]string{
		"Q8": "Q8_0", "Q40": "Q4_0", "Q41": "Q4_1", "Q50": "Q5_0", "Q51": "Q5_1", "IQ4NL": "IQ4_NL", "MXFP4": "MXFP4",
		"WideQ8": "unpacked", "WideMin": "unpacked"}[k.typ])
}

// prefetches spreads so many over the turns of a block.
func prefetches(count int) (each [kTurns]int) {
	for i := range each {
		each[i] = (count + kTurns - 1 - i) / kTurns
	}
	return each
}

// lines is the cache lines of a packed block.
func (k *blockQuant) lines() int { return k.block() / 64 }

// start loads what the sums of a row begin with.
func (k *blockQuant) start(row int, to reg.VecPhysical) {
	VPBROADCASTD(x(row, q8Start), to)
	if k.offsetBits < 8 {
		VPSRAD(U8(8-k.offsetBits), to, to)
	}
}

// scale loads scales as f32.
func (k *blockQuant) scale(at Mem, to reg.VecPhysical) {
	if k.bfloat {
		VPMOVZXWD(at, to)
		VPSLLD(U8(16), to, to)
	} else {
		VCVTPH2PS(at, to)
	}
}

// factor loads the scales of the v-th vector of outputs, or, the second of a block's, the minimums.
func (k *blockQuant) factor(i, v int, to reg.VecPhysical) {
	if k.unpacked {
		VMOVUPS(Mem{Base: w, Disp: i*kFactor + v*k.width()}, to)
		return
	}
	k.scale(Mem{Base: w, Disp: i*64 + v*k.width()/2}, to)
}

// starts begins the sums of r rows.
func (k *blockQuant) starts(r int) {
	for row := range r {
		if k.min {
			k.zero(q8Part(row, 0))
			k.zero(q8Part(row, 1))
			continue
		}
		k.start(row, q8Part(row, 0))
		VMOVDQA64(q8Part(row, 0), q8Part(row, 1))
	}
}

// avx512 keeps few rows in registers: the integer sums of a block and the whole sums; of more the whole sums are in
// memory, which a block touches once. A block costs the multiply
// unit 8 VPDPBUSD, the product of the two scales and 1 FMA per vector of outputs: 80 % of the
// unit's peak is left for the products. (Conversions and prefetches go elsewhere and are free.)
// Four activations are broadcast once for both vectors: where the unit takes two products a cycle
// (Zen 5), loads would otherwise be what there is too little of.
func (k *blockQuant) avx512(low, fifth Mem) {
	lowMask, fifthMask := Z(27), Z(28)
	k.setup = func() {
		if k.bits < 8 {
			VMOVUPS(low, lowMask)
			VMOVUPS(fifth, fifthMask)
		}
	}
	k.begin()
	for r := 1; r <= k.maxRows; r++ {
		Label(fmt.Sprintf("rows%d", r))
		if r > q8Rows {
			begun := fmt.Sprintf("begun%d", r)
			k.beginWhole(r, begun, Z(31))
			Label(begun)
			each(k.kept(r), func(row, v int) { VMOVUPS(k.accMem(row, v), q8Whole(r, row, v)) })
		} else {
			k.resume(r, func(row, v int) reg.VecPhysical { return q8Whole(r, row, v) })
		}
		k.body512(r, fmt.Sprintf("block%d", r), lowMask, fifthMask)
	}
	k.end()
}

func q8Part(row, v int) reg.VecPhysical     { return Z(row*vecs + v) }
func q8Whole(r, row, v int) reg.VecPhysical { return Z((r+row)*vecs + v) }

// kept is of how many of r rows the whole sums are in registers.
func (k *blockQuant) kept(r int) int {
	const temps = 6 // for activations and scales
	free := 30      // with two for weights
	if k.bits < 8 {
		free = 27 // the masks, and what elements takes
	}
	if r <= q8Rows {
		return r
	}
	return max(0, (free-temps-r*vecs)/vecs)
}

// body512 is the body for r rows.
func (k *blockQuant) body512(r int, name string, low, fifth Op) {
	kept := k.kept(r)
	free := (r + kept) * vecs
	whole := func(row, v int) reg.VecPhysical {
		if row < kept {
			return q8Whole(r, row, v)
		}
		return q8Part(row, v)
	}
	w0, w1 := Z(30), Z(31)
	temps := 30 - free
	if k.bits < 8 {
		temps = 27 - free // the masks, and what elements takes
	}
	temp := func(i int) reg.VecPhysical { return Z(free + i%temps) }

	Label(name)
	k.starts(r)
	for i := range kTurns {
		prefetchTurn(name, i, q8Sparse, k.lines())
		k.elements(i, low, fifth, nil, w0, w1)
		for row := range r {
			b := temp(row)
			VPBROADCASTD(x(row, i*4), b)
			VPDPBUSD(b, w0, q8Part(row, 0))
			VPDPBUSD(b, w1, q8Part(row, 1))
		}
	}
	k.factor(0, 0, w0)
	k.factor(0, 1, w1)
	for row := range r {
		d, t := temp(2*row), temp(2*row+1)
		VBROADCASTSS(x(row, q8Scale), d)
		VMULPS(w1, d, t)
		VMULPS(w0, d, d)
		for v, f := range []reg.VecPhysical{d, t} {
			VCVTDQ2PS(q8Part(row, v), q8Part(row, v))
			if row < kept {
				VFMADD231PS(f, q8Part(row, v), whole(row, v))
			} else {
				VFMADD213PS(k.accMem(row, v), f, q8Part(row, v))
			}
		}
	}
	if k.min {
		k.factor(1, 0, w0)
		k.factor(1, 1, w1)
		for row := range r {
			minimum(row, temp(row), w0, w1, whole)
		}
	}
	inMemory := func(from, to int) {
		each(to, func(row, v int) {
			if row >= from {
				VMOVUPS(whole(row, v), k.accMem(row, v))
			}
		})
	}
	inMemory(kept, r)
	k.advance(r, 1)
	DECQ(n)
	JNZ(LabelRef(name))
	if r > q8Rows {
		inMemory(0, kept)
		k.storeWhole(r, w0)
	} else {
		k.store(r, whole)
	}
}

// minimum adds the minimums, times the sum of a row's block.
func minimum(row int, sum, m0, m1 reg.VecPhysical, whole func(row, v int) reg.VecPhysical) {
	VBROADCASTSS(x(row, q8Sum), sum) // negative
	VFNMADD231PS(sum, m0, whole(row, 0))
	VFNMADD231PS(sum, m1, whole(row, 1))
}

// avx2 takes half a panel: 16 outputs. Of few rows the whole sums are in registers. Of more they are in memory, which a
// block touches once, so that more rows share the work of unpacking the elements.
func (k *blockQuant) avx2(low, fifth, ones Mem) {
	w0 := Y(12)
	w1 := Y(13)
	b := Y(14)
	t := Y(15)
	scales := dense
	k.setup = func() { arg(tileScale, scales) }
	k.begin()
	for r := 1; r <= k.maxRows; r++ {
		lab := func(s string) string { return fmt.Sprintf("%s%d", s, r) }
		sum := registers(r, 0)  // without AVX-VNNI of 16 bits, then of 32
		wide := registers(r, 1) // where 16 do not do for a block: of 32 bits
		sums, whole := sum, registers(r, 1)
		if !k.vnni && k.spread < kTurns {
			sums, whole = wide, registers(r, 2)
		}
		kept := r <= k.inRegisters
		Label(lab("rows"))
		if kept {
			k.resume(r, whole)
		} else {
			k.beginWhole(r, lab("block"), t)
		}
		Label(lab("block"))
		for row := range r {
			switch {
			case !k.vnni:
			case k.min:
				k.zero(sum(row, 0))
				k.zero(sum(row, 1))
			default:
				k.start(row, sum(row, 0))
				VMOVDQA(sum(row, 0), sum(row, 1))
			}
		}
		for i, count := range prefetches(min(kTurns, (k.lines()+1)/2)) {
			prefetch(count)
			if k.vnni {
				k.dotVNNI(r, i, low, fifth, sum, w0, w1, b, t)
			} else {
				k.turnAVX2(r, i, low, fifth, ones, sum, wide, w0, w1, b, t)
			}
		}
		k.scale(Mem{Base: scales}, w0)
		k.scale(Mem{Base: scales, Disp: 16}, w1)
		for row := range r {
			if !k.vnni && !k.min {
				k.start(row, b)
				VPADDD(b, sums(row, 0), sums(row, 0))
				VPADDD(b, sums(row, 1), sums(row, 1))
			}
			VBROADCASTSS(x(row, q8Scale), b)
			for v, scale := range []reg.VecPhysical{w0, w1} {
				VMULPS(scale, b, t)
				VCVTDQ2PS(sums(row, v), sums(row, v))
				if kept {
					VFMADD231PS(t, sums(row, v), whole(row, v))
				} else {
					VFMADD213PS(k.accMem(row, v), t, sums(row, v))
				}
			}
		}
		if !kept {
			whole = sums
		}
		if k.min {
			VCVTPH2PS(Mem{Base: scales, Disp: 64}, w0)
			VCVTPH2PS(Mem{Base: scales, Disp: 80}, w1)
			for row := range r {
				minimum(row, b, w0, w1, whole)
			}
		}
		if !kept {
			each(r, func(row, v int) { VMOVUPS(whole(row, v), k.accMem(row, v)) })
		}
		k.advance(r, 1)
		ADDQ(imm(k.block()), scales)
		DECQ(n)
		JNZ(LabelRef(lab("block")))
		if kept {
			k.store(r, whole)
		} else {
			k.storeWhole(r, t)
		}
	}
	k.end()
}

// unpackAVX512 emits the function that makes bytes of a panel's elements, and f32 of its scales, for many rows.
func (k *blockQuant) unpackAVX512(low, fifth Mem) {
	name := "unpack" + k.typ + "AVX512"
	function(name, "(dst, src *byte, n int)", fmt.Sprintf("%s unpacks n blocks of 32 of a panel.", name))
	dst, table := reg.RDI, Z(28)
	Load(Param("dst"), dst)
	Load(Param("src"), w)
	Load(Param("n"), n)
	var more Op
	if !k.min && k.offsetBits < 8 {
		MOVL(U32(0x01010101*(128-1<<(k.offsetBits-1))), tmp.As32())
		more = Z(5)
		VPBROADCASTD(tmp.As32(), more)
	}
	VMOVUPS(fifth, table)
	Label("block")
	factors := 1
	if k.min {
		factors = 2
	}
	for i := range factors {
		for v := range vecs {
			k.factor(i, v, Z(0))
			VMOVUPS(Z(0), Mem{Base: dst, Disp: i*kFactor + v*64})
		}
	}
	k.unpackElements(dst, factors*kFactor, low, table, more)
	DECQ(n)
	JNZ(LabelRef("block"))
	VZEROUPPER()
	RET()
}

// unpackAVX2 emits the function that makes a panel of Q8_0 of one of Q5_0. With AVX-VNNI that is less
// work for many rows than every few of them unpacking it anew; elsewhere it is not, nor is it of
// Q4_0.
func (k *blockQuant) unpackAVX2(low, fifth Mem) {
	function("unpackQ50AVX2", "(dst, src *byte, n int)", "unpackQ50AVX2 unpacks n blocks of 32 of a Q5_0 panel to those of Q8_0.")
	dst, more := reg.RDI, Y(5)
	Load(Param("dst"), dst)
	Load(Param("src"), w)
	Load(Param("n"), n)
	MOVL(U32(0x01010101*(128-16)), tmp.As32())
	VMOVD(tmp.As32(), X(5))
	VPBROADCASTD(X(5), more)
	Label("block")
	copyBytes(dst, k.before)
	k.unpackElements(dst, k.before, low, fifth, more)
	DECQ(n)
	JNZ(LabelRef("block"))
	VZEROUPPER()
	RET()
}
