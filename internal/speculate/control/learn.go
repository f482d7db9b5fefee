package control

import (
	"github.com/grovellm/grove/internal/drafters/batch"
	"github.com/grovellm/grove/internal/drafters/calibrate"
	"github.com/grovellm/grove/internal/drafters/sequence"
)

// times of a step's parts, in seconds.
type times struct{ draft, verify, rest float64 }

// Pass has the costs of a step's pass: its seconds, the seconds of everything else except drafting,
// and how many experts it read, summed over the layers, or 0 if that is not known.
type Pass struct {
	Verify, Rest float64
	Experts      int
}

// Learn learns from a step's times and results. Each group has its own times of drafting.
func (p *Plan) Learn(c *Controller, turns []*Turn, groups []*Group, pass Pass) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, g := range groups {
		g.record.learnReading(g)
	}
	if p.rounds == 0 {
		return
	}
	rows := 0
	tokens := 0
	drafted := false
	for _, t := range turns {
		rows += t.Tree.Len()
		if !t.Prompt {
			tokens += len(t.Emitted)
			drafted = drafted || t.Asked
		}
	}
	c.verify.observeExperts(rows, pass.Experts)
	c.passed(rows, pass.Verify, p.Refresh)
	plain, now := c.verify.at(p.rows), c.verify.at(rows)
	o := times{verify: max(now-plain, 0)}
	took := o
	if p.rows == p.rounds { // otherwise rows of prompts took more or less time than predicted
		took.verify = max(min(pass.Verify, outlier*now)-plain, 0)
	}
	certain := c.verify.measuredTwice(rows) // otherwise it may be an accident
	if !drafted {
		if rows == p.rounds {
			c.rest.add(pass.Rest / float64(p.rounds))
		}
	} else if c.rest.n > 0 {
		usual := c.rest.median() * float64(tokens)
		took.rest = min(pass.Rest, outlier*usual) - usual
	}
	for _, g := range groups {
		p.learnGroup(turns, g, o, took, rows-p.rows, p.unit(c), certain)
	}
}

// learnGroup learns from one drafter's sequences. foreseen and took are the predicted and the
// measured time beyond plain decoding, nodes is how many were verified in the step, and unit is the
// time of a plain token. certain says that the times are no accident.
func (p *Plan) learnGroup(turns []*Turn, g *Group, foreseen, took times, nodes int, unit float64, certain bool) {
	d := g.record
	texts := 0
	networks := 0
	levels := 0
	behind := 0
	cold := false // the drafter has levels, but drafted none
	for _, t := range turns {
		switch {
		case t.Group != g || !t.Asked:
		case t.kind() == byText:
			texts++
			cold = cold || t.guide.asked
		default:
			networks++
			levels = max(levels, t.Levels)
			behind += t.backlog
		}
	}
	drafted := g.Drafting
	if networks > 0 || texts > 0 && !cold {
		d.batches++
	}
	if texts > 0 && networks == 0 {
		d.text.add(drafted / float64(texts))
	}
	drafted = max(drafted-d.text.median()*float64(texts), 0)
	if networks > 0 {
		d.learnLevels(g, networks, levels, drafted, behind)
		took.draft, foreseen.draft = drafted, d.drafting(g.Parts, levels)
		certain = certain && d.parts[0].measuredTwice(levels)
	}
	asked := texts + networks
	for _, t := range turns {
		if t.Group != g || !t.Drafts {
			continue
		}
		backlog, emitted := t.backlog, len(t.Emitted)
		t.backlog += emitted
		if t.Uncontrolled {
			continue
		}
		if !t.Asked {
			t.allowance(byText).skip(emitted)
			t.allowance(byNetwork).skip(emitted)
			continue
		}
		p.calibrate(&t.class().kinds[t.kind()].Table, t)
		n := t.Tree.Len() - 1
		o := outcome{accepted: float64(emitted - 1), predicted: float64(t.mass), seen: n+len(t.cut) > 0, certain: certain}
		drafting := d.text.median()
		if t.kind() == byNetwork {
			t.backlog = 0
			d.draws = t.Drawn
			trackWant(&t.class().want, n)
			drafting = foreseen.draft / float64(networks)
			o.extra = (took.draft - foreseen.draft) / float64(networks)
			o.extra = max(min(o.extra, d.reading(backlog, unit)), 0) / unit
		}
		share := 0.0
		if nodes > 0 {
			share = float64(n) / float64(nodes)
		}
		o.cost = (took.verify*share + drafting + took.rest/float64(asked)) / unit
		o.foreseen = (foreseen.verify*share + drafting) / unit
		t.allowance(t.kind()).book(&o)
		if n == 0 && t.kind() == byText && t.pays == byNetwork { // it was asked only for levels, and drafted none
			t.allowance(byNetwork).book(&outcome{cost: drafting / unit, foreseen: drafting / unit, certain: certain})
		} else {
			t.allowance(1 - t.kind()).skip(emitted)
		}
	}
	for i := range d.classes {
		for j := range d.classes[i].kinds {
			d.classes[i].kinds[j].Fit()
		}
	}
}

