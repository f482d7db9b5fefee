package specblock

import (
	"math"

	"github.com/grovellm/grove/internal/drafters/specblock"
)

// A row's likeliest bucket is nearly always the first, since most rows are of that; and the mean F1
// of the buckets, in which a rare one counts as much as it, is best where rare ones are chosen
// sooner. By how much is fitted to scores and buckets: coordinate ascent.

// scores are the rank head's of rows.
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

// bestOffsets are those with which scores choose buckets with the best mean F1, to a 32nd.
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
			for b := 1; b < len(best); b++ { // the first stays: what counts is how far the others are from it
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

// deviation is how far numbers of one column of many are from their mean.
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
