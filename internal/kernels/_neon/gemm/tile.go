package main

import (
	"fmt"

	"github.com/grovellm/grove/internal/kernels/_neon/asm"
)

// The fields of the Go struct tile, by offset (kernels_arm64.go checks them).
const (
	tileW     = 8 * iota // the weights of the first step
	tileX                // the first row's activations there
	tileXS               // bytes from a row to the next
	tileSteps            // how many steps
	tileAcc              // [rows][Panel]f32 to resume from
	tileFirst            // not to resume but to start from zero
	tileOut              // where the results go
	tileOutS             // bytes from a row to the next there
	tilePF               // what to prefetch meanwhile
	tilePFS              // bytes from one prefetch to the next
	tileDense            // unused: prefetches are few and always done
	tileRows             // number of rows
	tileScale            // integer products: the scales of the first step
)

const accRow = 128 // bytes of a row at tileAcc

// General registers of every product kernel. R16 to R18 and R26 up are the linker's, the system's and Go's.
const (
	args  = "R0"
	w     = "R1"
	steps = "R23" // left
	pf    = "R8"
	pfs   = "R9"
	out   = "R10"
	outs  = "R11"
	tmp   = "R12"
	tmp2  = "R13"
	left  = "R14" // blocks left in a group
	group = "R15" // groups left in a step of a K type
	heads = "R19" // f16 scales
	small = "R20" // integer scales of a K type
)

// x is the register that points to a row's activations: R2 to R7.
func x(row int) string { return fmt.Sprintf("R%d", 2+row) }

// kernel is a function that multiplies 4·vecs outputs by up to maxRows rows. There is a
// straight-line body for each number of rows. 16 sums or more keep four multipliers of latency 4
// busy; beyond that, the more of both there are, the fewer loads and conversions a multiplication
// costs.
type kernel struct {
	*asm.File
	name, doc     string
	vecs, maxRows int
	flushes       bool // it returns whether a sum was flushed to zero
}

// begin opens the function, loads the arguments and jumps to the body for the rows asked for.
func (k *kernel) begin(setup func()) {
	signature, size := "(t *tile)", 8
	if k.flushes {
		signature, size = "(t *tile) (flushed int)", 16
	}
	k.Func(k.name, k.doc, signature, size)
	k.I("MOVD t+0(FP), %s", args)
	k.arg(tileW, w)
	k.arg(tileX, x(0))
	k.arg(tileXS, tmp)
	for row := 1; row < k.maxRows; row++ {
		k.I("ADD %s, %s, %s", tmp, x(row-1), x(row))
	}
	k.arg(tileSteps, steps)
	k.arg(tilePF, pf)
	k.arg(tilePFS, pfs)
	k.arg(tileOut, out)
	k.arg(tileOutS, outs)
	if setup != nil {
		setup()
	}
	k.arg(tileRows, tmp)
	for r := 1; r < k.maxRows; r++ {
		k.I("CMP $%d, %s", r, tmp)
		k.I("BEQ %s", label("rows", r))
	}
	if k.maxRows > 1 {
		k.I("B %s", label("rows", k.maxRows))
	}
}

func label(name string, i int) string { return fmt.Sprintf("%s%d", name, i) }

func (k *kernel) arg(off int, reg string) { k.I("MOVD %d(%s), %s", off, args, reg) }

// sum is the accumulator of a row's v-th vector of outputs.
func (k *kernel) sum(row, v int) int { return row*k.vecs + v }

// each calls f for every vector of outputs of r rows.
func (k *kernel) each(r int, f func(row, v int)) {
	for row := range r {
		for v := range k.vecs {
			f(row, v)
		}
	}
}

// load and store move neighbouring registers, two or four of them floats each.
func (k *kernel) load(base string, off, a, b int) {
	k.I("FLDPQ %d(%s), (F%d, F%d)", off, base, a, b)
}

func (k *kernel) store(base string, off, a, b int) {
	k.I("FSTPQ (F%d, F%d), %d(%s)", a, b, off, base)
}

// prefetch asks for so many of the lines that the tile wants fetched.
func (k *kernel) prefetch(count int) {
	for range count {
		k.I("PRFM (%s), PLDL2KEEP", pf)
		k.I("ADD %s, %s, %s", pfs, pf, pf)
	}
}

// resume loads the sums of r rows from memory, or zeroes them.
func (k *kernel) resume(r int, reg func(row, v int) int) {
	k.arg(tileFirst, tmp)
	k.I("CBNZ %s, %s", tmp, label("zero", r))
	k.arg(tileAcc, tmp)
	for row := range r {
		for v := 0; v < k.vecs; v += 2 {
			k.load(tmp, row*accRow+v*16, reg(row, v), reg(row, v+1))
		}
	}
	k.I("B %s", label("resumed", r))
	k.Label(label("zero", r))
	k.each(r, func(row, v int) { k.Zero(reg(row, v)) })
	k.Label(label("resumed", r))
}

// finish writes the sums of r rows.
func (k *kernel) finish(r int, reg func(row, v int) int) {
	for row := range r {
		for v := 0; v < k.vecs; v += 2 {
			k.store(out, v*16, reg(row, v), reg(row, v+1))
		}
		if row < r-1 {
			k.I("ADD %s, %s, %s", outs, out, out)
		}
	}
}
