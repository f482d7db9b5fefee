package serve

import (
	"cmp"
	"context"
	"iter"
	"math"
	"slices"
	"time"

	"github.com/grovellm/grove"
	"github.com/grovellm/grove/internal/drafters/registry"
	"github.com/grovellm/grove/internal/inside"
	"github.com/grovellm/grove/internal/kernels/par"
	"github.com/grovellm/grove/internal/speculate"
)

// round is a stream's description of a round of speculation, for clients that show trees.
type round struct {
	Choice int          `json:"choice"`
	Tokens []int32      `json:"tokens"` // committed: the accepted path's, then the model's own
	Pieces []roundPiece `json:"pieces"` // the text that comes with it
	Clock  float64      `json:"clock_ms"`
	*verified
}

type roundPiece struct {
	Text    string `json:"text"`
	Drafted bool   `json:"drafted"`
}

// verified is what a round verified. The token from the prompt's pass has none.
type verified struct {
	Tree   roundTree `json:"tree"`
	Path   []int32   `json:"path"` // accepted nodes, the root first
	Next   string    `json:"next"` // the model's own token after the path
	Budget int       `json:"budget"`
	Draft  float64   `json:"draft_ms"`
	Verify float64   `json:"verify_ms"`
}

type roundTree struct {
	Tokens   []int32   `json:"tokens"`
	Texts    []string  `json:"texts"`
	Parents  []int32   `json:"parents"`
	Logprobs []float32 `json:"logprobs"`
}

// generation is one choice that is being generated.
type generation struct {
	index    int
	next     func() (grove.Chunk, error, bool)
	verified *verified // by the round of the next chunk
	stats    speculate.Stats
	clock    time.Duration // time since the first token
}

// The clocks of generations without a chunk yet, and of those that have ended.
const notBegun, ended = time.Duration(-1), time.Duration(math.MaxInt64)

// start makes the generation of choice i.
func (c *call) start(ctx context.Context, i int) (g *generation, stop func()) {
	g = &generation{index: i, clock: notBegun}
	r := c.request
	switch {
	case !c.race:
		r.Sampling.Seed += uint64(i % c.n)
	case i%c.n == 0:
		r.Drafter = registry.Plain
	}
	more := inside.RequestOptionsOf(&r)
	more.Paced, more.FreshPrompt = c.race, c.race
	more.Call = &c.whole
	if c.rounds {
		more.OnRound = func(q inside.Round) { g.verified = c.verified(&q, &g.stats) }
	}
	g.next, stop = iter.Pull2(c.model.GenerateTokens(ctx, c.prompts[i/c.n].tokens, r))
	return g, stop
}

// tryRun calls run, and returns a panic as an error.
func (c *call) tryRun(ctx context.Context, parts chan<- part, first, count int) (err error) {
	defer par.Recover("the generation", &err)
	c.run(ctx, parts, first, count)
	return nil
}

// run generates choices, from number first on, in turn: the one that has used the least time goes
// next. So each has the machine to itself, and is charged only for its own rounds.
func (c *call) run(ctx context.Context, parts chan<- part, first, count int) {
	lanes := make([]*generation, count)
	for i := range lanes {
		var stop func()
		lanes[i], stop = c.start(ctx, first+i)
		defer stop()
	}
	began := time.Now()
	for {
		g := slices.MinFunc(lanes, func(a, b *generation) int { return cmp.Compare(a.clock, b.clock) })
		if g.clock == ended {
			return
		}
		if c.race {
			began = time.Now().Add(-g.clock)
		}
		chunk, err, ok := g.next()
		if !ok {
			return
		}
		if g.clock == notBegun { // reading the prompt is the same work for all
			began = time.Now()
		}
		p := part{index: g.index, chunk: chunk, err: err, clock: time.Since(began), verified: g.verified}
		g.clock, g.verified = p.clock, nil
		if err != nil || chunk.Result != nil {
			g.clock = ended
		}
		if c.race && chunk.Result != nil {
			inside.Stats(chunk.Result).Decode = p.clock
		}
		select {
		case parts <- p:
		case <-ctx.Done():
			return
		}
	}
}

// verified copies a round. before holds the statistics of the rounds before it.
func (c *call) verified(q *inside.Round, before *speculate.Stats) *verified {
	t := roundTree{Tokens: q.Tree.Token, Parents: q.Tree.Parent}
	for i, token := range q.Tree.Token {
		t.Texts, t.Logprobs = append(t.Texts, c.model.piece(token)), append(t.Logprobs, finite(q.Tree.LogProb[i]))
	}
	v := &verified{t, q.Path, c.model.piece(q.Next), q.Budget, ms(q.Stats.Draft - before.Draft),
		ms(q.Stats.Verify - before.Verify)}
	*before = *q.Stats
	return v
}

// roundOf returns the stream's description of a part, or nil if it is not asked for.
func (c *call) roundOf(p *part) *round {
	if !c.rounds {
		return nil
	}
	r := &round{p.index, p.chunk.Tokens, []roundPiece{}, ms(p.clock), p.verified}
	for _, piece := range p.chunk.Pieces {
		r.Pieces = append(r.Pieces, roundPiece(piece))
	}
	return r
}
