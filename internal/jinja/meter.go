package jinja

import (
	"math"
	"math/big"
	"strings"
	"unicode/utf8"
)

const (
	maxTurns = 200_000 // of all loops and macros together
	maxDepth = 200     // levels of values within values
	maxLevel = 6000    // levels of expressions and statements, across all macros

	// Integers of up to maxDigits are read and printed, as in Python.
	maxDigits = 4300
	maxBits   = 14285 // the bits of such an integer

	floatWork = 1000 // steps charged for all digits of a float

	// Rendering may make maxMade bytes of text, lists and dictionaries, plus 16 for each byte of the
	// conversation. It may take maxWork steps, plus 64 for each byte: reading a byte is one step.
	maxMade = 6 << 20
	maxWork = 64 << 20
)

// meter counts the cost of one rendering.
type meter struct {
	work, made           int
	maxWork, maxMade     int
	turns, level, macros int
}

// product returns n*m, or a number above every limit.
func product(n, m int) int {
	if m > 0 && n > math.MaxInt/4/m {
		return math.MaxInt / 4
	}
	return n * m
}

// spend adds steps of work and bytes made.
func (r *run) spend(work, made int) {
	r.work += work
	r.made += made
	switch {
	case r.made > r.maxMade:
		r.fail("it makes more than %d bytes of text and lists", r.maxMade)
	case r.work > r.maxWork:
		r.fail("it takes more than %d steps", r.maxWork)
	}
}

// down goes one level deeper into the template.
func (r *run) down() {
	r.level++
	if r.level > maxLevel {
		r.fail("its expressions and blocks are more than %d within each other", maxLevel)
	}
	r.spend(24, 0)
}

func (r *run) up() { r.level-- }

func (r *run) turn() {
	r.turns++
	if r.turns > maxTurns {
		r.fail("more than %d turns of its loops", maxTurns)
	}
	r.spend(64, 0)
}

func (r *run) enterMacro() {
	r.turn()
	r.macros++
	if r.macros > maxNesting {
		r.fail("its macros call each other without end")
	}
	r.spend(64, 128)
}

func (r *run) leaveMacro() { r.macros-- }

// allow raises the limits by the needs of the variables.
func (r *run) allow(vars map[string]Value) {
	input := 0
	for _, v := range vars {
		r.work, r.maxWork = 0, maxWork+64*input
		elements, bytes := r.size(v, 0)
		input = min(input+16*elements+bytes, math.MaxInt/512)
	}
	r.work, r.maxWork = 0, maxWork+64*input
	r.maxMade += 16 * input
}

// size counts the elements of a value at all depths, and the bytes of their texts.
func (r *run) size(v Value, depth int) (elements, bytes int) {
	if depth > maxDepth {
		r.fail("a value nested more than %d deep", maxDepth)
	}
	r.spend(8, 0)
	elements = 1
	var items []Value
	switch v := v.(type) {
	case string:
		return 1, len(v)
	case Markup:
		return 1, len(v)
	case *big.Int:
		return 1, v.BitLen() / 8
	case *List:
		items = v.Items
	case *Tuple:
		items = v.Items
	case *view:
		return r.size(v.dict, depth)
	case *namespace:
		return r.size(&v.Dict, depth)
	case *Dict:
		items = v.values
		for _, key := range v.keys {
			e, b := r.size(key, depth+1)
			elements, bytes = elements+e, bytes+b
		}
	}
	for _, item := range items {
		e, b := r.size(item, depth+1)
		elements, bytes = elements+e, bytes+b
	}
	return elements, bytes
}

// seek charges for searching s for part, which is compared wherever its beginning occurs.
func (r *run) seek(s, part string) {
	const head = 64
	r.spend(len(s), 0)
	for len(part) > head {
		at := strings.Index(s, part[:head])
		if at < 0 {
			return
		}
		r.spend(min(len(s)-at, len(part)), 0)
		s = s[at+1:]
	}
}

// words returns the size of an integer, 0 for other values.
func words(v Value) int {
	if i, ok := v.(*big.Int); ok {
		return len(i.Bits())
	}
	return 0
}

// walk charges for walking a value at all depths.
func (r *run) walk(v Value) {
	_, bytes := r.size(v, 0)
	r.spend(bytes, 0)
}

// len is Python's: the length of a text is in characters.
func (r *run) len(v Value) (int, bool) {
	if s, ok := text(v); ok {
		r.spend(len(s), 0)
		return utf8.RuneCountInString(s), true
	}
	if l, ok := v.(*loop); ok {
		return l.length(r), true
	}
	return length(v)
}

// text charges for a text that was made.
func (r *run) text(s string) string {
	r.spend(len(s), len(s)+16)
	return s
}

// listed charges for a list that was made.
func (r *run) listed(items []Value) Value {
	r.spend(len(items), 32*len(items)+48)
	return &List{items}
}

// joined joins texts, after charging for the result.
func (r *run) joined(parts []string, sep string) string {
	n := product(len(sep), max(0, len(parts)-1))
	for _, p := range parts {
		n = min(n+len(p), math.MaxInt/4)
	}
	r.spend(n+len(parts), n+16)
	return strings.Join(parts, sep)
}

// repeated repeats a text, after charging for the result.
func (r *run) repeated(s string, n int) string {
	if n <= 0 || s == "" {
		return ""
	}
	n = min(n, r.maxMade+1) // one more than fits
	r.spend(product(n, len(s)), product(n, len(s))+16)
	return strings.Repeat(s, n)
}
