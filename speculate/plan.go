package speculate

import (
	"math"
	"slices"

	"github.com/grovellm/grove/draft"
)

// plan is the controller's part of a step, before the pass: which drafters are asked and for how much, and which nodes
// are verified. All sequences share the pass, so a node is worth its place by what one more row costs the whole pass,
// whichever sequence it belongs to.
type plan struct {
	rounds  int  // sequences that decode in the step
	rows    int  // of a pass that verifies nothing: roots, and rows of prompts
	refresh bool // all decode plainly, for that to be measured

	logitRows int // whose logits fit into logitMemory

	product []float32 // by node of all trees: chance of the path to it
	sum     []float32 // by node: the sum of its children's chances
	keep    []bool    // by node
	order   []uint64  // nodes below roots, the likeliest last
	nodes   []int32
	kids    []int32
}

// turn is a sequence's part of the plan.
type turn struct {
	may      bool    // there is a drafter, and room for what it drafts
	try      [2]bool // by kind: something is proposed and verified, whatever is predicted
	budget   int     // nodes allowed, 1 where the drafter was not asked
	size     int     // of a drawn tree: nodes below the root that are verified
	proposed int     // nodes proposed
	worthy   int     // of those, how many were found worth a row
	mass     float32 // tokens that the verified nodes are expected to bring
}

// worthwhile is how much better than plain decoding speculation must look.
const worthwhile = 1.05

// Of the first exploreEvery/2 drawn trees each, and of later ones one in exploreEvery, is larger than the best size, by half and
// exploreMore nodes: so it is learned whether a larger tree pays.
const (
	exploreEvery = 8
	exploreMore  = 5
)

// begin decides who drafts, and up to how many nodes.
func (p *plan) begin(l *Loop) {
	p.rounds, p.rows, p.refresh = 0, 0, false
	asking, mixed := false, false
	for _, s := range l.live {
		s.turn, s.request = turn{budget: 1}, -1
		p.rows += s.tree.Len()
		if s.prefilling {
			mixed = true
			continue
		}
		p.rounds++
		s.turn.may = s.group != nil && s.depth > 0
		asking = asking || s.turn.may
	}
	if !asking {
		return
	}
	c := l.control
	c.mu.Lock()
	defer c.mu.Unlock()
	controlled := slices.ContainsFunc(l.live, func(s *Sequence) bool { return s.turn.may && !s.r.Uncontrolled })
	if p.refresh = controlled && !mixed && (!c.verify.known || c.verify.age(p.rounds) > c.refresh); p.refresh {
		return
	}
	rows := p.rows // of a pass like the last ones
	for _, s := range l.live {
		if s.turn.may && !s.r.Uncontrolled {
			rows += int(s.class().want)
		}
	}
	unit := c.verify.at(p.rows) / float64(p.rounds)
	for _, g := range l.groups {
		g.know.read(c, g.record, p.rounds, p.rows, rows)
	}
	for _, s := range l.live {
		if s.turn.may {
			p.ask(c, s, unit)
		}
	}
}

// ask requests a tree under the sequence's root, if its drafter may be asked. unit is the time of a plain token.
func (p *plan) ask(c *Controller, s *Sequence, unit float64) {
	g := s.group
	r := draft.Request{State: s.state, Tree: s.tree, Budget: s.r.Budget, Depth: s.depth}
	if !s.r.Uncontrolled {
		k, know := &s.class().kinds, &g.know
		level := max((know.levels(0, 1)+know.row)/unit, k[byNetwork].cost)
		text := max((g.record.text.median()+know.row)/unit, k[byText].cost)
		network := k[byNetwork].open() && !s.skipped
		s.turn.try = [2]bool{k[byText].due(text), network && k[byNetwork].due(level)}
		if !k[byText].open() && !(network && (k[byNetwork].mean > 0 || s.turn.try[byNetwork])) {
			return
		}
		// Nodes that are drafted and not verified cost little, once it is known what drafting costs.
		r.Budget = min(r.Budget, coldBudget<<min(g.record.batches, 16))
		if s.sampled {
			m := &s.class().mass
			s.turn.size = min(m.size(&c.verify, p.rounds, float64(p.rounds), know.levels(0, 1)), r.Budget-1)
			if n := k[byNetwork].proposals; s.turn.size > 0 && (n < exploreEvery/2 || n%exploreEvery == 0) {
				s.turn.size = min(s.turn.size+s.turn.size/2+exploreMore, r.Budget-1)
			} else if s.turn.size == 0 && (len(m.chance) == 0 || s.turn.try[byNetwork]) {
				s.turn.size = 1
			}
			s.turn.size = min(s.turn.size, p.mostNodes(c))
			r.Budget = s.turn.size + 1
		}
		s.guide.begin(know, s.number, network, s.turn.try[byNetwork], k[byText].idle)
		r.Guide = &s.guide
	}
	s.turn.budget = r.Budget
	s.request = len(g.requests)
	g.requests = append(g.requests, r)
}

// skips reports whether the sequence's drafter does not read along.
func (p *plan) skips(l *Loop, s *Sequence) bool {
	if s.r.Uncontrolled {
		return false
	}
	l.control.mu.Lock()
	defer l.control.mu.Unlock()
	a := &s.class().kinds[byNetwork].allowance
	return a.mean < 0 && (s.prefilling || a.wait(0) >= wakeRows) && l.control.costlyToRead(s.group.record)
}

