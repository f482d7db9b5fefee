package tensor

import (
	"encoding/binary"
	"math"

	"github.com/grovellm/grove/internal/kernels/num"
)

// The encoders of the K types. A sub-block's scale and minimum are the best of a few tries: each
// rounds the elements with the scale tried and finds the scale and minimum of least squares for
// what they were rounded to; the best is improved in the same way. The scales are then rounded
// themselves, to multiples of a half for the whole block, and the elements for the last time.
//
// Errors count by an element's size as well (what multiplies large activations is often large), about as in ggml.
//
// Products that are added to something are converted to what they are, which keeps compilers from
// fusing the two: a file has the same bytes whatever processor made it.

// affine is the scale s ≥ 0 and minimum m ≥ 0 for which s·q − m comes closest to x, with q from 0 to most.
func affine(x []float32, most int) (s, m float32) {
	lo := float32(0)
	hi := x[0]
	square := 0.0
	for _, v := range x {
		lo = min(lo, v)
		hi = max(hi, v)
		square = square + float64(float64(v)*float64(v))
	}
	if hi <= lo {
		return 0, -lo
	}
	root := math.Sqrt(square / float64(len(x)))
	var sw, sx, sxx float64 // of the weights, and with them of x and x²
	var wide, weight [32]float64
	for i, v := range x {
		v := float64(v)
		w := root + math.Abs(v)
		wide[i] = v
		weight[i] = w
		sw = sw + w
		sx = sx + float64(w*v)
		sxx = sxx + float64(w*v*v)
	}
	// fit rounds x with a scale and a lowest value, and finds those that do best with what came out, and their error.
	fit := func(scale, low float64) (_, _, err float64) {
		var sq, sqq, sqx float64
		inverse, top := 1/scale, float64(most)
		for i, v := range wide[:len(x)] {
			q := roundWithin((v-low)*inverse, 0, top)
			w := float64(weight[i] * q)
			sq = sq + w
			sqq = sqq + float64(w*q)
			sqx = sqx + float64(w*v)
		}
		if det := float64(sw*sqq) - float64(sq*sq); det > 0 {
			scale, low = (float64(sw*sqx)-float64(sq*sx))/det, (float64(sqq*sx)-float64(sq*sqx))/det
		}
		if low > 0 && sqq > 0 {
			scale, low = sqx/sqq, 0
		}
		return scale, low, float64(scale*scale*sqq) + float64(low*low*sw) + sxx +
			2*(float64(scale*low*sq)-float64(scale*sqx)-float64(low*sx))
	}
	best := math.Inf(1)
	bestScale := float64(hi-lo) / float64(most)
	bestLow := float64(lo)
	for try := -9; try <= 9; try += 2 {
		if scale, low, err := fit(float64(hi-lo)/(float64(most)+float64(try)/10), float64(lo)); scale > 0 && err < best {
			best = err
			bestScale = scale
			bestLow = low
		}
	}
	for range 4 {
		scale, low, err := fit(bestScale, bestLow)
		if !(scale > 0 && err < best) {
			break
		}
		best = err
		bestScale = scale
		bestLow = low
	}
	return float32(bestScale), float32(-bestLow)
}

// signed is the scale for which scale·q comes closest to x, with q from −most to most−1: negative
// where the largest is positive, as −most reaches further than most−1.
func signed(x []float32, most int) float32 {
	top := float32(0)
	for _, v := range x {
		if abs(v) > abs(top) {
			top = v
		}
	}
	if top == 0 {
		return 0
	}
	best, s := 0.0, float32(0)
	least, greatest := float64(-most), float64(most-1)
	for try := -9; try <= 9; try++ {
		inverse := -(float64(most) + float64(try)/10) / float64(top)
		var sxq, sqq float64
		for _, v := range x {
			v := float64(v)
			q := roundWithin(v*inverse, least, greatest)
			w := v * v * q
			sxq, sqq = sxq+float64(w*v), sqq+float64(w*q)
		}
		if sqq > 0 && sxq*sxq > best*sqq { // what is left of Σ v²·v² shrinks by sxq²/sqq
			best, s = sxq*sxq/sqq, float32(sxq/sqq)
		}
	}
	return s
}

