package speculate

import (
	"context"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/drafters/batch"
	"github.com/grovellm/grove/internal/drafters/textrank"
	"github.com/grovellm/grove/sample"
)

// A simulation of law 3: a target and drafters that take simulated time, on their own clock.

// clock is simulated time.
type clock struct{ t time.Duration }

func (c *clock) now() time.Time            { return time.Unix(0, 0).Add(c.t) }
func (c *clock) spend(seconds float64)     { c.t += time.Duration(seconds * 1e9) }
func (c *clock) seconds() float64          { return c.t.Seconds() }
func (c *clock) costs(d *draftCost, n int) { c.spend(d.base + float64(n)*d.level) }

// world64 is the vocabulary of the simulation.
const world64 = 64

// truth is the target's token at a position.
func truth(position int) int32 { return int32(hash(99, uint64(position)) % world64) }

// simTarget is a target whose text is truth, and whose passes take the time that cost gives for their rows.
type simTarget struct {
	*clock
	cost   func(rows int, at float64) float64 // seconds; at: the current time
	output float64                            // share of a row's time that its logits take
	logits [world64][]float32
}

func newSim(cost func(rows int, at float64) float64) *simTarget {
	t := &simTarget{clock: &clock{}, cost: cost}
	for i := range t.logits {
		t.logits[i] = make([]float32, world64)
		t.logits[i][i] = 30
	}
	return t
}

func (t *simTarget) Vocab() int      { return world64 }
func (t *simTarget) Context() int    { return 1 << 30 }
func (t *simTarget) NewCache() Cache { return new(stillCache) }
func (t *simTarget) NewPass() Pass   { return &simPass{t: t} }

type simPass struct {
	t    *simTarget
	rows []Rows
	at   []int // committed before the pass
}

func (p *simPass) Tap(_, _, _ int) []float32 { return nil }
func (p *simPass) Run(_ context.Context, rows []Rows, _ []int) error {
	p.rows, p.at = rows, p.at[:0]
	n, without := 0, 0 // rows, and those without logits
	for _, r := range rows {
		p.at = append(p.at, r.Cache.Len())
		n += r.Tree.Len()
		without += r.Tree.Len() - len(r.Logits)
	}
	all := p.t.cost(n, p.t.seconds())
	p.t.spend(all - p.t.output*(all-p.t.cost(n-without, p.t.seconds())))
	return nil
}

func (p *simPass) Logits(s, i int) []float32 {
	r := p.rows[s]
	return p.t.logits[truth(p.at[s]+int(r.Tree.Depth[r.Logits[i]])+1)]
}

type draftCost struct{ base, level float64 }

// simDrafter drafts level by level, as its guide allows: a chain of tokens, each right with
// probability right, and for each node of it width − 1 siblings, one of which is right with
// probability siblingRight if the node is wrong. It gives the chain the probability confidence, and
// the siblings successive halves of the rest.
type simDrafter struct {
	draft.Base
	*clock
	draftCost
	right, siblingRight, confidence float64
	width, deepest                  int
	catchUp                         float64 // seconds to read a token
	rng                             uint64
	turns                           func(position int) float64 // overrides right, if not nil
	drawn                           func(int) []float32        // for its proposals
	proposals                       []draft.Proposal
	first                           textrank.FirstPass
}

type simState struct{ at, read int }

func (*simState) Close() {}

func (d *simDrafter) Begin(draft.Options) (draft.State, error) { return &simState{}, nil }
func (d *simDrafter) Commit(rows []draft.Rows) error {
	for _, r := range rows {
		s := r.State.(*simState)
		s.at += len(r.Tokens)
		if r.Next < 0 && !r.Skip { // the prompt is read at once
			d.spend(float64(s.at-s.read) * d.catchUp)
			s.read = s.at
		}
		if r.Skip {
			s.read = s.at
		}
	}
	return nil
}

