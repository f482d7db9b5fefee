package grammar

import (
	"fmt"
	"math/big"
	"strings"
)

// Numbers have at most this many digits before and after the point, so that programs can read them,
// and no text of digits is endless.
const (
	intDigits  = 18
	fracDigits = 15
	expDigits  = 2
)

func digitsUpTo(low, high int) *expr { return repeat(digits('0', '9'), low, high) }

// anyInteger and anyNumber match the numbers of JSON.
func anyInteger() *expr {
	return alt(literal("0"), seq(maybe(literal("-")), digits('1', '9'), digitsUpTo(0, intDigits-1)))
}

func anyNumber() *expr {
	whole := alt(literal("0"), seq(digits('1', '9'), digitsUpTo(0, intDigits-1)))
	fraction := seq(literal("."), digitsUpTo(1, fracDigits))
	exponent := seq(oneOf("eE"), maybe(oneOf("+-")), digitsUpTo(1, expDigits))
	return seq(maybe(literal("-")), whole, maybe(fraction), maybe(exponent))
}

// bounds are the limits of a number; nil for none.
type bounds struct {
	low, high         *big.Rat
	lowOpen, highOpen bool // the bound itself is excluded
}

// atLeast and atMost narrow the bounds.
func (b *bounds) atLeast(v *big.Rat, open bool) {
	if b.low == nil || v.Cmp(b.low) > 0 {
		b.low, b.lowOpen = v, open
	} else if v.Cmp(b.low) == 0 {
		b.lowOpen = b.lowOpen || open
	}
}

func (b *bounds) atMost(v *big.Rat, open bool) {
	if b.high == nil || v.Cmp(b.high) < 0 {
		b.high, b.highOpen = v, open
	} else if v.Cmp(b.high) == 0 {
		b.highOpen = b.highOpen || open
	}
}

// limit restricts the digits before the point.
func (b *bounds) limit(digits int) {
	limit := new(big.Rat).SetInt(power(digits))
	b.atMost(limit, true)
	b.atLeast(new(big.Rat).Neg(limit), true)
}

// power returns a power of ten.
func power(n int) *big.Int { return new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n)), nil) }

func (b *bounds) holds(v *big.Rat) bool {
	if b.low != nil && (v.Cmp(b.low) < 0 || b.lowOpen && v.Cmp(b.low) == 0) {
		return false
	}
	return b.high == nil || v.Cmp(b.high) < 0 || !b.highOpen && v.Cmp(b.high) == 0
}

func roundDown(v *big.Rat, open bool) *big.Rat {
	q, r := new(big.Int).DivMod(v.Num(), v.Denom(), new(big.Int))
	if open && r.Sign() == 0 {
		q.Sub(q, big.NewInt(1))
	}
	return new(big.Rat).SetInt(q)
}

func roundUp(v *big.Rat, open bool) *big.Rat {
	return new(big.Rat).Neg(roundDown(new(big.Rat).Neg(v), open))
}

// decimal returns a number of 0 or more as digits before and after the point, without trailing zeros.
func decimal(v *big.Rat) (whole, fraction string) {
	whole, fraction, _ = strings.Cut(v.FloatString(2*fracDigits), ".")
	return whole, strings.TrimRight(fraction, "0")
}

// maxMultiples limits the rules for multiples. If they would follow fewer than leastDigits digits
// before the point, a list covers more digits.
const (
	maxMultiples = 1 << 11
	leastDigits  = 6
)

// multiples matches the multiples of a decimal number within bounds, or of those only the ones that are not whole. They
// have at most as many digits after the point as step has. Trailing zeros of an integer step are not tracked: multiples
// of 300 are those of 3 followed by 00. It returns false if that takes too many rules.
func (c *schemas) multiples(b bounds, step *big.Rat, broken bool) (*expr, bool) {
	whole, fraction := decimal(step)
	m := &multiples{c: c, places: len(fraction), broken: broken}
	if m.places == 0 {
		m.zeros = len(whole) - len(strings.TrimRight(whole, "0"))
	}
	scaled := new(big.Rat).Mul(step, new(big.Rat).SetFrac(power(m.places), power(m.zeros)))
	if !scaled.IsInt() || scaled.Num().Cmp(big.NewInt(maxMultiples)) > 0 {
		return nil, false
	}
	m.modulus = int(scaled.Num().Int64())
	most := min(intDigits-m.zeros, maxMultiples/m.modulus-m.places-1) // digits tracked before the point
	if most < max(min(leastDigits, intDigits-m.zeros), 1) {
		return nil, false
	}
	b.limit(most + m.zeros)
	low := roundUp(new(big.Rat).Quo(b.low, step), b.lowOpen).Num()
	high := roundDown(new(big.Rat).Quo(b.high, step), b.highOpen).Num()
	e := alt(m.between(low, high), seq(literal("-"), m.between(new(big.Int).Neg(high), new(big.Int).Neg(low))))
	if b.holds(new(big.Rat)) && !broken {
		fraction := seq(literal("."), repeat(literal("0"), 1, m.places))
		e.kids = append(e.kids, seq(literal("0"), repeat(fraction, 0, min(m.places, 1))))
	}
	return e, true
}

