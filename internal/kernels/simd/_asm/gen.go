package main

import (
	"fmt"
	"math"

	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
	"github.com/mmcloughlin/avo/x86"
)

// gen writes kernels for one level. Its unit is the vector of 16 lanes, which is one ZMM register or
// two YMM registers, so that a kernel is one text for both levels, and the lanes of a reduction are the same.
type gen struct {
	*build.Context
	level  level
	consts map[uint32]cst         // of this file, by their bits
	tables map[string]operand.Mem // of this file
	mask   *mask                  // in the tail of a loop: the lanes that exist
	labels int
}

type (
	vec  []reg.VecVirtual
	ptr  struct{ base, index reg.Register } // element index of a slice of f32
	cst  struct{ m operand.Mem }
	mask struct {
		k reg.Register // AVX-512
		v vec          // AVX2: all ones where the lane exists
	}
	inst = func(...operand.Op)
)

// fn starts a kernel.
func (g *gen) fn(name, signature string) {
	g.Function(name + g.level.name)
	g.Attributes(attr.NOSPLIT)
	g.Pragma("noescape")
	g.SignatureExpr(signature)
	g.labels = 0
}

func (g *gen) label() string {
	g.labels++
	return fmt.Sprintf("l%d", g.labels)
}

func (g *gen) ret() {
	g.VZEROUPPER()
	g.RET()
}

func (g *gen) reg() reg.VecVirtual {
	if g.level.zmm {
		return g.ZMM()
	}
	return g.YMM()
}

func (g *gen) vec() vec {
	if g.level.zmm {
		return vec{g.ZMM()}
	}
	return vec{g.YMM(), g.YMM()}
}

// base loads the base of a slice argument.
func (g *gen) base(name string) reg.Register {
	return g.Load(g.Param(name).Base(), g.GP64())
}

// broadcast fills all lanes with a scalar argument.
func (g *gen) broadcast(name string) vec {
	b, err := g.Param(name).Resolve()
	if err != nil {
		panic(err)
	}
	r := g.reg()
	g.VBROADCASTSS(b.Addr, r)
	return g.same(r)
}

// same is a vector all of whose registers are r: a constant vector.
func (g *gen) same(r reg.VecVirtual) vec {
	if g.level.zmm {
		return vec{r}
	}
	return vec{r, r}
}

// f is a constant as an operand in memory.
func (g *gen) f(x float64) cst {
	if float64(float32(x)) != x && !math.IsInf(x, 0) {
		panic(fmt.Sprintf("%v is not an f32", x))
	}
	return g.u(math.Float32bits(float32(x)))
}

func (g *gen) u(bits uint32) cst {
	c, ok := g.consts[bits]
	if !ok {
		c.m = g.StaticGlobal(fmt.Sprintf("c%08x", bits))
		g.DataAttributes(attr.RODATA | attr.NOPTR)
		for range 8 { // AVX2 reads 8 of them, AVX-512 broadcasts one
			g.AppendDatum(operand.U32(bits))
		}
		g.consts[bits] = c
	}
	return c
}

func (g *gen) copy(a vec) vec {
	v := g.vec()
	for h := range v {
		g.VMOVAPS(a[h], v[h])
	}
	return v
}

// set fills all lanes with a constant.
func (g *gen) set(c cst) vec {
	v := g.vec()
	for h := range v {
		g.VBROADCASTSS(c.m, v[h])
	}
	return v
}

func (g *gen) zero() vec {
	v := g.vec()
	for h := range v {
		g.clear(v[h])
	}
	return v
}

// clear zeroes a register. avo does not know that VPXORD of a register with itself reads nothing,
// and would keep it live from the kernel's start.
func (g *gen) clear(r reg.VecVirtual) {
	if !g.level.zmm {
		g.VXORPS(r, r, r)
		return
	}
	i, err := x86.VPXORD(r, r, r)
	if err != nil {
		panic(err)
	}
	i.CancellingInputs = true
	g.Instruction(i)
}

