package control

import (
	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/drafters/calibrate"
)

// knowledge is what the controller knew about one drafter when a step began. Drafters read it while
// they draft.
type knowledge struct {
	chances [Classes][2]calibrate.Chances
	parts   [][maxLevels]float64 // seconds of drafting, by levels, of each part
	pass    float64              // seconds of a plain pass without prompts
	rounds  int                  // sequences that decoded in it
	// tokens that a row costs, on average from a plain pass to one like the last with two more rows of each sequence
	row float64
}

// maxLevels is how many levels a guide distinguishes.
const maxLevels = 32

func (k *knowledge) read(c *Controller, d *record, rounds, plain, rows int) {
	for i := range k.chances {
		for j := range k.chances[i] {
			k.chances[i][j] = *d.classes[i].kinds[j].Chances()
		}
	}
	k.parts = k.parts[:0]
	for i := range d.parts {
		var levels [maxLevels]float64
		for n := range levels {
			levels[n] = d.parts[i].at(n)
		}
		k.parts = append(k.parts, levels)
	}
	k.pass = c.verify.at(rounds)
	k.rounds = rounds
	k.row = 0
	rows += 2 * rounds
	if k.pass > 0 {
		k.row = float64(rounds) * (c.verify.at(rows) - c.verify.at(plain)) / float64(rows-plain) / k.pass
	}
}

// levels returns the time of n levels of a part. A part that was never measured is assumed to cost as
// much as the first.
func (k *knowledge) levels(part, n int) float64 {
	return k.parts[min(part, len(k.parts)-1)][min(n, maxLevels-1)]
}

// guide is a sequence's draft.Guide in a step.
type guide struct {
	know    *knowledge
	class   Class
	network bool    // levels may be drafted
	try     bool    // the first level is drafted whatever is predicted
	idle    float64 // tokens emitted since the last proposal by the text
	hope    float64 // tokens that the first level is assumed to gain beyond the prediction
	asked   bool    // the drafter has levels: it asked for one
	parts   []partGuide
}

func (g *guide) begin(know *knowledge, class Class, network, try bool, idle, hope float64) {
	g.know = know
	g.class = class
	g.network = network
	g.try = try
	g.idle = idle
	g.hope = hope
	g.asked = false
	g.parts = append(g.parts[:0], partGuide{guide: g})
}

// levels returns how many levels all parts drafted.
func (g *guide) levels() (n int) {
	for i := range g.parts {
		n += g.parts[i].levels
	}
	return n
}

// drafting returns the seconds that those levels take.
func (g *guide) drafting() (seconds float64) {
	for i := range g.parts {
		if n := g.parts[i].levels; n > 0 {
			seconds += g.know.levels(i, n)
		}
	}
	return seconds
}

// Chance returns a node's chance: that of a proposal by the text until a level is drafted.
func (g *guide) Chance(depth int, logProb float32) float32 {
	kind := byText
	if g.levels() > 0 {
		kind = byNetwork
	}
	return g.know.chances[g.class][kind].Of(depth, logProb)
}

// Value returns the chance less the cost of a row.
func (g *guide) Value(chance float32) float32 { return max(chance-float32(g.know.row), 0) }

func (g *guide) Deeper(expected, more float32) bool { return g.parts[0].Deeper(expected, more) }

// Part returns the guide of one part of a drafter that has several.
func (g *guide) Part(i int) draft.Guide {
	for len(g.parts) <= i {
		g.parts = append(g.parts, partGuide{guide: g, part: len(g.parts)})
	}
	return &g.parts[i]
}

// partGuide is the guide of one part of the drafter.
type partGuide struct {
	*guide
	part   int
	levels int // drafted
}

// Deeper compares what the level adds to the round's tokens, 1 + expected, with the time that it adds to drafting and
// a plain pass. The values already include the cost of rows. Other sequences of the step are assumed to be like this
// one. A tree that is not worthwhile even with the level would not be verified.
// A first level that pays is refused now and then, to learn what the text gains without it: as often as
// allowanceRate can pay for its predicted gain.
func (g *partGuide) Deeper(expected, more float32) bool {
	g.asked = true
	if !g.network {
		return false
	}
	know := g.know
	soFar := g.drafting() + know.pass
	extra := know.levels(g.part, g.levels+1)
	if g.levels > 0 {
		extra -= know.levels(g.part, g.levels)
	}
	tokens := 1 + float64(expected)
	gain := tokens + float64(more) - max(tokens, worthwhile)*(1+extra/soFar) + g.hope
	first := g.guide.levels() == 0
	switch {
	case first && g.try:
	case first && expected > 0 && g.idle*allowanceRate >= gain: // try the text alone
		return false
	case gain <= 0:
		return false
	}
	g.levels++
	g.hope = 0
	return true
}