// multiples tracks the remainder of the digits of a number so far, and compares them with those of a bound as long as
// they are equal.
type multiples struct {
	c                      *schemas
	modulus, places, zeros int
	broken                 bool
	low, high              string
}

// multiple is a place in such a number: how many digits follow, the remainder of those before, whether one of them
// stands behind the point and is not 0, and whether they are a bound's.
type multiple struct {
	left, remainder       int
	broken, atLow, atHigh bool
}

// between matches the multiples from the low to the high, 1 or more, without their sign.
func (m *multiples) between(low, high *big.Int) *expr {
	if low.Sign() <= 0 {
		low = big.NewInt(1)
	}
	if low.Cmp(high) > 0 {
		return nothing()
	}
	text := func(n *big.Int) string {
		return fmt.Sprintf("%0*d", m.places+1, new(big.Int).Mul(n, big.NewInt(int64(m.modulus))))
	}
	m.low, m.high = text(low), text(high)
	e := alt()
	for n := len(m.low); n <= len(m.high); n++ {
		least := byte('1')
		if n == m.places+1 {
			least = '0'
		}
		e.kids = append(e.kids, m.digits(multiple{left: n, atLow: n == len(m.low), atHigh: n == len(m.high)}, least))
	}
	return e
}

// digits matches the digits from a place on, the first at least the given one.
func (m *multiples) digits(at multiple, least byte) *expr {
	most := byte('9')
	if at.atLow {
		least = max(least, m.low[len(m.low)-at.left])
	}
	if at.atHigh {
		most = m.high[len(m.high)-at.left]
	}
	e := alt()
	var last multiple
	for d := least; d <= most; d++ {
		next := multiple{at.left - 1, (10*at.remainder + int(d-'0')) % m.modulus, at.broken || at.left <= m.places && d > '0',
			at.atLow && d == m.low[len(m.low)-at.left], at.atHigh && d == most}
		if d > least && next == last { // the digits share what follows
			e.kids[len(e.kids)-1].kids[0].set[0].hi = rune(d)
			continue
		}
		last = next
		e.kids = append(e.kids, seq(digits(d, d), m.follow(next)))
	}
	if at.left == m.places {
		return seq(literal("."), e)
	}
	return e
}

// follow matches what may follow the digits before a place.
func (m *multiples) follow(at multiple) *expr {
	if at.atLow || at.atHigh {
		return m.rest(at)
	}
	name := fmt.Sprint("a multiple ", m.modulus, m.places, m.zeros, m.broken, at)
	return m.c.once(name, func() *expr { return m.rest(at) })
}

func (m *multiples) rest(at multiple) *expr {
	e := alt()
	zeros := at.remainder // the remainder if zeros follow
	for range at.left {
		zeros = 10 * zeros % m.modulus
	}
	if at.left <= m.places && zeros == 0 && (at.broken || !m.broken) &&
		!(at.atLow && strings.Trim(m.low[len(m.low)-at.left:], "0") != "") {
		e.kids = append(e.kids, literal(strings.Repeat("0", m.zeros)))
	}
	if at.left > 0 {
		e.kids = append(e.kids, m.digits(at, '0'))
	}
	return e
}

// maxListed limits a list of numbers.
const maxListed = 1 << 10

// listed matches multiples of a number within bounds, one by one: those nearest to 0.
func (b bounds) listed(step *big.Rat) *expr {
	first := big.NewRat(-maxListed/2, 1)
	if b.high != nil {
		last := roundDown(new(big.Rat).Quo(b.high, step), b.highOpen)
		if last.Sub(last, big.NewRat(maxListed-1, 1)).Cmp(first) < 0 {
			first = last
		}
	}
	if b.low != nil {
		if low := roundUp(new(big.Rat).Quo(b.low, step), b.lowOpen); low.Cmp(first) > 0 {
			first = low
		}
	}
	b.limit(intDigits)
	var list []string
	at := first.Mul(first, step)
	for range maxListed {
		if b.holds(at) {
			list = append(list, decimalOf(at))
		}
		at.Add(at, step)
	}
	if len(list) == 0 {
		return nothing()
	}
	return words(list)
}

// decimalOf returns a number as decimal digits.
func decimalOf(v *big.Rat) string {
	text, fraction := decimal(new(big.Rat).Abs(v))
	if fraction != "" {
		text += "." + fraction
	}
	if v.Sign() < 0 {
		text = "-" + text
	}
	return text
}