// learnLevels records the time of a batch of proposals, less that of the text that the drafter had to read first. If
// the text was long the rest says nothing: a drafter that is tried only now and then would look dearer each time.
func (d *record) learnLevels(g *Group, networks, levels int, drafted float64, behind int) {
	if d.parts[0].known && behind > calibrate.Memory*networks { // most of the time was the text's
		if d.read.n == 0 && behind >= sequence.Recall { // all prompts were short
			d.read.add(max(drafted-d.drafting(g.Parts, levels), 0) / float64(behind))
		}
		return
	}
	if d.read.n > 0 {
		drafted = max(drafted-d.read.median()*float64(behind), 0)
	}
	if len(g.Parts) == 0 {
		d.parts[0].observe(levels, drafted)
		return
	}
	for len(d.parts) < len(g.Parts) {
		d.parts = append(d.parts, newCostCurve(levelAxis))
	}
	for i, part := range g.Parts {
		if part.Levels > 0 {
			d.parts[i].observe(part.Levels, part.Time.Seconds())
		}
	}
}

// drafting returns the seconds that a batch of proposals takes.
func (d *record) drafting(parts []batch.Share, levels int) (seconds float64) {
	if len(parts) == 0 {
		return d.parts[0].at(levels)
	}
	for i, part := range parts {
		if part.Levels > 0 && i < len(d.parts) {
			seconds += d.parts[i].at(part.Levels)
		}
	}
	return seconds
}

// learnReading records how long the drafter's Commit took if it had prompts to read.
func (d *record) learnReading(g *Group) {
	if g.Read >= sequence.Recall {
		d.read.add(g.Reading / float64(g.Read))
	}
}

// reading returns the most seconds that a drafter may take to read rows of text; more is an accident.
func (d *record) reading(rows int, unit float64) float64 {
	if d.read.n == 0 {
		return unit
	}
	return outlier * d.read.median() * float64(max(rows, sequence.Recall))
}

// trackWant updates a mean number of nodes, which rises at once and falls by half of the difference.
func trackWant(want *float32, n int) {
	*want = max(float32(n), *want+(float32(n)-*want)/2)
}

// calibrate records which children of the path's nodes the target chose, verified or not: the choice is
// known. So it also learns from nodes that were not worth verifying, and tries need no row.
func (p *Plan) calibrate(c *calibrate.Table, t *Turn) {
	for i, node := range t.Path {
		p.kids = t.Tree.Children(int(node), p.kids[:0])
		for _, kid := range p.kids {
			if int(kid) < t.Forced {
				c.Observe(int(t.Tree.Depth[kid]), t.Tree.LogProb[kid], t.Tree.Token[kid] == t.Emitted[i])
			}
		}
		for _, x := range t.cut {
			if x.parent == node {
				c.Observe(int(x.depth), x.logProb, x.token == t.Emitted[i])
			}
		}
	}
}