// op emits an instruction for every register of the vectors. The first operand, which is Intel's last source,
// may be a constant; ops are in Go's order, destination last.
func (g *gen) op(plain, bcst inst, first any, rest ...vec) {
	for h := range rest[len(rest)-1] {
		f := plain
		var ops []operand.Op
		switch a := first.(type) {
		case vec:
			ops = append(ops, a[h])
		case cst:
			ops = append(ops, a.m)
			if g.level.zmm {
				f = bcst
			}
		}
		for _, v := range rest {
			ops = append(ops, v[h])
		}
		f(ops...)
	}
}

func (g *gen) add(b any, a, dst vec) { g.op(g.VADDPS, g.VADDPS_BCST, b, a, dst) } // dst = a + b
func (g *gen) sub(b any, a, dst vec) { g.op(g.VSUBPS, g.VSUBPS_BCST, b, a, dst) } // dst = a - b
func (g *gen) mul(b any, a, dst vec) { g.op(g.VMULPS, g.VMULPS_BCST, b, a, dst) } // dst = a · b
func (g *gen) div(b any, a, dst vec) { g.op(g.VDIVPS, g.VDIVPS_BCST, b, a, dst) } // dst = a / b
func (g *gen) max(b any, a, dst vec) { g.op(g.VMAXPS, g.VMAXPS_BCST, b, a, dst) } // b if either is NaN
func (g *gen) min(b any, a, dst vec) { g.op(g.VMINPS, g.VMINPS_BCST, b, a, dst) } // b if either is NaN

func (g *gen) fma231(b any, a, dst vec)  { g.op(g.VFMADD231PS, g.VFMADD231PS_BCST, b, a, dst) }   // dst += a·b
func (g *gen) fnma231(b any, a, dst vec) { g.op(g.VFNMADD231PS, g.VFNMADD231PS_BCST, b, a, dst) } // dst -= a·b
func (g *gen) fma213(c any, b, dst vec)  { g.op(g.VFMADD213PS, g.VFMADD213PS_BCST, c, b, dst) }   // dst = dst·b + c
func (g *gen) fms213(c any, b, dst vec)  { g.op(g.VFMSUB213PS, g.VFMSUB213PS_BCST, c, b, dst) }   // dst = dst·b - c

func (g *gen) xor(b cst, a, dst vec) { g.op(g.VXORPS, g.VXORPS_BCST, b, a, dst) }
func (g *gen) and(b cst, a, dst vec) { g.op(g.VANDPS, g.VANDPS_BCST, b, a, dst) }

func (g *gen) at(p ptr, h int) operand.Mem {
	return operand.Mem{Base: p.base, Index: p.index, Scale: 4, Disp: 32 * h}
}

// load reads 16 elements; those beyond the end, in a tail, are 0.
func (g *gen) load(p ptr) vec {
	v := g.vec()
	for h := range v {
		switch {
		case g.mask == nil:
			g.VMOVUPS(g.at(p, h), v[h])
		case g.level.zmm:
			g.VMOVUPS_Z(g.at(p, h), g.mask.k, v[h])
		default:
			g.VMASKMOVPS(g.at(p, h), g.mask.v[h], v[h])
		}
	}
	return v
}

func (g *gen) store(v vec, p ptr) {
	for h := range v {
		switch {
		case g.mask == nil:
			g.VMOVUPS(v[h], g.at(p, h))
		case g.level.zmm:
			g.VMOVUPS(v[h], g.mask.k, g.at(p, h))
		default:
			g.VMASKMOVPS(v[h], g.mask.v[h], g.at(p, h))
		}
	}
}

// keep makes the lanes that do not exist, in a tail, the constant.
func (g *gen) keep(v vec, other cst, zero bool) {
	for h := range v {
		switch {
		case g.mask == nil:
		case g.level.zmm && zero:
			g.VMOVAPS_Z(v[h], g.mask.k, v[h])
		case g.level.zmm:
			t := g.ZMM()
			g.VBROADCASTSS(other.m, t)
			g.VBLENDMPS(v[h], t, g.mask.k, v[h])
		case zero:
			g.VANDPS(g.mask.v[h], v[h], v[h])
		default:
			t := g.YMM()
			g.VBROADCASTSS(other.m, t)
			g.VBLENDVPS(g.mask.v[h], v[h], t, v[h])
		}
	}
}

