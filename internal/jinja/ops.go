package jinja

import (
	"cmp"
	"math"
	"math/big"
	"math/bits"
	"slices"
	"strings"
)

// float returns the number that a value represents. ok is false if it is not a number.
func (r *run) float(v Value) (f float64, ok bool) {
	if f, ok := v.(float64); ok {
		return f, true
	}
	i := whole(v)
	if i == nil {
		return 0, false
	}
	f, _ = new(big.Float).SetInt(i).Float64()
	if math.IsInf(f, 0) {
		r.fail("an integer is too large for a float")
	}
	return f, true
}

// index returns an integer used for counting, clamped to the range of int.
func (r *run) index(v Value, what string) int {
	i := whole(v)
	switch {
	case i == nil:
		r.undefined(v)
		r.fail("%s wants an integer, not a %s", what, typeName(v))
	case i.BitLen() < bits.UintSize:
		return int(i.Int64())
	case i.Sign() < 0:
		return math.MinInt
	}
	return math.MaxInt
}

// undefined fails if one of the values is undefined.
func (r *run) undefined(values ...Value) {
	for _, v := range values {
		if u, ok := v.(*Undefined); ok {
			r.fail("%s", u.why)
		}
	}
}

func (r *run) unary(op string, x Value) Value {
	if op == "not" {
		return !truth(x)
	}
	r.undefined(x)
	if f, ok := x.(float64); ok {
		if op == "-" {
			return -f
		}
		return f
	}
	i := whole(x)
	if i == nil {
		r.fail("%s is no operator of a %s", op, typeName(x))
	}
	if op == "-" {
		r.spend(words(i), 8*words(i))
		return new(big.Int).Neg(i)
	}
	return i
}

func (r *run) binary(op string, x, y Value) Value {
	if s, ok := text(x); ok && op == "%" {
		return r.percent(x, s, y)
	}
	r.undefined(x, y)
	if i, j := whole(x), whole(y); i != nil && j != nil {
		return r.integers(op, i, j)
	}
	if r.numeric(x, y) {
		f, _ := r.float(x)
		g, _ := r.float(y)
		return r.floats(op, f, g)
	}
	switch op {
	case "+":
		if v, ok := r.plus(x, y); ok {
			return v
		}
	case "*":
		if whole(x) != nil {
			x, y = y, x
		}
		if i := whole(y); i != nil && i.IsInt64() {
			if v, ok := r.times(x, r.index(y, "*")); ok {
				return v
			}
		}
	}
	r.fail("%s is no operator of a %s and a %s", op, typeName(x), typeName(y))
	return nil
}

// numeric reports whether both values are numbers.
func (r *run) numeric(x, y Value) bool {
	_, f := x.(float64)
	_, g := y.(float64)
	return (f || whole(x) != nil) && (g || whole(y) != nil)
}

func (r *run) plus(x, y Value) (Value, bool) {
	a, ok := text(x)
	b, ok2 := text(y)
	if ok && ok2 {
		_, safe := x.(Markup)
		_, safe2 := y.(Markup)
		switch {
		case safe && !safe2:
			b = escape(b)
		case safe2 && !safe:
			a = escape(a)
		}
		s := r.joined([]string{a, b}, "")
		if safe || safe2 {
			return Markup(s), true
		}
		return s, true
	}
	switch a := x.(type) {
	case *List:
		if b, ok := y.(*List); ok {
			r.spend(0, 32*(len(a.Items)+len(b.Items)))
			return r.listed(append(append([]Value(nil), a.Items...), b.Items...)), true
		}
	case *Tuple:
		if b, ok := y.(*Tuple); ok {
			r.spend(0, 32*(len(a.Items)+len(b.Items)))
			return &Tuple{Items: append(append([]Value(nil), a.Items...), b.Items...)}, true
		}
	}
	return nil, false
}

// times repeats a text, a list or a tuple.
func (r *run) times(x Value, n int) (Value, bool) {
	if s, ok := text(x); ok {
		return likeText(x, r.repeated(s, n)), true
	}
	var items, many []Value
	switch x := x.(type) {
	case *List:
		items = x.Items
	case *Tuple:
		items = x.Items
	default:
		return nil, false
	}
	if len(items) > 0 {
		n = min(n, r.maxMade)
	}
	for i := 0; i < n && len(items) > 0; i++ {
		r.spend(len(items), 32*len(items))
		many = append(many, items...)
	}
	if _, ok := x.(*Tuple); ok {
		return &Tuple{Items: many}, true
	}
	return &List{many}, true
}

