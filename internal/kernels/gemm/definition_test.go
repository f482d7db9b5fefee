package gemm

import (
	"encoding/binary"
	"math"
	"math/rand/v2"

	"github.com/grovellm/grove/internal/kernels/codebook"
	"github.com/grovellm/grove/internal/kernels/num"
)

// What a product is, straight from a file's bytes.

// fileRows draws a matrix in its file encoding.
func fileRows(r *rand.Rand, t Type, out, in int, wild bool) []byte {
	b := make([]byte, out*t.rowBytes(in))
	le := binary.LittleEndian
	switch t {
	case F32:
		for i := 0; i < len(b); i += 4 {
			le.PutUint32(b[i:], math.Float32bits(value(r, wild)))
		}
	case F16:
		for i := 0; i < len(b); i += 2 {
			le.PutUint16(b[i:], num.ToF16(value(r, wild)))
		}
	case BF16:
		for i := 0; i < len(b); i += 2 {
			le.PutUint16(b[i:], num.ToBF16(value(r, wild)))
		}
	case MXFP4:
		for i := range b {
			b[i] = byte(r.Uint32())
			if i%17 == 0 && !wild { // the exponent of a scale
				b[i] = byte(110 + r.IntN(20))
			}
		}
	case Q8_0, Q4_0, Q4_1, Q5_0, Q5_1, IQ4_NL:
		for i := range b {
			b[i] = byte(r.Uint32())
			if t == Q8_0 && i%97 == 0 {
				b[i] = 0x80 // −128: no quantiser writes it, a file may hold it
			}
		}
		for i := 0; i < len(b); i += blockTypes[t].file {
			le.PutUint16(b[i:], num.ToF16(value(r, wild)/100))
			if t == Q4_1 || t == Q5_1 {
				le.PutUint16(b[i+2:], num.ToF16(value(r, wild)/10))
			}
		}
	case Q4_K, Q5_K, Q6_K, Q2_K, Q3_K:
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		size := kTypes[t].file
		for i := 0; i < len(b); i += size {
			for _, at := range map[Type][]int{Q4_K: {0, 2}, Q5_K: {0, 2}, Q6_K: {208}, Q2_K: {80, 82}, Q3_K: {108}}[t] {
				le.PutUint16(b[i+at:], num.ToF16(value(r, wild)/1000))
			}
		}
	default:
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		size := t.code().Bytes()
		if t >= Q1_0 {
			size = 18 // of several blocks
		}
		for i := 0; i < len(b); i += size {
			t.code().SetScale(b[i:], value(r, wild)/1000)
		}
	}
	return b
}

// codedElement is element k of a block of 256 as a file holds it: its integer and its factor.
func codedElement(t Type, b []byte, k int) (v int, factor float32) {
	var c codebook.Block
	t.code().Read(&c, b)
	return int(c.Q[k/8]>>(k%8*8)&255) - codebook.Zero, c.F[k/16]
}

// weight is element k of a row as the file holds it.
func weight(t Type, row []byte, k int) float32 {
	le := binary.LittleEndian
	switch t {
	case F32:
		return math.Float32frombits(le.Uint32(row[k*4:]))
	case F16:
		return num.F16(le.Uint16(row[k*2:]))
	case BF16:
		return num.BF16(le.Uint16(row[k*2:]))
	case Q4_K, Q5_K, Q6_K, Q2_K, Q3_K:
		b := row[k/super*kTypes[t].file:]
		q, scale, minimum := superElement(t, b, k%super)
		return float32(scale*float32(q)) - minimum
	}
	if t.coded() {
		v, factor := codedElement(t, row[k/super*t.code().Bytes():], k%super)
		return factor * float32(v)
	}
	q, scale, minimum := blockElement(t, row[k/block*blockTypes[t].file:], k%block)
	if t == Q4_1 || t == Q5_1 {
		return float32(scale*float32(q)) + minimum
	}
	return scale * float32(q)
}

// blockElement is element k of a block of 32 as a file holds it: its integer, its scale and its minimum.
func blockElement(t Type, b []byte, k int) (q int, scale, minimum float32) {
	half := func(b []byte) float32 { return num.F16(binary.LittleEndian.Uint16(b)) }
	nibble := func(b []byte) int { return int(b[k%16] >> (k / 16 * 4) & 15) }
	fifth := func(b []byte) int { return int(binary.LittleEndian.Uint32(b)>>k&1) * 16 }
	switch t {
	case Q4_0:
		return nibble(b[2:]) - 8, half(b), 0
	case Q4_1:
		return nibble(b[4:]), half(b), half(b[2:])
	case Q5_0:
		return nibble(b[6:]) + fifth(b[2:]) - 16, half(b), 0
	case Q5_1:
		return nibble(b[8:]) + fifth(b[4:]), half(b), half(b[2:])
	case IQ4_NL:
		return int(num.IQ4[nibble(b[2:])]), half(b), 0
	case MXFP4:
		return int(num.MXFP4[nibble(b[1:])]), float32(math.Ldexp(1, int(b[0])-128)), 0
	}
	return int(int8(b[2+k])), half(b), 0
}

