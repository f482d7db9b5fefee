package eval

import (
	"context"
	"runtime"
	"sync"

	"github.com/grovellm/grove/internal/kernels/simd"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/nn"
	"github.com/grovellm/grove/tree"
)

// window reads ids[from:to] of a text and scores the tokens first+1 … to, each predicted by the one before it.
type window struct {
	text            int
	from, first, to int
}

func (w *window) rows() int { return w.to - w.from }

// windows covers a text: every token after the first is scored once, and each window except the
// first has context − stride tokens before those that it scores.
func windows(dst []window, text, n, context, stride int) []window {
	for done := 0; done < n-1; {
		to := min(done+stride, n-1)
		if done == 0 {
			to = min(context, n-1)
		}
		dst = append(dst, window{text, max(0, to-context), done, to})
		done = to
	}
	return dst
}

// scorer runs windows through a model: several short ones in one pass, a long one in several
// passes. By law 1 (same bits) neither changes a result.
type scorer struct {
	m        *model.Model
	pass     *model.Pass
	texts    []text
	windows  []window
	rows     int // per pass, at most
	total    int64
	done     int64
	progress func(done, total int64)

	seqs []sequence
	in   []model.Rows
	jobs []job
}

// sequence is a window in progress.
type sequence struct {
	cache *nn.Cache
	tree  tree.Tree
	at    int     // rows committed
	ask   []int32 // nodes of this pass that predict a scored token
}

// job is one token to score: the logits of node ask[i] of sequence seq, and the actual token.
type job struct {
	seq, i int
	target int // its position in its text
	nats   float64
	hit    bool
}

// maxLogits bounds the memory of a pass's logits: 32 Mi numbers.
const (
	maxLogits = 32 << 20
	maxRows   = 512
)

func newScorer(m *model.Model, texts []text, o Options) *scorer {
	s := &scorer{m: m, pass: m.NewPass(), texts: texts, progress: o.Progress}
	s.rows = max(16, min(maxRows, maxLogits/m.Config.Vocab))
	for i := range texts {
		s.windows = windows(s.windows, i, len(texts[i].ids), o.Context, o.Stride)
		for _, scored := range texts[i].scored {
			if scored {
				s.total++
			}
		}
	}
	return s
}

// run scores everything, in order.
func (s *scorer) run(ctx context.Context, visit func(text, at int, nats float64, hit bool)) error {
	defer func() {
		for i := range s.seqs {
			s.seqs[i].cache.Free()
		}
	}()
	for next := 0; next < len(s.windows); {
		group, rows := 1, s.windows[next].rows()
		for next+group < len(s.windows) && rows+s.windows[next+group].rows() <= s.rows {
			rows += s.windows[next+group].rows()
			group++
		}
		if err := s.group(ctx, s.windows[next:next+group], visit); err != nil {
			return err
		}
		next += group
	}
	return nil
}

// group runs windows together: in one pass, unless there is a single one that is longer than a pass.
func (s *scorer) group(ctx context.Context, ws []window, visit func(text, at int, nats float64, hit bool)) error {
	for len(s.seqs) < len(ws) {
		s.seqs = append(s.seqs, sequence{cache: s.m.NewCache()})
	}
	for i := range ws {
		s.seqs[i].cache.Free()
		s.seqs[i].at = 0
	}
	for s.seqs[0].at < ws[0].rows() {
		s.in, s.jobs = s.in[:0], s.jobs[:0]
		for i := range ws {
			s.plan(i, &ws[i])
		}
		if err := s.pass.Run(ctx, s.in, nil); err != nil {
			return err
		}
		s.score(ws)
		for i := range ws {
			s.seqs[i].at += s.seqs[i].tree.Len()
			s.seqs[i].cache.CommitAll()
		}
		for i := range s.jobs {
			j := &s.jobs[i]
			visit(ws[j.seq].text, j.target, j.nats, j.hit)
		}
		s.done += int64(len(s.jobs))
		if s.progress != nil {
			s.progress(s.done, s.total)
		}
	}
	return nil
}

// plan adds the next rows of a window to the pass.
func (s *scorer) plan(i int, w *window) {
	q, t := &s.seqs[i], &s.texts[w.text]
	from := w.from + q.at
	to := min(w.to, from+s.rows)
	q.tree.ResetChain(t.ids[from:to])
	q.ask = q.ask[:0]
	for at := max(from, w.first); at < to; at++ {
		if t.scored[at+1] {
			s.jobs = append(s.jobs, job{seq: i, i: len(q.ask), target: at + 1})
			q.ask = append(q.ask, int32(at-from))
		}
	}
	s.in = append(s.in, model.Rows{Cache: q.cache, Tree: &q.tree, Logits: q.ask})
}

// score reads the logits of a pass, in parallel.
func (s *scorer) score(ws []window) {
	var wg sync.WaitGroup
	n := min(runtime.GOMAXPROCS(0), len(s.jobs))
	for k := range n {
		wg.Go(func() {
			for i := k; i < len(s.jobs); i += n {
				j := &s.jobs[i]
				logits := s.pass.Logits(j.seq, j.i)
				want := s.texts[ws[j.seq].text].ids[j.target]
				j.nats = float64(simd.LogSumExp(logits)) - float64(logits[want])
				j.hit = simd.ArgMax(logits) == int(want)
			}
		})
	}
	wg.Wait()
}
