// Hearing asides, of all sequences at once.

package draft

import (
	"github.com/grovellm/grove/internal/par"
	"github.com/grovellm/grove/sample"
)

// Hearings are the asides that one Commit of a drafter brought.
type Hearings struct {
	all     []hearing
	workers []*sample.Sampler
	vocab   int
}

// hearing is one of them; see Asides.Hear.
type hearing struct {
	asides  *Asides
	rows    *Rows
	number  int
	like    *sample.Sampler
	history *sample.History
}

// Reset begins a Commit.
func (h *Hearings) Reset() { h.all = h.all[:0] }

// Learn takes in rows of a sequence whose target chooses as like does; history is its committed text, where penalties look at it.
func (h *Hearings) Learn(a *Asides, r *Rows, like *sample.Sampler, history *sample.History) {
	for i := range a.Learn(r) {
		h.all = append(h.all, hearing{a, r, i, like, history})
	}
}

// Run hears all of them, over the tokens of a vocabulary, each worker with a sampler of its own for scratch.
func (h *Hearings) Run(pool *par.Pool, workers []*sample.Sampler, vocab int) {
	h.workers, h.vocab = workers, vocab
	pool.Run(len(h.all), (*hearingJob)(h))
}

type hearingJob Hearings

func (h *hearingJob) Do(worker, i int) {
	x := &h.all[i]
	sampler := h.workers[worker]
	sampler.Like(x.like)
	x.asides.Hear(x.number, x.rows, sampler, h.vocab, x.history)
}
