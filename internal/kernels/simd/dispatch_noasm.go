//go:build (!amd64 && !arm64) || purego

package simd

func add(dst, x []float32)                                { addGeneric(dst, x) }
func scale(dst []float32, a float32)                      { scaleGeneric(dst, a) }
func axpy(dst []float32, a float32, x []float32)          { axpyGeneric(dst, a, x) }
func sum(x []float32) float32                             { return sumGeneric(x) }
func sumSquares(x []float32, mean float32) float32        { return sumSquaresGeneric(x, mean) }
func normScale(dst, x, w []float32, mean, inv float32)    { normScaleGeneric(dst, x, w, mean, inv) }
func normShift(dst, x, w, b []float32, mean, inv float32) { normShiftGeneric(dst, x, w, b, mean, inv) }
func ropeHalf(x, y, cos, sin []float32)                   { ropeHalfGeneric(x, y, cos, sin) }
func ropePairs(x, cos, sin []float32)                     { ropePairsGeneric(x, cos, sin) }
func exp(dst, x []float32)                                { expGeneric(dst, x) }
func expSum(x []float32, scale, m float32) float32        { return expSumGeneric(x, scale, m) }
func sumExp(x []float32, m float32) float32               { return sumExpGeneric(x, m) }
func siluMul(dst, gate, up []float32)                     { siluMulGeneric(dst, gate, up) }
func gelu(dst, x []float32)                               { geluGeneric(dst, x) }
func maxScaled(x []float32, scale float32) float32        { return maxScaledGeneric(x, scale) }
func indexEqual(x []float32, v float32) int               { return indexEqualGeneric(x, v) }
func indexAbove(x []float32, v float32) int               { return indexAboveGeneric(x, v) }
func firstHash(key uint64, n int, least uint64) int       { return firstHashGeneric(key, n, least) }
func firstHashOf(key uint64, tokens []int32, least uint64) int {
	return firstHashOfGeneric(key, tokens, least)
}
func scores(dst []float32, dstStride int, q []float32, qStride, rows, hd int, kPage []float32) {
	scoresGeneric(dst, dstStride, q, qStride, rows, hd, kPage)
}
func mix(o []float32, oStride int, p []float32, pStride, rows, hd, count int, vPage []float32) {
	mixGeneric(o, oStride, p, pStride, rows, hd, count, vPage)
}
func intsToBF16(dst, x []byte)                   { intsToBF16Generic(dst, x) }
func mulF16(dst, x []float32, h []byte)          { mulF16Generic(dst, x, h) }
func blendRows(dst, x, a, b []float32, cols int) { blendRowsGeneric(dst, x, a, b, cols) }
