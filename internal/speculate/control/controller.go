// Package control decides how much to speculate: which drafters are asked, how deep they draft, and
// which nodes are verified (docs/design.md, law 3). It runs nothing itself. A loop describes its
// sequences to it (Turn), and reports measured times (Plan).
//
// It learns three things: times (costCurve), chances of acceptance (package calibrate), and how much
// speculation may lose (allowance).
package control

import (
	"sync"

	"github.com/grovellm/grove/internal/drafters/calibrate"
)

// Controller holds what was learned about one target on one machine: the time of a target pass by its rows, the time of
// drafting by levels, and how often drafted nodes are accepted. From all nodes offered to the step's sequences it
// verifies the set with the most expected tokens per expected time. That set may be empty.
//
// Loops of the target may share it, even concurrently: one generation begins with what another learned.
type Controller struct {
	mu       sync.Mutex
	verify   costCurve // seconds of a target pass, by rows and by the experts that they are expected to read
	rest     recent    // seconds of a plain round outside the pass, for each sequence
	drafters map[string]*record
	refresh  uint32 // passes after which a plain one is measured again
}

// record is what was learned about one drafter.
type record struct {
	parts   []costCurve // seconds of drafting, by levels, of each part
	text    recent      // seconds of a proposal without levels, for each sequence
	read    recent      // seconds to read a row of text, when it reads many
	batches int         // proposals measured
	draws   bool        // its network's last tree that could be drawn was drawn
	classes [Classes]class
}

// class is what was learned about one way of choosing tokens: a drafter's probabilities mean something else in each.
type class struct {
	kinds [2]kind
	want  float32 // mean number of nodes that were worth verifying
	mass  masses  // of drawn trees
}

// kind is one kind of proposals: byText or byNetwork. A proposal that pays for a lone sequence may not among several.
type kind struct {
	calibrate.Table
	alone, among allowance
}

// Class is a way of choosing tokens.
type Class int

// The ways of choosing tokens.
const (
	Greedy    Class = iota // temperature 0
	Coupled                // temperature above 0, with the coupled noise
	Rejecting              // temperature above 0, by rejection sampling
	Classes
)

const (
	byText = iota // proposals without a level
	byNetwork
)

// lastRefresh is the most passes after which unused plain decoding is measured again. The first time is
// after calibrate.Memory passes. The number doubles when the time changed by less than the factor change.
const lastRefresh = 256

// New returns a controller that knows nothing yet.
func New() *Controller {
	return &Controller{verify: newCostCurve(rowAxis), refresh: calibrate.Memory, drafters: map[string]*record{}}
}

// Join returns a drafter's group for a loop. The Controller keeps what it learns about the drafter under the name.
func (c *Controller) Join(name string) *Group { return &Group{record: c.drafter(name)} }

// ReadExperts sets what the target's layers read, if it has experts.
func (c *Controller) ReadExperts(x Experts) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.verify.readExperts(x)
}

// PassTime returns the predicted time of a pass of n rows in seconds; 0 while nothing is known.
func (c *Controller) PassTime(n int) float64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.verify.at(n)
}

// ReadTime returns how long a pass of n rows takes at most to read weights, in seconds: as long as one row, or with
// experts as much longer as it reads more. It is 0 while nothing is known.
func (c *Controller) ReadTime(n int) float64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.verify.at(1)
	if u := c.verify.union; u != nil {
		t *= u.bytes(n) / u.bytes(1)
	}
	return t
}

// MeasuredRows returns the most rows of any pass measured recently.
func (c *Controller) MeasuredRows() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.verify.top()
}

// drafter returns the record of a drafter by name, and makes it on first use.
func (c *Controller) drafter(name string) *record {
	c.mu.Lock()
	defer c.mu.Unlock()
	d := c.drafters[name]
	if d == nil {
		d = &record{parts: []costCurve{newCostCurve(levelAxis)}}
		for i := range d.classes {
			for k := range d.classes[i].kinds {
				d.classes[i].kinds[k] = kind{calibrate.New(), newAllowance(), newAllowance()}
			}
		}
		c.drafters[name] = d
	}
	return d
}

// Learned returns the controller's counts of a drafter's acceptance. They are its own memory, which a program may save
// and set while no loop runs. Times are not included: they are measured anew on every machine.
func (c *Controller) Learned(drafter string) (counts [][]float32) {
	d := c.drafter(drafter)
	for i := range d.classes {
		for j := range d.classes[i].kinds {
			counts = append(counts, d.classes[i].kinds[j].Table.Learned()...)
		}
	}
	return counts
}

// costlyToRead reports whether the drafter should not read text that it is not asked about: reading a row takes more
// than the share of time that tries may take. Then it reads only the last draft.Recall rows before it is asked again.
func (c *Controller) costlyToRead(d *record) bool {
	return d.read.n > 0 && c.verify.known && d.read.median() > allowanceRate*c.verify.at(1)
}

// passed records the time of a pass of n rows. refresh says that the pass was plain in order to be measured.
func (c *Controller) passed(n int, seconds float64, refresh bool) {
	was := 0.0
	if refresh {
		was = c.verify.at(n)
	}
	c.verify.observe(n, seconds)
	if refresh {
		if is := c.verify.at(n); is > was/change && is < was*change {
			c.refresh = min(2*c.refresh, lastRefresh)
		} else {
			c.refresh = max(c.refresh/2, calibrate.Memory)
		}
	}
}

// masses are the chances that nodes of drawn trees are accepted, by their place in the order drawn,
// averaged over recent trees. A drawn tree must not be cut by its content, as that would change the
// distribution. So its size is chosen before it is drawn.
type masses struct {
	chance []float32 // of node i+1
	trees  []int32   // number of trees that had a node i+1
}

// observe records the chances of a tree's nodes, the root's first.
func (m *masses) observe(chance []float32) {
	for i, p := range chance[1:] {
		if i == len(m.chance) {
			m.chance, m.trees = append(m.chance, 0), append(m.trees, 0)
		}
		m.trees[i]++
		m.chance[i] += (p - m.chance[i]) / float32(min(m.trees[i], calibrate.Memory))
	}
}

// size returns how many nodes below the root are worth verifying, given the rows of a plain pass,
// the tokens that it yields, and the seconds that drafting takes.
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
