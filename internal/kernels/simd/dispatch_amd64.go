//go:build amd64 && !purego

package simd

import "github.com/grovellm/grove/internal/kernels/cpu"

// The level in use chooses; the AVX-512 kernels need no more than cpu.AVX512 promises.

func add(dst, x []float32) {
	switch l := cpu.Active(); {
	case l >= cpu.AVX512:
		addAVX512(dst, x)
	case l >= cpu.AVX2:
		addAVX2(dst, x)
	default:
		addGeneric(dst, x)
	}
}

func scale(dst []float32, a float32) {
	switch l := cpu.Active(); {
	case l >= cpu.AVX512:
		scaleAVX512(dst, a)
	case l >= cpu.AVX2:
		scaleAVX2(dst, a)
	default:
		scaleGeneric(dst, a)
	}
}

func axpy(dst []float32, a float32, x []float32) {
	switch l := cpu.Active(); {
	case l >= cpu.AVX512:
		axpyAVX512(dst, a, x)
	case l >= cpu.AVX2:
		axpyAVX2(dst, a, x)
	default:
		axpyGeneric(dst, a, x)
	}
}

func sum(x []float32) float32 {
	switch l := cpu.Active(); {
	case l >= cpu.AVX512:
		return sumAVX512(x)
	case l >= cpu.AVX2:
		return sumAVX2(x)
	default:
		return sumGeneric(x)
	}
}

func sumSquares(x []float32, mean float32) float32 {
	switch l := cpu.Active(); {
	case l >= cpu.AVX512:
		return sumSquaresAVX512(x, mean)
	case l >= cpu.AVX2:
		return sumSquaresAVX2(x, mean)
	default:
		return sumSquaresGeneric(x, mean)
	}
}

func normScale(dst, x, w []float32, mean, inv float32) {
	switch l := cpu.Active(); {
	case l >= cpu.AVX512:
		normScaleAVX512(dst, x, w, mean, inv)
	case l >= cpu.AVX2:
		normScaleAVX2(dst, x, w, mean, inv)
	default:
		normScaleGeneric(dst, x, w, mean, inv)
	}
}

func normShift(dst, x, w, b []float32, mean, inv float32) {
	switch l := cpu.Active(); {
	case l >= cpu.AVX512:
		normShiftAVX512(dst, x, w, b, mean, inv)
	case l >= cpu.AVX2:
		normShiftAVX2(dst, x, w, b, mean, inv)
	default:
		normShiftGeneric(dst, x, w, b, mean, inv)
	}
}

func ropeHalf(x, y, cos, sin []float32) {
	switch l := cpu.Active(); {
	case l >= cpu.AVX512:
		ropeHalfAVX512(x, y, cos, sin)
	case l >= cpu.AVX2:
		ropeHalfAVX2(x, y, cos, sin)
	default:
		ropeHalfGeneric(x, y, cos, sin)
	}
}

func ropePairs(x, cos, sin []float32) {
	switch l := cpu.Active(); {
	case l >= cpu.AVX512:
		ropePairsAVX512(x, cos, sin)
	case l >= cpu.AVX2:
		ropePairsAVX2(x, cos, sin)
	default:
		ropePairsGeneric(x, cos, sin)
	}
}

func exp(dst, x []float32) {
	switch l := cpu.Active(); {
	case l >= cpu.AVX512:
		expAVX512(dst, x)
	case l >= cpu.AVX2:
		expAVX2(dst, x)
	default:
		expGeneric(dst, x)
	}
}

func expSum(x []float32, scale, m float32) float32 {
	switch l := cpu.Active(); {
	case l >= cpu.AVX512:
		return expSumAVX512(x, scale, m)
	case l >= cpu.AVX2:
		return expSumAVX2(x, scale, m)
	default:
		return expSumGeneric(x, scale, m)
	}
}

func sumExp(x []float32, m float32) float32 {
	switch l := cpu.Active(); {
	case l >= cpu.AVX512:
		return sumExpAVX512(x, m)
	case l >= cpu.AVX2:
		return sumExpAVX2(x, m)
	default:
		return sumExpGeneric(x, m)
	}
}