func abs(x float32) float32 { return float32(math.Abs(float64(x))) }

func clampRound(x float64, lo, hi int) float64 { return roundWithin(x, float64(lo), float64(hi)) }

// roundWithin rounds a number to the nearest integer from lo to hi, halves to the even one.
func roundWithin(x, lo, hi float64) float64 {
	const ones = 3 << 51 // sums with it have no room for fractions
	if x <= lo {
		return lo
	}
	if x >= hi {
		return hi
	}
	return float64(x) + ones - ones // a conversion: what x is of is not to be fused with the sum
}

// halfOf is x as a half, and what that is; ok is false if there is none as large.
func halfOf(x float32) (h uint16, back float32, ok bool) {
	h = num.ToF16(x)
	return h, num.F16(h), h&0x7fff != 0x7c00
}

// largest is the index of the element of largest magnitude, or of the first that is not finite.
func largest(x []float32) (at int, finite bool) {
	for i, v := range x {
		if !(abs(v) <= math.MaxFloat32) {
			return i, false
		}
		if abs(v) > abs(x[at]) {
			at = i
		}
	}
	return at, true
}

// over is x / d, or 0 where d is.
func over(x, d float32) float64 {
	if d == 0 {
		return 0
	}
	return float64(x) / float64(d)
}

// encodeQ45K encodes a block of 256 as Q4_K or Q5_K (most 15 or 31). It returns the index of an
// element that has no encoding, −1 when all have.
func encodeQ45K(src []float32, dst []byte, most int) (bad int) {
	at, finite := largest(src)
	if !finite {
		return at
	}
	var s, m [8]float32
	var topS, topM float32
	for j := range s {
		s[j], m[j] = affine(src[32*j:32*j+32], most)
		topS, topM = max(topS, s[j]), max(topM, m[j])
	}
	hd, d, ok := halfOf(topS / 63)
	hm, dmin, ok2 := halfOf(topM / 63)
	if !ok || !ok2 {
		return at
	}
	clear(dst)
	binary.LittleEndian.PutUint16(dst, hd)
	binary.LittleEndian.PutUint16(dst[2:], hm)
	packed, low := dst[4:16], dst[16:]
	if most == 31 {
		low = dst[48:]
	}
	for j := range s {
		sc, mn := byte(clampRound(over(s[j], d), 0, 63)), byte(clampRound(over(m[j], dmin), 0, 63))
		if j < 4 {
			packed[j] |= sc
			packed[j+4] |= mn
		} else {
			packed[j+4] = sc&15 | mn&15<<4
			packed[j-4] |= sc >> 4 << 6
			packed[j] |= mn >> 4 << 6
		}
		scale, least := d*float32(sc), dmin*float32(mn)
		for i, v := range src[32*j : 32*j+32] {
			q := byte(clampRound(over(v+least, scale), 0, most))
			low[j/2*32+i] |= q & 15 << (j % 2 * 4)
			if most == 31 {
				dst[16+i] |= q >> 4 << j
			}
		}
	}
	return -1
}

// encodeQ6K encodes a block of 256 as Q6_K, as encodeQ45K does.
func encodeQ6K(src []float32, dst []byte) (bad int) {
	at, finite := largest(src)
	if !finite {
		return at
	}
	var s [16]float32
	top := float32(0)
	for j := range s {
		s[j] = signed(src[16*j:16*j+16], 32)
		if abs(s[j]) > abs(top) {
			top = s[j]
		}
	}
	h, d, ok := halfOf(top / -128)
	if !ok {
		return at
	}
	clear(dst)
	low := dst[:128]
	high := dst[128:192]
	scales := dst[192:208]
	binary.LittleEndian.PutUint16(dst[208:], h)
	for j := range s {
		sc := int8(clampRound(over(s[j], d), -128, 127))
		scales[j] = byte(sc)
		for i, v := range src[16*j : 16*j+16] {
			q := byte(clampRound(over(v, d*float32(sc)), -32, 31) + 32)
			e := 16*j + i
			n := e / 128
			r := e / 32 % 4
			l := e % 32
			low[64*n+r%2*32+l] |= q & 15 << (r / 2 * 4)
			high[32*n+l] |= q >> 4 << (2 * r)
		}
	}
	return -1
}
