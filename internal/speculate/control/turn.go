package control

import (
	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/drafters/batch"
	"github.com/grovellm/grove/internal/drafters/sequence"
	"github.com/grovellm/grove/tree"
)

// Group is a drafter in a loop: what is known about it, and the times of its part of a step.
type Group struct {
	record *record
	know   knowledge

	// For Plan.Learn: the seconds of a step's proposals and commits, the rows of prompts that the
	// commits read, and the parts of a drafter that has several.
	Drafting, Reading float64
	Read              int
	Parts             []batch.Share
}

// Turn is a sequence in a loop: what the loop says about it in each step, and what is decided.
type Turn struct {
	Group        *Group // of its drafter; nil: there is none
	Class        Class
	Uncontrolled bool // every round drafts and verifies as much as the budget allows

	// Set before Plan.Begin.
	Prompt        bool // it reads rows of the prompt, and decodes nothing
	Rows          int  // that the pass computes in any case: the root, or those of the prompt
	Budget, Depth int  // most nodes of a tree, and its greatest depth

	// Decided by Plan.Begin.
	Drafts bool // there is a drafter, and room for its tree
	Asked  bool // a tree is requested
	Nodes  int  // most nodes of that tree, root included; 1 if none is requested

	// Set before Plan.Cut: the tree, and how many of its levels took a pass of a network. Nodes from
	// number Forced on are not the drafter's, and are accepted with the chance ForcedChance.
	Tree         *tree.Tree
	Drawn        bool // the tree is drawn: the nodes drawn first are kept
	Forced       int
	ForcedChance float32
	Levels       int

	// Decided by Plan.Cut: the nodes of Tree that are verified, the root first. It is valid until the
	// next step.
	Kept []int32

	// Set before Plan.Learn: Tree and Forced as verified, the nodes of the accepted path, and the
	// tokens emitted.
	Path, Emitted []int32

	guide   guide
	pays    int     // the kind of proposal that the drafter is asked for, if no level is drafted
	try     bool    // a level is drafted, and one of its nodes verified, whatever is predicted
	size    int     // of a drawn tree: nodes below the root that are verified
	mass    float32 // tokens that the verified nodes are expected to add
	cut     []cut   // drafted nodes that are not verified though their parents are
	backlog int     // tokens emitted since the drafter last drafted a level
	skips   bool    // the drafter does not read the rows of this step
}

// cut is a node that is not verified. The target's choice after its parent shows whether it would
// have been accepted.
type cut struct {
	parent  int32 // its number in the tree that is verified
	depth   int32
	token   int32
	logProb float32
}

// Guide returns the drafter's guide in the current step; nil: every node is worth its place.
func (t *Turn) Guide() draft.Guide {
	if t.Uncontrolled {
		return nil
	}
	return &t.guide
}

// Skips reports whether the drafter does not read the sequence's next rows. It keeps the answer for
// the next steps.
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

// A drafter that reads the last sequence.Recall rows of a prompt saves recallGain of the time of the next tokens, at
// most recallTokens: after that it has read enough without them. SmolLM2's EAGLE-3 head, six suites of 8 prompts:
// without these rows τ over 128 tokens is 0.90 (T = 0) and 0.97 (T = 1) of that with the whole prompt, with them 0.97
// and 0.99. Computing them made 128 tokens slower, 0.92 and 0.96, and 500 tokens faster, 1.05 and 1.06.
const (
	recallGain   = .05
	recallTokens = 256
)

// Recalls reports whether it pays to compute cached rows of a prompt again for the drafter to read. tokens is
// how many may follow, and sequences is how many use the drafter, this one included.
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

// class returns what is known about the sequence's drafter for its way of choosing tokens.
func (t *Turn) class() *class { return &t.Group.record.classes[t.Class] }

// allowance returns what proposals of a kind may lose.
func (t *Turn) allowance(kind int) *allowance {
	k := &t.class().kinds[kind]
	if t.Group.know.rounds <= 1 {
		return &k.alone
	}
	return &k.among
}

// kind returns the kind of the step's proposal; byText if there is none.
func (t *Turn) kind() int {
	if t.Asked && t.Levels > 0 {
		return byNetwork
	}
	return byText
}

// watches reports whether the proposal is only compared with the target's choice. The first ones by
// text are: that costs nothing, and their chances are still a guess.
func (t *Turn) watches() bool {
	return t.Class != Rejecting && t.kind() == byText && t.Forced == t.Tree.Len() &&
		t.allowance(byText).seen < majority
}

// offers reports whether there is a tree to verify, from the drafter or a grammar, that the
// controller may cut.
func (t *Turn) offers() bool {
	return t.Drafts && !t.Uncontrolled && (t.Asked || t.Tree.Len() > 1)
}
