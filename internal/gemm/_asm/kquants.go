package main

import (
	"fmt"

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
	kWords  = 128 // bytes of four elements of all outputs
	kLow    = 4 * kWords
)

// kQuant is a kernel of one of them.
type kQuant struct {
	kernel
	bits       int
	head, high int
	spread     int  // AVX2: turns whose sums fit into 16 bits
	wide       bool // the elements were unpacked to bytes: [8][Panel][4]u8
}

// A block is walked in turns: four elements of all outputs.
const kTurns = 8

func kQuants() {
	low := kMask("nibbles", 0x0f0f0f0f)
	fifth := kMask("fifthBits", 0x10101010)
	upper := kMask("upperBits", 0x30303030)
	ones := kMask("words", 0x00010001)
	for _, k := range []kQuant{
		{kernel: kernel{name: "mulQ4KAVX512", maxRows: 5, zmm: true}, bits: 4, head: 128},
		{kernel: kernel{name: "mulQ5KAVX512", maxRows: 4, zmm: true}, bits: 5, head: 128, high: 128},
		{kernel: kernel{name: "mulQ6KAVX512", maxRows: 4, zmm: true}, bits: 6, head: 64, high: 256},
		{kernel: kernel{name: "mulWide5KAVX512", maxRows: 5, zmm: true}, bits: 5, head: 128, wide: true},
		{kernel: kernel{name: "mulWide6KAVX512", maxRows: 5, zmm: true}, bits: 6, head: 64, wide: true},
	} {
		k.doc = k.describe("a")
		k.avx512(low, map[int]Mem{5: fifth, 6: upper}[k.bits])
	}
	// Sums of so many products of two fit into 16 bits: 2·127·15·8, 2·127·31·4, 2·127·63·2.
	for _, k := range []kQuant{
		{kernel: kernel{name: "mulQ4KAVX2", maxRows: 3}, bits: 4, head: 128, spread: 8},
		{kernel: kernel{name: "mulQ5KAVX2", maxRows: 2}, bits: 5, head: 128, high: 128, spread: 4},
		{kernel: kernel{name: "mulQ6KAVX2", maxRows: 2}, bits: 6, head: 64, high: 256, spread: 2},
		{kernel: kernel{name: "mulWide4KAVX2", maxRows: 3}, bits: 4, head: 128, spread: 8, wide: true},
		{kernel: kernel{name: "mulWide5KAVX2", maxRows: 2}, bits: 5, head: 128, spread: 4, wide: true},
		{kernel: kernel{name: "mulWide6KAVX2", maxRows: 2}, bits: 6, head: 64, spread: 2, wide: true},
	} {
		k.doc = k.describe("half a")
		k.avx2(low, map[int]Mem{5: fifth, 6: upper}[k.bits], ones)
	}
	for _, k := range []kQuant{
		{bits: 5, head: 128, high: 128, kernel: kernel{name: "unpackQ5KAVX512", zmm: true}},
		{bits: 6, head: 64, high: 256, kernel: kernel{name: "unpackQ6KAVX512", zmm: true}},
		{bits: 4, head: 128, kernel: kernel{name: "unpackQ4KAVX2"}},
		{bits: 5, head: 128, high: 128, kernel: kernel{name: "unpackQ5KAVX2"}},
		{bits: 6, head: 64, high: 256, kernel: kernel{name: "unpackQ6KAVX2"}},
	} {
		k.unpack(low, map[int]Mem{5: fifth, 6: upper}[k.bits])
	}
}

