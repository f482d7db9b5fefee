package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// The constants of SplitMix64: the step, and the two factors of its output function.
const (
	golden  = 0x9e3779b97f4a7c15
	factor1 = 0xbf58476d1ce4e5b9
	factor2 = 0x94d049bb133111eb
)

// hashKernels has the search of SplitMix64 hashes, of numbers in sequence and of numbers listed.
func hashKernels(g *gen) {
	g.fn("firstHash", "func(key uint64, n int, least uint64) int")
	g.hashSearch(false)
	g.fn("firstHashOf", "func(key uint64, tokens []int32, least uint64) int")
	g.hashSearch(true)
}

// hashSearch takes 16 numbers a turn: two registers of 8, or four of 4, which hide the latency of
// the products. There is a multiple of 16 of them.
func (g *gen) hashSearch(listed bool) {
	lanes := 4
	if g.level.zmm {
		lanes = 8
	}
	wide := func(x uint64) operand.Mem {
		name := fmt.Sprintf("q%016x", x)
		m, ok := g.tables[name]
		if !ok {
			m = g.StaticGlobal(name)
			g.DataAttributes(attr.RODATA | attr.NOPTR)
			for range 4 {
				g.AppendDatum(operand.U64(x))
			}
			g.tables[name] = m
		}
		return m
	}
	set := func(x uint64) reg.VecVirtual {
		r := g.reg()
		g.VPBROADCASTQ(wide(x), r)
		return r
	}
	scalar := func(name string) reg.VecVirtual {
		b, err := g.Param(name).Resolve()
		if err != nil {
			panic(err)
		}
		r := g.reg()
		g.VPBROADCASTQ(b.Addr, r)
		return r
	}
	key := scalar("key")
	least := scalar("least")
	factor := func(x uint64) (f, high reg.VecVirtual) {
		f = set(x)
		if !g.level.zmm { // upper halves
			high = g.reg()
			g.VPSRLQ(operand.U8(32), f, high)
		}
		return f, high
	}
	f1, h1 := factor(factor1)
	f2, h2 := factor(factor2)
	sign := wide(1 << 63) // makes unsigned numbers compare as signed ones
	if !g.level.zmm {
		g.VPXOR(sign, least, least)
	}
	xorShift := func(x reg.VecVirtual, by uint8) {
		t := g.reg()
		g.VPSRLQ(operand.U8(by), x, t)
		if g.level.zmm {
			g.VPXORQ(t, x, x)
		} else {
			g.VPXOR(t, x, x)
		}
	}
	mul := func(x, f, high reg.VecVirtual) {
		if g.level.zmm {
			g.VPMULLQ(f, x, x)
			return
		}
		// AVX2 has no product of 64 bits: of its parts high·high is beyond them, and of the mixed ones the lower half counts.
		a, b := g.reg(), g.reg()
		g.VPMULUDQ(high, x, a)
		g.VPSRLQ(operand.U8(32), x, b)
		g.VPMULUDQ(f, b, b)
		g.VPADDQ(b, a, a)
		g.VPSLLQ(operand.U8(32), a, a)
		g.VPMULUDQ(f, x, x)
		g.VPADDQ(a, x, x)
	}
	// hashes makes key + number of the hash · golden, for 16 numbers from i on.
	var hashes func(i reg.Register) []reg.VecVirtual
	var n reg.Register
	if listed {
		n = g.Load(g.Param("tokens").Len(), g.GP64())
		base := g.base("tokens")
		step, high := factor(golden)
		hashes = func(i reg.Register) (list []reg.VecVirtual) {
			for at := 0; at < 16; at += lanes {
				x := g.reg()
				g.VPMOVSXDQ(operand.Mem{Base: base, Index: i, Scale: 4, Disp: 4 * at}, x)
				mul(x, step, high)
				g.VPADDQ(key, x, x)
				list = append(list, x)
			}
			return list
		}
	} else {
		n = g.Load(g.Param("n"), g.GP64())
		hashes = g.sequence(key, lanes, wide(16*golden&(1<<64-1)))
	}
	i, bits := g.GP64(), g.GP64()
	g.XORQ(i, i)
	loop := g.label()
	found := g.label()
	none := g.label()
	g.Label(loop)
	g.CMPQ(i, n)
	g.JGE(operand.LabelRef(none))
	list := hashes(i)
	for _, step := range []func(x reg.VecVirtual){
		func(x reg.VecVirtual) { xorShift(x, 30) },
		func(x reg.VecVirtual) { mul(x, f1, h1) },
		func(x reg.VecVirtual) { xorShift(x, 27) },
		func(x reg.VecVirtual) { mul(x, f2, h2) },
		func(x reg.VecVirtual) { xorShift(x, 31) },
	} {
		for _, x := range list {
			step(x)
		}
	}
	const notLess = 5
	if g.level.zmm {
		var k [2]reg.OpmaskVirtual
		for j, x := range list {
			k[j] = g.K()
			g.VPCMPUQ(operand.U8(notLess), least, x, k[j])
		}
		g.KUNPCKBW(k[0], k[1], k[0])
		g.KMOVW(k[0], bits.As32())
		g.TESTL(bits.As32(), bits.As32())
		g.JNZ(operand.LabelRef(found))
	} else {
		// Bits of the lanes that are less; none are when all are found.
		var part [4]reg.GPVirtual
		for j, x := range list {
			g.VPXOR(sign, x, x)
			g.VPCMPGTQ(x, least, x)
			part[j] = g.GP64()
			g.VMOVMSKPD(x, part[j].As32())
		}
		g.MOVL(part[3].As32(), bits.As32())
		for j := 2; j >= 0; j-- {
			g.SHLL(operand.U8(4), bits.As32())
			g.ORL(part[j].As32(), bits.As32())
		}
		g.XORL(operand.U32(0xffff), bits.As32())
		g.JNZ(operand.LabelRef(found))
	}
	g.ADDQ(operand.I8(16), i)
	g.JMP(operand.LabelRef(loop))
	g.Label(found)
	g.BSFQ(bits, bits)
	g.ADDQ(bits, i)
	g.Store(i, g.ReturnIndex(0))
	g.ret()
	g.Label(none)
	g.Store(n, g.ReturnIndex(0))
	g.ret()
}

// sequence makes the numbers of a sequence of hashes: those of the next turn are those of the last and a step, turn.
func (g *gen) sequence(key reg.VecVirtual, lanes int, turn operand.Mem) func(reg.Register) []reg.VecVirtual {
	steps, ok := g.tables["steps"]
	if !ok {
		steps = g.StaticGlobal("steps")
		g.DataAttributes(attr.RODATA | attr.NOPTR)
		for i := range uint64(16) {
			g.AppendDatum(operand.U64((i + 1) * golden))
		}
		g.tables["steps"] = steps
	}
	var state []reg.VecVirtual
	for i := 0; i < 16; i += lanes {
		s := g.reg()
		g.VPADDQ(steps.Offset(8*i), key, s)
		state = append(state, s)
	}
	return func(reg.Register) (list []reg.VecVirtual) {
		for _, s := range state {
			x := g.reg()
			if g.level.zmm {
				g.VMOVDQA64(s, x)
				g.VPADDQ_BCST(turn, s, s)
			} else {
				g.VMOVDQA(s, x)
				g.VPADDQ(turn, s, s)
			}
			list = append(list, x)
		}
		return list
	}
}
