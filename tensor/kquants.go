package tensor

// The K types: blocks of 256 elements in 8 or 16 sub-blocks, whose scales are themselves quantised.

// scaleMin unpacks the 6-bit scale and minimum of sub-block j (0–7) of Q4_K and Q5_K from 12 bytes:
// bytes 0–3 and 4–7 hold scales and minimums 0–3 in their low 6 bits; bytes 8–11 hold the low 4
// bits of scale (low nibble) and minimum (high) 4–7, whose upper 2 bits sit on top of bytes 0–3 and
// 4–7.
func scaleMin(s []byte, j int) (scale, minimum float32) {
	if j < 4 {
		return float32(s[j] & 63), float32(s[j+4] & 63)
	}
	return float32(s[j+4]&15 | s[j-4]>>6<<4), float32(s[j+4]>>4 | s[j]>>6<<4)
}

// Q4_K: d, dmin (halves), 12 bytes of scales, 128 bytes of nibbles: each 32 bytes hold two sub-blocks of 32, the first
// in the low nibbles. x = d·scale·q − dmin·min
func decodeQ4K(src []byte, dst []float32) {
	d := half(src)
	dmin := half(src[2:])
	scales := src[4:16]
	qs := src[16:144]
	for j := 0; j < 8; j += 2 {
		s0, m0 := scaleMin(scales, j)
		s1, m1 := scaleMin(scales, j+1)
		s0 = s0 * d
		m0 = m0 * dmin
		s1 = s1 * d
		m1 = m1 * dmin
		lo, hi := dst[32*j:32*j+32], dst[32*j+32:32*j+64]
		for i, q := range qs[16*j : 16*j+32] {
			lo[i] = float32(s0*float32(q&15)) - m0
			hi[i] = float32(s1*float32(q>>4)) - m1
		}
	}
}

// Q5_K: as Q4_K, with 32 bytes of fifth bits before the nibbles: bit j of byte i belongs to element i of sub-block j.
func decodeQ5K(src []byte, dst []float32) {
	d := half(src)
	dmin := half(src[2:])
	scales := src[4:16]
	high := src[16:48]
	qs := src[48:176]
	for j := 0; j < 8; j += 2 {
		s0, m0 := scaleMin(scales, j)
		s1, m1 := scaleMin(scales, j+1)
		s0 = s0 * d
		m0 = m0 * dmin
		s1 = s1 * d
		m1 = m1 * dmin
		lo, hi := dst[32*j:32*j+32], dst[32*j+32:32*j+64]
		for i, q := range qs[16*j : 16*j+32] {
			h := high[i] >> j
			lo[i] = float32(s0*float32(q&15|h&1<<4)) - m0
			hi[i] = float32(s1*float32(q>>4|h>>1&1<<4)) - m1
		}
	}
}

// Q6_K: 128 bytes of low nibbles, 64 bytes of upper bit pairs, 16 signed scales, d (half). Each half of the block
// (128 elements) is four runs of 32: runs 0 and 1 in the low nibbles of 64 bytes, 2 and 3 in the high ones; run r's
// upper bits are pair r of 32 bytes. A scale covers 16 elements. x = d·scale·(q−32)
func decodeQ6K(src []byte, dst []float32) {
	low := src[:128]
	high := src[128:192]
	scales := src[192:208]
	d := half(src[208:])
	for h := range 2 {
		low := low[64*h : 64*h+64]
		high := high[32*h : 32*h+32]
		scales := scales[8*h : 8*h+8]
		dst := dst[128*h : 128*h+128]
		for r := range 4 {
			ql, shift := low[r%2*32:r%2*32+32], r/2*4
			for i := range 32 {
				q := int(ql[i]>>shift&15|high[i]>>(2*r)&3<<4) - 32
				dst[32*r+i] = d * float32(int8(scales[2*r+i/16])) * float32(q)
			}
		}
	}
}
