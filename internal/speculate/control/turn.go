package control

import (
	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/drafters/batch"
	"github.com/grovellm/grove/internal/drafters/sequence"
	"github.com/grovellm/grove/tree"
)

// Group is a drafter in a loop: what is known of it, and what its part of a step took.
type Group struct {
	record *record
	know   knowledge

	// For Plan.Learn: the seconds of a step's proposals and commits, the rows of prompts that the
	// commits read, and the parts of a drafter of several.
	Drafting, Reading float64
	Read              int
	Parts             []batch.Share
}

// Turn is a sequence in a loop: what the loop says of it, step by step, and what is decided.
type Turn struct {
	Group        *Group // of its drafter; nil: there is none
	Class        Class
	Uncontrolled bool // every round drafts and verifies as much as the budget allows

	// Of a step, before Plan.Begin.
	Prompt        bool // it reads rows of the prompt, and decodes nothing
	Rows          int  // that the pass computes of it in any case: the root, or those of the prompt
	Budget, Depth int  // of a tree at most

	// Decided by Plan.Begin.
	Drafts bool // there is a drafter, and room for what it drafts
	Asked  bool // for a tree
	Nodes  int  // of that tree at most, root included; 1 where the drafter is not asked

	// Before Plan.Cut: the tree, whose nodes from number Forced on are not the drafter's and are
	// accepted with the chance ForcedChance, and the levels of it that took a pass of a network.
	Tree         *tree.Tree
	Drawn        bool // the tree is drawn: what was drawn first stays
	Forced       int
	ForcedChance float32
	Levels       int

	// Decided by Plan.Cut: the nodes of Tree that are verified, the root first. It lasts until the
	// next step.
	Kept []int32

	// Before Plan.Learn: Tree and Forced as verified, the nodes of the path that was accepted, and
	// the tokens emitted.
	Path, Emitted []int32

	guide   guide
	pays    int     // the kind of proposals for which the drafter is asked, where no level is drafted
	try     bool    // a level is drafted, and a node of it verified, whatever is predicted
	size    int     // of a drawn tree: nodes below the root that are verified
	mass    float32 // tokens that the verified nodes are expected to bring
	cut     []cut   // drafted nodes that are not verified though their parents are
	backlog int     // tokens emitted since the drafter last drafted a level
	skips   bool    // the drafter does not read the rows of this step
}

// cut is a node that is not verified. The target's choice after its parent says whether it would
// have been accepted.
type cut struct {
	parent  int32 // its number in the tree that is verified
	depth   int32
	token   int32
	logProb float32
}

// Guide is the drafter's in the step under way; nil: every node is worth its place.
func (t *Turn) Guide() draft.Guide {
	if t.Uncontrolled {
		return nil
	}
	return &t.guide
}

// Skips reports whether the drafter does not read the sequence's next rows. It notes the answer for
// the steps to come.
func (t *Turn) Skips(c *Controller) bool {
	if t.Uncontrolled {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	a := t.allowance(byNetwork)
	t.skips = a.mean < 0 && (t.Prompt || a.wait(0) >= sequence.Recall) && c.costlyToRead(t.Group.record)
	return t.skips
}

// Reading the last sequence.Recall rows of a prompt saves a drafter recallGain of the time of the next tokens,
// recallTokens at most: from then on it has read enough without them. SmolLM2's EAGLE-3 head, six suites of 8 prompts:
// without these rows τ over 128 tokens is 0.90 (T = 0) and 0.97 (T = 1) of that with the whole prompt, with them 0.97
// and 0.99. Computing them made 128 tokens slower, 0.92 and 0.96, and 500 tokens faster, 1.05 and 1.06.
const (
	recallGain   = .05
	recallTokens = 256
)

// Recalls reports whether it pays to compute rows of a prompt once more, though they are in a cache, for the
// drafter to read. tokens are those that may follow, and sequences how many use the drafter, this one included.
func (t *Turn) Recalls(c *Controller, rows, tokens, sequences int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if t.Uncontrolled || !c.verify.known {
		return rows <= tokens
	}
	pass := c.verify.at(sequences)
	cost := (c.verify.at(sequences+rows) - pass) / pass * float64(sequences)
	return cost <= recallGain*float64(min(tokens, recallTokens))
}

// class is what is known of the sequence's drafter and way of choosing tokens.
func (t *Turn) class() *class { return &t.Group.record.classes[t.Class] }

// allowance is what proposals of a kind may lose.
func (t *Turn) allowance(kind int) *allowance {
	k := &t.class().kinds[kind]
	if t.Group.know.rounds <= 1 {
		return &k.alone
	}
	return &k.among
}

// kind is that of the step's proposal; by text where there is none.
func (t *Turn) kind() int {
	if t.Asked && t.Levels > 0 {
		return byNetwork
	}
	return byText
}

// watches reports whether the proposal is only compared with the target's choice: the first ones by
// text are, as that costs nothing, and their chances are a guess.
func (t *Turn) watches() bool {
	return t.Class != Rejecting && t.kind() == byText && t.Forced == t.Tree.Len() &&
		t.allowance(byText).seen < majority
}

// offers reports whether there is a tree to verify, of the drafter or of a grammar, that the
// controller may cut.
func (t *Turn) offers() bool {
	return t.Drafts && !t.Uncontrolled && (t.Asked || t.Tree.Len() > 1)
}
