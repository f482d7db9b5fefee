package synth

import (
	"math"
	"slices"
)

// spread is the standard deviation of draw's integers, which are sums of four uniform 16-bit numbers.
var spread = math.Sqrt(4 * (65536.0*65536 - 1) / 12)

// fill draws part of a tensor into dst: rows [r0, r1) in GGUF's or Hugging Face's order.
//
// A number is mean + integer·scale. The integer is exact, and each operation rounds once, so the
// result is the same on every machine.
func (t *planned) fill(dst []float32, seed uint64, gguf bool, r0, r1 int) {
	if t.fixed != nil {
		copy(dst, t.fixed[r0:r1])
		return
	}
	if t.of != nil {
		for r := r0; r < r1; r++ {
			p, row := t.of(r)
			p.fill(dst[:t.cols], seed, gguf, row, row+1)
			dst = dst[t.cols:]
		}
		return
	}
	if t.cell != nil {
		for i := range dst {
			p, r, c := t.cell(r0+i/t.cols, i%t.cols)
			key := mix64(tensorKey(seed, p.gguf)+uint64(r)*golden) + uint64(c)*golden
			fillRow(dst[i:i+1], key, float32(p.mean), float32(p.std/spread))
		}
		return
	}
	key := tensorKey(seed, t.gguf)
	mean, scale := float32(t.mean-t.shift), float32(t.std/spread)
	for r := r0; r < r1; r++ {
		from := r
		if gguf && t.order != nil {
			from = t.order(r)
		}
		fillRow(dst[:t.cols], mix64(key+uint64(from)*golden), mean, scale)
		if gguf && t.columns != nil {
			row := slices.Clone(dst[:t.cols])
			for i := range row {
				dst[i] = row[t.columns(i)]
			}
		}
		if !gguf && t.decay {
			for i, v := range dst[:t.cols] {
				dst[i] = float32(math.Log(-float64(v)))
			}
		}
		if !gguf && t.factors != nil { // powers of two, so division is exact
			f := t.factors(r)
			for i := range dst[:t.cols] {
				dst[i] /= f[0] * f[1]
			}
		}
		if gguf && t.shift != 0 {
			for i := range dst[:t.cols] {
				dst[i] += float32(t.shift)
			}
		}
		dst = dst[t.cols:]
	}
}

func fillRow(dst []float32, key uint64, mean, scale float32) {
	for i := range dst {
		key += golden
		dst[i] = mean + float32(float32(draw(mix64(key)))*scale)
	}
}

// draw sums four 16-bit numbers: close to normal, bounded by 3.5 standard deviations, exact in f32.
func draw(z uint64) int32 {
	return int32(z&0xffff+z>>16&0xffff+z>>32&0xffff+z>>48) - 2*0xffff
}

const golden = 0x9e3779b97f4a7c15 // 2^64 over the golden ratio

// mix64 is the finaliser of SplitMix64 (Steele, Lea and Flood, 2014).
func mix64(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// tensorKey hashes a name (FNV-1a) and mixes the seed in.
func tensorKey(seed uint64, name string) uint64 {
	h := uint64(0xcbf29ce484222325)
	for _, c := range []byte(name) {
		h = (h ^ uint64(c)) * 0x100000001b3
	}
	return mix64(h ^ mix64(seed+golden))
}
