//go:build arm64 && !purego

package simd

import "github.com/grovellm/grove/internal/kernels/cpu"

// The level in use chooses.

func add(dst, x []float32) {
	if cpu.Active() >= cpu.NEON {
		addNEON(dst, x)
		return
	}
	addGeneric(dst, x)
}

func scale(dst []float32, a float32) {
	if cpu.Active() >= cpu.NEON {
		scaleNEON(dst, a)
		return
	}
	scaleGeneric(dst, a)
}

func axpy(dst []float32, a float32, x []float32) {
	if cpu.Active() >= cpu.NEON {
		axpyNEON(dst, a, x)
		return
	}
	axpyGeneric(dst, a, x)
}

func sum(x []float32) float32 {
	if cpu.Active() >= cpu.NEON {
		return sumNEON(x)
	}
	return sumGeneric(x)
}

func sumSquares(x []float32, mean float32) float32 {
	if cpu.Active() >= cpu.NEON {
		return sumSquaresNEON(x, mean)
	}
	return sumSquaresGeneric(x, mean)
}

func normScale(dst, x, w []float32, mean, inv float32) {
	if cpu.Active() >= cpu.NEON {
		normScaleNEON(dst, x, w, mean, inv)
		return
	}
	normScaleGeneric(dst, x, w, mean, inv)
}

func normShift(dst, x, w, b []float32, mean, inv float32) {
	if cpu.Active() >= cpu.NEON {
		normShiftNEON(dst, x, w, b, mean, inv)
		return
	}
	normShiftGeneric(dst, x, w, b, mean, inv)
}

func ropeHalf(x, y, cos, sin []float32) {
	if cpu.Active() >= cpu.NEON {
		ropeHalfNEON(x, y, cos, sin)
		return
	}
	ropeHalfGeneric(x, y, cos, sin)
}

func ropePairs(x, cos, sin []float32) {
	if cpu.Active() >= cpu.NEON {
		ropePairsNEON(x, cos, sin)
		return
	}
	ropePairsGeneric(x, cos, sin)
}

func exp(dst, x []float32) {
	if cpu.Active() >= cpu.NEON {
		expNEON(dst, x)
		return
	}
	expGeneric(dst, x)
}

func expSum(x []float32, scale, m float32) float32 {
	if cpu.Active() >= cpu.NEON {
		return expSumNEON(x, scale, m)
	}
	return expSumGeneric(x, scale, m)
}

func sumExp(x []float32, m float32) float32 {
	if cpu.Active() >= cpu.NEON {
		return sumExpNEON(x, m)
	}
	return sumExpGeneric(x, m)
}

func siluMul(dst, gate, up []float32) {
	if cpu.Active() >= cpu.NEON {
		siluMulNEON(dst, gate, up)
		return
	}
	siluMulGeneric(dst, gate, up)
}

func gelu(dst, x []float32) {
	if cpu.Active() >= cpu.NEON {
		geluNEON(dst, x)
		return
	}
	geluGeneric(dst, x)
}

func maxScaled(x []float32, scale float32) float32 {
	if cpu.Active() >= cpu.NEON {
		return maxScaledNEON(x, scale)
	}
	return maxScaledGeneric(x, scale)
}

func indexEqual(x []float32, v float32) int {
	if cpu.Active() >= cpu.NEON {
		return indexEqualNEON(x, v)
	}
	return indexEqualGeneric(x, v)
}

func indexAbove(x []float32, v float32) int {
	if cpu.Active() >= cpu.NEON {
		return indexAboveNEON(x, v)
	}
	return indexAboveGeneric(x, v)
}

// firstHash wants n a multiple of 16.
func firstHash(key uint64, n int, least uint64) int {
	if cpu.Active() >= cpu.NEON {
		return firstHashNEON(key, n, least)
	}
	return firstHashGeneric(key, n, least)
}

// firstHashOf wants a multiple of 16 tokens.
func firstHashOf(key uint64, tokens []int32, least uint64) int {
	if cpu.Active() >= cpu.NEON {
		return firstHashOfNEON(key, tokens, least)
	}
	return firstHashOfGeneric(key, tokens, least)
}

func scores(dst []float32, dstStride int, q []float32, qStride, rows, hd int, kPage []float32) {
	if cpu.Active() >= cpu.NEON {
		scoresNEON(dst, dstStride, q, qStride, rows, hd, kPage)
		return
	}
	scoresGeneric(dst, dstStride, q, qStride, rows, hd, kPage)
}

func mix(o []float32, oStride int, p []float32, pStride, rows, hd, count int, vPage []float32) {
	if cpu.Active() >= cpu.NEON {
		mixNEON(o, oStride, p, pStride, rows, hd, count, vPage)
		return
	}
	mixGeneric(o, oStride, p, pStride, rows, hd, count, vPage)
}

func intsToBF16(dst, x []byte) {
	if cpu.Active() >= cpu.NEON {
		intsToBF16NEON(dst, x)
		return
	}
	intsToBF16Generic(dst, x)
}

func mulF16(dst, x []float32, h []byte) {
	if cpu.Active() >= cpu.NEON {
		mulF16NEON(dst, x, h)
		return
	}
	mulF16Generic(dst, x, h)
}

func blendRows(dst, x, a, b []float32, cols int) {
	if cpu.Active() >= cpu.NEON {
		blendRowsNEON(dst, x, a, b, cols)
		return
	}
	blendRowsGeneric(dst, x, a, b, cols)
}
