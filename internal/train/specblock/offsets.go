package specblock

import (
	"math"

	"github.com/grovellm/grove/internal/drafters/specblock"
)

// A row's likeliest bucket is nearly always the first, since most rows belong to it. But in the
// mean F1 of the buckets a rare one counts as much as the first, so the mean is best if rare ones
// are chosen more readily. Coordinate ascent on scores and buckets determines by how much.

// scores returns the rank head's scores for rows.
func (k *rankLearner) scores(rows *rankRows) [][specblock.RankBuckets]float32 {
	k.tape.Detach()
	const part = 1024 // rows at a time
	all := make([][specblock.RankBuckets]float32, 0, len(rows.bucket))
	at := make([]int, 0, part)
	for from := 0; from < len(rows.bucket); from += part {
		at = at[:0]
		for i := from; i < min(from+part, len(rows.bucket)); i++ {
			at = append(at, i)
		}
		out := k.run(rows, at)
		for i := range at {
			all = append(all, [specblock.RankBuckets]float32(out.Row(i)))
		}
	}
	return all
}

// bestOffsets returns the offsets, in steps of 1/32, with which scores choose buckets with the best mean F1.
func bestOffsets(scores [][specblock.RankBuckets]float32, bucket []int8) (best [specblock.RankBuckets]float32) {
	f1 := func(o [specblock.RankBuckets]float32) float64 {
		var c confusion
		for i := range scores {
			c[bucket[i]][specblock.Chosen(scores[i][:], &o)]++
		}
		return c.MeanF1()
	}
	most := f1(best)
	for step := float32(1); step >= 1./32; step /= 2 {
		for better := true; better; {
			better = false
			for b := 1; b < len(best); b++ { // the first stays 0: only differences matter
				for _, by := range []float32{step, -step} {
					o := best
					o[b] += by
					if v := f1(o); v > most {
						best = o
						most = v
						better = true
					}
				}
			}
		}
	}
	return best
}

// deviation is the standard deviation of one column of a matrix with cols columns.
func deviation(v []float32, col, cols int) float32 {
	n := 0.0
	sum := 0.0
	squares := 0.0
	for i := col; i < len(v); i += cols {
		x := float64(v[i])
		n = n + 1
		sum = sum + x
		squares = squares + x*x
	}
	return float32(math.Sqrt(max(squares/n-sum/n*sum/n, 1e-12)))
}