func (d *simDrafter) random() float64 {
	d.rng++ // hashed twice: one hash of consecutive numbers is not random
	return float64(unit(hash(5, hash(d.rng, 7, 11))))
}

// sibling returns the drafter's log-probability for the k-th sibling of a node of the chain.
func (d *simDrafter) sibling(k int) float32 {
	return float32(math.Log((1 - d.confidence) * math.Pow(0.5, float64(k))))
}

func (d *simDrafter) Propose(_ context.Context, requests []draft.Request) ([]draft.Proposal, error) {
	levels := 0
	d.proposals = batch.Proposals(d.proposals, len(requests))
	for i, q := range requests {
		d.proposals[i].Levels = d.grow(q, 0, true, false)
		if d.proposals[i].Levels > 0 {
			d.proposals[i].Drawn = d.drawn // a tree without a node is not drawn
		}
		levels = max(levels, d.proposals[i].Levels)
	}
	if levels > 0 {
		d.costs(&d.draftCost, levels)
	}
	return d.proposals, nil
}

// grow drafts a request's tree and returns its levels. byText is the number of tokens that the text
// alone is expected to bring.
func (d *simDrafter) grow(q draft.Request, byText float32, asks, withText bool) int {
	s := q.State.(*simState)
	node := 0
	depth := 0
	path := float32(1)
	expected := float32(0)
	for depth < min(q.Depth, d.deepest) && (depth == 0 || q.Tree.Len() < q.Budget) {
		if q.Guide != nil {
			believed := func() (chance, more float32) {
				chance = q.Guide.Chance(depth+1, float32(math.Log(d.confidence)))
				all := chance
				for k := 1; k < d.width; k++ {
					all += q.Guide.Chance(depth+1, d.sibling(k))
				}
				share := path / max(all, 1)
				more = q.Guide.Value(share * chance)
				for k := 1; k < d.width; k++ {
					more += q.Guide.Value(share * q.Guide.Chance(depth+1, d.sibling(k)))
				}
				return chance, more
			}
			chance, more := believed()
			if depth == 0 {
				if asks && withText {
					more = d.first.Gain(byText)
				}
				if asks && !q.Guide.Deeper(byText, more) {
					return 0
				}
				chance, more = believed()
				if asks { // by a pass they have another value
					d.spend(float64(s.at-s.read) * d.catchUp)
					s.read = s.at
					q.Tree.Reset(q.Tree.Token[0])
				}
			} else if asks && !q.Guide.Deeper(expected, more) {
				break
			}
			path *= chance
			expected += more
		}
		depth++
		next := truth(s.at + depth)
		right := d.right
		if d.turns != nil {
			right = d.turns(s.at)
		}
		hit := d.random() < right
		token := next
		if !hit {
			token = (next + 1 + int32(d.random()*(world64-2))) % world64
		}
		chain := q.Tree.Append(node, token, float32(math.Log(d.confidence)))
		for k := 1; k < d.width && q.Tree.Len() < q.Budget; k++ {
			sibling := (next + 1 + int32(d.random()*(world64-2))) % world64
			if !hit && k == 1 && d.random() < d.siblingRight {
				sibling = next
			}
			q.Tree.Append(node, sibling, d.sibling(k))
		}
		node = chain
	}
	if asks && depth > 0 {
		d.first.Learn(byText, expected)
	}
	return depth
}

// simWithText is a drafter that also proposes from the text alone.
type simWithText struct {
	*simDrafter
	text simDrafter
}

func (d *simWithText) Propose(_ context.Context, requests []draft.Request) ([]draft.Proposal, error) {
	d.proposals = batch.Proposals(d.proposals, len(requests))
	levels := 0
	for i, q := range requests {
		d.text.grow(q, 0, false, false)
		d.spend(d.text.base)
		expected, path := float32(0), []float32{1}
		for n := 1; n < q.Tree.Len(); n++ {
			path = append(path, path[q.Tree.Parent[n]]*q.Guide.Chance(int(q.Tree.Depth[n]), q.Tree.LogProb[n]))
			expected += path[n]
		}
		d.proposals[i].Levels = d.grow(q, expected, true, true)
		levels = max(levels, d.proposals[i].Levels)
	}
	if levels > 0 {
		d.costs(&d.draftCost, levels)
	}
	return d.proposals, nil
}

