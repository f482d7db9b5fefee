package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// The fields of the Go struct tile, by offset (kernels_amd64.go checks them).
const (
	tileW      = 8 * iota // the weights of the first step
	tileX                 // the first row's activations there
	tileXS                // bytes from a row to the next
	tileSteps             // how many steps
	tileAcc               // [rows][Panel]f32 to resume from and work in
	tileFirst             // not to resume but to start from zero
	tileOut               // where the results go
	tileOutS              // bytes from a row to the next there
	tilePF                // what to prefetch meanwhile
	tilePFS               // bytes from one prefetch to the next
	tileDense             // 0: to do the sparse prefetches, 1: all, 2: all, of what is read once
	tileRows              // number of rows
	tileScale             // Q8_0 in parts of a panel: the scales of the first step
	tileBlocks            // blocks of so many rows, one after another
)

const (
	accRow   = 128 // bytes of a row at tileAcc
	tallRows = 12  // in a call with AVX-512: so many leave registers for the sums of floats
)

// Registers of every product kernel.
var (
	w     = reg.RSI
	x0    = reg.RDI // row 0
	x4    = reg.R14 // row 4
	x8    = reg.RAX // row 8, where a kernel has so many
	xs    = reg.R9  // bytes between rows
	xs3   = reg.R10 // three times that
	pf    = reg.R11
	pfs   = reg.R12
	dense = reg.R13
	n     = reg.RCX // steps left
	acc   = reg.RBX
	left  = reg.RAX // blocks left in a group
	tmp   = reg.RDX
	args  = reg.R15
)

// kernel describes a function that multiplies one panel, or half its lanes, by up to
// maxRows rows. There is a straight-line body for each number of rows.
type kernel struct {
	name    string
	doc     string
	maxRows int
	zmm     bool // 32 outputs in two ZMM; else 16 in two YMM
	flush   bool // subnormal operands and results are zero
	unroll  int  // steps in a turn of the main loop
	wStep   int  // bytes of weights in a step
	xStep   int  // bytes of a row of activations in a step
	setup   func()
	step    func(k *kernel, r, u int) // multiplies step u of a turn, by r rows

	pfDense, pfSparse int // prefetches in a turn

	saved Mem // MXCSR of the caller
}

const (
	vecs = 2 // registers of outputs per row

	mxcsrFTZ = 1 << 15
	mxcsrDAZ = 1 << 6
)

// Z and Y are the vector registers by number.
func Z(i int) reg.VecPhysical { return vector(i, reg.S512) }
func Y(i int) reg.VecPhysical { return vector(i, reg.S256) }

func vector(i int, s reg.Spec) reg.VecPhysical {
	return reg.Vector.Lookup(reg.Index(i), s).(reg.VecPhysical)
}

// vec is vector register i in the kernel's width.
func (k *kernel) vec(i int) reg.VecPhysical {
	if k.zmm {
		return Z(i)
	}
	return Y(i)
}

func (k *kernel) width() int {
	if k.zmm {
		return 64
	}
	return 32
}

func (k *kernel) zero(r reg.VecPhysical) {
	if k.zmm {
		VPXORD(r, r, r)
	} else {
		VPXOR(r, r, r)
	}
}

// acc is the accumulator of a row's v-th vector of outputs.
func (k *kernel) acc(row, v int) reg.VecPhysical { return k.vec(row*vecs + v) }

// x is the memory of a row's activations at an offset from its pointer.
func x(row, disp int) Mem {
	base := x0
	switch row / 4 {
	case 1:
		base = x4
	case 2:
		base = x8
	}
	switch row % 4 {
	case 1:
		return Mem{Base: base, Index: xs, Scale: 1, Disp: disp}
	case 2:
		return Mem{Base: base, Index: xs, Scale: 2, Disp: disp}
	case 3:
		return Mem{Base: base, Index: xs3, Scale: 1, Disp: disp}
	}
	return Mem{Base: base, Disp: disp}
}

func arg(off int, r Op) { MOVQ(Mem{Base: args, Disp: off}, r) }

// imm is an immediate of the shortest form.
func imm(v int) Op {
	if v < 128 {
		return U8(v)
	}
	return U32(v)
}

