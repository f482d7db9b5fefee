package main

import "fmt"

// The constants of SplitMix64: the step, and the two factors of its output function.
const (
	golden  = 0x9e3779b97f4a7c15
	factor1 = 0xbf58476d1ce4e5b9
	factor2 = 0x94d049bb133111eb
)

func hashKernels(g *gen) {
	g.fn("firstHash", "func(key uint64, n int, least uint64) int")
	hashSearch(g, false)
	g.fn("firstHashOf", "func(key uint64, tokens []int32, least uint64) int")
	hashSearch(g, true)
}

// hashSearch takes four numbers a turn, with one branch for them all. It keeps to the general
// registers: NEON has no product of 64 bits, and making it of narrower ones takes as many
// instructions as it saves.
func hashSearch(g *gen, listed bool) {
	const key, n, least, tokens, i = "R0", "R1", "R2", "R3", "R4"
	const f1, f2, step = "R5", "R6", "R7"
	h := func(j int) string { return fmt.Sprintf("R%d", 8+j) }
	if listed {
		g.params("key", key, "tokens_base", tokens, "tokens_len", n, "least", least)
	} else {
		g.params("key", key, "n", n, "least", least)
	}
	g.I("MOVD $0x%x, %s", uint64(factor1), f1)
	g.I("MOVD $0x%x, %s", uint64(factor2), f2)
	g.I("MOVD $0x%x, %s", uint64(golden), step)
	g.I("MOVD ZR, %s", i)
	loop := g.label()
	found := g.label()
	done := g.label()
	g.Label("%s", loop)
	g.I("CMP %s, %s", n, i)
	g.I("BGE %s", done)
	if listed {
		for j := range 4 {
			g.I("MOVW.P 4(%s), %s", tokens, h(j))
		}
		for j := range 4 {
			g.I("MADD %s, %s, %s, %s", step, key, h(j), h(j))
		}
	} else {
		g.I("ADD %s, %s, %s", step, key, h(0))
		for j := 1; j < 4; j++ {
			g.I("ADD %s, %s, %s", step, h(j-1), h(j))
		}
		g.I("MOVD %s, %s", h(3), key)
	}
	each := func(format string, args ...any) {
		for j := range 4 {
			g.I(format, append(args, h(j), h(j), h(j))...)
		}
	}
	each("EOR %[1]s>>30, %[1]s, %[1]s")
	each("MUL %[1]s, %[2]s, %[2]s", f1)
	each("EOR %[1]s>>27, %[1]s, %[1]s")
	each("MUL %[1]s, %[2]s, %[2]s", f2)
	each("EOR %[1]s>>31, %[1]s, %[1]s")
	g.I("CMP %s, %s", least, h(0))
	for j := 1; j < 4; j++ {
		g.I("CCMP LO, %s, %s, $2", h(j), least) // else as if it were not less
	}
	g.I("BHS %s", found)
	g.I("ADD $4, %s, %s", i, i)
	g.I("JMP %s", loop)
	g.Label("%s", found)
	for j := range 3 {
		g.I("CMP %s, %s", least, h(j))
		g.I("BHS %s", done)
		g.I("ADD $1, %s, %s", i, i)
	}
	g.Label("%s", done)
	g.I("MOVD %s, %s", i, g.arg("ret"))
	g.ret()
}
