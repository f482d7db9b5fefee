package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"math"
	"strings"

	"github.com/grovellm/grove/internal/kernels/_neon/asm"
)

// gen writes kernels. Its unit is a few registers of four lanes, whose operations are written side by side so that
// each hides the latency of the others.
type gen struct {
	*asm.File
	args   map[string]string // where the arguments of this kernel are
	labels int

	width int    // registers in a vector, at this place of a loop
	rest  string // in the tail of a loop, when not empty: the register that says how many lanes exist, 1 to 3
}

// vec is the registers of a vector.
type vec []int

// scratch is a register for addresses that live for one or two instructions.
const scratch = "R15"

// fn starts a kernel and declares it.
func (g *gen) fn(name, signature string) {
	name += "NEON"
	expr, err := parser.ParseExpr(signature)
	if err != nil {
		panic(err)
	}
	typ := expr.(*ast.FuncType)
	g.args = map[string]string{}
	at := 0
	place := func(name string, size int) {
		at = (at + size - 1) / size * size
		g.args[name] = fmt.Sprintf("%s+%d(FP)", name, at)
		at += size
	}
	put := func(name string, t ast.Expr) {
		switch t := t.(type) {
		case *ast.ArrayType:
			place(name+"_base", 8)
			place(name+"_len", 8)
			place(name+"_cap", 8)
		case *ast.Ident:
			place(name, map[string]int{"int": 8, "uint64": 8, "float32": 4}[t.Name])
		}
	}
	for _, f := range typ.Params.List {
		for _, n := range f.Names {
			put(n.Name, f.Type)
		}
	}
	if typ.Results != nil {
		at = (at + 7) &^ 7
		put("ret", typ.Results.List[0].Type)
	}
	g.labels = 0
	signature = strings.TrimPrefix(signature, "func")
	g.Func(name, "func "+name+signature, signature, at)
}

func (g *gen) label() string {
	g.labels++
	return fmt.Sprintf("l%d", g.labels)
}

func (g *gen) arg(name string) string {
	a, ok := g.args[name]
	if !ok {
		panic("no argument " + name)
	}
	return a
}

// params loads arguments into registers: name, register, name, register.
func (g *gen) params(list ...string) {
	for i := 0; i < len(list); i += 2 {
		g.I("MOVD %s, %s", g.arg(list[i]), list[i+1])
	}
}

// broadcast fills a vector register with a scalar argument.
func (g *gen) broadcast(name string, v int) {
	g.I("FMOVS %s, F%d", g.arg(name), v)
	g.dup(v, v, 0)
}

// table writes constants, of f32.
func (g *gen) table(name string, x ...float64) {
	for i, v := range x {
		if float64(float32(v)) != v && !math.IsInf(v, 0) {
			panic(fmt.Sprintf("%v is not an f32", v))
		}
		g.I("DATA %s<>+%d(SB)/4, $0x%08x // %v", name, 4*i, math.Float32bits(float32(v)), v)
	}
	g.I("GLOBL %s<>(SB), RODATA|NOPTR, $%d", name, 4*len(x))
}

// constants loads a table, four a register, from register v on.
func (g *gen) constants(name string, v, registers int) {
	g.I("MOVD $%s<>(SB), %s", name, scratch)
	g.I("VLD1 (%s), %s", scratch, list(v, registers))
}

// list names registers in sequence, as loads and stores want them.
func list(v, n int) string {
	var names []string
	for i := range n {
		names = append(names, fmt.Sprintf("V%d.S4", v+i))
	}
	return "[" + strings.Join(names, ", ") + "]"
}

// vec is a vector of registers from v on.
func (g *gen) vec(v int) vec {
	var r vec
	for i := range g.width {
		r = append(r, v+i)
	}
	return r
}

// same is a vector all of whose registers are v: a constant.
func (g *gen) same(v int) vec {
	var r vec
	for range g.width {
		r = append(r, v)
	}
	return r
}

// op1, op2 and elem write an instruction for every register of the vectors.
func op1(f func(d, n int), d, n vec) {
	for i := range d {
		f(d[i], n[i])
	}
}

func op2(f func(d, n, m int), d, n, m vec) {
	for i := range d {
		f(d[i], n[i], m[i])
	}
}

func elem(f func(d, n, m, index int), d, n vec, m, index int) {
	for i := range d {
		f(d[i], n[i], m, index)
	}
}

func (g *gen) dup(d, n, index int)  { g.I("VDUP V%d.S[%d], V%d.S4", n, index, d) }
func (g *gen) mov(d, n int)         { g.I("VMOV V%d.B16, V%d.B16", n, d) }
func (g *gen) and(d, n, m int)      { g.I("VAND V%d.B16, V%d.B16, V%d.B16", m, n, d) }
func (g *gen) orr(d, n, m int)      { g.I("VORR V%d.B16, V%d.B16, V%d.B16", m, n, d) }
func (g *gen) add(d, n, m int)      { g.I("VADD V%d.S4, V%d.S4, V%d.S4", m, n, d) }
func (g *gen) bitWhere(d, n, m int) { g.I("VBIT V%d.B16, V%d.B16, V%d.B16", m, n, d) } // d = n where m has ones
func (g *gen) bitUnless(d, n, m int) {
	g.I("VBIF V%d.B16, V%d.B16, V%d.B16", m, n, d)
}

// set fills vectors with an element of a register of constants.
func (g *gen) set(d vec, n, index int) {
	for _, v := range d {
		g.dup(v, n, index)
	}
}

