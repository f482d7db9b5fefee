// One method decoding one prompt, timed.

package bench

import (
	"context"
	"time"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/drafters/registry"
	"github.com/grovellm/grove/internal/drafters/shortlist"
	"github.com/grovellm/grove/internal/drafters/textstore"
	"github.com/grovellm/grove/internal/kernels/fineclock"
	"github.com/grovellm/grove/internal/speculate"
	"github.com/grovellm/grove/sample"
)

// lane is a method in use: a loop with its drafter.
type lane struct {
	loop    *speculate.Loop
	forced  *forcedTarget // the loop's target
	r       speculate.Request
	prefix  string           // the method's
	memory  *textstore.Store // of the outputs so far; nil: the method has none
	drafter draft.Drafter    // nil: plain decoding
}

// lane makes a method's loop. control is its controller, unless the method has none.
func (b *bench) lane(m Method, sampling sample.Params, control *speculate.Controller) (*lane, error) {
	var d draft.Drafter
	if m.Drafter != "" {
		var err error
		if d, err = registry.New(m.Drafter, b.o.Target); err != nil {
			return nil, err
		}
	}
	o := speculate.Options{Budget: m.Budget, Accept: m.Accept, Uncontrolled: m.Uncontrolled}
	if !m.Uncontrolled {
		o.Controller = control
	}
	l := &lane{
		prefix: m.Prefix, forced: &forcedTarget{Target: speculate.Model(b.o.Target.Model)}, drafter: d,
		r: speculate.Request{Sampling: sampling, MaxTokens: b.o.MaxTokens},
	}
	var err error
	if l.loop, err = speculate.New(l.forced, d, o); err != nil {
		return nil, err
	}
	if t := b.o.Target.Model.Tokenizer; t != nil && !b.o.IgnoreEnd {
		l.r.End = t.IsEOG
	}
	return l, nil
}

// generation is an output, and how it was generated.
type generation struct {
	tokens []int32
	first  time.Duration // from the prompt to the first token, which reading the prompt gives
	rounds []round       // these give the other tokens
	stats  speculate.Stats
	lists  shortlist.Stats
	listed bool // the drafter counts shortlists
	finish speculate.Finish
}

// round is a pass of the target after the prompt's.
type round struct {
	tokens            int
	drafted, accepted int // nodes verified, roots not counted; those that the target chose
	time              time.Duration
}

// encoded is a prompt in tokens.
type encoded struct {
	prompt []int32
	forced []int32 // the text that the target is made to write; empty: its own choice
}

// generate decodes a prompt.
func (l *lane) generate(ctx context.Context, p encoded, seed uint64) (*generation, error) {
	r := l.r
	r.Sampling.Seed = seed
	l.forced.write(p, &r)
	if l.prefix != "" {
		r.Cache = l.forced.NewCache()
		defer r.Cache.Free()
		var err error
		if r.Kept, err = l.read(ctx, p.prompt, r.Cache); err != nil {
			return nil, err
		}
		defer r.Kept.Close()
	}
	if l.memory != nil {
		r.Memory = l.memory.Matches
	}
	g := &generation{rounds: make([]round, 0, r.MaxTokens)}
	if l.drafter != nil {
		g.lists = shortlist.StatsOf(l.drafter)
	}
	start := fineclock.Now()
	s, err := l.loop.Start(p.prompt, r)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	sequences := []*speculate.Sequence{s}
	last := start
	drafted, accepted := 0, 0
	for s.Finish() == speculate.Running {
		if err := l.loop.Step(ctx, sequences); err != nil {
			return nil, err
		}
		now, n := fineclock.Now(), len(s.Fresh())
		switch st := s.Stats(); {
		case n == 0: // reading the prompt
			continue
		case g.first == 0:
			g.first = now.Sub(start)
		default:
			g.rounds = append(g.rounds, round{n, st.Drafted - drafted, st.Accepted - accepted, now.Sub(last)})
			drafted, accepted = st.Drafted, st.Accepted
		}
		last = now
	}
	if err := s.Err(); err != nil {
		return nil, err
	}
	if l.drafter != nil {
		g.lists = shortlist.StatsOf(l.drafter).Sub(g.lists)
		g.listed = g.lists.Head
	}
	g.tokens = append(g.tokens, s.Output()...)
	g.stats, g.finish = *s.Stats(), s.Finish()
	g.stats.Depths = append([]speculate.Depth(nil), g.stats.Depths...)
	if l.memory != nil {
		if err := l.memory.Add(p.prompt, g.tokens); err != nil {
			return nil, err
		}
		return g, l.memory.Wait()
	}
	return g, nil
}

// read makes another sequence read the prompt into a cache, and returns what the drafter computed from it.
func (l *lane) read(ctx context.Context, prompt []int32, cache speculate.Cache) (*speculate.Kept, error) {
	r := speculate.Request{Cache: cache, MaxTokens: 1}
	if l.prefix == Cached {
		r.Budget = 1 // without the drafter
	}
	s, err := finish(ctx, l.loop, prompt, r)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	return s.Keep()
}

// part sums the rounds whose first token is between from and to in the output, counted from 1. The
// very first token belongs to no round.
func (g *generation) part(from, to int) (p part) {
	at := 2
	for _, r := range g.rounds {
		if at >= from && at <= to {
			p.add(part{r.tokens, 1, r.drafted, r.accepted, r.time})
		}
		at += r.tokens
	}
	return p
}

// part is the sums over a part of outputs.
type part struct {
	tokens, rounds, drafted, accepted int
	time                              time.Duration
}

func (p *part) add(o part) {
	p.tokens += o.tokens
	p.rounds += o.rounds
	p.drafted += o.drafted
	p.accepted += o.accepted
	p.time += o.time
}

func (p part) tau() float64       { return share(float64(p.tokens), float64(p.rounds)) }
func (p part) perSecond() float64 { return share(float64(p.tokens), p.time.Seconds()) }

// compared reports whether a method's tokens must equal those of plain decoding.
func (m *Method) compared(p sample.Params) bool {
	return m.Accept != speculate.Rejection && m.Accept != speculate.Typical || p.Temperature == 0
}

// differences counts the tokens of a that differ from b's.
func differences(a, b []int32) int {
	n := max(len(a), len(b)) - min(len(a), len(b))
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			n++
		}
	}
	return n
}