func (r *run) integers(op string, i, j *big.Int) Value {
	size := 8 * (words(i) + words(j))
	r.spend(size, size+16)
	z := new(big.Int)
	switch op {
	case "+":
		return z.Add(i, j)
	case "-":
		return z.Sub(i, j)
	case "*":
		r.spend(product(words(i), words(j)), 0)
		return z.Mul(i, j)
	case "**":
		return r.power(i, j)
	}
	if j.Sign() == 0 {
		r.fail("division by zero")
	}
	r.spend(product(words(i), words(j)), 0)
	if op == "/" && i.Sign() == 0 {
		return math.Copysign(0, float64(j.Sign()))
	}
	if op == "/" {
		f, _ := new(big.Rat).SetFrac(i, j).Float64()
		if math.IsInf(f, 0) {
			r.fail("the quotient of two integers is too large for a float")
		}
		return f
	}
	quotient, rest := z.QuoRem(i, j, new(big.Int))
	if rest.Sign() != 0 && rest.Sign() != j.Sign() { // Python rounds down
		quotient.Sub(quotient, small[257])
		rest.Add(rest, j)
	}
	if op == "%" {
		return rest
	}
	return quotient
}

func (r *run) power(i, j *big.Int) Value {
	if j.Sign() < 0 {
		f, _ := r.float(i)
		g, _ := r.float(j)
		return r.floats("**", f, g)
	}
	switch {
	case i.BitLen() <= 1 && j.Sign() > 0: // for 0, 1 and −1 only the parity matters
		j = big.NewInt(2 - int64(j.Bit(0)))
	case i.BitLen() > 1:
		if !j.IsInt64() || j.Int64() > int64(r.maxMade) {
			r.fail("it makes more than %d bytes of text and lists", r.maxMade)
		}
		bytes := product(i.BitLen(), int(j.Int64())) / 8
		r.spend(bytes, bytes)
		r.spend(product(bytes/8, bytes/8), 0) // the products of the words
	}
	return new(big.Int).Exp(i, j, nil)
}

func (r *run) floats(op string, f, g float64) Value {
	switch op {
	case "+":
		return f + g
	case "-":
		return f - g
	case "*":
		return f * g
	case "**":
		z := r.pow(f, g)
		switch {
		case f == 0 && g < 0:
			r.fail("0 cannot be raised to a negative power")
		case f < 0 && g != math.Trunc(g) && !math.IsInf(g, 0) && !math.IsInf(f, 0):
			r.fail("complex numbers are not supported")
		case math.IsInf(z, 0) && !math.IsInf(f, 0) && !math.IsInf(g, 0):
			r.fail("a power is too large for a float")
		}
		return z
	}
	if g == 0 {
		r.fail("division by zero")
	}
	if op == "/" {
		return f / g
	}
	r.spend(floatWork, 0)
	rest := math.Mod(f, g)
	quotient := (f - rest) / g
	switch {
	case rest == 0:
		rest = math.Copysign(0, g)
	case (rest < 0) != (g < 0):
		rest += g
		quotient--
	}
	if op == "%" {
		return rest
	}
	if quotient == 0 {
		return math.Copysign(0, f/g)
	}
	down := math.Floor(quotient)
	if quotient-down > 0.5 {
		down++
	}
	return down
}

// pow rounds only once if the exponent is a multiple of a half, as C's nearly always does.
func (r *run) pow(f, g float64) float64 {
	halves := 2 * g
	z := math.Pow(f, g)
	if !(f > 0) || math.IsInf(f, 0) || halves != math.Trunc(halves) || math.Abs(g) > 1024 || z == 0 || math.IsInf(z, 0) {
		return z
	}
	const precision = 2200 // bits, enough to lose none that matters

	r.spend(precision/2*(16+int(math.Abs(halves))), 0) // for each product
	exact := big.NewFloat(1).SetPrec(precision)
	root := new(big.Float).SetPrec(precision).Sqrt(big.NewFloat(f).SetPrec(precision))
	for range int(math.Abs(halves)) {
		exact.Mul(exact, root)
	}
	if g < 0 {
		exact.Quo(big.NewFloat(1).SetPrec(precision), exact)
	}
	z, _ = exact.Float64()
	return z
}

