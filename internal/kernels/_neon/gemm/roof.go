package main

import "github.com/grovellm/grove/internal/kernels/_neon/asm"

func roofKernels(f *asm.File) {
	peak(f, "peakFMANEON", "times FMLA by an element.", f.FmlaElem)
	peak(f, "peakQ8NEON", "times SDOT by an element.", f.SdotElem)
	peak(f, "peakQ8I8MM", "times SMMLA.", func(d, n, m, _ int) { f.Smmla(d, n, m) })
	read(f)
}

// chains are as many as four multipliers of latency 4 ask for, and half as many more.
const chains = 24

// peak emits a loop of independent chains of one instruction.
func peak(f *asm.File, name, doc string, op func(d, n, m, index int)) {
	f.Func(name, name+" "+doc, "(iters int)", 8)
	f.I("MOVD iters+0(FP), R0")
	for i := range chains + 2 {
		f.Zero(i)
	}
	f.Label("loop")
	for i := range chains {
		op(i, chains, chains+1, i%4)
	}
	f.I("SUBS $1, R0")
	f.I("BNE loop")
	f.I("RET")
}

// read emits a loop over memory that keeps many loads in flight, and asks for lines as the product kernels do.
func read(f *asm.File) {
	const ahead = 8192
	f.Func("readNEON", "readNEON is the exclusive or of the 8-byte words of n bytes, n a multiple of 512.", "(p *byte, n int) uint64", 24)
	f.I("MOVD p+0(FP), R0")
	f.I("MOVD n+8(FP), R1")
	for i := range 8 {
		f.Zero(i)
	}
	f.Label("loop")
	for i := 0; i < 32; i += 2 {
		if i%8 == 0 {
			f.I("PRFM %d(R0), PLDL2KEEP", ahead+i*16)
		}
		f.I("FLDPQ %d(R0), (F%d, F%d)", i*16, 8+i%16, 9+i%16)
		f.I("VEOR V%d.B16, V%d.B16, V%d.B16", 8+i%16, i%8, i%8)
		f.I("VEOR V%d.B16, V%d.B16, V%d.B16", 9+i%16, i%8+1, i%8+1)
	}
	f.I("ADD $512, R0")
	f.I("SUBS $512, R1")
	f.I("BNE loop")
	for i := 1; i < 8; i++ {
		f.I("VEOR V%d.B16, V0.B16, V0.B16", i)
	}
	f.I("VMOV V0.D[0], R2")
	f.I("VMOV V0.D[1], R3")
	f.I("EOR R3, R2, R2")
	f.I("MOVD R2, ret+16(FP)")
	f.I("RET")
}
