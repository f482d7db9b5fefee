package speculate

// knowledge is what a controller knew when a step began.
type knowledge struct {
	chances [worlds]chances
	draft   [maxLevels]float64 // seconds of drafting, by levels
	pass    float64            // seconds of a pass like the last ones
	row     float64            // seconds that a row more for each sequence would add to it
	stake   float64            // seconds that may be put on these proposals beyond a tree of one level; infinite where they are known
}

// maxLevels is how deep a guide tells levels apart.
const maxLevels = 32

func (k *knowledge) read(c *Controller, rounds, rows int) {
	for i := range k.chances {
		k.chances[i] = c.worlds[i].chance
	}
	for i := range k.draft {
		k.draft[i] = c.draft.at(i)
	}
	k.pass = c.verify.at(rows)
	k.row = c.verify.at(rows+rounds) - k.pass
}

// guide is a sequence's draft.Guide in a step.
type guide struct {
	know    *knowledge
	chances *chances
	levels  int // the levels it was told of, the one that was drafted before the first question included; 0: never asked
}

func (g *guide) Chance(depth int, logProb float32) float32 { return g.chances.of(depth, logProb) }

// Deeper compares what the level adds to the tokens of the round, 1 + expected, with what it adds to its time: the
// level itself and a row. Other sequences of the step are taken to be like this one.
func (g *guide) Deeper(expected, more float32) bool {
	g.levels = max(g.levels, 1)
	level := min(g.levels, maxLevels-2)
	soFar := g.know.draft[level] + g.know.pass
	extra := g.know.draft[level+1] - g.know.draft[level] + g.know.row
	pays := float64(more)*soFar > (1+float64(expected))*extra && g.know.draft[level+1]-g.know.draft[1] <= g.know.stake
	if pays {
		g.levels++
	}
	return pays
}

// drafted is how many levels the sequence's drafter drafted, as far as can be told.
func (s *Sequence) drafted() int {
	if s.passless() {
		return 0
	}
	if s.guide.levels > 0 {
		return s.guide.levels
	}
	return s.tree.MaxDepth()
}