// copies fills vectors with a register of constants.
func (g *gen) copies(d vec, n int) {
	for _, v := range d {
		g.mov(v, n)
	}
}

// load reads the next lanes at ptr, and zeros for those that do not exist.
func (g *gen) load(v vec, ptr string) { g.read(v, ptr, ptr) }

// peek is a load that leaves ptr where it is.
func (g *gen) peek(v vec, ptr string) { g.read(v, ptr, scratch) }

func (g *gen) read(v vec, ptr, next string) {
	switch {
	case g.rest == "" && next == ptr:
		g.I("VLD1.P %d(%s), %s", 16*len(v), ptr, list(v[0], len(v)))
	case g.rest == "":
		g.I("VLD1 (%s), %s", ptr, list(v[0], len(v)))
	default: // the last lanes: ptr is not needed after them
		one, done := g.label(), g.label()
		g.I("TBZ $1, %s, %s", g.rest, one)
		g.I("FMOVD (%s), F%d", ptr, v[0])
		g.I("TBZ $0, %s, %s", g.rest, done)
		g.I("ADD $8, %s, %s", ptr, scratch)
		g.I("VLD1 (%s), V%d.S[2]", scratch, v[0])
		g.I("JMP %s", done)
		g.Label("%s", one)
		g.I("FMOVS (%s), F%d", ptr, v[0])
		g.Label("%s", done)
	}
}

// store writes the next lanes at ptr, those that exist.
func (g *gen) store(v vec, ptr string) {
	if g.rest == "" {
		g.I("VST1.P %s, %d(%s)", list(v[0], len(v)), 16*len(v), ptr)
		return
	}
	one, done := g.label(), g.label()
	g.I("TBZ $1, %s, %s", g.rest, one)
	g.I("FMOVD F%d, (%s)", v[0], ptr)
	g.I("TBZ $0, %s, %s", g.rest, done)
	g.I("ADD $8, %s, %s", ptr, scratch)
	g.I("VST1 V%d.S[2], (%s)", v[0], scratch)
	g.I("JMP %s", done)
	g.Label("%s", one)
	g.I("FMOVS F%d, (%s)", v[0], ptr)
	g.Label("%s", done)
}

// masks writes the table that mask reads.
func (g *gen) masks() {
	for i, w := range []uint32{1<<32 - 1, 1<<32 - 1, 1<<32 - 1, 0, 0, 0} {
		g.I("DATA ones<>+%d(SB)/4, $0x%08x", 4*i, w)
	}
	g.I("GLOBL ones<>(SB), RODATA|NOPTR, $24")
}

// mask makes v ones in the lanes that exist, in the last lanes of a loop.
func (g *gen) mask(v int) {
	g.I("MOVD $ones<>+12(SB), %s", scratch)
	g.I("SUB %s<<2, %s, %s", g.rest, scratch, scratch)
	g.I("VLD1 (%s), [V%d.S4]", scratch, v)
}

// keep zeroes the lanes of v that do not exist; t is free.
func (g *gen) keep(v vec, t int) {
	if g.rest != "" {
		g.mask(t)
		g.and(v[0], v[0], t)
	}
}

// each walks the n elements of slices, width registers at a time, then one, then the lanes that are left. It uses n up.
func (g *gen) each(n string, width int, body func()) {
	loop := g.label()
	tail := g.label()
	single := g.label()
	part := g.label()
	done := g.label()
	lanes := 4 * width
	g.I("SUBS $%d, %s, %s", lanes, n, n)
	g.I("BLT %s", tail)
	g.Label("%s", loop)
	g.width = width
	body()
	g.I("SUBS $%d, %s, %s", lanes, n, n)
	g.I("BGE %s", loop)
	g.Label("%s", tail)
	g.I("ADD $%d, %s, %s", lanes, n, n)
	g.width = 1
	g.Label("%s", single)
	g.I("CMP $4, %s", n)
	g.I("BLT %s", part)
	body()
	g.I("SUB $4, %s, %s", n, n)
	g.I("JMP %s", single)
	g.Label("%s", part)
	g.I("CBZ %s, %s", n, done)
	g.rest = n
	body()
	g.rest = ""
	g.Label("%s", done)
}

// sum adds to the 16 lanes of a reduction, four registers from acc on. In a loop's tail, where registers come one at a
// time, it makes room for the next by passing them round, which the fold does not notice: it adds lanes 8 apart, then 4
// apart, and these are the same whatever place the round begins at. t is free.
func (g *gen) sum(acc, t int, into func(acc vec)) {
	into(g.vec(acc))
	if g.width == 1 && g.rest == "" {
		g.mov(t, acc)
		for i := range 3 {
			g.mov(acc+i, acc+i+1)
		}
		g.mov(acc+3, t)
	}
}

func (g *gen) clears(v, n int) {
	for i := range n {
		g.Zero(v + i)
	}
}

// fold adds 16 lanes up, those 8 apart, 4, 2, 1, and returns the sum.
func (g *gen) fold(acc int) {
	g.Fadd(acc, acc, acc+2)
	g.Fadd(acc+1, acc+1, acc+3)
	g.Fadd(acc, acc, acc+1)
	g.I("VEXT $8, V%d.B16, V%d.B16, V%d.B16", acc, acc, acc+1)
	g.Fadd(acc, acc, acc+1)
	g.dup(acc+1, acc, 1)
	g.Fadd(acc, acc, acc+1)
	g.I("FMOVS F%d, %s", acc, g.arg("ret"))
	g.ret()
}

func (g *gen) ret() { g.I("RET") }
