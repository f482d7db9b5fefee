package serve

import (
	"context"
	"iter"
	"time"

	"github.com/grovellm/grove"
	"github.com/grovellm/grove/draft"
)

// round is what a stream says of a round of speculation, for clients that show trees.
type round struct {
	Choice int          `json:"choice"`
	Tokens []int32      `json:"tokens"` // committed; an accepted path's, then the model's own
	Pieces []roundPiece `json:"pieces"` // the text of the piece that it comes with
	Clock  float64      `json:"clock_ms"`
	*drafted
}

type roundPiece struct {
	Text   string `json:"text"`
	Origin string `json:"origin"` // drafted or target
}

// drafted is what a round verified. The token that the prompt's pass gives was not drafted for.
type drafted struct {
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

// readRounds reads the fields of the page that shows rounds.
func (c *call) readRounds(o *object) {
	o.read("rounds", &c.rounds)
	o.read("race", &c.race)
	switch {
	case c.rounds && !c.stream:
		o.fail("rounds", "it needs stream: true")
	case c.race && !c.stream:
		o.fail("race", "it needs stream: true")
	case c.race && c.n != 1:
		o.fail("race", "it has two choices already: leave out n")
	case c.race && (c.request.Drafter == "" || c.request.Drafter == draft.Plain):
		o.fail("race", "plain decoding does not race itself: name a drafter")
	case c.race:
		c.n = 2
	}
}

// generation is one choice that is being generated.
type generation struct {
	chunks iter.Seq2[grove.Chunk, error]
	round  *drafted // of the latest chunk; nil where nothing was verified
	stats  grove.Stats
}

// generation makes that of choice i.
func (c *call) generation(ctx context.Context, i int) *generation {
	g, r := &generation{}, c.request
	if c.race {
		r.Paced, r.FreshPrompt = true, true
		if i%c.n == 0 {
			r.Drafter = draft.Plain
		}
	} else {
		r.Sampling.Seed += uint64(i % c.n)
	}
	if c.rounds {
		r.OnRound = func(q grove.Round) { g.round = c.drafted(&q, &g.stats) }
	}
	g.chunks = c.model.GenerateTokens(ctx, c.prompts[i/c.n].tokens, r)
	return g
}

// drafted copies a round. before are the statistics of the rounds before it.
func (c *call) drafted(q *grove.Round, before *grove.Stats) *drafted {
	d := &drafted{Path: q.Path, Next: c.model.piece(q.Next), Budget: q.Budget, Draft: ms(q.Stats.Draft - before.Draft),
		Verify: ms(q.Stats.Verify - before.Verify),
		Tree:   roundTree{Tokens: q.Tree.Token, Parents: q.Tree.Parent}}
	for i, token := range q.Tree.Token {
		d.Tree.Texts = append(d.Tree.Texts, c.model.piece(token))
		d.Tree.Logprobs = append(d.Tree.Logprobs, finite(q.Tree.LogProb[i]))
	}
	*before = *q.Stats
	return d
}

// part is the chunk of choice i as the stream takes it.
func (g *generation) part(i int, chunk grove.Chunk, err error, clock time.Duration) part {
	p := part{index: i, chunk: chunk, err: err, clock: clock, drafted: g.round}
	g.round = nil
	return p
}

// roundOf is what the stream says of a part; nil where it has not been asked for.
func (c *call) roundOf(p *part) *round {
	if !c.rounds {
		return nil
	}
	r := &round{Choice: p.index, Tokens: p.chunk.Tokens, Pieces: []roundPiece{}, Clock: ms(p.clock), drafted: p.drafted}
	for _, piece := range p.chunk.Pieces {
		origin := "target"
		if piece.Drafted {
			origin = "drafted"
		}
		r.Pieces = append(r.Pieces, roundPiece{piece.Text, origin})
	}
	return r
}

// runRace runs the two choices of each prompt in turn, a round at a time: the one that has had less time goes on. So
// both have the machine to themselves, and each is charged for its rounds alone.
func (c *call) runRace(ctx context.Context, parts chan<- part) {
	for first := 0; first < c.n*len(c.prompts); first += c.n {
		var lanes [2]struct {
			*generation
			next  func() (grove.Chunk, error, bool)
			clock time.Duration
			begun bool
			ended bool
		}
		for i := range lanes {
			lanes[i].generation = c.generation(ctx, first+i)
			next, stop := iter.Pull2(lanes[i].chunks)
			defer stop()
			lanes[i].next = next
		}
		for !lanes[0].ended || !lanes[1].ended {
			at := 0
			if a, b := &lanes[0], &lanes[1]; a.ended || !b.ended && a.begun && (!b.begun || b.clock < a.clock) {
				at = 1
			}
			l := &lanes[at]
			start := time.Now()
			chunk, err, ok := l.next()
			if l.begun { // the prompt is the same work for both
				l.clock += time.Since(start)
			}
			l.begun, l.ended = true, !ok || err != nil || chunk.Result != nil
			if !ok {
				return
			}
			if chunk.Result != nil {
				chunk.Result.Stats.Decode = l.clock
			}
			select {
			case parts <- l.part(first+at, chunk, err, l.clock):
			case <-ctx.Done():
				return
			}
		}
	}
}