// simulate decodes n tokens and returns tokens per second of simulated time, without the prompt.
func simulate(t testing.TB, target *simTarget, d draft.Drafter, o Options, batch, n int) (perSecond float64,
	stats *Stats) {
	l, err := New(target, d, o)
	if err != nil {
		t.Fatal(err)
	}
	l.now = target.now
	temperature := float32(0)
	if o.Accept == Rejection {
		temperature = 1
	}
	var all []*Sequence
	for range batch {
		s, err := l.Start([]int32{1, 2, 3}, Request{MaxTokens: n + 1,
			Sampling: sample.Params{Temperature: temperature}})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		all = append(all, s)
	}
	if err := l.Step(context.Background(), all); err != nil {
		t.Fatal(err)
	}
	began := target.seconds()
	for running := true; running; {
		if err := l.Step(context.Background(), all); err != nil {
			t.Fatal(err)
		}
		running = false
		for _, s := range all {
			running = running || s.Finish() == Running
		}
	}
	for _, s := range all {
		for i, token := range s.Output() {
			if token != truth(3+i) {
				t.Fatalf("token %d is %d, want %d", i, token, truth(3+i))
			}
		}
	}
	return float64(n*batch) / (target.seconds() - began), l.Stats()
}

// writeText writes a text of output tokens after a prompt of prompt tokens.
func writeText(t interface{ Fatal(...any) }, l *Loop, prompt, output int) Stats {
	s, err := l.Start(make([]int32, prompt), Request{MaxTokens: output})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	finish(t, l, s)
	return *s.Stats()
}

// finish decodes a sequence to its end.
func finish(t interface{ Fatal(...any) }, l *Loop, s *Sequence) {
	for s.Finish() == Running {
		if err := l.Step(context.Background(), []*Sequence{s}); err != nil {
			t.Fatal(err)
		}
	}
}

// evenly reports that candidates were drawn from a uniform distribution.
type evenly struct{}

func (evenly) of(int) []float32 { return even }

var even = slices.Repeat([]float32{1}, world64)

const ms = 1e-3

// passCosts are the costs of rows on various machines.
var passCosts = map[string]func(rows int, at float64) float64{
	"flat":   func(n int, _ float64) float64 { return ms * (1 + .002*float64(n-1)) },
	"cheap":  func(n int, _ float64) float64 { return ms * (1 + .03*float64(n-1)) },
	"knee":   func(n int, _ float64) float64 { return ms * max(1, float64(n)/12) },
	"steps":  func(n int, _ float64) float64 { return ms * (1 + .25*float64((n-1)/8)) },
	"dear":   func(n int, _ float64) float64 { return ms * (1 + .3*float64(n-1)) },
	"linear": func(n int, _ float64) float64 { return ms * float64(n) },
	"noisy": func(n int, at float64) float64 {
		t := ms * (1 + .03*float64(n-1)) * (1 + .1*float64(unit(math.Float64bits(at))))
		if hash(math.Float64bits(at))%50 == 0 {
			t *= 6
		}
		return t
	},
	"drifting": func(n int, at float64) float64 { // everything is twice as expensive every other while, rows even more so
		if int(at/.15)%2 == 1 {
			return 2 * ms * (1 + .1*float64(n-1))
		}
		return ms * (1 + .03*float64(n-1))
	},
}

var draftCosts = map[string]draftCost{
	"free":  {},
	"cheap": {.01 * ms, .04 * ms},
	"model": {.15 * ms, .15 * ms},
	"dear":  {1 * ms, .5 * ms},
}
