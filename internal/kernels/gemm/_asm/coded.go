package main

import (
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// The functions that unpack the types of package codebook. A panel's step is 256 elements of 32 outputs, as blocks
// lie in the file; unpacked, it is the blocks of 32 that kernels of Q6_K read: [2][Panel]f32 of factors, and elements
// [8][Panel][4]u8. Eight outputs are read into a register each and transposed.
const codedBlock = 2*kFactor + kTurns*kWords // bytes of an unpacked block of 32

// Registers of every such function.
var (
	codedTo      = reg.RDI
	codedFrom    = reg.RSI
	codedEntries = reg.R8
	codedSigns   = reg.R9
	codedNumber  = reg.RCX // of the block of 32
	codedPlace   = reg.R10 // where the block begins, of types that have several in a file's or parts apart
	codedGroup   = reg.R11 // groups of eight outputs left

	entry = reg.R12 // number of an entry
	sign  = reg.R13 // number of a mask
)

// coded is a function that unpacks a type.
type coded struct {
	name  string
	bytes int    // of 256 elements in a file
	place func() // sets codedPlace and what else a block needs
	read  func(c *coded, output int, to reg.VecPhysical)

	// scales makes integers of an output, of the first or last half of its factors, or where there are 8 of all. nil:
	// there are none. scale is where the f16 of a half is. A factor is f16 · (2·integer + 1) / over, which 0 leaves out.
	scales func(c *coded, output, half int, to reg.VecPhysical)
	halves int
	scale  func(half int) int
	over   float32
}

// at is memory of an output's step: so many bytes on, and scale bytes for each block before.
func (c *coded) at(output, disp int, scale uint8) Mem {
	return Mem{Base: codedFrom, Index: codedNumber, Scale: scale, Disp: output*c.bytes + disp}
}

// placed is memory of an output's step, so many bytes on from codedPlace.
func (c *coded) placed(output, disp int) Mem {
	return Mem{Base: codedFrom, Index: codedPlace, Scale: 1, Disp: output*c.bytes + disp}
}

// plain is memory of an output's step.
func (c *coded) plain(output, disp int) Mem { return Mem{Base: codedFrom, Disp: output*c.bytes + disp} }

func codedKernels() {
	bytesOf := func(name string, b uint32) Mem {
		m := GLOBL(name, RODATA|NOPTR)
		for i := range 8 {
			DATA(i*4, U32(b))
		}
		return m
	}
	one, two := bytesOf("codedOnes", 0x01010101), bytesOf("codedTwos", 0x02020202)
	three, less := bytesOf("codedThrees", 0x03030303), bytesOf("codedLess", 0x3f3f3f3f) // codebook.Zero − 1

	rows := func(name string, values ...uint32) Mem {
		m := GLOBL(name, RODATA|NOPTR)
		for i, v := range values {
			DATA(i*4, U32(v))
		}
		return m
	}
	nibbles, threes := rows("codedNibbles", 0, 4, 8, 12, 16, 20, 24, 28), rows("codedBits", 0, 3, 6, 9, 16, 19, 22, 25)
	seven, fifteen := bytesOf("codedSeven", 7), bytesOf("codedFifteen", 15)
	quarter, eighth := rows("codedQuarter", math.Float32bits(1./4)), rows("codedEighth", math.Float32bits(1./8))
	unit := bytesOf("codedUnit", 1)
	negate := func(masks, to reg.VecPhysical) {
		VPXOR(masks, to, to)
		VPAND(one, masks, masks)
		VPADDB(masks, to, to)
	}
	first := func(int) int { return 0 }
	// packed makes the scales of a half of four bytes, from so many on, whose bits begin at shifts.
	packed := func(from int, shifts, mask Mem) func(c *coded, output, half int, to reg.VecPhysical) {
		return func(c *coded, output, half int, to reg.VecPhysical) {
			VPBROADCASTD(c.plain(output, from+4*half), to)
			VPSRLVD(shifts, to, to)
			VPAND(mask, to, to)
		}
	}
	for _, c := range []coded{
		{name: "IQ1S", bytes: 50, over: 8, halves: 1, scale: first,
			scales: func(c *coded, o, _ int, to reg.VecPhysical) {
				VPMOVZXWD(c.plain(o, 34), to)
				VPSRLD(U8(12), to, to)
				VPAND(seven, to, to)
			},
			read: func(c *coded, o int, to reg.VecPhysical) {
				MOVL(c.at(o, 2, 4), reg.EAX)
				MOVWLZX(c.at(o, 34, 2), reg.EBX)
				entries8(to, func(i int) {
					takeByte(reg.RAX, i)
					upperBits(3*i, 3)
				})
				SHRL(U8(12), reg.EBX)
				ANDL(U8(8), reg.EBX)
				VPBROADCASTQ(Mem{Base: codedSigns, Index: reg.RBX, Scale: 8}, Y(8))
				VPADDQ(Y(8), to, to) // not by bytes: −1 is eight of them with what they carry
			}},
		{name: "IQ1M", bytes: 56, over: 8, halves: 2,
			scales: packed(48, threes, seven),
			read: func(c *coded, o int, to reg.VecPhysical) {
				MOVL(c.at(o, 0, 4), reg.EAX)
				MOVWLZX(c.at(o, 32, 2), reg.EBX)
				entries8(to, func(i int) {
					takeByte(reg.RAX, i)
					upperBits(4*i, 3)
				})
				masks8(func(i int) { bitsOf(reg.RBX, sign, 4*i, 4) })
				VPADDQ(Y(10), to, to)
			}},
		{name: "IQ2XXS", bytes: 66, over: 8, halves: 1, scale: first,
			scales: func(c *coded, o, _ int, to reg.VecPhysical) {
				VMOVUPS(c.plain(o, 2), to)
				VSHUFPS(U8(0xdd), c.plain(o, 34), to, to) // every other four bytes
				VPERMQ(U8(0xd8), to, to)
				VPSRLD(U8(28), to, to)
			},
			read: func(c *coded, o int, to reg.VecPhysical) {
				MOVL(c.at(o, 2, 8), reg.EAX)
				MOVL(c.at(o, 6, 8), reg.EDX)
				entries8(to, func(i int) { takeByte(reg.RAX, i) })
				masks8(func(i int) { bitsOf(reg.RDX, sign, 7*i, 7) })
				negate(Y(10), to)
			}},
		{name: "IQ2XS", bytes: 74, over: 8, halves: 2, scale: first,
			scales: packed(66, nibbles, fifteen),
			read: func(c *coded, o int, to reg.VecPhysical) {
				MOVQ(c.at(o, 2, 8), reg.RAX)
				entries8(to, func(i int) { bitsOf(reg.RAX, entry, 16*i, 9) })
				masks8(func(i int) { bitsOf(reg.RAX, sign, 16*i+9, 7) })
				negate(Y(10), to)
			}},
		{name: "IQ2S", bytes: 82, over: 8, halves: 2, scale: first,
			scales: packed(74, nibbles, fifteen),
			read: func(c *coded, o int, to reg.VecPhysical) {
				MOVL(c.at(o, 2, 4), reg.EAX)
				MOVBLZX(c.at(o, 66, 1), reg.EBX)
				MOVL(c.at(o, 34, 4), reg.EDX)
				entries8(to, func(i int) {
					takeByte(reg.RAX, i)
					upperBits(2*i, 2)
				})
				masks8(func(i int) { bitsOf(reg.RDX, sign, 8*i, 8) })
				negate(Y(10), to)
			}},
		{name: "IQ3XXS", bytes: 98, over: 4, halves: 1, scale: first,
			scales: func(c *coded, o, _ int, to reg.VecPhysical) {
				VMOVUPS(c.plain(o, 66), to)
				VPSRLD(U8(28), to, to)
			},
			read: func(c *coded, o int, to reg.VecPhysical) {
				MOVQ(c.at(o, 2, 8), reg.RAX)
				MOVL(c.at(o, 66, 4), reg.EDX)
				entries4(to, 4, func(i int) { takeByte(reg.RAX, i) })
				masks8(func(i int) { bitsOf(reg.RDX, sign, 7*i, 7) })
				negate(Y(10), to)
			}},
		{name: "IQ3S", bytes: 110, halves: 1, scale: first,
			scales: packed(106, nibbles, fifteen),
			read: func(c *coded, o int, to reg.VecPhysical) {
				MOVQ(c.at(o, 2, 8), reg.RAX)
				MOVBLZX(c.at(o, 66, 1), reg.EBX)
				MOVL(c.at(o, 74, 4), reg.EDX)
				entries4(to, 4, func(i int) {
					takeByte(reg.RAX, i)
					upperBits(i, 1)
				})
				masks8(func(i int) { bitsOf(reg.RDX, sign, 8*i, 8) })
				negate(Y(10), to)
			}},
		{name: "TQ2", bytes: 66, halves: 1, scale: func(int) int { return 64 },
			place: func() { // 32 bytes of four elements each, 32 apart
				MOVQ(codedNumber, codedPlace)
				MOVL(codedNumber.As32(), reg.EAX)
				SHRQ(U8(2), codedPlace)
				SHLQ(U8(5), codedPlace)
				ANDL(U8(3), reg.EAX)
				SHLL(U8(1), reg.EAX)
				VMOVD(reg.EAX, reg.X12)
			}, read: func(c *coded, o int, to reg.VecPhysical) {
				VMOVDQU(c.placed(o, 0), to)
				VPSRLW(reg.X12, to, to)
				VPAND(three, to, to)
				VPADDB(less, to, to)
			}},
		{name: "Q1", bytes: 36, halves: 2, scale: func(half int) int { return 18 * half },
			place: func() { // blocks of 128: a scale, 16 bytes
				MOVQ(codedNumber, codedPlace)
				SHRQ(U8(2), codedPlace)
				ADDQ(codedPlace, codedPlace)
				LEAQ(Mem{Base: codedPlace, Index: codedNumber, Scale: 4}, codedPlace)
			}, read: func(c *coded, o int, to reg.VecPhysical) {
				MOVL(c.placed(o, 2), reg.EAX)
				entries8(to, func(i int) { takeByte(reg.RAX, i) })
				VPAND(two, to, to)
				VPADDB(less, to, to)
			}},
		{name: "Q2", bytes: 72, halves: 4, scale: func(half int) int { return 18 * half },
			place: func() { // blocks of 64: a scale, 16 bytes
				MOVQ(codedNumber, codedPlace)
				SHRQ(U8(1), codedPlace)
				ADDQ(codedPlace, codedPlace)
				LEAQ(Mem{Base: codedPlace, Index: codedNumber, Scale: 8}, codedPlace)
			}, read: func(c *coded, o int, to reg.VecPhysical) {
				MOVQ(c.placed(o, 2), reg.RAX)
				entries4(to, 8, func(i int) { takeByte(reg.RAX, i) })
			}},
	} {
		c.generate(unit, map[float32]Mem{4: quarter, 8: eighth}[c.over])
	}
}

// factors writes those of eight outputs.
func (c *coded) factors(unit, over Mem) {
	const each = 16 // factors of an output
	for half := range c.halves {
		for o := range 8 {
			to := Y(o)
			if c.scale == nil {
				c.gatherScale(o)
			} else {
				VPBROADCASTW(c.plain(o, c.scale(half)), reg.X8)
			}
			VCVTPH2PS(reg.X8, Y(8))
			if c.scales == nil {
				VMOVAPS(Y(8), to)
				continue
			}
			c.scales(c, o, half, to)
			VPADDD(to, to, to)
			VPADDD(unit, to, to)
			VCVTDQ2PS(to, to)
			VMULPS(Y(8), to, to)
		}
		if c.over > 1 {
			VBROADCASTSS(over, Y(8))
			for o := range 8 {
				VMULPS(Y(8), Y(o), Y(o))
			}
		}
		transpose8()
		share := each / c.halves
		for i := range share {
			f := half*share + i
			VMOVUPS(Y(8+i*min(share, 8)/share), Mem{Base: codedTo, Disp: f/2*codedBlock + f%2*kFactor})
		}
	}
}

// gatherScale is IQ1_M's scale of an output, whose four bits lie in the upper ones of four words.
func (c *coded) gatherScale(output int) {
	MOVQ(c.plain(output, 48), reg.RAX)
	XORL(reg.EBX, reg.EBX)
	for i := range 4 {
		MOVQ(reg.RAX, sign)
		SHRQ(U8(12+12*i), sign)
		ANDL(U32(15<<(4*i)), sign.As32())
		ORL(sign.As32(), reg.EBX)
	}
	VMOVD(reg.EBX, reg.X8)
	VPBROADCASTW(reg.X8, reg.X8)
}

// takeByte makes byte i of a register the number of an entry; bytes are taken in order.
func takeByte(from reg.GPPhysical, i int) {
	if i > 0 {
		SHRQ(U8(8), from)
	}
	MOVBLZX(from.As8(), entry.As32())
}

// upperBits adds so many bits of EBX, from one on, to an entry's number, above its low eight.
func upperBits(from, count int) {
	MOVL(reg.EBX, sign.As32())
	switch {
	case from < 8:
		SHLL(U8(8-from), sign.As32())
	case from > 8:
		SHRL(U8(from-8), sign.As32())
	}
	ANDL(U32((1<<count-1)<<8), sign.As32())
	ORL(sign.As32(), entry.As32())
}

// bitsOf makes so many bits of a register, from one on, a number.
func bitsOf(from, to reg.GPPhysical, first, count int) {
	MOVQ(from, to)
	if first > 0 {
		SHRQ(U8(first), to)
	}
	ANDL(U32(1<<count-1), to.As32())
}

// entries8 loads four entries of eight elements; number sets entry.
func entries8(to reg.VecPhysical, number func(i int)) {
	load8(codedEntries, entry, reg.X8, reg.X9, number)
	VINSERTI128(U8(1), reg.X9, Y(8), to)
}

// masks8 loads what is done to four times eight elements into Y10; number sets sign.
func masks8(number func(i int)) {
	load8(codedSigns, sign, reg.X10, reg.X11, number)
	VINSERTI128(U8(1), reg.X11, Y(10), Y(10))
}

func load8(table, at reg.GPPhysical, low, high reg.VecPhysical, number func(i int)) {
	for i := range 4 {
		half := []reg.VecPhysical{low, high}[i/2]
		number(i)
		m := Mem{Base: table, Index: at, Scale: 8}
		if i%2 == 0 {
			VMOVQ(m, half)
		} else {
			VPINSRQ(U8(1), m, half, half)
		}
	}
}

// entries4 loads eight entries of four elements, which are so many bytes apart.
func entries4(to reg.VecPhysical, apart uint8, number func(i int)) {
	for i := range 8 {
		half := []reg.VecPhysical{reg.X8, reg.X9}[i/4]
		number(i)
		m := Mem{Base: codedEntries, Index: entry, Scale: apart}
		if i%4 == 0 {
			VMOVD(m, half)
		} else {
			VPINSRD(U8(i%4), m, half, half)
		}
	}
	VINSERTI128(U8(1), reg.X9, Y(8), to)
}

// generate emits the function: over groups of eight outputs, blocks of 32 elements.
func (c *coded) generate(unit, over Mem) {
	function("expand"+c.name+"AVX2", "(dst, src, entries, signs *byte)", "expand"+c.name+"AVX2 unpacks a step of a panel.")
	Load(Param("dst"), codedTo)
	Load(Param("src"), codedFrom)
	Load(Param("entries"), codedEntries)
	Load(Param("signs"), codedSigns)
	MOVL(U32(32/8), codedGroup.As32())
	Label("group")
	c.factors(unit, over)
	XORL(codedNumber.As32(), codedNumber.As32())
	Label("block")
	if c.place != nil {
		c.place()
	}
	for o := range 8 {
		c.read(c, o, Y(o))
	}
	transpose8()
	for turn, v := range [8]int{8, 9, 10, 11, 12, 13, 14, 15} {
		VMOVDQU(Y(v), Mem{Base: codedTo, Disp: 2*kFactor + turn*kWords})
	}
	ADDQ(imm(codedBlock), codedTo)
	INCQ(codedNumber)
	CMPQ(codedNumber, imm(8))
	JNE(LabelRef("block"))
	SUBQ(imm(8*codedBlock-32), codedTo)
	ADDQ(imm(8*c.bytes), codedFrom)
	DECL(codedGroup.As32())
	JNZ(LabelRef("group"))
	VZEROUPPER()
	RET()
}

// transpose8 makes the i-th four bytes of Y0 to Y7 register Y8+i.
func transpose8() {
	for i := 0; i < 8; i += 2 { // pairs: Y8 … Y15 have 0 0 1 1 | 4 4 5 5 and 2 2 3 3 | 6 6 7 7 of two rows
		VPUNPCKLDQ(Y(i+1), Y(i), Y(8+i))
		VPUNPCKHDQ(Y(i+1), Y(i), Y(9+i))
	}
	for half := range 2 { // fours: Y0 … Y3 of the first four rows, Y4 … Y7 of the others
		a, b := Y(8+4*half), Y(10+4*half)
		c, d := Y(9+4*half), Y(11+4*half)
		VPUNPCKLQDQ(b, a, Y(4*half))
		VPUNPCKHQDQ(b, a, Y(4*half+1))
		VPUNPCKLQDQ(d, c, Y(4*half+2))
		VPUNPCKHQDQ(d, c, Y(4*half+3))
	}
	for i := range 4 {
		VPERM2I128(U8(0x20), Y(4+i), Y(i), Y(8+i))
		VPERM2I128(U8(0x31), Y(4+i), Y(i), Y(12+i))
	}
}