// begin opens the function, loads the arguments and jumps to the body for the rows asked for. end closes it.
func (k *kernel) begin() {
	function(k.name, "(t *tile)", k.doc)
	Load(Param("t"), args)
	arg(tilePF, pf)
	arg(tilePFS, pfs)
	arg(tileDense, dense)
	if k.flush {
		k.saved = AllocLocal(8)
		STMXCSR(k.saved)
		MOVL(k.saved, tmp.As32())
		ORL(U32(mxcsrFTZ|mxcsrDAZ), tmp.As32())
		MOVL(tmp.As32(), k.saved.Offset(4))
		LDMXCSR(k.saved.Offset(4))
	}
	Label("rows")
	arg(tileW, w)
	arg(tileX, x0)
	arg(tileXS, xs)
	LEAQ(Mem{Base: xs, Index: xs, Scale: 2}, xs3)
	LEAQ(Mem{Base: x0, Index: xs, Scale: 4}, x4)
	if k.maxRows > 8 {
		LEAQ(Mem{Base: x0, Index: xs, Scale: 8}, x8)
	}
	arg(tileSteps, n)
	arg(tileAcc, acc)
	if k.setup != nil {
		k.setup()
	}
	arg(tileRows, tmp)
	for r := 1; r < k.maxRows; r++ {
		CMPQ(tmp, imm(r))
		JEQ(LabelRef(fmt.Sprintf("rows%d", r)))
	}
	JMP(LabelRef(fmt.Sprintf("rows%d", k.maxRows)))
}

// end goes on to the next block of rows, or returns.
func (k *kernel) end() {
	Label("end")
	Load(Param("t"), args)
	DECQ(Mem{Base: args, Disp: tileBlocks})
	JZ(LabelRef("return"))
	arg(tileRows, n)
	for _, p := range []struct{ at, each int }{{tileX, tileXS}, {tileOut, tileOutS}} {
		arg(p.each, tmp)
		IMULQ(n, tmp)
		ADDQ(tmp, Mem{Base: args, Disp: p.at})
	}
	IMUL3Q(U32(accRow), n, tmp)
	ADDQ(tmp, Mem{Base: args, Disp: tileAcc})
	JMP(LabelRef("rows"))
	Label("return")
	if k.flush {
		LDMXCSR(k.saved)
	}
	VZEROUPPER()
	RET()
}

// each calls f for every vector of outputs of r rows.
func each(r int, f func(row, v int)) {
	for row := range r {
		for v := range vecs {
			f(row, v)
		}
	}
}

func (k *kernel) accMem(row, v int) Mem {
	return Mem{Base: acc, Disp: row*accRow + v*k.width()}
}

// resume loads the accumulators of r rows from memory, or zeroes them.
func (k *kernel) resume(r int, reg func(row, v int) reg.VecPhysical) {
	arg(tileFirst, tmp)
	TESTQ(tmp, tmp)
	zero, done := fmt.Sprintf("zero%d", r), fmt.Sprintf("resumed%d", r)
	JNZ(LabelRef(zero))
	each(r, func(row, v int) { VMOVUPS(k.accMem(row, v), reg(row, v)) })
	JMP(LabelRef(done))
	Label(zero)
	each(r, func(row, v int) { k.zero(reg(row, v)) })
	Label(done)
}

// store writes the accumulators of r rows.
func (k *kernel) store(r int, reg func(row, v int) reg.VecPhysical) {
	arg(tileOut, acc)
	arg(tileOutS, tmp)
	for row := range r {
		for v := range vecs {
			VMOVUPS(reg(row, v), Mem{Base: acc, Disp: v * k.width()})
		}
		if row < r-1 {
			ADDQ(tmp, acc)
		}
	}
	JMP(LabelRef("end"))
}

func prefetch(count int) { prefetchBy(func(m Mem) { PREFETCHT0(m) }, count) }

func prefetchBy(hint func(Mem), count int) {
	for range count {
		hint(Mem{Base: pf})
		ADDQ(pfs, pf)
	}
}