// cut picks the nodes to verify from the trees proposed. With the likeliest first, S(n) the sum of the chances of the first
// n paths, and T the time of drafting and of a pass of so many rows, it keeps the n for which (rounds + S(n)) / T(n) is
// largest: the most expected tokens in the expected time. A path is never likelier than its beginning, so any n make trees.
func (p *plan) cut(l *Loop, drafting float64) {
	p.product, p.sum, p.order = p.product[:0], p.sum[:0], p.order[:0]
	for _, s := range l.live {
		if s.offers() && !s.r.Uncontrolled {
			p.weigh(s)
		}
	}
	if len(p.product) == 0 {
		return
	}
	slices.Sort(p.order)
	l.control.mu.Lock()
	n := p.best(l.control, drafting)
	l.control.mu.Unlock()
	p.keep = append(p.keep[:0], make([]bool, len(p.product))...)
	for _, o := range p.order[len(p.order)-n:] {
		p.keep[^uint32(o)] = true
	}
	at := 0
	for _, s := range l.live {
		if s.offers() && !s.r.Uncontrolled {
			size := s.tree.Len()
			p.trim(l, s, p.product[at:at+size], p.keep[at:at+size])
			at += size
		}
	}
}

// offers reports whether there is a tree to verify, of the drafter or of the grammar.
func (s *Sequence) offers() bool { return s.turn.may && (s.request >= 0 || s.tree.Len() > 1) }

// weigh appends the chances of the paths of the sequence's tree, and its nodes to the order. Siblings are alternatives: their
// chances add up to 1 at most. Drawn trees are not ordered.
func (p *plan) weigh(s *Sequence) {
	t, at := s.tree, len(p.product)
	chances := &s.group.know.chances[s.number][s.kind()]
	p.product, p.sum = append(p.product, 1), append(p.sum, 0)
	for i := 1; i < t.Len(); i++ {
		v := chances.Of(int(t.Depth[i]), t.LogProb[i])
		if i >= s.form.drafted {
			v = s.form.forcedChance()
		}
		p.product, p.sum = append(p.product, v), append(p.sum, 0)
		p.sum[at+int(t.Parent[i])] += v
	}
	for i := 1; i < t.Len(); i++ {
		parent := at + int(t.Parent[i])
		v := p.product[at+i] * p.product[parent] / max(p.sum[parent], 1)
		p.product[at+i] = v
		if !s.sampled {
			// Bits of numbers that are not negative order like the numbers; of equal ones the first counts for more.
			p.order = append(p.order, uint64(math.Float32bits(v))<<32|uint64(^uint32(at+i)))
		}
	}
}

// mostNodes is how many nodes a pass verifies at most. No pass has more than twice the rows of the largest measured, as
// its time would be a guess. The logits of all sequences' nodes fit into logitMemory.
func (p *plan) mostNodes(c *Controller) int {
	return max(min(2*max(c.verify.top(), p.rows)-p.rows, p.logitRows-p.rounds), 0)
}

// best is how many nodes to keep. The time that prompts take in the pass does not count: they have to be
// read in any case, and a node that delays them is worth no more for it.
func (p *plan) best(c *Controller, drafting float64) (best int) {
	sum := float64(p.rounds)
	drafting -= c.verify.at(p.rows) - c.verify.at(p.rounds)
	most := worthwhile * sum / (drafting + c.verify.at(p.rows))
	end := min(len(p.order), p.mostNodes(c))
	for n := 1; n <= end; n++ {
		sum += float64(math.Float32frombits(uint32(p.order[len(p.order)-n] >> 32)))
		if j := sum / (drafting + c.verify.at(p.rows+n)); j > most {
			most, best = j, n
		}
	}
	return best
}

// trim cuts the sequence's tree down to the nodes kept, or a drawn tree to the size chosen before it was drawn.
func (p *plan) trim(l *Loop, s *Sequence, product []float32, keep []bool) {
	p.nodes = append(p.nodes[:0], 0)
	if s.sampled {
		l.control.mu.Lock()
		s.class().mass.observe(product)
		l.control.mu.Unlock()
		for i := 1; i < min(len(keep), s.turn.size+1); i++ {
			p.nodes = append(p.nodes, int32(i))
		}
		if len(s.origin) == 0 {
			s.origin = append(s.origin, p.nodes...)
		}
		s.origin = s.origin[:len(p.nodes)]
	} else {
		first := 0 // the likeliest node below the root
		for i := 1; i < len(keep); i++ {
			if keep[i] {
				p.nodes = append(p.nodes, int32(i))
			}
			if s.tree.Depth[i] == 1 && (first == 0 || product[i] > product[first]) {
				first = i
			}
		}
		if len(p.nodes) == 1 && s.turn.try[s.kind()] && first > 0 {
			p.nodes = append(p.nodes, int32(first))
		}
	}
	s.turn.worthy = len(p.nodes) - 1
	for _, i := range p.nodes[1:] {
		s.turn.mass += product[i]
	}
	if len(p.nodes) < s.tree.Len() {
		s.form.drafted, _ = slices.BinarySearch(p.nodes, int32(s.form.drafted))
		s.index = s.tree.Pick(s.cut, p.nodes, s.index)
		s.tree, s.cut = s.cut, s.tree
	}
}
