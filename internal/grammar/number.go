package grammar

import (
	"math/big"
	"strings"
)

// Numbers have at most these digits before and after the point, so that programs can read them, and no text of digits is endless.
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

// fractional matches numbers that are not whole.
func fractional() *expr {
	whole := alt(literal("0"), seq(digits('1', '9'), digitsUpTo(0, intDigits-1)))
	return seq(maybe(literal("-")), whole, literal("."), digitsUpTo(0, fracDigits-1), digits('1', '9'))
}

// bounds of a number; nil for none.
type bounds struct {
	low, high         *big.Rat
	lowOpen, highOpen bool // the bound itself is outside
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

func (b *bounds) holds(v *big.Rat) bool {
	if b.low != nil && (v.Cmp(b.low) < 0 || b.lowOpen && v.Cmp(b.low) == 0) {
		return false
	}
	return b.high == nil || v.Cmp(b.high) < 0 || !b.highOpen && v.Cmp(b.high) == 0
}

// numbers matches decimal numbers within bounds: all, whole ones, or others alone.
func (b bounds) numbers(whole, broken bool) *expr {
	limit := new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(intDigits), nil))
	b.atMost(limit, true)
	b.atLeast(new(big.Rat).Neg(limit), true)
	zero := new(big.Rat)
	e := alt()
	if b.high.Cmp(zero) >= 0 {
		positive := b
		positive.atLeast(zero, false)
		e.kids = append(e.kids, positive.decimals(whole, broken))
	}
	if b.low.Cmp(zero) < 0 {
		negative := bounds{new(big.Rat).Neg(b.high), new(big.Rat).Neg(b.low), b.highOpen, b.lowOpen}
		negative.atLeast(zero, true)
		e.kids = append(e.kids, seq(literal("-"), negative.decimals(whole, broken)))
	}
	return e
}

// decimals matches decimal numbers between bounds of 0 or more. It compares digit by digit: as long as all digits are those of a bound,
// the next one is bounded too.
func (b *bounds) decimals(whole, broken bool) *expr {
	if whole {
		b.low, b.lowOpen = roundUp(b.low, b.lowOpen), false
		b.high, b.highOpen = roundDown(b.high, b.highOpen), false
	}
	if b.low.Cmp(b.high) > 0 {
		return nothing()
	}
	low, lowFraction := decimal(b.low)
	high, highFraction := decimal(b.high)
	most := max(len(lowFraction)+1, len(highFraction)+1, fracDigits)
	// fraction matches the digits from a place on; atLow and atHigh say that the digits before are those of the bound.
	var fraction func(at int, atLow, atHigh bool) *expr
	digit := func(text string, at int) byte {
		if at < len(text) {
			return text[at]
		}
		return '0'
	}
	rest := func(text string, at int) bool { return at < len(text) } // nonzero digits are left: the last is none
	ends := func(at int, atLow, atHigh bool) bool {
		return !broken && !(atLow && (rest(lowFraction, at) || b.lowOpen)) && !(atHigh && !rest(highFraction, at) && b.highOpen)
	}
	// choices matches a digit and what follows it.
	choices := func(lo, hi byte, atLow, atHigh bool, next func(atLow, atHigh bool) *expr) *expr {
		e := alt()
		if atLow {
			e.kids = append(e.kids, seq(digits(lo, lo), next(true, atHigh && lo == hi)))
			if lo == hi && atHigh {
				return e
			}
			lo++
		}
		if atHigh && lo <= hi {
			e.kids = append(e.kids, seq(digits(hi, hi), next(false, true)))
			hi--
		}
		if lo <= hi {
			e.kids = append(e.kids, seq(digits(lo, hi), next(false, false)))
		}
		return e
	}
	fraction = func(at int, atLow, atHigh bool) *expr {
		switch free := max(fracDigits-at, 0); {
		case !atLow && !atHigh && broken:
			return seq(digitsUpTo(0, free), digits('1', '9'))
		case !atLow && !atHigh:
			return digitsUpTo(0, free)
		}
		e := alt()
		if ends(at, atLow, atHigh) {
			e.kids = append(e.kids, empty())
		}
		if at < most && !(atHigh && !rest(highFraction, at)) {
			lo, hi := byte('0'), byte('9')
			if atLow {
				lo = digit(lowFraction, at)
			}
			if atHigh {
				hi = digit(highFraction, at)
			}
			if lo <= hi {
				e.kids = append(e.kids, choices(lo, hi, atLow, atHigh, func(l, h bool) *expr { return fraction(at+1, l, h) }))
			}
		}
		return e
	}
	all := alt()
	for size := len(low); size <= len(high); size++ {
		var integer func(at int, atLow, atHigh bool) *expr
		integer = func(at int, atLow, atHigh bool) *expr {
			if at == size {
				e := alt()
				if ends(0, atLow, atHigh) {
					e.kids = append(e.kids, empty())
				}
				if !whole {
					e.kids = append(e.kids, seq(literal("."), oneDigitOrMore(fraction(0, atLow, atHigh))))
				}
				return e
			}
			lo, hi := byte('0'), byte('9')
			if at == 0 && size > 1 {
				lo = '1'
			}
			if atLow {
				lo = low[at]
			}
			if atHigh {
				hi = high[at]
			}
			if !atLow && !atHigh && at > 0 {
				tail := integer(size, false, false)
				return seq(digitsUpTo(size-at, size-at), tail)
			}
			return choices(lo, hi, atLow, atHigh, func(l, h bool) *expr { return integer(at+1, l, h) })
		}
		all.kids = append(all.kids, integer(0, size == len(low), size == len(high)))
	}
	return all
}

