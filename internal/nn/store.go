package nn

import "github.com/grovellm/grove/internal/kernels/simd"

// store plans preparing rows with the given number of query heads, keys and values, and caching keys and values.
func (e *Exec) store(a *Attention, layer int, f *Forest, rows Mat, heads int) {
	j := e.storing(a, layer, f, rows, heads)
	blocks := (f.Len() + storeBlock - 1) / storeBlock
	e.share(blocks*a.KVHeads, 2*f.Len()*rows.Cols, j)
}

// storing prepares a storeJob.
func (e *Exec) storing(a *Attention, layer int, f *Forest, rows Mat, heads int) *storeJob {
	j := e.plan.stores.next(&e.plan)
	*j = storeJob{a: a, heads: heads, layer: layer, f: f, rows: rows}
	if a.Rope != nil {
		a.Rope.prepare(f.maxPosition())
		j.rope = a.Rope.view()
	}
	return j
}

// storeBlock is the number of rows whose keys one task stores. Keys of neighbouring rows share
// cache lines, dimension by dimension, so they are best written together.
const storeBlock = 16

// storeJob prepares the queries, keys and values of one key/value head for a block of rows: it
// applies per-head norms and the rotation, and writes keys and values to the cache.
type storeJob struct {
	a     *Attention
	heads int // query heads in the rows
	layer int
	f     *Forest
	rows  Mat
	rope  ropeView
}

func (j *storeJob) Do(_, task int) {
	blocks := (j.f.Len() + storeBlock - 1) / storeBlock
	units := j.units()
	from := task % blocks * storeBlock
	for u := task / blocks * units; u < (task/blocks+1)*units; u++ {
		j.unit(u, from, min(from+storeBlock, j.f.Len()))
	}
}

// units returns how many heads of the rows belong to a key/value head: its queries, key and value.
func (j *storeJob) units() int {
	group := j.heads / j.a.KVHeads
	switch {
	case j.a.Reads:
		return group
	case j.a.Latent > 0:
		return group + 1
	}
	return group + 2
}

// place returns where the u-th head, counted by key/value heads, is in a row: its number among the row's heads.
func (j *storeJob) place(u int) int {
	group := j.heads / j.a.KVHeads
	head, i := u/j.units(), u%j.units()
	switch i - group {
	case 0:
		return j.heads + head
	case 1:
		return j.heads + j.a.KVHeads + head
	}
	return head*group + i
}

// unit prepares the u-th head of rows [from, to).
func (j *storeJob) unit(u, from, to int) {
	a := j.a
	d := j.a.Dim
	stride := j.rows.Stride
	place := j.place(u)
	rows := j.rows.Data[place*d:]
	head := place - j.heads
	for i := from; i < to && a.Clip > 0; i++ {
		for k, x := range rows[i*stride:][:d] {
			rows[i*stride+k] = min(max(x, -a.Clip), a.Clip)
		}
	}
	if head < a.KVHeads {
		norm := a.QNorm
		if head >= 0 {
			norm = a.KNorm
		}
		if a.normsAll() { // already done
			norm = nil
		}
		if norm != nil && a.OwnNorms {
			own, at := *norm, max(head, 0)*d
			if head < 0 {
				at = place * d
			}
			own.Weight = norm.Weight[at : at+d]
			norm = &own
		}
		for i := from; i < to; i++ {
			x := rows[i*stride:][:d]
			j.prepare(x, norm, i)
			if head < 0 && a.Temper.Scale != 0 {
				simd.Scale(x, a.Temper.at(j.f.rows[i].position))
			}
		}
	}
	if head < 0 {
		return
	}
	if head >= a.KVHeads && a.VNorm != nil {
		for i := from; i < to; i++ {
			x := rows[i*stride:][:d]
			a.VNorm.apply(x, x)
		}
	}
	for from < to {
		g := j.f.segmentOf(from)
		slot, end := g.Base+g.From+from-g.Row, min(to, g.Row+g.Rows)
		if head < a.KVHeads {
			g.Cache.storeKeys(j.layer, head, slot, end-from, rows[from*stride:], stride)
		} else {
			for i := from; i < end; i++ {
				g.Cache.storeValue(j.layer, head-a.KVHeads, slot+i-from, rows[i*stride:][:d])
			}
		}
		from = end
	}
}

// prepare normalises and rotates a query or key of row i.
func (j *storeJob) prepare(x []float32, norm *Norm, i int) {
	if norm != nil && !j.a.NormLast {
		norm.apply(x, x)
	}
	if j.a.Rope != nil {
		cos, sin := j.rope.at(j.f.rows[i].position)
		j.rope.rotate(x[j.a.Latent:], cos, sin)
	}
	if norm != nil && j.a.NormLast {
		norm.apply(x, x)
	}
}
