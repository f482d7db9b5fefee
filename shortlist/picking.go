package shortlist

import (
	"slices"
	"sync/atomic"

	"github.com/grovellm/grove/internal/par"
	"github.com/grovellm/grove/internal/simd"
	"github.com/grovellm/grove/nn"
)

// Start is Choose beside a pass: lists are laid out when the tasks are done. Their places are known at once.
func (d *Routed) Start(queries []Query, lists []*List) (tasks int, j par.Job) {
	p := &d.picking
	p.queries, p.of, p.lists, p.stale = append(p.queries[:0], queries...), p.of[:0], p.lists[:0], p.stale[:0]
	for i, q := range queries {
		if own := q.State.(*routedState).own; own != nil && (i == 0 || q.State != queries[i-1].State) {
			for task := range own.fills() {
				p.stale = append(p.stale, fill{own, task})
			}
		}
		if i == 0 || q.State != queries[i-1].State || d.o.Budget(q.Step) != d.o.Budget(queries[i-1].Step) {
			n := len(p.lists)
			p.lists = slices.Grow(p.lists, 1)[:n+1]
			p.lists[n] = pickedList{List: q.State.(*routedState).list(q.Step), first: i}
		}
		l := &p.lists[len(p.lists)-1]
		l.last = i
		l.left++
		lists[i], p.of = l.List, append(p.of, int32(len(p.lists)-1))
	}
	p.scores = p.sums.Mat(len(queries), d.router.Clusters)
	p.tasks = min(len(queries), len(p.workers))
	return p.tasks + len(p.stale), p
}

// picking is a Choose under way: the router's scores of every row, and the list of rows that share one by the worker that scored the
// last of them. A router is so small that each worker computes some rows from end to end: nothing is shared out twice.
type picking struct {
	d       *Routed
	queries []Query
	of      []int32 // of each, the number of its list
	lists   []pickedList
	tasks   int // that score rows
	stale   []fill
	workers []picks

	sums   nn.Buffer
	scores nn.Mat
}

// fill is a task that fills rows of a sequence's own tokens.
type fill struct {
	*own
	task int
}

// pickedList is a list of queries first to last.
type pickedList struct {
	*List
	first, last int
	left        int32 // of them, those without scores
}

// picks is scratch of a worker.
type picks struct {
	exec           *nn.Exec // of this worker alone
	router         RouterBuffers
	embeds, hidden nn.Buffer

	clusters []int32
	scores   []float32
	picked   []bool // of each cluster
}

// share is the first row of a task.
func (p *picking) share(task int) int { return task * len(p.queries) / p.tasks }

// Do scores a share of the rows. Of those of a list the first then has the highest scores of all. Or it fills rows.
func (p *picking) Do(worker, task int) {
	if task >= p.tasks {
		f := &p.stale[task-p.tasks]
		f.Do(worker, f.task)
		return
	}
	from, to, w, r := p.share(task), p.share(task+1), &p.workers[worker], p.d.router
	embed, hidden := w.embeds.Mat(to-from, r.Embed), w.hidden.Mat(to-from, r.Hidden)
	for i, q := range p.queries[from:to] {
		p.d.embed.Row(embed.Row(i), int(q.Token))
		copy(hidden.Row(i), q.Hidden)
	}
	r.Scores(w.exec, embed, hidden, p.scores.Slice(from, to), &w.router)
	for row := to - 1; row > from; row-- {
		if p.of[row] == p.of[row-1] {
			higher(p.scores.Row(row-1), p.scores.Row(row))
		}
	}
	for _, of := range p.of[from:to] {
		if l := &p.lists[of]; atomic.AddInt32(&l.left, -1) == 0 {
			p.pick(l, w)
		}
	}
}

// higher raises scores to those of another row.
func higher(scores, other []float32) {
	other = other[:len(scores)]
	for c, s := range scores {
		if other[c] > s {
			scores[c] = other[c]
		}
	}
}

// pick lists the clusters with the highest scores for any of a list's rows.
func (p *picking) pick(l *pickedList, w *picks) {
	q, scores := &p.queries[l.first], p.scores.Row(l.first)
	for task := range p.tasks {
		if row := p.share(task); row > l.first && row <= l.last {
			higher(scores, p.scores.Row(row))
		}
	}
	k := p.d.o.Budget(q.Step)
	w.clusters = w.clusters[:simd.TopK(scores, w.clusters[:k:cap(w.clusters)], w.scores[:k])]
	slices.Sort(w.clusters)
	p.d.lay(l.List, q.State.(*routedState).contextState, w)
}
