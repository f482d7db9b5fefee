package speculate

import (
	"time"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/calibrate"
)

// mostBehind is how many tokens a drafter may have to read, beside those of its last tree, for a proposal's time to be that
// of its levels.
const mostBehind = 4

// times of a step's parts, in seconds.
type times struct{ draft, verify, rest float64 }

// learn takes the times of a step: of the pass, and of everything else but drafting. Each group has its own times of
// drafting.
func (p *plan) learn(l *Loop, verify, rest time.Duration) {
	c := l.control
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, g := range l.groups {
		g.record.learnReading(g)
	}
	if p.rounds == 0 {
		return
	}
	rows, tokens, drafted := 0, 0, false
	for _, s := range l.live {
		rows += s.tree.Len()
		if !s.prefilling {
			tokens += s.fresh
			drafted = drafted || s.request >= 0
		}
	}
	if counts, ok := l.pass.(countsExperts); ok {
		c.verify.observeExperts(rows, counts.ExpertsRead())
	}
	c.passed(rows, verify.Seconds(), p.refresh)
	plain, now := c.verify.at(p.rows), c.verify.at(rows)
	o := times{verify: max(now-plain, 0)}
	took := times{verify: max(min(verify.Seconds(), outlier*now)-plain, 0)}
	certain := c.verify.measuredTwice(rows) // else it may be an accident
	if !drafted {
		if rows == p.rounds {
			c.rest.add(rest.Seconds() / float64(p.rounds))
		}
	} else if c.rest.n > 0 {
		usual := c.rest.median() * float64(tokens)
		took.rest = min(rest.Seconds(), outlier*usual) - usual
	}
	for _, g := range l.groups {
		p.learnGroup(l, g, o, took, rows-p.rows, plain/float64(p.rounds), certain)
	}
}

// learnGroup learns from one drafter's sequences. foreseen and took are the predicted and the measured time beyond plain
// decoding, nodes the nodes verified in the step, and unit the time of a plain token. certain says that the times are no
// accident.
func (p *plan) learnGroup(l *Loop, g *group, foreseen, took times, nodes int, unit float64, certain bool) {
	d := g.record
	texts, networks, levels, behind := 0, 0, 0, 0
	cold := false // it has levels, and drafted none
	for _, s := range l.live {
		switch {
		case s.group != g || s.request < 0:
		case s.kind() == byText:
			texts++
			cold = cold || s.guide.asked
		default:
			networks++
			levels = max(levels, g.proposals[s.request].Levels)
			behind += s.backlog
		}
	}
	drafted := g.proposing.Seconds()
	if networks > 0 || texts > 0 && !cold {
		d.batches++
	}
	if texts > 0 && networks == 0 {
		d.text.add(drafted / float64(texts))
	}
	drafted = max(drafted-d.text.median()*float64(texts), 0)
	if networks > 0 {
		d.learnLevels(g, levels, drafted, behind)
		took.draft, foreseen.draft = drafted, d.drafting(g.proposals, levels)
		certain = certain && d.parts[0].measuredTwice(levels)
	}
	asked := texts + networks
	for _, s := range l.live {
		if s.group != g || !s.turn.may {
			continue
		}
		backlog := s.backlog
		s.backlog += s.fresh
		if s.r.Uncontrolled {
			continue
		}
		k := &s.class().kinds
		if s.request < 0 {
			k[byText].skip(s.fresh)
			k[byNetwork].skip(s.fresh)
			continue
		}
		p.calibrate(&k[s.kind()].Table, s)
		n := s.tree.Len() - 1
		o := outcome{accepted: float64(s.fresh - 1), predicted: float64(s.turn.mass), certain: certain}
		drafting := d.text.median()
		if s.kind() == byNetwork {
			s.backlog = 0
			trackWant(&s.class().want, n)
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
		k[s.kind()].book(&o)
		k[1-s.kind()].skip(s.fresh)
	}
	for i := range d.classes {
		for j := range d.classes[i].kinds {
			d.classes[i].kinds[j].Fit()
		}
	}
}

// learnLevels takes the time of a batch of proposals, less that of the text that the drafter had to read first.
func (d *drafterRecord) learnLevels(g *group, levels int, drafted float64, behind int) {
	switch {
	case behind <= mostBehind*len(g.requests):
	case d.read.n > 0:
		drafted = max(drafted-d.read.median()*float64(behind), 0)
	case behind >= wakeRows && d.parts[0].known: // all prompts were short
		d.read.add(max(drafted-d.drafting(g.proposals, levels), 0) / float64(behind))
		return
	}
	parts := g.proposals[0].Parts
	if len(parts) == 0 {
		d.parts[0].observe(levels, drafted)
		return
	}
	for len(d.parts) < len(parts) {
		d.parts = append(d.parts, newCostCurve(levelAxis))
	}
	for i, part := range parts {
		if part.Levels > 0 {
			d.parts[i].observe(part.Levels, part.Time.Seconds())
		}
	}
}

// drafting is what a batch of proposals takes, in seconds.
func (d *drafterRecord) drafting(proposals []draft.Proposal, levels int) (seconds float64) {
	parts := proposals[0].Parts
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

// learnReading takes how long the drafter's Commit took, where it was prompts to read.
func (d *drafterRecord) learnReading(g *group) {
	read := 0
	for i := range g.commits {
		if r := &g.commits[i]; r.Next < 0 && !r.Skip {
			read += len(r.Tokens)
		}
	}
	if read >= wakeRows {
		d.read.add(g.committing.Seconds() / float64(read))
	}
}

// reading is what a drafter may take at most to read rows of text, in seconds; more is an accident.
func (d *drafterRecord) reading(rows int, unit float64) float64 {
	if d.read.n == 0 {
		return unit
	}
	return outlier * d.read.median() * float64(max(rows, wakeRows))
}

// trackWant lets a mean number of nodes rise at once and fall slowly.
func trackWant(want *float32, n int) {
	if v := float32(n); v > *want {
		*want = v
	} else {
		*want += (v - *want) / shortMemory
	}
}

// calibrate notes which children of the path's nodes the target chose.
func (p *plan) calibrate(c *calibrate.Table, s *Sequence) {
	emitted := s.text[len(s.text)-s.fresh:]
	for i, node := range s.path {
		p.kids = s.tree.Children(int(node), p.kids[:0])
		for _, kid := range p.kids {
			if int(kid) >= s.form.drafted {
				continue
			}
			c.Observe(int(s.tree.Depth[kid]), s.tree.LogProb[kid], s.tree.Token[kid] == emitted[i])
		}
	}
}
