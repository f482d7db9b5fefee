package grammar

import (
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

// fractional matches numbers that are not integers.
func fractional() *expr {
	whole := alt(literal("0"), seq(digits('1', '9'), digitsUpTo(0, intDigits-1)))
	return seq(maybe(literal("-")), whole, literal("."), digitsUpTo(0, fracDigits-1), digits('1', '9'))
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
func (b *bounds) limit() {
	limit := new(big.Rat).SetInt(power(intDigits))
	b.atMost(limit, true)
	b.atLeast(new(big.Rat).Neg(limit), true)
}

// effective returns the bounds without those made redundant by the limit of digits.
func (b bounds) effective() bounds {
	limit := new(big.Rat).SetInt(power(intDigits))
	if b.low != nil && b.low.Cmp(new(big.Rat).Neg(limit)) <= 0 {
		b.low = nil
	}
	if b.high != nil && b.high.Cmp(limit) >= 0 {
		b.high = nil
	}
	return b
}

// power returns a power of ten.
func power(n int) *big.Int { return new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n)), nil) }

func (b *bounds) holds(v *big.Rat) bool {
	if b.low != nil && (v.Cmp(b.low) < 0 || b.lowOpen && v.Cmp(b.low) == 0) {
		return false
	}
	return b.high == nil || v.Cmp(b.high) < 0 || !b.highOpen && v.Cmp(b.high) == 0
}

// numbers matches decimal numbers within bounds: all, only integers, or only others.
func (b bounds) numbers(whole, broken bool) *expr {
	b.limit()
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

// decimals matches decimal numbers between bounds of 0 or more. It compares digit by digit: as long
// as all digits equal those of a bound, the next one is also bounded.
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
	// fraction matches the digits from a place on; atLow and atHigh report that the digits before equal the bound's.
	var fraction func(at int, atLow, atHigh bool) *expr
	digit := func(text string, at int) byte {
		if at < len(text) {
			return text[at]
		}
		return '0'
	}
	rest := func(text string, at int) bool { return at < len(text) } // nonzero digits remain: the last one is not zero
	ends := func(at int, atLow, atHigh bool) bool {
		return !broken && !(atLow && (rest(lowFraction, at) || b.lowOpen)) &&
			!(atHigh && !rest(highFraction, at) && b.highOpen)
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
		if at < fracDigits && !(atHigh && !rest(highFraction, at)) {
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

// oneDigitOrMore returns a fraction without the empty text.
func oneDigitOrMore(e *expr) *expr {
	switch e.op {
	case opRepeat: // free digits
		return digitsUpTo(1, e.max)
	case opSeq: // digits that end with one that is not 0
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

// multiples matches multiples of a decimal number, with at most as many digits after the point as
// step has: it tracks the remainder of the digits so far. Trailing zeros of an integer step are not
// tracked: multiples of 300 are those of 3 followed by 00. It returns false if that takes too many
// rules.
func (g *grammar) multiples(step *big.Rat) (*expr, bool) {
	whole, fraction := decimal(step)
	places := len(fraction)
	bare := strings.TrimRight(whole, "0")
	zeros := 0
	if places == 0 {
		zeros = len(whole) - len(bare)
	}
	scaled := new(big.Rat).Mul(step, new(big.Rat).SetFrac(power(places), power(zeros)))
	if !scaled.IsInt() || scaled.Num().Cmp(big.NewInt(maxMultiples)) > 0 {
		return nil, false
	}
	modulus := int(scaled.Num().Int64())
	most := min(intDigits-zeros, maxMultiples/modulus-places-1) // digits tracked before the point
	if most < max(min(leastDigits, intDigits-zeros), 1) {
		return nil, false
	}
	ends := func(remainder, left int) bool { // with zeros in the remaining places
		for range left {
			remainder = 10 * remainder % modulus
		}
		return remainder == 0
	}
	rules := map[[2]int]int{}
	// follow returns the rule of the text after digits with a remainder; left counts the digits
	// that may still come before the point, and, below 0, those after it.
	var follow func(left, remainder int) *expr
	digit := func(from byte, left, remainder int) *expr {
		e := alt()
		for d := from; d <= '9'; d++ {
			e.kids = append(e.kids, seq(digits(d, d), follow(left-1, (10*remainder+int(d-'0'))%modulus)))
		}
		return e
	}
	follow = func(left, remainder int) *expr {
		key := [2]int{left, remainder}
		if rule, ok := rules[key]; ok {
			return refer(rule)
		}
		e := alt()
		rules[key] = g.add("a multiple", e)
		after := max(-left, 0)
		if ends(remainder, places-after) {
			e.kids = append(e.kids, literal(strings.Repeat("0", zeros)))
		}
		if left >= 0 && places > 0 {
			e.kids = append(e.kids, seq(literal("."), digit('0', 0, remainder)))
		}
		if left > 0 || left < 0 && after < places {
			e.kids = append(e.kids, digit('0', left, remainder))
		}
		return refer(rules[key])
	}
	other := digit('1', most, 0)
	if places > 0 {
		other.kids = append(other.kids, seq(literal("0."), digit('0', 0, 0)))
	}
	return alt(literal("0"), seq(maybe(literal("-")), other)), true
}

// maxListed limits a list of numbers.
const maxListed = 1 << 10

// listed matches multiples of a number within bounds, one by one: those from the lower bound on, up
// to the upper one, or around 0.
func (b bounds) listed(step *big.Rat) *expr {
	first := big.NewRat(-maxListed/2, 1)
	switch {
	case b.low != nil:
		first = roundUp(new(big.Rat).Quo(b.low, step), b.lowOpen)
	case b.high != nil:
		first.Sub(roundDown(new(big.Rat).Quo(b.high, step), b.highOpen), big.NewRat(maxListed-1, 1))
	}
	b.limit()
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
