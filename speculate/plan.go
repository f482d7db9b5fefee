// A step under control, before its pass: who drafts and how much, and which nodes are verified.

package speculate

import (
	"math"
	"slices"
	"time"

	"github.com/grovellm/grove/draft"
)

// plan is the controller's part of a step. All sequences share a pass, so the question is always what a row more
// costs the pass, whichever sequence it belongs to.
type plan struct {
	rounds  int  // sequences that decode in the step
	mixed   bool // others read their prompts: the time of the pass says nothing of rounds
	refresh bool // all decode plainly, for that to be measured
	levels  int  // that were drafted
	bound   bool // more nodes might have been worth verifying, but so large a pass is not known well enough
	dear    bool // drafters that will not be asked for a while had better not read
	shallow bool // a tree of one level may pay
	know    knowledge

	product []float32 // by node of all trees: chance of the path to it
	sum     []float32 // by node: what the chances of its children add up to
	keep    []bool    // by node
	order   []uint64  // nodes below roots, the likeliest last
	nodes   []int32
	kids    []int32
}

// turn is a sequence's part of the plan.
type turn struct {
	may      bool // there is a drafter, and room for what it drafts
	try      bool // verify something in any case
	alone    bool // by the text alone
	budget   int  // nodes allowed, 1 where the drafter was not asked
	proposed int  // nodes proposed
	worthy   int  // of those below the root, how many were found worth a row
	levels   int  // drafted
	mass     float32
}

const (
	// worthwhile is how much better than plain decoding speculation must look.
	worthwhile = 1.05

	// shallow is what a tree of one level may cost at most, in tokens, to be tried: it brings one at most.
	shallow = 0.7
)

