package simd

import "github.com/grovellm/grove/internal/kernels/num"

// PageRows is the number of positions in a page of the KV cache. A page of keys is stored
// transposed, hd × PageRows, so that the scores of 32 positions fill two vectors of 16 (or four of
// 8) and need no sum across lanes; a page of values is PageRows × hd.
const PageRows = 32

// Scores computes, for a page of keys, dst[r*dstStride+j] = Σ_d q[r*qStride+d] · kPage[d*32+j]
// for r < rows and all 32 positions j; each sum starts at 0 and is a chain of fused multiply-adds, d ascending.
func Scores(dst []float32, dstStride int, q []float32, qStride, rows, hd int, kPage []float32) {
	if rows <= 0 {
		return
	}
	if dstStride < PageRows && rows > 1 || qStride < hd && rows > 1 || hd < 0 {
		panic("simd: Scores: rows overlap")
	}
	dst = dst[:(rows-1)*dstStride+PageRows]
	q = q[:(rows-1)*qStride+hd]
	kPage = kPage[:hd*PageRows]
	scores(dst, dstStride, q, qStride, rows, hd, kPage)
}

// Mix adds count weighted rows of a page of values to rows accumulators:
// o[r*oStride+d] = FMA(p[r*pStride+j], vPage[j*hd+d], o[r*oStride+d]), j = 0 to count-1 in order.
func Mix(o []float32, oStride int, p []float32, pStride, rows, hd, count int, vPage []float32) {
	if rows <= 0 || count <= 0 || hd <= 0 {
		return
	}
	if oStride < hd && rows > 1 || pStride < count && rows > 1 {
		panic("simd: Mix: rows overlap")
	}
	o = o[:(rows-1)*oStride+hd]
	p = p[:(rows-1)*pStride+count]
	vPage = vPage[:count*hd]
	mix(o, oStride, p, pStride, rows, hd, count, vPage)
}

func scoresGeneric(dst []float32, dstStride int, q []float32, qStride, rows, hd int, kPage []float32) {
	for r := range rows {
		var acc [PageRows]float32
		for d, x := range q[r*qStride:][:hd] {
			for j, k := range kPage[d*PageRows:][:PageRows] {
				acc[j] = num.FMA(x, k, acc[j])
			}
		}
		copy(dst[r*dstStride:], acc[:])
	}
}

func mixGeneric(o []float32, oStride int, p []float32, pStride, rows, hd, count int, vPage []float32) {
	for r := range rows {
		acc := o[r*oStride:][:hd]
		for j, w := range p[r*pStride:][:count] {
			for d, v := range vPage[j*hd:][:hd] {
				acc[d] = num.FMA(w, v, acc[d])
			}
		}
	}
}
