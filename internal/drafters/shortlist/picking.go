package shortlist

import (
	"slices"

	"github.com/grovellm/grove/internal/kernels/par"
	"github.com/grovellm/grove/internal/kernels/simd"
	"github.com/grovellm/grove/internal/nn"
)

// Start is Choose in phases: it assigns lists to the queries at once, and the phases fill the lists.
func (d *Routed) Start(queries []Query, lists []*List) []par.Phase {
	p := &d.picking
	p.queries = append(p.queries[:0], queries...)
	p.lists = p.lists[:0]
	p.stale = p.stale[:0]
	for i, q := range queries {
		s, first := q.State.(*routedState), i == 0 || q.State != queries[i-1].State
		if first && s.rows != nil {
			for task := range s.rows.fills() {
				p.stale = append(p.stale, fill{s.rows, task})
			}
		}
		if first && q.Step == 0 {
			s.used = 0
		}
		if first || d.o.Own || d.o.Budget(q.Step) != d.o.Budget(queries[i-1].Step) {
			p.lists = append(p.lists, pickedList{List: s.list(), first: i})
		}
		l := &p.lists[len(p.lists)-1]
		l.last = i
		lists[i] = l.List
	}
	return p.plan()
}

// picking is a Choose in progress: first the router's inputs are gathered and every row's clusters
// scored, then the lists are laid out.
type picking struct {
	d       *Routed
	exec    *nn.Exec
	queries []Query
	lists   []pickedList
	stale   []fill
	workers []picks
	phases  []par.Phase

	router                RouterBuffers
	embeds, hiddens, sums nn.Buffer
	embed, hidden, scores nn.Mat
}

// fill is a task that fills rows of tokens of the text.
type fill struct {
	*textRows
	task int
}

// pickedList is the list of queries first to last.
type pickedList struct {
	*List
	first, last int
}

// picks is a worker's scratch memory.
type picks struct {
	clusters []int32
	scores   []float32
	picked   []bool // of each cluster
}

func (p *picking) plan() []par.Phase {
	n, r := len(p.queries), p.d.router
	p.embed = p.embeds.Mat(n, r.Embed)
	p.hidden = p.hiddens.Mat(n, r.Hidden)
	p.scores = p.sums.Mat(n, r.Clusters)
	p.exec.Hold()
	p.exec.OwnRows(n, r.Embed, (*gathering)(p))
	r.Scores(p.exec, p.embed, p.hidden, p.scores, &p.router)
	p.phases = append(append(p.phases[:0], p.exec.Planned()...),
		par.Phase{Tasks: len(p.lists) + len(p.stale), Job: (*laying)(p)})
	return p.phases
}

// gathering collects the router's inputs for each query.
type gathering picking

func (p *gathering) Do(_, task int) {
	q := &p.queries[task]
	if p.d.embed != nil {
		p.d.embed.Row(p.embed.Row(task), int(q.Token))
	}
	copy(p.hidden.Row(task), q.Hidden)
}

// laying is the phase of picking that lays out the lists and fills their stale rows. A list has the
// clusters with the highest scores for any of its queries.
type laying picking

func (p *laying) Do(worker, task int) {
	if n := len(p.lists); task >= n {
		f := &p.stale[task-n]
		f.Do(worker, f.task)
		return
	}
	l, w := &p.lists[task], &p.workers[worker]
	q, scores := &p.queries[l.first], p.scores.Row(l.first)
	for row := l.first + 1; row <= l.last; row++ {
		higher(scores, p.scores.Row(row))
	}
	k := p.d.o.Budget(q.Step)
	w.clusters = w.clusters[:simd.TopK(scores, w.clusters[:k:cap(w.clusters)], w.scores[:k])]
	slices.Sort(w.clusters)
	p.d.lay(l.List, q.State.(*routedState).contextState, w)
}

// higher replaces each score by another row's if that is higher.
func higher(scores, other []float32) {
	other = other[:len(scores)]
	for c, s := range scores {
		if other[c] > s {
			scores[c] = other[c]
		}
	}
}