// begin decides who drafts, and up to how many nodes.
func (p *plan) begin(l *Loop) {
	p.rounds, p.mixed, p.refresh, p.dear = 0, false, false, false
	asking := 0
	for _, s := range l.live {
		s.turn, s.request = turn{budget: 1}, -1
		if s.prefilling {
			p.mixed = true
			continue
		}
		p.rounds++
		if s.turn.may = s.state != nil && s.depth > 0; s.turn.may {
			asking++
		}
	}
	c := l.control
	if c == nil {
		for _, s := range l.live {
			if s.turn.may {
				s.ask(s.r.Budget)
			}
		}
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	p.dear = c.dear()
	if asking == 0 {
		return
	}
	if p.refresh = !p.mixed && (!c.verify.known || c.verify.age(p.rounds) > c.refresh); p.refresh {
		return
	}
	try := false
	for _, s := range l.live {
		try = try || s.turn.may && s.guard.due()
	}
	asking = 0
	rows := p.rounds // of a pass like the last ones
	for _, s := range l.live {
		// Drafting for one costs about as much as drafting for all: those that would have to try soon join.
		s.turn.try = try && s.turn.may && s.guard.soon() && !s.skipped
		if s.turn.may && s.recites {
			s.choose()
		}
		if s.asks() {
			asking++
			if !s.turn.alone {
				rows += int(s.want)
			}
		}
	}
	if asking == 0 {
		return
	}
	p.know.read(c, p.rounds, rows)
	unit := c.verify.at(p.rounds) / float64(p.rounds)
	p.know.stake = p.stake(l, unit)
	p.shallow = p.know.draft[1]+p.know.row < shallow*unit
	for _, s := range l.live {
		if s.asks() {
			s.ask(min(s.r.Budget, c.budget(s)))
		}
	}
}

// skips reports whether the sequence's drafter does not read along.
func (p *plan) skips(s *Sequence) bool { return p.dear && s.guard.asleep(wakeRows) }

// stake is what may be put on the step's proposals, in seconds, where plain decoding takes unit for a token.
func (p *plan) stake(l *Loop, unit float64) float64 {
	sum := 0.0
	for _, s := range l.live {
		if s.asks() {
			tokens, ok := s.guarded().stake()
			if !ok {
				return math.Inf(1)
			}
			sum += float64(tokens)
		}
	}
	return sum * unit
}

// asks reports whether the sequence's drafter is to be asked.
func (s *Sequence) asks() bool { return s.turn.may && (s.turn.try || s.turn.alone || !s.guard.off) }

// choose decides whether the drafter or the text alone is asked, where both can be.
func (s *Sequence) choose() {
	may := !s.alone.off || s.alone.due()
	switch {
	case !may || s.guard.off && s.turn.try:
		return // the drafter, if any
	case s.guard.off:
		s.turn.alone = true
	case s.rivals.settled():
		return
	default:
		s.turn.alone = s.alone.off || s.rivals.choose() == 1
	}
	if s.turn.alone {
		s.turn.try = s.alone.off
	}
}

// passless reports whether the sequence's proposal took no pass of a network.
func (s *Sequence) passless() bool { return s.loop.requests[s.request].Alone }

// way is that of the step among rivals.
func (s *Sequence) way() int {
	if s.turn.alone {
		return 1
	}
	return 0
}

// guarded is what judges the sequence's proposal of the step, and learns what its like are worth: the number of a world.
func (s *Sequence) guarded() *guard {
	if s.turn.alone {
		return &s.alone
	}
	return &s.guard
}

func (s *Sequence) taught() int {
	if s.turn.alone {
		return s.world + byAlone
	}
	return s.world
}

// ask requests a tree under the sequence's root.
func (s *Sequence) ask(budget int) {
	l := s.loop
	s.turn.budget = budget
	s.request = len(l.requests)
	r := draft.Request{State: s.state, Tree: s.tree, Budget: budget, Depth: s.depth, Alone: s.turn.alone}
	if l.control != nil {
		s.guide = guide{know: &l.plan.know, chances: &l.plan.know.chances[s.taught()]}
		r.Guide = &s.guide
		if s.turn.try && s.guarded().brief() && l.plan.shallow {
			r.Depth = 1
		}
	}
	l.requests = append(l.requests, r)
}

// cut picks the nodes to verify from the trees proposed. With the likeliest first, S(n) the sum of the chances
// of the first n paths, and T the time of drafting and of a pass of so many rows, it keeps the n for which (rounds + S(n)) / T is
// largest: the most tokens in the time. A path is never likelier than its beginning, so any n make trees.
func (p *plan) cut(l *Loop, drafting time.Duration) {
	c := l.control
	if c == nil || len(l.requests) == 0 {
		return
	}
	p.product, p.sum, p.order, p.levels = p.product[:0], p.sum[:0], p.order[:0], 0
	for _, s := range l.live {
		if s.request >= 0 {
			s.turn.levels = s.drafted()
			p.levels = max(p.levels, s.turn.levels)
			p.weigh(s)
		}
	}
	slices.Sort(p.order)
	c.mu.Lock()
	n := p.best(c, drafting.Seconds())
	c.mu.Unlock()
	p.keep = append(p.keep[:0], make([]bool, len(p.product))...)
	for _, o := range p.order[len(p.order)-n:] {
		p.keep[^uint32(o)] = true
	}
	at := 0
	for _, s := range l.live {
		if s.request >= 0 {
			size := s.tree.Len()
			p.trim(s, p.product[at:at+size], p.keep[at:at+size])
			at += size
		}
	}
}

// weigh appends the chances of the paths of the sequence's tree, and its nodes to the order. Siblings are alternatives: their
// chances add up to 1 at most.
func (p *plan) weigh(s *Sequence) {
	t, at := s.tree, len(p.product)
	p.product, p.sum = append(p.product, 1), append(p.sum, 0)
	for i := 1; i < t.Len(); i++ {
		v := s.guide.chances.of(int(t.Depth[i]), t.LogProb[i])
		p.product, p.sum = append(p.product, v), append(p.sum, 0)
		p.sum[at+int(t.Parent[i])] += v
	}
	for i := 1; i < t.Len(); i++ {
		parent := at + int(t.Parent[i])
		v := p.product[at+i] * p.product[parent] / max(p.sum[parent], 1)
		p.product[at+i] = v
		// Bits of numbers that are not negative order like the numbers; of equals the first counts for more.
		p.order = append(p.order, uint64(math.Float32bits(v))<<32|uint64(^uint32(at+i)))
	}
}

// best is how many nodes to keep.
func (p *plan) best(c *Controller, drafting float64) (best int) {
	sum := float64(p.rounds)
	most := worthwhile * sum / (drafting + c.verify.at(p.rounds))
	// No pass has more than twice the rows of the largest measured: what lies beyond is a guess.
	end := min(len(p.order), 2*max(c.verify.top(), p.rounds)-p.rounds)
	for n := 1; n <= end && c.verify.at(p.rounds+n)-c.verify.at(p.rounds) <= p.know.stake; n++ {
		sum += float64(math.Float32frombits(uint32(p.order[len(p.order)-n] >> 32)))
		if j := sum / (drafting + c.verify.at(p.rounds+n)); j > most {
			most, best = j, n
		}
	}
	p.bound = best == end && end < len(p.order)
	return best
}

// trim cuts the sequence's tree down to the nodes kept. A tree that was drawn at random stays whole: to drop nodes for
// what they are would change what is drawn.
func (p *plan) trim(s *Sequence, product []float32, keep []bool) {
	keep[0] = true
	p.nodes = p.nodes[:0]
	first := 0 // the likeliest node below the root
	for i := range keep {
		if keep[i] {
			p.nodes = append(p.nodes, int32(i))
		}
		if s.tree.Depth[i] == 1 && (first == 0 || product[i] > product[first]) {
			first = i
		}
	}
	s.turn.worthy = len(p.nodes) - 1
	if s.sampled {
		for _, v := range product[1:] {
			s.turn.mass += v
		}
		return
	}
	if s.turn.worthy == 0 && s.turn.try && first > 0 {
		p.nodes = append(p.nodes, int32(first))
	}
	for _, i := range p.nodes[1:] {
		s.turn.mass += product[i]
	}
	if len(p.nodes) < s.tree.Len() {
		s.index = s.tree.Pick(s.cut, p.nodes, s.index)
		s.tree, s.cut = s.cut, s.tree
	}
}