func (k *kQuant) describe(part string) string {
	how := ""
	if k.wide {
		how = ", unpacked to bytes,"
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

func (k *kQuant) block() int {
	if k.wide {
		return kScales + kTurns*kWords
	}
	return kScales + kLow + k.high
}

// unpack emits the function that makes bytes of a panel's elements: for many rows that is less work than every few of them doing it anew.
func (k *kQuant) unpack(low, upper Mem) {
	TEXT(k.name, NOSPLIT, "func(dst, src *byte, n int)")
	Doc(fmt.Sprintf("%s unpacks n blocks of 256 of a Q%d_K panel to bytes.", k.name, k.bits))
	Load(Param("dst"), reg.RDI)
	Load(Param("src"), w)
	Load(Param("n"), n)
	dst, t := reg.RDI, Y(4)
	copies := func(from, to int) { // bytes as they are
		for at := from; at < to; at += 32 {
			VMOVDQU(Mem{Base: w, Disp: at}, Y(0))
			VMOVDQU(Y(0), Mem{Base: dst, Disp: at})
		}
	}
	Label("step")
	copies(0, k.head)
	ADDQ(imm(k.head), w)
	ADDQ(imm(k.head), dst)
	MOVL(U32(2*q8Group), left.As32())
	Label("block")
	copies(0, kScales)
	for i := range kTurns {
		ws := []reg.VecPhysical{Y(0), Y(1), Y(2), Y(3)}
		if k.zmm {
			ws = []reg.VecPhysical{Z(0), Z(1)}
			k.lower512(i, low, ws...)
			k.upper512(i, upper, ws...)
		} else {
			k.lower2(i, low, ws...)
			if k.bits > 4 {
				k.upper2(i, upper, t, ws...)
			}
		}
		for v, wv := range ws {
			VMOVUPS(wv, Mem{Base: dst, Disp: kScales + i*kWords + v*k.width()})
		}
	}
	ADDQ(imm(k.block()), w)
	ADDQ(imm(kScales+kTurns*kWords), dst)
	DECQ(left)
	JNZ(LabelRef("block"))
	DECQ(n)
	JNZ(LabelRef("step"))
	VZEROUPPER()
	RET()
}

// avx512 keeps all of 5 rows in registers, as q8AVX512 does, or of 4 where the upper bits want registers too. A block costs the
// multiply unit 8 VPDPBUSD and 2 FMA per vector of outputs, a group one more: 78 % of its peak is left for the products.
func (k *kQuant) avx512(low, upper Mem) {
	k.begin()
	prefetches, sparse := map[int][]int{4: {2, 2, 1, 1, 1, 1, 1, 1}, 5: {2, 2, 2, 2, 1, 1, 1, 1}, 6: {2, 2, 2, 2, 2, 2, 1, 1}}[k.bits], []int{1, 0, 0, 0, 1, 0, 0, 0}
	for r := 1; r <= k.maxRows; r++ {
		Label(fmt.Sprintf("rows%d", r))
		k.resume(r, k.whole)
		TESTQ(dense, dense)
		JZ(LabelRef(fmt.Sprintf("sparse%d", r)))
		k.rows512(r, fmt.Sprintf("dense%d", r), prefetches, low, upper)
		k.rows512(r, fmt.Sprintf("sparse%d", r), sparse, low, upper)
	}
}

func (k *kQuant) sum(row, v int) reg.VecPhysical   { return Z(row*vecs + v) }
func (k *kQuant) part(row, v int) reg.VecPhysical  { return Z(k.maxRows*vecs + row*vecs + v) }
func (k *kQuant) whole(row, v int) reg.VecPhysical { return Z(2*k.maxRows*vecs + row*vecs + v) }

func (k *kQuant) rows512(r int, name string, prefetches []int, low, upper Mem) {
	w0, w1 := Z(30), Z(31)
	head := tmp

	Label(name)
	MOVQ(w, head)
	ADDQ(imm(k.head), w)
	XORL(args.As32(), args.As32()) // 0 in the first group, 1 in the second: the arguments are loaded
	Label(name + "group")
	each(r, func(row, v int) { k.zero(k.part(row, v)) })
	MOVL(U32(q8Group), left.As32())

	Label(name + "block")
	for i, count := range prefetches {
		if i == 0 || k.bits == 6 && i == kTurns/2 {
			each(r, func(row, v int) {
				if k.bits == 6 {
					VPBROADCASTD(x(row, kHalves+i), k.sum(row, v))
				} else {
					k.zero(k.sum(row, v))
				}
			})
		}
		prefetch(count)
		if k.wide {
			VMOVUPS(Mem{Base: w, Disp: kScales + i*kWords}, w0)
			VMOVUPS(Mem{Base: w, Disp: kScales + i*kWords + 64}, w1)
		} else {
			k.lower512(i, low, w0, w1)
		}
		if k.bits > 4 && !k.wide {
			k.upper512(i, upper, w0, w1)
		}
		for row := range r {
			VPDPBUSD_BCST(x(row, i*4), w0, k.sum(row, 0))
			VPDPBUSD_BCST(x(row, i*4), w1, k.sum(row, 1))
		}
		if k.bits == 6 && i%4 == 3 {
			k.scale512(r, i/4, head)
		}
	}
	if k.bits < 6 {
		k.scale512(r, 0, head)
		for v := range vecs { // the minimums
			VPMOVZXBD(Mem{Base: w, Disp: 32 + v*16}, w0)
			VCVTDQ2PS(w0, w0)
			VCVTPH2PS(Mem{Base: head, Disp: 64 + v*32}, w1)
			VMULPS(w1, w0, w0)
			for row := range r {
				VFMADD231PS_BCST(x(row, kSum), w0, k.part(row, v))
			}
		}
	}
	ADDQ(imm(k.block()), w)
	ADDQ(imm(kX), x0)
	if r > 4 {
		ADDQ(imm(kX), x4)
	}
	DECQ(left)
	JNZ(LabelRef(name + "block"))

	for row := range r {
		for v := range vecs {
			VFMADD231PS_BCST(x(row, 0), k.part(row, v), k.whole(row, v))
		}
	}
	ADDQ(imm(4), x0)
	if r > 4 {
		ADDQ(imm(4), x4)
	}
	XORL(U8(1), args.As32())
	JNZ(LabelRef(name + "group"))
	DECQ(n)
	JNZ(LabelRef(name))
	Load(Param("t"), args)
	k.store(r, k.whole)
}

// upperAt is where the bits of turn i above the low four are.
func (k *kQuant) upperAt(i int) (at, bit int) {
	if k.bits == 6 {
		return kScales + kLow + i/4*kWords, i % 4 * 2
	}
	return kScales + kLow, i
}

// lower512 loads the low four bits of turn i.
func (k *kQuant) lower512(i int, mask Mem, ws ...reg.VecPhysical) {
	for v, wv := range ws {
		at := Mem{Base: w, Disp: kScales + i%4*kWords + v*64}
		if i < 4 {
			VMOVUPS(at, wv)
		} else {
			VPSRLW(U8(4), at, wv)
		}
		VPANDD(mask, wv, wv)
	}
}

// upper512 adds the bits above them.
func (k *kQuant) upper512(i int, mask Mem, ws ...reg.VecPhysical) {
	t := Z(29)
	at, bit := k.upperAt(i)
	for v, wv := range ws {
		m := Mem{Base: w, Disp: at + v*64}
		switch {
		case bit < 4:
			VPSLLW(U8(4-bit), m, t)
		case bit == 4:
			VMOVUPS(m, t)
		default:
			VPSRLW(U8(bit-4), m, t)
		}
		VPTERNLOGD(U8(0xf8), mask, t, wv) // wv | t & mask
	}
}

// scale512 adds the sums of a block, or of Q6_K's half h, to the parts.
func (k *kQuant) scale512(r, h int, head reg.Register) {
	w0, w1 := Z(30), Z(31)
	for v := range vecs {
		at := Mem{Base: w, Disp: h*32 + v*16}
		if k.bits == 6 {
			VPMOVSXBD(at, w0)
		} else {
			VPMOVZXBD(at, w0)
		}
		VCVTDQ2PS(w0, w0)
		VCVTPH2PS(Mem{Base: head, Disp: v * 32}, w1)
		VMULPS(w1, w0, w0)
		for row := range r {
			VCVTDQ2PS(k.sum(row, v), k.sum(row, v))
			VFMADD231PS(w0, k.sum(row, v), k.part(row, v))
		}
	}
}

// avx2 takes half a panel: 16 outputs. VPMADDUBSW adds pairs in 16 bits,
// where spread turns fit, before they are widened. The whole sums stay in memory: a group touches them once.
func (k *kQuant) avx2(low, upper, ones Mem) {
	sum := func(row, v int) reg.VecPhysical { return Y(row*vecs + v) }              // of 16 bits, then of 32
	wide := func(row, v int) reg.VecPhysical { return Y((k.maxRows+row)*vecs + v) } // Q5_K, Q6_K: of 32 bits
	part := func(row, v int) reg.VecPhysical { return Y((2*k.maxRows+row)*vecs + v) }
	if k.spread == kTurns {
		part = wide
	}
	w0, w1, b, t := Y(12), Y(13), Y(14), Y(15)
	head, scales, second := x4, dense, args

	k.setup = func() {
		arg(tileScale, head)
		// Of a part's outputs elements are 4 bytes, d 2 and scales 1.
		MOVQ(head, scales)
		SUBQ(w, scales)
		SARQ(U8(1), scales)
		ADDQ(head, scales)
		ADDQ(imm(k.head), w)
		ADDQ(imm(k.head), scales)
	}
	k.begin()
	for r := 1; r <= k.maxRows; r++ {
		lab := func(s string) string { return fmt.Sprintf("%s%d", s, r) }
		rows := func(f func(row, v int)) { each(r, f) }
		whole := func(row, v int) Mem { return Mem{Base: acc, Disp: row*accRow + v*32} }

		Label(lab("rows"))
		arg(tileFirst, tmp)
		TESTQ(tmp, tmp)
		JZ(LabelRef(lab("step")))
		VPXOR(t, t, t)
		rows(func(row, v int) { VMOVUPS(t, whole(row, v)) })

		Label(lab("step"))
		XORL(second.As32(), second.As32())
		Label(lab("group"))
		rows(func(row, v int) { k.zero(part(row, v)) })
		MOVL(U32(q8Group), left.As32())

		Label(lab("block"))
		prefetch(map[int]int{4: 5, 5: 6, 6: 7}[k.bits])
		for i := range kTurns {
			fresh := i%k.spread == 0
			if k.wide {
				VMOVDQU(Mem{Base: w, Disp: kScales + i*kWords}, w0)
				VMOVDQU(Mem{Base: w, Disp: kScales + i*kWords + 32}, w1)
			} else {
				k.lower2(i, low, w0, w1)
			}
			if k.bits > 4 && !k.wide {
				k.upper2(i, upper, t, w0, w1)
			}
			for row := range r {
				VPBROADCASTD(x(row, i*4), b)
				for v, wv := range []reg.VecPhysical{w0, w1} {
					if fresh {
						VPMADDUBSW(b, wv, sum(row, v))
						continue
					}
					VPMADDUBSW(b, wv, t)
					VPADDW(t, sum(row, v), sum(row, v))
				}
			}
			if i%k.spread != k.spread-1 {
				continue
			}
			half := kTurns / 2
			switch first := i < k.spread || k.bits == 6 && i < half+k.spread && i >= half; {
			case k.spread == kTurns:
				rows(func(row, v int) { VPMADDWD(ones, sum(row, v), sum(row, v)) })
			case first:
				rows(func(row, v int) { VPMADDWD(ones, sum(row, v), wide(row, v)) })
			default:
				rows(func(row, v int) {
					VPMADDWD(ones, sum(row, v), sum(row, v))
					VPADDD(sum(row, v), wide(row, v), wide(row, v))
				})
			}
			if k.bits == 6 && i%half == half-1 {
				for row := range r {
					VPBROADCASTD(x(row, kHalves+i/half*4), b)
					for v := range vecs {
						VPADDD(b, wide(row, v), wide(row, v))
					}
				}
				k.scale2(r, i/half, head, scales, wide, part)
			}
		}
		if k.bits < 6 {
			if k.spread == kTurns {
				k.scale2(r, 0, head, scales, sum, part)
			} else {
				k.scale2(r, 0, head, scales, wide, part)
			}
			for v := range vecs { // the minimums
				VPMOVZXBD(Mem{Base: scales, Disp: 32 + v*8}, w0)
				VCVTDQ2PS(w0, w0)
				VCVTPH2PS(Mem{Base: head, Disp: 64 + v*16}, w1)
				VMULPS(w1, w0, w0)
				for row := range r {
					VBROADCASTSS(x(row, kSum), b)
					VFMADD231PS(b, w0, part(row, v))
				}
			}
		}
		ADDQ(imm(k.block()), w)
		ADDQ(imm(k.block()), scales)
		ADDQ(imm(kX), x0)
		DECQ(left)
		JNZ(LabelRef(lab("block")))

		for row := range r {
			VBROADCASTSS(x(row, 0), b)
			for v := range vecs {
				VMOVUPS(whole(row, v), t)
				VFMADD231PS(b, part(row, v), t)
				VMOVUPS(t, whole(row, v))
			}
		}
		ADDQ(imm(4), x0)
		XORL(U8(1), second.As32())
		JNZ(LabelRef(lab("group")))
		ADDQ(imm(8*k.block()+k.head), head)
		ADDQ(imm(k.head), w)
		ADDQ(imm(k.head), scales)
		DECQ(n)
		JNZ(LabelRef(lab("step")))

		Load(Param("t"), args)
		arg(tileOut, w)
		arg(tileOutS, tmp)
		for row := range r {
			for v := range vecs {
				VMOVUPS(whole(row, v), t)
				VMOVUPS(t, Mem{Base: w, Disp: v * 32})
			}
			if row < r-1 {
				ADDQ(tmp, w)
			}
		}
		VZEROUPPER()
		RET()
	}
}

// lower2 is lower512 for registers of half the size.
func (k *kQuant) lower2(i int, mask Mem, ws ...reg.VecPhysical) {
	for v, wv := range ws {
		VMOVDQU(Mem{Base: w, Disp: kScales + i%4*kWords + v*32}, wv)
		if i >= 4 {
			VPSRLW(U8(4), wv, wv)
		}
		VPAND(mask, wv, wv)
	}
}

// upper2 is upper512 for them.
func (k *kQuant) upper2(i int, mask Mem, t reg.VecPhysical, ws ...reg.VecPhysical) {
	at, bit := k.upperAt(i)
	for v, wv := range ws {
		VMOVDQU(Mem{Base: w, Disp: at + v*32}, t)
		switch {
		case bit < 4:
			VPSLLW(U8(4-bit), t, t)
		case bit > 4:
			VPSRLW(U8(bit-4), t, t)
		}
		VPAND(mask, t, t)
		VPOR(t, wv, wv)
	}
}

// scale2 is scale512 with sums and parts anywhere.
func (k *kQuant) scale2(r, h int, head, scales reg.Register, sum, part func(row, v int) reg.VecPhysical) {
	w0, w1 := Y(12), Y(13)
	for v := range vecs {
		at := Mem{Base: scales, Disp: h*32 + v*8}
		if k.bits == 6 {
			VPMOVSXBD(at, w0)
		} else {
			VPMOVZXBD(at, w0)
		}
		VCVTDQ2PS(w0, w0)
		VCVTPH2PS(Mem{Base: head, Disp: v * 16}, w1)
		VMULPS(w1, w0, w0)
		for row := range r {
			VCVTDQ2PS(sum(row, v), sum(row, v))
			VFMADD231PS(w0, sum(row, v), part(row, v))
		}
	}
}
