package nn

import (
	"github.com/grovellm/grove/internal/kernels/gemm"
	"github.com/grovellm/grove/internal/kernels/simd"
)

// rangeResult is the result of attention to one or more ranges, for each query of a block: the
// weighted mean o of the values, the largest score, and the sum of the exponentials of the scores
// less the largest. Where pages hold panels, o is panel by panel: [width/Panel][queries][Panel].
type rangeResult struct{ o, tops, sums []float32 }

// keptSize is the size of a piece's result.
func (j *attendJob) keptSize(p *attendPiece) int {
	n := (p.to - p.from) * (j.a.Heads / j.a.KVHeads)
	return n * (j.f.segs[p.seg].Cache.mem.shapeOf(j.layer).resultWidth() + 2)
}

// keptPiece returns where the result of a piece is kept, for a block of several parts; of is the piece's task.
func (j *attendJob) keptPiece(of *attendTask, p *attendPiece) rangeResult {
	k := j.e.kept[of.keptAt+of.head*of.kept+p.keptAt:][:j.keptSize(p)]
	o := of.n * of.width()
	return rangeResult{k[:o], k[o : o+of.n], k[o+of.n:]}
}

// folded returns room for the result of all ranges.
func (t *attendTask) folded() rangeResult {
	return rangeResult{t.s.folded[:t.n*t.width()], t.s.tops[t.n : 2*t.n], t.s.totals[t.n : 2*t.n]}
}

// foldJob folds the results of blocks that were cut into parts.
type foldJob attendJob

func (f *foldJob) Do(worker, task int) {
	j := (*attendJob)(f)
	t := j.task(worker, task/len(j.split), j.blocks[j.split[task%len(j.split)]])
	all, first := t.folded(), j.keptPiece(&t, &j.pieces[t.lo])
	copy(all.o, first.o)
	copy(all.tops, first.tops)
	copy(all.sums, first.sums)
	for i := t.lo + 1; i < t.hi; i++ {
		of := t.piece(&j.pieces[i])
		of.res = j.keptPiece(&of, &j.pieces[i])
		of.fold(all, t.n)
	}
	t.give(all)
}

// fold adds the result of a piece to all, the result of its block, which has the given number of queries. With m
// the larger of the two largest scores, each sum is multiplied by e to its own largest score less m, and o becomes
// the mean of the two means with these weights. Where only one of them has any weight, it is taken as it is.
func (t *attendTask) fold(all rangeResult, queries int) {
	res, both := t.res, true
	a, b := t.s.weights[:t.n], t.s.weights[t.n:2*t.n]
	for k := range t.n {
		q := t.before + k
		switch {
		case res.sums[k] == 0: // including a row that sees nothing of the range
			b[k], both = leave, false
		case all.sums[q] == 0:
			b[k], both = take, false
			all.tops[q], all.sums[q] = res.tops[k], res.sums[k]
		default:
			a[k], b[k] = all.weigh(q, res.tops[k], res.sums[k])
		}
	}
	cols := t.width()
	if t.kv.panels() {
		cols = gemm.Panel
	}
	for at, from := 0, t.before*cols; at < len(res.o); at, from = at+t.n*cols, from+queries*cols {
		o, x := all.o[from:from+t.n*cols], res.o[at:at+t.n*cols]
		if both {
			simd.BlendRows(o, x, a, b, cols)
			continue
		}
		for k := range t.n {
			switch y := o[k*cols : (k+1)*cols]; b[k] {
			case leave:
			case take:
				copy(y, x[k*cols:])
			default:
				simd.BlendRows(y, x[k*cols:], a[k:k+1], b[k:k+1], cols)
			}
		}
	}
}

// These take the place of a share, which is never negative: keep the results, or take the part's.
const leave, take = -1, -2

// weigh adds a part with the given largest score and sum to query k's. It returns the shares of the
// whole that belong to the query's earlier results and to the part.
func (a *rangeResult) weigh(k int, top, sum float32) (before, part float32) {
	m := max(a.tops[k], top)
	e := [2]float32{a.tops[k] - m, top - m}
	simd.Exp(e[:], e[:])
	before, part = float32(a.sums[k]*e[0]), float32(sum*e[1])
	a.tops[k], a.sums[k] = m, before+part
	return before / a.sums[k], part / a.sums[k]
}

// addSinks shares the weights of each query with its head's sink, whose own weight is discarded.
func (t *attendTask) addSinks(all rangeResult) {
	if t.a.Sinks == nil {
		return
	}
	size, step := t.width(), len(all.o)
	if t.kv.panels() {
		size, step = gemm.Panel, t.n*gemm.Panel
	}
	for k := range t.n {
		if all.sums[k] == 0 {
			continue
		}
		a, _ := all.weigh(k, t.a.Sinks[t.head*t.group+k%t.group], 1)
		for at := k * size; at < len(all.o); at += step {
			simd.Scale(all.o[at:at+size], a)
		}
	}
}