// whole walks n elements, a multiple of 16, 16 at a time.
func (g *gen) whole(n reg.Register, body func(i reg.Register)) {
	i := g.GP64()
	g.XORQ(i, i)
	loop, done := g.label(), g.label()
	g.TESTQ(n, n)
	g.JZ(operand.LabelRef(done))
	g.Label(loop)
	body(i)
	g.ADDQ(operand.I8(16), i)
	g.CMPQ(i, n)
	g.JL(operand.LabelRef(loop))
	g.Label(done)
}

// each walks the n elements of slices 16 at a time, the last ones under a mask.
func (g *gen) each(n reg.Register, body func(i reg.Register)) {
	i, end := g.GP64(), g.GP64()
	g.XORQ(i, i)
	loop := g.label()
	tail := g.label()
	done := g.label()
	g.MOVQ(n, end)
	g.ANDQ(operand.I32(-16), end)
	g.JZ(operand.LabelRef(tail))
	g.Label(loop)
	body(i)
	g.ADDQ(operand.I8(16), i)
	g.CMPQ(i, end)
	g.JL(operand.LabelRef(loop))
	g.Label(tail)
	rest := g.GP64()
	g.MOVQ(n, rest)
	g.SUBQ(i, rest)
	g.JZ(operand.LabelRef(done))
	g.masked(rest, func() { body(i) })
	g.Label(done)
}

// table returns the address of a table of n constants.
func (g *gen) table(name string, n int, entry func(i int) operand.Constant) reg.Register {
	t, ok := g.tables[name]
	if !ok {
		t = g.StaticGlobal(name)
		g.DataAttributes(attr.RODATA | attr.NOPTR)
		for i := range n {
			g.AppendDatum(entry(i))
		}
		g.tables[name] = t
	}
	a := g.GP64()
	g.LEAQ(t, a)
	return a
}

// masked runs body with a mask of the first n lanes, 0 < n < 16.
func (g *gen) masked(n reg.Register, body func()) {
	g.mask = &mask{}
	if g.level.zmm {
		t := g.table("first", 16, func(i int) operand.Constant { return operand.U16(1<<i - 1) })
		g.mask.k = g.K()
		g.KMOVW(operand.Mem{Base: t, Index: n, Scale: 2}, g.mask.k)
	} else {
		// Ones, then zeros: read so that n ones are left.
		t := g.table("ones", 32, func(i int) operand.Constant { return operand.I32([]int32{-1, 0}[i/16]) })
		neg := g.GP64()
		g.MOVQ(n, neg)
		g.NEGQ(neg)
		g.mask.v = g.vec()
		for h, v := range g.mask.v {
			g.VMOVUPS(operand.Mem{Base: t, Index: neg, Scale: 4, Disp: 64 + 32*h}, v)
		}
	}
	body()
	g.mask = nil
}

// fold reduces 16 lanes to one: lanes 8 apart, 4, 2, 1.
func (g *gen) fold(f inst, v vec) reg.Register {
	a, b := g.YMM(), g.YMM()
	if g.level.zmm {
		g.VEXTRACTF64X4(operand.U8(1), v[0], b)
		f(b, v[0].AsY(), a)
	} else {
		f(v[1], v[0], a)
	}
	x, y := a.AsX(), b.AsX()
	g.VEXTRACTF128(operand.U8(1), a, y)
	f(y, x, x)
	g.VPERMILPD(operand.U8(1), x, y)
	f(y, x, x)
	g.VMOVSHDUP(x, y)
	f(y, x, x)
	return x
}

func (g *gen) returns(x reg.Register) {
	g.Store(x, g.ReturnIndex(0))
	g.ret()
}
