// A step under control, after its pass: what it teaches.

package speculate

import (
	"math"
	"time"

	"github.com/grovellm/grove/draft"
)

const (
	// atHand is how many tokens a drafter may have to read, beside those of its last tree, for a proposal's time to count.
	atHand = 4

	// senseless is what drafting may take at most, in tokens, to be believed when it was measured once.
	senseless = 10

	// outlier is how many times what was expected a single time may count for in a verdict.
	outlier = 1.5
)

// learn takes the times of the step's parts; telling is that of the drafter's commit, which is a part of rest.
func (p *plan) learn(l *Loop, drafting, verifying, telling, rest time.Duration) {
	c := l.control
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reading(l.commits, telling)
	if p.rounds == 0 {
		return
	}
	rows, tokens, prompt, asked, alone, behind := 0, 0, true, 0, 0, 0
	for _, s := range l.live {
		if s.prefilling {
			continue
		}
		rows += s.tree.Len()
		tokens += s.fresh
		switch {
		case s.request < 0:
		case s.passless():
			alone++
		default:
			asked++
			prompt = prompt && s.backlog <= atHand
			if s.guard.judged > 0 {
				behind += s.backlog
			}
		}
	}
	most := verifying.Seconds()
	if len(l.requests) > 0 && c.verify.known {
		most = outlier * c.verify.at(rows) // the first measurement of a count may be an accident
	}
	if !p.mixed {
		c.passed(rows, verifying.Seconds(), p.refresh)
	}
	if len(l.requests) == 0 { // as in most steps of a drafter that is off, of which the fewer are bothered the better
		if !p.mixed {
			c.rest.add(rest.Seconds() / float64(p.rounds))
		}
		for _, s := range l.live {
			if s.turn.may {
				c.pause(s)
			}
		}
		return
	}
	e := expense{rows: rows - p.rounds, asked: asked, all: len(l.requests), drafted: drafting.Seconds()}
	if asked == 0 && alone > 0 {
		c.alone.add(e.drafted / float64(alone))
	}
	if c.alone.n > 0 {
		e.alone = c.alone.median()
		e.drafted = max(e.drafted-e.alone*float64(alone), 0)
	}
	if asked > 0 && prompt {
		c.draft.observe(p.levels, e.drafted)
	}
	if behind >= readLeast && c.read.n == 0 && c.draft.known { // all prompts were short
		c.read.add(max(e.drafted-c.draft.at(p.levels), 0) / float64(behind))
	}

	plain := c.verify.at(p.rounds)
	known := max(min(c.verify.at(rows), most), plain)
	e.unit = plain / float64(p.rounds)
	e.foreseen = known - plain
	e.verify = e.foreseen
	if !p.mixed {
		e.verify = min(verifying.Seconds(), outlier*known, most) - plain
	}
	e.draft = c.draft.at(p.levels)
	if c.rest.n > 0 {
		usual := c.rest.median() * float64(tokens)
		e.rest = min(rest.Seconds(), outlier*usual) - usual
	}
	for _, s := range l.live {
		if !s.prefilling {
			p.study(c, s, &e)
		}
	}
	for i := range c.worlds {
		if w := &c.worlds[i]; w.learned {
			w.fit()
		}
	}
}

// reading takes how long drafters took to be told what was committed, where that was prompts to read.
func (c *Controller) reading(commits []draft.Rows, telling time.Duration) {
	read := 0
	for i := range commits {
		if r := &commits[i]; r.Next < 0 && !r.Skip {
			read += len(r.Tokens)
		}
	}
	if read >= readLeast {
		c.read.add(telling.Seconds() / float64(read))
	}
}

// catchUp is what a drafter may take at most to read rows of text, in seconds; more is an accident.
func (c *Controller) catchUp(rows int) float64 {
	if c.read.n == 0 {
		return math.Inf(1)
	}
	return outlier * c.read.median() * float64(max(rows, readLeast))
}

// expense is what a step took beyond a plain step, in seconds.
type expense struct {
	unit     float64 // what plain decoding takes for a token
	rows     int     // drafted nodes verified
	verify   float64 // what they added to the pass
	foreseen float64 // the same as the curve has it
	all      int     // sequences with a proposal
	asked    int     // of those, by passes of the drafter
	alone    float64 // what drafting for another takes
	draft    float64 // what drafting for them takes, when the drafter has little to catch up on
	drafted  float64 // what it took
	rest     float64
}

// study learns from one sequence's round.
func (p *plan) study(c *Controller, s *Sequence, e *expense) {
	if !s.turn.may {
		return
	}
	behind := s.backlog
	c.pause(s)
	if s.request < 0 {
		return
	}
	w, g := &c.worlds[s.taught()], s.guarded()
	nodes := s.tree.Len() - 1
	p.calibrate(w, s)
	if nodes > 0 && !s.turn.alone {
		track(&s.want, nodes)
		track(&w.want, nodes)
	}
	if e.unit > 0 {
		drafting, share := e.alone, 0.0
		if !s.passless() {
			drafting = e.draft / float64(e.asked)
		}
		if e.rows > 0 {
			share = float64(nodes) / float64(e.rows)
		}
		if s.sampled {
			t := arm{mass: s.turn.mass, nodes: float32(nodes), levels: float32(s.turn.levels)}
			w.arms.learn(s.arm, t, func(nodes, levels int) float64 {
				return e.unit + c.verify.at(p.rounds+nodes) - c.verify.at(p.rounds) + c.draft.at(levels)/float64(max(e.asked, 1))
			})
		}
		v := verdict{verified: nodes > 0, bound: p.bound, try: s.turn.try && (g.off || s.turn.worthy == 0)}
		v.came, v.said = float32(s.fresh-1), s.turn.mass
		v.cost = float32((e.verify*share + drafting + e.rest/float64(e.all)) / e.unit)
		v.foreseen = float32((e.foreseen*share + drafting) / e.unit)
		if c.draft.known && !s.passless() {
			v.guess = !c.draft.sure(p.levels) && drafting > senseless*e.unit
			v.extra = float32(min((e.drafted-e.draft)/float64(e.asked), c.catchUp(behind)) / e.unit)
		}
		if s.recites {
			of := pace{tokens: float32(s.fresh), drafting: float32(drafting/e.unit) + v.extra}
			of.time = of.tokens - v.gain() + v.extra
			s.rivals.learn(s.way(), of)
			c.worlds[s.world].rivals = s.rivals
		}
		g.judge(v)
		w.judged(g, v)
	}
}

// pause notes which ways of drafting were not asked for the sequence.
func (c *Controller) pause(s *Sequence) {
	drafted := s.request >= 0 && !s.turn.alone
	if drafted {
		s.backlog = 0
	} else {
		s.backlog += s.fresh
		c.worlds[s.world].rest(&s.guard)
	}
	if s.recites && !s.turn.alone {
		c.worlds[s.world+byAlone].rest(&s.alone)
	}
}

// track lets a mean number of nodes rise at once and fall slowly.
func track(want *float32, n int) {
	if v := float32(n); v > *want {
		*want = v
	} else {
		*want += (v - *want) / wantMemory
	}
}

// calibrate notes which children of the path's nodes the target chose.
func (p *plan) calibrate(w *world, s *Sequence) {
	emitted := s.text[len(s.text)-s.fresh:]
	for k, node := range s.path {
		p.kids = s.tree.Children(int(node), p.kids[:0])
		for _, c := range p.kids {
			w.learn(int(s.tree.Depth[c]), s.tree.LogProb[c], s.tree.Token[c] == emitted[k])
		}
	}
}
