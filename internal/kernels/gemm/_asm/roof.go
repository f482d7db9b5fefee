package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// peak emits a loop of 12 independent chains of one instruction.
func peak(name, doc string, vec func(int) reg.VecPhysical, op func(a, b, acc reg.VecPhysical)) {
	function(name, "(iters int)", name+" "+doc)
	Load(Param("iters"), reg.RCX)
	for i := range 14 {
		VXORPS(vec(i), vec(i), vec(i))
	}
	Label("loop")
	for i := range 12 {
		op(vec(12), vec(13), vec(i))
	}
	DECQ(reg.RCX)
	JNZ(LabelRef("loop"))
	VZEROUPPER()
	RET()
}

func roofKernels() {
	fma := func(a, b, acc reg.VecPhysical) { VFMADD231PS(a, b, acc) }
	peak("peakFMAAVX2", "times VFMADD231PS on YMM.", Y, fma)
	peak("peakQ8AVX2", "times VPMADDUBSW on YMM.", Y, func(a, b, acc reg.VecPhysical) { VPMADDUBSW(a, acc, acc) })
	peak("peakQ8AVXVNNI", "times VPDPBUSD on YMM, as AVX-VNNI encodes it.", Y, vpdpbusd)
	peak("peakFMAAVX512", "times VFMADD231PS on ZMM.", Z, fma)
	peak("peakQ8AVX512", "times VPDPBUSD on ZMM.", Z, func(a, b, acc reg.VecPhysical) { VPDPBUSD(a, b, acc) })
	peak("peakBF16AVX512BF16", "times VDPBF16PS on ZMM.", Z, vdpbf16ps)

	read("readAVX2", Y, 32, func(m Op, r reg.VecPhysical) { VPXOR(m, r, r) })
	read("readAVX512", Z, 64, func(m Op, r reg.VecPhysical) { VPXORQ(m, r, r) })
}

// read emits a loop over memory that keeps 8 loads and 8 prefetches in flight. The distance
// of the prefetches is two pages of 4 KiB, where the processor's own prefetcher stops.
func read(name string, vec func(int) reg.VecPhysical, width int, xor func(m Op, r reg.VecPhysical)) {
	const ahead = 8192
	p, n := reg.RSI, reg.RCX
	function(name, "(p *byte, n int) uint64", name+" is the exclusive or of the 8-byte words of n bytes, n a multiple of 512.")
	Load(Param("p"), p)
	Load(Param("n"), n)
	for i := range 8 {
		xor(vec(i), vec(i))
	}
	Label("loop")
	for i := 0; i < 512/width; i++ {
		if i*width%64 == 0 {
			PREFETCHT0(Mem{Base: p, Disp: ahead + i*width})
		}
		xor(Mem{Base: p, Disp: i * width}, vec(i%8))
	}
	ADDQ(imm(512), p)
	SUBQ(imm(512), n)
	JNZ(LabelRef("loop"))
	for i := 1; i < 8; i++ {
		xor(vec(i), vec(0))
	}
	if width == 64 {
		VEXTRACTI64X4(U8(1), Z(0), Y(1))
		VPXOR(Y(1), Y(0), Y(0))
	}
	VEXTRACTI128(U8(1), Y(0), reg.X1)
	VPXOR(reg.X1, reg.X0, reg.X0)
	VPSRLDQ(U8(8), reg.X0, reg.X1)
	VPXOR(reg.X1, reg.X0, reg.X0)
	VMOVQ(reg.X0, reg.RAX)
	Store(reg.RAX, ReturnIndex(0))
	VZEROUPPER()
	RET()
}