// scalar is the definition of an output element, straight from the file's bytes.
func scalar(t Type, row []byte, x []float32) float32 {
	acc := float32(0)
	switch t {
	case F32, F16:
		for k, v := range x {
			acc = num.FMA(weight(t, row, k), v, acc)
		}
	case BF16:
		for k := 0; k < len(x); k += 2 {
			w1, x1 := float32(0), float32(0)
			if k+1 < len(x) {
				w1, x1 = weight(t, row, k+1), num.BF16(num.ToBF16(flush(x[k+1])))
			}
			acc = fmaFlushBig(w1, x1, acc)
			acc = fmaFlushBig(weight(t, row, k), num.BF16(num.ToBF16(flush(x[k]))), acc)
		}
	case Q8_0, Q4_0, Q4_1, Q5_0, Q5_1, IQ4_NL, MXFP4:
		for ; len(x) > 0; x, row = x[block:], row[blockTypes[t].file:] {
			xs, scale := fitted(x[:block])
			sum, all := 0, 0
			for i, v := range xs {
				q, _, _ := blockElement(t, row, i)
				sum += q * v
				all += v
			}
			_, d, m := blockElement(t, row, 0)
			acc = num.FMA(float32(sum), d*scale, acc)
			if t == Q4_1 || t == Q5_1 {
				acc = num.FMA(float32(all)*scale, m, acc)
			}
		}
	case Q4_K, Q5_K, Q6_K, Q2_K, Q3_K:
		run := 32
		if kTypes[t].halves {
			run = 16
		}
		for k := 0; k < len(x); k += Group {
			xs, scale := quantized(x[k : k+Group])
			part := float32(0)
			for i := 0; i < Group; i += run {
				sum, all := 0, 0
				for j := range run {
					q, _, _ := superElement(t, row[(k+i+j)/super*kTypes[t].file:], (k+i+j)%super)
					sum += q * xs[i+j]
					all += xs[i+j]
				}
				_, s, m := superElement(t, row[(k+i)/super*kTypes[t].file:], (k+i)%super)
				part = num.FMA(float32(sum), s, part)
				if kTypes[t].zero == 0 {
					part = num.FMA(float32(-all), m, part)
				}
			}
			acc = num.FMA(part, scale, acc)
		}
	default:
		for k := 0; k < len(x); k += Group {
			xs, scale := quantized(x[k : k+Group])
			part := float32(0)
			for i := 0; i < Group; i += 16 {
				sum, factor := 0, float32(0)
				for j := range 16 {
					var v int
					v, factor = codedElement(t, row[(k+i)/super*t.code().Bytes():], (k+i+j)%super)
					sum += v * xs[i+j]
				}
				part = num.FMA(float32(sum), factor, part)
			}
			acc = num.FMA(part, scale, acc)
		}
	}
	return acc
}

// quantized is a group of activations as integers and what they are scaled by.
func quantized(g []float32) (q []int, scale float32) {
	q = make([]int, len(g))
	top := float32(0)
	for _, v := range g {
		if a := float32(math.Abs(float64(v))); a > top || a != a {
			top = a
		}
		if v-v != 0 {
			scale = float32(math.NaN()) // an infinity or NaN
		}
	}
	if scale == 0 && top >= 0x1p-100 {
		scale = top / 127
		for i, v := range g {
			q[i] = int(math.RoundToEven(float64(v * (127 / top))))
		}
	}
	return q, scale
}

// fitted is a block of activations as integers and what they are scaled by, as a row of Q8_0 holds it.
func fitted(g []float32) (q []int, scale float32) {
	row := make([]byte, xBlock)
	quantizeRow(row, g, Q8_0)
	for _, b := range row[:block] {
		q = append(q, int(int8(b)))
	}
	return q, native(row[xScale:])
}

// superElement is element k of a block of 256 as a file holds it: its integer, its scale and its minimum.
func superElement(t Type, b []byte, k int) (q int, scale, minimum float32) {
	half := func(b []byte) float32 { return num.F16(binary.LittleEndian.Uint16(b)) }
	// as llama.cpp's dequantize_row_q6_K walks it: halves of 128, of which element l, l+32, l+64 and l+96 go together
	if t == Q6_K {
		n, l := k/128, k%32
		ql, qh := b[n*64:], b[128+n*32:]
		switch k % 128 / 32 {
		case 0:
			q = int(ql[l]&15) | int(qh[l]&3)<<4
		case 1:
			q = int(ql[l+32]&15) | int(qh[l]>>2&3)<<4
		case 2:
			q = int(ql[l]>>4) | int(qh[l]>>4&3)<<4
		case 3:
			q = int(ql[l+32]>>4) | int(qh[l]>>6)<<4
		}
		return q - 32, half(b[208:]) * float32(int8(b[192+k/16])), 0
	}
	two := func(b []byte) int { return int(b[k/128*32+k%32] >> (k / 32 % 4 * 2) & 3) }
	switch t {
	case Q2_K:
		return two(b[16:]), half(b[80:]) * float32(b[k/16]&15), half(b[82:]) * float32(b[k/16]>>4)
	case Q3_K: // as llama.cpp's dequantize_row_q3_K unpacks the scales: four words from three
		var words [4]uint32
		for i := range 3 {
			words[i] = binary.LittleEndian.Uint32(b[96+4*i:])
		}
		upper, low := words[2], words
		for i := range words {
			words[i] = low[i%2]>>(i/2*4)&0x0f0f0f0f | upper>>(2*i)&0x03030303<<4
		}
		scale := int(words[k/16/4]>>(k/16%4*8)&255) - 32
		return two(b[32:]) - 4 + int(b[k%32]>>(k/32)&1)*4, half(b[108:]) * float32(scale), 0
	}
	j := k / 32
	s, m := b[4+j%4]&63, b[8+j%4]&63
	if j >= 4 {
		s, m = b[8+j]&15|b[j]>>6<<4, b[8+j]>>4|b[4+j]>>6<<4
	}
	nibbles := b[16:]
	if t == Q5_K {
		nibbles = b[48:]
	}
	q = int(nibbles[j/2*32+k%32])
	if j%2 == 0 {
		q &= 15
	} else {
		q >>= 4
	}
	if t == Q5_K {
		q += int(b[16+k%32]>>j&1) * 16
	}
	return q, half(b) * float32(s), half(b[2:]) * float32(m)
}