func siluMul(dst, gate, up []float32) {
	switch l := cpu.Active(); {
	case l >= cpu.AVX512:
		siluMulAVX512(dst, gate, up)
	case l >= cpu.AVX2:
		siluMulAVX2(dst, gate, up)
	default:
		siluMulGeneric(dst, gate, up)
	}
}

func gelu(dst, x []float32) {
	switch l := cpu.Active(); {
	case l >= cpu.AVX512:
		geluAVX512(dst, x)
	case l >= cpu.AVX2:
		geluAVX2(dst, x)
	default:
		geluGeneric(dst, x)
	}
}

func maxScaled(x []float32, scale float32) float32 {
	switch l := cpu.Active(); {
	case l >= cpu.AVX512:
		return maxScaledAVX512(x, scale)
	case l >= cpu.AVX2:
		return maxScaledAVX2(x, scale)
	default:
		return maxScaledGeneric(x, scale)
	}
}

func indexEqual(x []float32, v float32) int {
	switch l := cpu.Active(); {
	case l >= cpu.AVX512:
		return indexEqualAVX512(x, v)
	case l >= cpu.AVX2:
		return indexEqualAVX2(x, v)
	default:
		return indexEqualGeneric(x, v)
	}
}

func indexAbove(x []float32, v float32) int {
	switch l := cpu.Active(); {
	case l >= cpu.AVX512:
		return indexAboveAVX512(x, v)
	case l >= cpu.AVX2:
		return indexAboveAVX2(x, v)
	default:
		return indexAboveGeneric(x, v)
	}
}

// firstHash wants n a multiple of 16.
func firstHash(key uint64, n int, least uint64) int {
	switch l := cpu.Active(); {
	case l >= cpu.AVX512:
		return firstHashAVX512(key, n, least)
	case l >= cpu.AVX2:
		return firstHashAVX2(key, n, least)
	default:
		return firstHashGeneric(key, n, least)
	}
}

// firstHashOf wants a multiple of 16 tokens.
func firstHashOf(key uint64, tokens []int32, least uint64) int {
	switch l := cpu.Active(); {
	case l >= cpu.AVX512:
		return firstHashOfAVX512(key, tokens, least)
	case l >= cpu.AVX2:
		return firstHashOfAVX2(key, tokens, least)
	default:
		return firstHashOfGeneric(key, tokens, least)
	}
}

func scores(dst []float32, dstStride int, q []float32, qStride, rows, hd int, kPage []float32) {
	switch l := cpu.Active(); {
	case l >= cpu.AVX512:
		scoresAVX512(dst, dstStride, q, qStride, rows, hd, kPage)
	case l >= cpu.AVX2:
		scoresAVX2(dst, dstStride, q, qStride, rows, hd, kPage)
	default:
		scoresGeneric(dst, dstStride, q, qStride, rows, hd, kPage)
	}
}

func mix(o []float32, oStride int, p []float32, pStride, rows, hd, count int, vPage []float32) {
	switch l := cpu.Active(); {
	case l >= cpu.AVX512:
		mixAVX512(o, oStride, p, pStride, rows, hd, count, vPage)
	case l >= cpu.AVX2:
		mixAVX2(o, oStride, p, pStride, rows, hd, count, vPage)
	default:
		mixGeneric(o, oStride, p, pStride, rows, hd, count, vPage)
	}
}

func intsToBF16(dst, x []byte) {
	switch l := cpu.Active(); {
	case l >= cpu.AVX512:
		intsToBF16AVX512(dst, x)
	case l >= cpu.AVX2:
		intsToBF16AVX2(dst, x)
	default:
		intsToBF16Generic(dst, x)
	}
}

func mulF16(dst, x []float32, h []byte) {
	switch l := cpu.Active(); {
	case l >= cpu.AVX512:
		mulF16AVX512(dst, x, h)
	case l >= cpu.AVX2:
		mulF16AVX2(dst, x, h)
	default:
		mulF16Generic(dst, x, h)
	}
}

func blendRows(dst, x, a, b []float32, cols int) {
	switch l := cpu.Active(); {
	case l >= cpu.AVX512:
		blendRowsAVX512(dst, x, a, b, cols)
	case l >= cpu.AVX2:
		blendRowsAVX2(dst, x, a, b, cols)
	default:
		blendRowsGeneric(dst, x, a, b, cols)
	}
}
