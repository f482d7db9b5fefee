package control

import (
	"math"
	"slices"

	"github.com/grovellm/grove/internal/drafters/calibrate"
)

// Plan is the controller's part of a loop's steps. Before a pass, Begin decides which drafters are asked and for how
// many nodes, and Cut then decides which nodes are verified. Learn comes after the pass. All sequences share the pass,
// so whether a node is worth its place depends on the cost of one more row of the whole pass, not on its sequence.
type Plan struct {
	LogitRows int // most rows of a pass whose logits fit into memory

	Refresh bool // in this step all sequences decode plainly, so that plain decoding is measured

	rounds int // sequences that decode in the step
	rows   int // of a pass that verifies nothing: roots, and rows of prompts

	product []float32 // by node of all trees: chance of the path to it
	sum     []float32 // by node: the sum of its children's chances
	keep    []bool    // by node
	order   []uint64  // nodes below roots, the likeliest last
	kids    []int32
}

// Begin decides who drafts, and up to how many nodes.
func (p *Plan) Begin(c *Controller, turns []*Turn, groups []*Group) {
	p.rounds = 0
	p.rows = 0
	p.Refresh = false
	asking, mixed := false, false
	for _, t := range turns {
		t.Drafts = false
		t.Asked = false
		t.Drawn = false
		t.Nodes = 1
		t.Levels = 0
		t.try = false
		t.size = 0
		t.mass = 0
		t.Kept = t.Kept[:0]
		t.cut = t.cut[:0]
		p.rows += t.Rows
		if t.Prompt {
			mixed = true
			continue
		}
		p.rounds++
		t.Drafts = t.Group != nil && t.Depth > 0
		asking = asking || t.Drafts
	}
	if !asking {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	controlled := slices.ContainsFunc(turns, func(t *Turn) bool { return t.Drafts && !t.Uncontrolled })
	p.Refresh = controlled && !mixed && (!c.verify.known || c.verify.age(p.rounds) > c.refresh)
	if p.Refresh {
		return
	}
	rows := p.rows // of a pass like the last ones
	for _, t := range turns {
		if t.Drafts && !t.Uncontrolled {
			rows += int(t.class().want)
		}
	}
	unit := p.unit(c)
	for _, g := range groups {
		g.know.read(c, g.record, p.rounds, p.rows, rows)
	}
	for _, t := range turns {
		if t.Drafts {
			p.ask(c, t, unit)
		}
	}
}

// ask decides whether to request a tree, and of how many nodes. unit is the time of a plain token.
func (p *Plan) ask(c *Controller, t *Turn, unit float64) {
	nodes := t.Budget
	if nodes < 2 { // there is no memory for a tree
		return
	}
	if !t.Uncontrolled {
		text, net := t.allowance(byText), t.allowance(byNetwork)
		know := &t.Group.know
		level := max(know.levels(0, 1)/unit+know.row, net.cost)
		network := net.open() && !t.skips
		t.try = network && net.due(level)
		t.pays = byText
		if !text.open() {
			if !network || net.mean+net.hope() <= 0 && !t.try {
				return
			}
			t.pays = byNetwork
		}
		// A drafter's first tree has one node, and the limit doubles with every measured batch. Nodes that are
		// drafted and not verified cost little, once the cost of drafting is known.
		nodes = min(nodes, 2<<min(t.Group.record.batches, 16))
		if t.Class == Rejecting {
			t.size = min(p.drawnSize(c, t), nodes-1, p.mostNodes(c, net.credit))
			network = network && t.size > 0
			if network && t.Group.record.draws {
				nodes = t.size + 1
			}
		}
		t.guide.begin(know, t.Class, network, t.try, text.idle, net.hope())
	}
	t.Asked, t.Nodes = true, nodes
}

// drawnSize returns how many nodes below the root are verified if the tree is drawn.
func (p *Plan) drawnSize(c *Controller, t *Turn) int {
	m, k := &t.class().mass, t.allowance(byNetwork)
	size := m.size(&c.verify, p.rounds, float64(p.rounds), t.Group.know.levels(0, 1))
	switch {
	// to learn whether a larger tree pays
	case size > 0 && (k.proposals < calibrate.PriorWeight || k.proposals%(2*calibrate.PriorWeight) == 0):
		return 2 * (size + 1)
	case size == 0 && (len(m.chance) == 0 || t.try):
		return 1
	}
	return size
}

// Cut picks the nodes to verify from the proposed trees. It orders nodes by the chances of their
// paths, the likeliest first. S(n) is the sum of the first n chances, and T(n) the time of drafting
// and of a pass with n nodes. It keeps the n nodes for which (rounds + S(n)) / T(n), expected tokens
// per expected time, is largest. A path is never likelier than its beginning, so any n form trees.
func (p *Plan) Cut(c *Controller, turns []*Turn, drafting float64) {
	p.product = p.product[:0]
	p.sum = p.sum[:0]
	p.order = p.order[:0]
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, t := range turns {
		if t.offers() {
			p.weigh(t)
		}
	}
	if len(p.product) == 0 {
		return
	}
	slices.Sort(p.order)
	credit := 0.0
	for _, t := range turns {
		if t.offers() {
			credit = max(credit, t.allowance(t.kind()).credit)
		}
	}
	n := p.best(c, drafting, credit)
	p.keep = append(p.keep[:0], make([]bool, len(p.product))...)
	for _, o := range p.order[len(p.order)-n:] {
		p.keep[^uint32(o)] = true
	}
	at := 0
	for _, t := range turns {
		if t.offers() {
			end := at + t.Tree.Len()
			t.trim(p.product[at:end], p.keep[at:end])
			at = end
		}
	}
}

// weigh appends the chances of the paths of a sequence's tree to product, and its nodes to order.
// Siblings are alternatives: their chances add up to 1 at most. Drawn trees are not ordered.
func (p *Plan) weigh(turn *Turn) {
	t, at := turn.Tree, len(p.product)
	chances := &turn.Group.know.chances[turn.Class][turn.kind()]
	p.product, p.sum = append(p.product, 1), append(p.sum, 0)
	for i := 1; i < t.Len(); i++ {
		v := chances.Of(int(t.Depth[i]), t.LogProb[i])
		if i >= turn.Forced {
			v = turn.ForcedChance
		}
		p.product, p.sum = append(p.product, v), append(p.sum, 0)
		p.sum[at+int(t.Parent[i])] += v
	}
	for i := 1; i < t.Len(); i++ {
		parent := at + int(t.Parent[i])
		v := p.product[at+i] * p.product[parent] / max(p.sum[parent], 1)
		p.product[at+i] = v
		if !turn.Drawn && !turn.watches() {
			// Bits of non-negative numbers order like the numbers. Of equal ones the first comes out as likelier.
			p.order = append(p.order, uint64(math.Float32bits(v))<<32|uint64(^uint32(at+i)))
		}
	}
}

// mostNodes returns the most nodes that a pass verifies. The logits of all sequences' nodes must fit into memory. No
// pass has more than twice the rows of the largest measured one: its time would be a guess. Each row beyond the largest
// may cost as much as a row of the largest: no more are taken than the credit, in tokens, could pay for.
func (p *Plan) mostNodes(c *Controller, credit float64) int {
	top := max(c.verify.top(), p.rows)
	bearable := int(float64(top) * (c.verify.at(p.rows) + credit*p.unit(c)) / c.verify.at(top))
	return max(min(max(min(2*top, bearable), top)-p.rows, p.LogitRows-p.rounds), 0)
}

// unit returns the time of a plain token in a pass that reads no prompts: those must be read in any case.
func (p *Plan) unit(c *Controller) float64 { return c.verify.at(p.rounds) / float64(p.rounds) }

// worthwhile is how many times better than plain decoding speculation must look.
const worthwhile = 1.02

// best returns how many nodes to keep. The time of prompts in the pass does not count: they must be read
// in any case, and a node that delays them is worth no more for it.
func (p *Plan) best(c *Controller, drafting, credit float64) (best int) {
	sum := float64(p.rounds)
	drafting -= c.verify.at(p.rows) - c.verify.at(p.rounds)
	most := worthwhile * sum / (drafting + c.verify.at(p.rows))
	end := min(len(p.order), p.mostNodes(c, credit))
	for n := 1; n <= end; n++ {
		sum += float64(math.Float32frombits(uint32(p.order[len(p.order)-n] >> 32)))
		if j := sum / (drafting + c.verify.at(p.rows+n)); j > most {
			most, best = j, n
		}
	}
	return best
}

// trim lists the nodes kept. Of a drawn tree they are those drawn first, as many as were chosen before it was drawn.
func (t *Turn) trim(product []float32, keep []bool) {
	t.Kept = append(t.Kept, 0)
	if t.Drawn {
		t.class().mass.observe(product)
		for i := 1; i < min(len(keep), t.size+1); i++ {
			t.Kept = append(t.Kept, int32(i))
		}
	} else {
		first := 0 // the likeliest node below the root
		for i := 1; i < len(keep); i++ {
			if keep[i] {
				t.Kept = append(t.Kept, int32(i))
			}
			if t.Tree.Depth[i] == 1 && (first == 0 || product[i] > product[first]) {
				first = i
			}
		}
		if len(t.Kept) == 1 && t.try && t.kind() == byNetwork && first > 0 {
			t.Kept = append(t.Kept, int32(first))
		}
	}
	for _, i := range t.Kept[1:] {
		t.mass += product[i]
	}
	if t.Class != Rejecting {
		t.noteCut()
	}
}

// noteCut lists the drafter's unverified nodes whose parents are verified.
func (t *Turn) noteCut() {
	tr, next := t.Tree, 1 // the next of Kept
	for i := 1; i < min(tr.Len(), t.Forced); i++ {
		if next < len(t.Kept) && int(t.Kept[next]) == i {
			next++
			continue
		}
		if parent, kept := slices.BinarySearch(t.Kept, tr.Parent[i]); kept {
			t.cut = append(t.cut, cut{int32(parent), tr.Depth[i], tr.Token[i], tr.LogProb[i]})
		}
	}
}