// prefetchTurn does the prefetches of turn i and the next of a block, where i is even: its share of the sparse ones or,
// where the tile asks for them, of all.
func prefetchTurn(name string, i, sparse, all int) {
	if i%2 == 0 {
		share := func(count int) int { return (i+2)*count/kTurns - i*count/kTurns }
		prefetchAs(fmt.Sprintf("%s_prefetched%d", name, i), share(sparse), share(all))
	}
}

// prefetchAs does so many prefetches as the tile asks for.
func prefetchAs(label string, sparse, all int) {
	CMPQ(dense, imm(1))
	JB(LabelRef(label + "_sparse"))
	JE(LabelRef(label + "_all"))
	prefetchBy(func(m Mem) { PREFETCHNTA(m) }, all)
	JMP(LabelRef(label))
	Label(label + "_all")
	prefetch(all)
	JMP(LabelRef(label))
	Label(label + "_sparse")
	prefetch(sparse)
	Label(label)
}

// advance moves the pointers on by some steps.
func (k *kernel) advance(r, steps int) {
	ADDQ(imm(steps*k.wStep), w)
	skip(r, steps*k.xStep)
}

// skip moves the pointers to r rows of activations on by some bytes.
func skip(r, bytes int) {
	ADDQ(imm(bytes), x0)
	if r > 4 {
		ADDQ(imm(bytes), x4)
	}
	if r > 8 {
		ADDQ(imm(bytes), x8)
	}
}

// generate emits the whole function: per number of rows, a loop of unrolled steps and one
// of single steps.
func (k *kernel) generate() {
	k.begin()
	for r := 1; r <= k.maxRows; r++ {
		lab := func(s string) string { return fmt.Sprintf("%s%d", s, r) }
		Label(lab("rows"))
		k.resume(r, k.acc)
		SUBQ(imm(k.unroll), n)
		JL(LabelRef(lab("tail")))
		Label(lab("turn"))
		for u := range k.unroll {
			share := func(count int) int { return (u+1)*count/k.unroll - u*count/k.unroll }
			prefetchAs(lab(fmt.Sprintf("prefetched%d_", u)), share(k.pfSparse), share(k.pfDense))
			k.step(k, r, u)
		}
		k.advance(r, k.unroll)
		SUBQ(imm(k.unroll), n)
		JGE(LabelRef(lab("turn")))
		Label(lab("tail"))
		ADDQ(imm(k.unroll), n)
		JZ(LabelRef(lab("done")))
		Label(lab("one"))
		k.step(k, r, 0)
		k.advance(r, 1)
		DECQ(n)
		JNZ(LabelRef(lab("one")))
		Label(lab("done"))
		k.store(r, k.acc)
	}
	k.end()
}

// Where registers are too few, the whole sums of a product's groups stay in memory: a group touches them once.

// beginWhole zeroes those of r rows, or goes to a label to resume from them.
func (k *kernel) beginWhole(r int, resume string, t reg.VecPhysical) {
	arg(tileFirst, tmp)
	TESTQ(tmp, tmp)
	JZ(LabelRef(resume))
	k.zero(t)
	each(r, func(row, v int) { VMOVUPS(t, k.accMem(row, v)) })
}

// addWhole adds the parts of a group, times its scales.
func (k *kernel) addWhole(r int, part func(row, v int) Op, b, t reg.VecPhysical) {
	for row := range r {
		VBROADCASTSS(x(row, 0), b)
		for v := range vecs {
			VMOVUPS(k.accMem(row, v), t)
			VFMADD231PS(part(row, v), b, t)
			VMOVUPS(t, k.accMem(row, v))
		}
	}
}

// storeWhole copies the whole sums of r rows from memory to where the results go.
func (k *kernel) storeWhole(r int, t reg.VecPhysical) {
	Load(Param("t"), args)
	arg(tileOut, w)
	arg(tileOutS, tmp)
	for row := range r {
		for v := range vecs {
			VMOVUPS(k.accMem(row, v), t)
			VMOVUPS(t, Mem{Base: w, Disp: v * k.width()})
		}
		if row < r-1 {
			ADDQ(tmp, w)
		}
	}
	JMP(LabelRef("end"))
}
