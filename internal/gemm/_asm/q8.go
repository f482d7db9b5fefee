package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// The Q8_0 kernel without products of unsigned by signed bytes in 32 bits.
const (
	q8Scales = 64 // bytes of scales before a packed block's weights
	q8Block  = q8Scales + 32*32
)

// q8AVX2 takes a quarter of a panel: 8 outputs in a register, 6 rows. VPMADDUBSW multiplies
// u8 by s8 and adds pairs in 16 bits, saturating, so it is given |w| and x·sign(w): at most
// 2·128·127, which fits. The sums are then of the signed weights and start from zero.
func q8AVX2() {
	k := &kernel{wStep: q8Block, xStep: q8X, name: "mulQ8AVX2", doc: "mulQ8AVX2 multiplies a quarter of a Q8_0 panel by blocks of int8.", maxRows: 6}
	flip := GLOBL("flip", RODATA|NOPTR)
	for i := range 8 {
		DATA(i*4, U32(0x80808080))
	}
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
		sign, abs, b := Y(13), Y(14), Y(15)

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
			if i%2 == 0 {
				prefetch(1)
			}
			VMOVUPS(Mem{Base: w, Disp: q8Scales + i*128}, sign)
			VPXOR(flip, sign, sign)
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
		ADDQ(imm(q8Block), scales)
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
		VZEROUPPER()
		RET()
	}
}
