// Package draft defines a drafter: what proposes the candidate tokens that the target verifies.
//
// A drafter is a package of its own that registers a Family by name; the loop in package speculate knows this
// interface and nothing else of it. Whatever a drafter proposes, the tokens that come out are those of
// plain decoding: a drafter can only be slow, not wrong.
package draft

import (
	"context"

	"github.com/grovellm/grove/sample"
	"github.com/grovellm/grove/tree"
)

// Drafter proposes trees for many sequences at once. One goroutine uses it at a time.
//
// The life of a sequence: Begin; then Commit with the rows of the prompt, a chunk at a time; then
// rounds of Propose and Commit; then State.Close. After the rows of the prompt, each Commit brings the
// root of the last round and the nodes accepted below it, so the rows of all Commits are the text in
// order, without gaps, and the root of the next tree is the token that follows them.
//
// Propose may be called again without a Commit in between (a pass was cancelled), and a Commit may come
// without a Propose (the sequence was decoded plainly for a while).
type Drafter interface {
	// Taps lists the layers whose residual stream Commit wants of every committed row: 0 is the embedding, i what
	// block i puts out. It does not change.
	Taps() []int

	// Begin makes the state of a new sequence.
	Begin(o Options) (State, error)

	// Propose grows each request's tree.
	Propose(ctx context.Context, requests []Request) error

	// Commit tells what the target made of the last trees. It cannot be cancelled: the target has moved on already.
	Commit(rows []Rows) error
}

// DepthClasses is how many classes of depth are told apart in judging nodes: depths 1, 2, 3 and 4, 5 to 8, and beyond.
const DepthClasses = 5

// DepthClass is the class of a depth, from 0.
func DepthClass(depth int) int {
	switch {
	case depth <= 2:
		return max(depth, 1) - 1
	case depth <= 4:
		return 2
	case depth <= 8:
		return 3
	}
	return 4
}

// Sampler is a Drafter that can draw children at random, where Options.Sampled asks for it, and knows the
// distribution that it drew them from.
type Sampler interface {
	Drafter

	// Drawn is the distribution, over the target's vocabulary, that the children of a node of the last proposed tree were
	// drawn from, without replacement; nil for a node without children. It lasts until the next Propose or Commit.
	Drawn(s State, node int) []float32
}

// State is what a drafter keeps of one sequence.
type State interface {
	// Close gives the state's memory back; the state is not used again.
	Close()
}

// Options describe a new sequence.
type Options struct {
	// Sampling is how the target's tokens are chosen. Above temperature 0 a drafter that ranks its candidates with
	// the noise they will meet, sample.Noise(Seed, position, token), gets more of them accepted. Where they meet no noise that can
	// be known, the temperature is given as 0: the likeliest are the best.
	Sampling sample.Params

	// Predicted is text that the caller expects much of the output to repeat; often empty.
	Predicted []int32

	// Sampled asks for trees whose children are drawn from the drafter's own distribution, without replacement and by
	// noise of its own (Seed), in the order drawn; see Sampler. Drafters that cannot draw propose as always.
	Sampled bool
	Seed    uint64
}

// Request asks for one tree.
type Request struct {
	State  State
	Tree   *tree.Tree // holds the root, the last committed token; Propose appends to it
	Budget int        // nodes of the finished tree at most, root included
	Depth  int        // depth of its nodes at most: what lies deeper cannot be emitted any more
	Guide  Guide      // what is known of the worth of nodes; nil: every node is worth its place

	// Alone asks for what the text alone foretells, without a pass of a network: of drafters that are Alone. One that was asked for
	// more sets it where that was so sure that it made no pass: what the tree took is then not what levels take.
	Alone bool
}

// Alone is a Drafter some of whose states can also propose from what the text, and the target beside its path, have said so far, in a
// small part of the time that a pass of a network takes.
type Alone interface {
	Drafter

	// Alone reports whether s is such a state.
	Alone(s State) bool
}

// Guide knows how often nodes like one were accepted, and what a pass costs. A drafter that can do with less asks it
// while the tree grows; the loop cuts the finished tree to what pays in any case.
type Guide interface {
	// Chance is the probability that the target accepts a node at a depth, given that it accepted the parent, where the
	// drafter's own estimate is exp(logProb).
	Chance(depth int, logProb float32) float32

	// Deeper reports whether drafting another level pays: expected is the number of tokens that the tree is expected to
	// get accepted so far (the sum over its nodes of the products of chances along their paths), more is what the level
	// would add. It is asked once before each level but the first, so the answers tell the loop how many levels were drafted, of
	// which it learns what a level costs. A drafter that grows a tree in one step need not ask.
	Deeper(expected, more float32) bool
}

// Rows are the rows of one sequence that the target has just committed.
type Rows struct {
	State  State
	Tokens []int32 // in text order

	// Tree is the tree that was verified and Nodes the node of each of Tokens in it, the root first; Next is the token
	// that the target chose after the last of them. For rows of the prompt Tree is their chain, and Next is -1.
	// For rows that came with a cache filled earlier Tree is nil, and there is no Pass.
	Tree  *tree.Tree
	Nodes []int32
	Next  int32

	Pass     Pass // the pass that computed the rows
	Sequence int  // the number of the sequence in that pass

	// Skip says that the drafter will not be asked for a while, and that to read the text all along would cost more than it
	// is worth: what was read of it may be forgotten, and these rows are not to be read. The rows before the next request come
	// without Skip, unless it is for a tree of the text alone; the text that is read begins with them.
	Skip bool
}

// Pass reads the results of a target pass. They last until Commit returns.
type Pass interface {
	// Tap is the residual stream of a node, after the t-th of the layers that Taps lists.
	Tap(t, sequence, node int) []float32

	// Logits are those of the i-th node whose logits were asked for: in a round node i itself.
	Logits(sequence, i int) []float32
}

// Tap is the t-th tap of row i of r, nil where the row was not computed now.
func (r *Rows) Tap(t, i int) []float32 {
	if r.Pass == nil {
		return nil
	}
	return r.Pass.Tap(t, r.Sequence, int(r.Nodes[i]))
}