// oneDigitOrMore is a fraction without the empty text.
func oneDigitOrMore(e *expr) *expr {
	switch e.op {
	case opRepeat: // free digits
		return digitsUpTo(1, e.max)
	case opSeq: // that end with one that is not 0
		return e
	}
	out := alt()
	for _, kid := range e.kids {
		if !(kid.op == opSeq && len(kid.kids) == 0) {
			out.kids = append(out.kids, kid)
		}
	}
	return out
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

// decimal is a number of 0 or more as digits before and after the point, without zeros at its end.
func decimal(v *big.Rat) (whole, fraction string) {
	whole, fraction, _ = strings.Cut(v.FloatString(2*fracDigits), ".")
	return whole, strings.TrimRight(fraction, "0")
}

// maxModulus bounds the states that multiples take.
const maxModulus = 1 << 10

// multiples matches multiples of a decimal number: the digits' remainder is followed, with as many digits after the point as step has.
func (g *grammar) multiples(step *big.Rat) (*expr, bool) {
	_, fraction := decimal(step)
	scale := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(len(fraction))), nil)
	scaled := new(big.Rat).Mul(step, new(big.Rat).SetInt(scale))
	if !scaled.IsInt() || !scaled.Num().IsInt64() || scaled.Num().Int64() > maxModulus {
		return nil, false
	}
	modulus := int(scaled.Num().Int64())
	// Rules of the digits that bring a remainder to 0: of the whole part, and with k digits left after the point.
	first := len(g.rules)
	places := len(fraction)
	rule := func(place, remainder int) *expr { return refer(first + place*modulus + remainder) }
	ends := func(remainder, left int) bool { // with zeros in the places that are left
		for range left {
			remainder = 10 * remainder % modulus
		}
		return remainder == 0
	}
	for place := range places + 1 {
		for remainder := range modulus {
			g.add("a multiple", nil)
			e := alt()
			if ends(remainder, places-place) {
				e.kids = append(e.kids, empty())
			}
			if place == 0 && places > 0 {
				e.kids = append(e.kids, seq(literal("."), refer(first+(places+1)*modulus+remainder)))
			}
			if place == 0 || place < places {
				for d := range 10 {
					next := place
					if place > 0 {
						next++
					}
					e.kids = append(e.kids, seq(digits(byte('0'+d), byte('0'+d)), rule(next, (10*remainder+d)%modulus)))
				}
			}
			g.rules[len(g.rules)-1] = e
		}
	}
	for remainder := range modulus { // the first digit after the point
		e := alt()
		for d := range 10 {
			e.kids = append(e.kids, seq(digits(byte('0'+d), byte('0'+d)), rule(1, (10*remainder+d)%modulus)))
		}
		if places > 0 {
			g.add("a multiple", e)
		}
	}
	start := alt(seq(literal("0"), rule0(first, modulus, places)))
	for d := 1; d < 10; d++ {
		start.kids = append(start.kids, seq(digits(byte('0'+d), byte('0'+d)), rule(0, d%modulus)))
	}
	return seq(maybe(literal("-")), start), true
}

// rule0 matches what may follow a first digit 0.
func rule0(first, modulus, places int) *expr {
	if places == 0 {
		return empty()
	}
	return maybe(seq(literal("."), refer(first+(places+1)*modulus)))
}
