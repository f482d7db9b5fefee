package speculate

import (
	"sync"

	"github.com/grovellm/grove/internal/calibrate"
)

// Controller decides, step by step, how much to speculate (docs/design.md, law 3). It learns the time of a target pass by
// its rows, the time of drafting by levels, and how often drafted nodes are accepted. Of all nodes that the step's
// sequences are offered it verifies the set with the most expected tokens in the expected time, which may be none. It never
// changes a token, but for the rule Rejection.
//
// It belongs to one target on one machine. Loops of that target may share it, at the same time too: one generation begins
// with what another learned.
type Controller struct {
	mu       sync.Mutex
	verify   costCurve // seconds of a target pass, by rows, and by the experts that those are expected to want
	rest     recent    // seconds of a plain round beside the pass, for each sequence
	drafters map[string]*drafterRecord
	refresh  uint32 // passes after which a plain one is measured again
}

// drafterRecord is what was learned of one drafter.
type drafterRecord struct {
	parts   []costCurve // seconds of drafting, by levels, of each part
	text    recent      // seconds of a proposal without levels, for each sequence
	read    recent      // seconds to read a row of text, among many
	batches int         // proposals measured
	classes [classes]class
}

// class is a way of choosing tokens: a drafter's probabilities are worth something else in each.
type class struct {
	kinds [2]kind
	want  float32 // mean number of nodes that were worth verifying
	mass  masses  // of drawn trees
}

// kind is one kind of proposals: byText or byNetwork.
type kind struct {
	calibrate.Table
	allowance
}

const (
	greedy  = iota // temperature 0
	coupled        // above, with the coupled noise
	rejecting
	classes
)

const (
	byText = iota // proposals without a level
	byNetwork
)

const (
	// A drafter that is not asked reads along if a row costs at most costlyRead tokens. Otherwise it reads only the last
	// wakeRows rows before it is asked again.
	costlyRead = 0.0025
	wakeRows   = 32 // and as many rows read at once, for their time to be a measurement

	coldBudget = 2 // nodes of a drafter's first tree; doubled with every measured batch

	// Plain decoding is measured again after this many passes, while it is not in use; after twice
	// as many as before if it changed by less than the factor change.
	firstRefresh = 8
	lastRefresh  = 256
)

// NewController returns a controller that knows nothing yet.
func NewController() *Controller {
	return &Controller{verify: newCostCurve(rowAxis), refresh: firstRefresh, drafters: map[string]*drafterRecord{}}
}

// drafter returns the record of a drafter by name, made when first asked for.
func (c *Controller) drafter(name string) *drafterRecord {
	c.mu.Lock()
	defer c.mu.Unlock()
	d := c.drafters[name]
	if d == nil {
		d = &drafterRecord{parts: []costCurve{newCostCurve(levelAxis)}}
		for i := range d.classes {
			for k := range d.classes[i].kinds {
				d.classes[i].kinds[k] = kind{calibrate.New(), newAllowance()}
			}
		}
		c.drafters[name] = d
	}
	return d
}

// Learned is what the controller counted of a drafter's acceptance, in its own memory, which a
// program may save and set while no loop runs. Times are not part of it: they are measured anew on
// every machine.
func (c *Controller) Learned(drafter string) (counts [][]float32) {
	d := c.drafter(drafter)
	for i := range d.classes {
		for j := range d.classes[i].kinds {
			counts = append(counts, d.classes[i].kinds[j].Table.Learned()...)
		}
	}
	return counts
}

// costlyToRead reports whether the drafter had better not read text that it is not asked about.
func (c *Controller) costlyToRead(d *drafterRecord) bool {
	return d.read.n > 0 && c.verify.known && d.read.median() > costlyRead*c.verify.at(1)
}

// passed takes the time of a pass of n rows. refresh says that the pass was plain in order to be measured.
func (c *Controller) passed(n int, seconds float64, refresh bool) {
	was := 0.0
	if refresh {
		was = c.verify.at(n)
	}
	if c.verify.observe(n, seconds); refresh {
		if is := c.verify.at(n); is > was/change && is < was*change {
			c.refresh = min(2*c.refresh, lastRefresh)
		} else {
			c.refresh = max(c.refresh/2, firstRefresh)
		}
	}
}

// masses are the chances that nodes of drawn trees are accepted, by their place in the order drawn, on average over late
// trees. A drawn tree may not be cut by what it holds, as that would change what is drawn; so its size is chosen before.
type masses struct {
	chance []float32 // of node i+1
	trees  []int32   // that had a node i+1
}

// observe takes the chances of a tree's nodes, the root's first.
func (m *masses) observe(chance []float32) {
	for i, p := range chance[1:] {
		if i == len(m.chance) {
			m.chance, m.trees = append(m.chance, 0), append(m.trees, 0)
		}
		m.trees[i]++
		m.chance[i] += (p - m.chance[i]) / float32(min(m.trees[i], memory))
	}
}

// size is how many nodes below the root are worth verifying, where a plain pass has so many rows and yields so many
// tokens, and drafting takes so many seconds.
func (m *masses) size(verify *costCurve, rows int, tokens, drafting float64) (best int) {
	most := tokens / (drafting + verify.at(rows))
	for i, p := range m.chance {
		tokens += float64(p)
		if j := tokens / (drafting + verify.at(rows+i+1)); j > most {
			most, best = j, i+1
		}
	}
	return best
}
