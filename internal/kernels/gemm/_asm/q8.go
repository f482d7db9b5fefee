package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// The kernels of Q8_0 and IQ4_NL without products of unsigned by signed bytes in 32 bits.
const q8Scales = 64 // bytes of scales before a packed block's weights

func q8AVX2() {
	flip := GLOBL("flip", RODATA|NOPTR)
	for i := range 8 {
		DATA(i*4, U32(0x80808080))
	}
	signedAVX2("Q8", "Q8_0", 32, func(i int, to, _ reg.VecPhysical) {
		VMOVUPS(Mem{Base: w, Disp: q8Scales + i*kWords}, to)
		VPXOR(flip, to, to)
	})
	low, table := kMask("nibblesIQ4", 0x0f0f0f0f), valueTable("signedIQ4", iq4, 0)
	signedAVX2("IQ4NL", "IQ4_NL", 16, func(i int, to, t reg.VecPhysical) {
		VMOVUPS(Mem{Base: w, Disp: q8Scales + i%4*kWords}, to)
		if i >= 4 {
			VPSRLW(U8(4), to, to)
		}
		VPAND(low, to, to)
		VMOVDQU(table, t)
		VPSHUFB(to, t, to)
	})
}

// signedAVX2 takes a quarter of a panel: 8 outputs in a register, 6 rows. VPMADDUBSW multiplies
// u8 by s8 and adds pairs in 16 bits, saturating, so it is given |w| and x·sign(w): at most
// 2·128·127, which fits. The sums are then of the signed weights, which elements loads four of each
// output, and start from zero. A packed block has so many bytes for an output.
func signedAVX2(name, typ string, bytes int, elements func(i int, to, t reg.VecPhysical)) {
	k := &kernel{wStep: q8Scales + 32*bytes, xStep: q8X, name: "mul" + name + "AVX2", maxRows: 6}
	k.doc = fmt.Sprintf("%s multiplies a quarter of a %s panel by blocks of int8.", k.name, typ)
	ones := Y(12)
	scales := dense
	k.setup = func() {
		VPCMPEQD(ones, ones, ones)
		VPSRLW(U8(15), ones, ones)
		arg(tileScale, scales)
	}
	k.begin()
	for r := 1; r <= k.maxRows; r++ {
		lab := func(s string) string { return fmt.Sprintf("%s%d", s, r) }
		sum := func(row int) reg.VecPhysical { return Y(row) }
		whole := func(row int) reg.VecPhysical { return Y(k.maxRows + row) }
		sign := Y(13)
		abs := Y(14)
		b := Y(15)

		Label(lab("rows"))
		arg(tileFirst, tmp)
		TESTQ(tmp, tmp)
		JNZ(LabelRef(lab("zero")))
		for row := range r {
			VMOVUPS(k.accMem(row, 0), whole(row))
		}
		JMP(LabelRef(lab("block")))
		Label(lab("zero"))
		for row := range r {
			k.zero(whole(row))
		}

		Label(lab("block"))
		for row := range r {
			k.zero(sum(row))
		}
		for i := range 8 {
			if i%(kTurns*8/bytes) == 0 {
				prefetch(1)
			}
			elements(i, sign, abs)
			VPABSB(sign, abs)
			for row := range r {
				VPBROADCASTD(x(row, i*4), b)
				VPSIGNB(sign, b, b)
				VPMADDUBSW(b, abs, b)
				VPMADDWD(ones, b, b)
				VPADDD(b, sum(row), sum(row))
			}
		}
		VCVTPH2PS(Mem{Base: scales}, abs)
		for row := range r {
			VBROADCASTSS(x(row, q8Scale), b)
			VMULPS(abs, b, b)
			VCVTDQ2PS(sum(row), sum(row))
			VFMADD231PS(b, sum(row), whole(row))
		}
		k.advance(r, 1)
		ADDQ(imm(k.wStep), scales)
		DECQ(n)
		JNZ(LabelRef(lab("block")))

		arg(tileOut, acc)
		arg(tileOutS, tmp)
		for row := range r {
			VMOVUPS(whole(row), Mem{Base: acc})
			if row < r-1 {
				ADDQ(tmp, acc)
			}
		}
		JMP(LabelRef("end"))
	}
	k.end()
}