// equal is Python's ==.
func (r *run) equal(x, y Value) bool {
	r.spend(8, 0)
	if r.numeric(x, y) {
		c, comparable := r.compareNumbers(x, y)
		return comparable && c == 0
	}
	if a, ok := text(x); ok {
		b, ok := text(y)
		if ok {
			r.spend(min(len(a), len(b)), 0)
		}
		return ok && a == b
	}
	r.level++
	defer r.up()
	if r.level > maxLevel {
		r.fail("a value nested more than %d deep", maxDepth)
	}
	switch a := x.(type) {
	case nil:
		return y == nil
	case *Undefined:
		_, ok := y.(*Undefined)
		return ok
	case *List:
		b, ok := y.(*List)
		return ok && r.allEqual(a.Items, b.Items)
	case *Tuple:
		b, ok := y.(*Tuple)
		return ok && r.allEqual(a.Items, b.Items)
	case *span:
		b, ok := y.(*span)
		return ok && a.n == b.n && (a.n == 0 || a.start == b.start && (a.n == 1 || a.step == b.step))
	case *Dict:
		b, ok := y.(*Dict)
		if !ok || len(a.keys) != len(b.keys) {
			return false
		}
		for i, key := range a.keys {
			v, ok := b.get(r.key(key))
			if !ok || !r.equal(a.values[i], v) {
				return false
			}
		}
		return true
	case *view:
		b, ok := y.(*view)
		if !ok || a.kind != b.kind || a.kind == "values" {
			return x == y
		}
		if a.kind == "items" {
			return r.equal(a.dict, b.dict)
		}
		if len(a.dict.keys) != len(b.dict.keys) {
			return false
		}
		for _, key := range a.dict.keys {
			if _, ok := b.dict.get(r.key(key)); !ok {
				return false
			}
		}
		return true
	}
	return x == y
}

func (r *run) allEqual(a, b []Value) bool { return slices.EqualFunc(a, b, r.equal) }

// compareNumbers compares two numbers exactly. comparable is false if one is NaN.
func (r *run) compareNumbers(x, y Value) (order int, comparable bool) {
	if i, j := whole(x), whole(y); i != nil && j != nil {
		r.spend(min(words(i), words(j)), 0)
		return i.Cmp(j), true
	}
	r.spend(32+8*(words(x)+words(y)), 0)
	exact := func(v Value) *big.Float {
		if f, ok := v.(float64); ok {
			return big.NewFloat(f)
		}
		return new(big.Float).SetInt(whole(v))
	}
	for _, v := range []Value{x, y} {
		if f, ok := v.(float64); ok && math.IsNaN(f) {
			return 0, false
		}
	}
	return exact(x).Cmp(exact(y)), true
}

// ordered is one of < <= > >=.
func (r *run) ordered(op string, x, y Value) bool {
	c, comparable := r.order(x, y)
	if !comparable {
		return false
	}
	switch op {
	case "<":
		return c < 0
	case "<=":
		return c <= 0
	case ">":
		return c > 0
	}
	return c >= 0
}

// order compares two values that Python can order.
func (r *run) order(x, y Value) (c int, comparable bool) {
	r.spend(16, 0)
	r.undefined(x, y)
	if r.numeric(x, y) {
		return r.compareNumbers(x, y)
	}
	a, ok := text(x)
	if b, ok2 := text(y); ok && ok2 {
		r.spend(min(len(a), len(b)), 0)
		return strings.Compare(a, b), true
	}
	switch a := x.(type) {
	case *List:
		if b, ok := y.(*List); ok {
			return r.orderLists(a.Items, b.Items)
		}
	case *Tuple:
		if b, ok := y.(*Tuple); ok {
			return r.orderLists(a.Items, b.Items)
		}
	}
	r.fail("a %s and a %s have no order", typeName(x), typeName(y))
	return 0, false
}

func (r *run) orderLists(a, b []Value) (int, bool) {
	r.level++
	defer r.up()
	if r.level > maxLevel {
		r.fail("a value nested more than %d deep", maxDepth)
	}
	for i := range min(len(a), len(b)) {
		if !r.equal(a[i], b[i]) {
			return r.order(a[i], b[i])
		}
	}
	return cmp.Compare(len(a), len(b)), true
}

// contains is Python's in.
func (r *run) contains(in, x Value) bool {
	if s, ok := text(in); ok {
		part, ok := text(x)
		if !ok {
			r.undefined(x)
			r.fail("a %s cannot be in a text", typeName(x))
		}
		r.seek(s, part)
		return strings.Contains(s, part)
	}
	switch in := in.(type) {
	case *Dict:
		_, ok := in.get(r.key(x))
		return ok
	case *view:
		if in.kind == "keys" {
			_, ok := in.dict.get(r.key(x))
			return ok
		}
	}
	it := r.iterate(in)
	for {
		v, ok := it.next()
		if !ok {
			return false
		}
		if r.equal(v, x) {
			return true
		}
	}
}
