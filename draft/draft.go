// Package draft defines a drafter: what proposes the candidate tokens that the target verifies.
//
// A program registers a Family by name, and names it in Request.Drafter of package grove; the loop
// knows this interface and nothing else of it. Whatever a drafter proposes, the tokens that come
// out are those of plain decoding: a drafter can only be slow, not wrong. docs/write-a-drafter.md
// walks through one.
package draft

import (
	"context"

	"github.com/grovellm/grove/sample"
	"github.com/grovellm/grove/tree"
)

// Drafter proposes trees for many sequences at once. One goroutine uses it at a time.
//
// The life of a sequence: Begin; then Commit with the rows of the prompt, a chunk at a time; then
// rounds of Propose and Commit; then State.Close. After the rows of the prompt, each Commit brings
// the root of the last round and the nodes accepted below it, so the rows of all Commits are the
// text in order, without gaps, and the root of the next tree is the token that follows them.
//
// Propose may be called again without a Commit in between (a pass was cancelled), and a Commit may
// come without a Propose (the sequence was decoded plainly for a while).
//
// Every capability is a method, and Base has the answers of a drafter without the optional ones. A
// drafter embeds Base; a wrapper embeds the Drafter that it wraps, and so loses no capability. A
// wrapper whose states hold the part's hands those on in every method, Resume included.
type Drafter interface {
	// Taps lists the layers whose residual stream Commit wants of every committed row: 0 is the
	// embedding, i the output of block i. It does not change.
	Taps() []int

	// Begin makes the state of a new sequence. Requests wait meanwhile, so it must not generate with the model.
	Begin(o Options) (State, error)

	// Propose grows each request's tree. It returns a proposal for each request, in their order;
	// the slice lasts until the next call.
	Propose(ctx context.Context, requests []Request) ([]Proposal, error)

	// Commit takes what the target made of the last trees. It cannot be cancelled: the target has
	// moved on already.
	Commit(rows []Rows) error

	// Resume prepares s, before its first Commit, for a text of which the target has the first n
	// rows in a cache. from is the state of another sequence of the drafter, or nil; the first
	// common tokens of both texts are the same. s takes over what from has computed of them, and
	// shares its memory; from stays as it is. Resume returns the row from which on the target is to
	// compute rows again because s needs their taps; n if it needs none. The rows before come
	// without a Pass.
	Resume(s State, n int, from State, common int) (first int)

	// Pages lists the memory in which the drafter's sequences keep what they computed of their
	// texts. A program that bounds memory counts it. The list does not change, and other goroutines
	// may ask for it meanwhile.
	Pages() []Pages

	// Learned lists the numbers that the drafter learns while it drafts, in its own memory: weights
	// of +text, calibrations. A program may save them while no generation runs, and set them in a
	// new drafter of the same text and files. Nil: there are none.
	Learned() [][]float32
}

// Pages is memory in which a drafter keeps what it computed of texts, such as keys and values. Any goroutine may call
// its methods while the drafter works.
type Pages interface {
	RowBytes() int // of a token, at most
	InUse() int64  // bytes, of all texts
}

// Base answers for a drafter without the optional capabilities.
type Base struct{}

// Taps is empty: the drafter reads no layer of the target.
func (Base) Taps() []int { return nil }

// Resume needs no row again: the drafter reads tokens alone, and has computed nothing of them to
// share.
func (Base) Resume(s State, n int, from State, common int) (first int) { return n }

// Pages is empty: the drafter keeps tokens alone.
func (Base) Pages() []Pages { return nil }

// Learned is nil: the drafter learns nothing while it drafts.
func (Base) Learned() [][]float32 { return nil }

// Proposal says how a request's tree was made.
type Proposal struct {
	// Levels is how many levels of the tree took a pass of a network; 0: the tree comes from the
	// text alone, or is empty. The loop learns from it what a level costs.
	Levels int

	// Drawn is the distribution, over the target's vocabulary, that a node's children were drawn from,
	// without replacement and in the order of the tree; nil for a node without children. It lasts until
	// the next Propose or Commit. The field is set where Options.Sampled asked for a drawn tree and the
	// drafter can draw; nil: the nodes were chosen.
	Drawn func(node int) []float32
}

// State is what a drafter keeps of one sequence.
type State interface {
	// Close gives the state's memory back; the state is not used again.
	Close()
}

// Options describe a new sequence.
type Options struct {
	// Sampling is how the target's tokens are chosen. Above temperature 0 a drafter that ranks its
	// candidates with the noise they will meet, sample.Noise(Seed, position, token), gets more of
	// them accepted; see Ranking.
	Sampling sample.Params

	// Predicted is text that the caller expects much of the output to repeat; often empty.
	Predicted []int32

	// Memory has texts of past requests, which the output may repeat too; nil: there are none.
	Memory Memory

	// Sampled asks for trees whose children are drawn from the drafter's own distribution, without
	// replacement and with noise of its own (Seed), in the order drawn; see Proposal.Drawn.
	// Drafters that cannot draw propose as Ranking says.
	Sampled bool
	Seed    uint64
}

// Ranking is how a drafter that does not draw ranks its candidates. Where drawn trees are asked
// for, the target's choice meets no noise that can be known, and the likeliest candidates are the
// best: those of temperature 0.
func (o *Options) Ranking() sample.Params {
	p := o.Sampling
	if o.Sampled {
		p.Temperature = 0
	}
	return p
}

// Memory finds what followed the end of a text in texts of the past. It appends to dst the places where
// the last tokens of text occurred, of least tokens or more: the longest matches first, of equal ones the
// newest first, most at most. It needs no more than the last 32 tokens of text. It is used by many
// goroutines.
type Memory func(dst []Match, text []int32, least, most int) []Match

// Match is a place where the end of a text occurred.
type Match struct {
	Length int     // tokens that are the same, at most 32
	Next   []int32 // what followed there; not to be changed
}

// Request asks for one tree.
type Request struct {
	State  State
	Tree   *tree.Tree // holds the root, the last committed token; Propose appends to it
	Budget int        // nodes of the finished tree at most, root included
	Depth  int        // depth of its nodes at most: what lies deeper cannot be emitted any more
	Guide  Guide      // what is known of the worth of nodes; nil: every node is worth its place

	// Cache is what the target's layers keep of the text before the root, for drafters of grove's own
	// that read it. Its rows stay as they are until Propose returns. Nil: there is nothing to read.
	Cache any
}

// Guide knows how often nodes like one were accepted, and what a pass costs. A drafter asks it
// while the tree grows; the loop cuts the finished tree to the nodes that pay in any case.
type Guide interface {
	// Chance is the probability that the target accepts a node at a depth, given that it accepted
	// the parent, where the drafter's own estimate is exp(logProb).
	Chance(depth int, logProb float32) float32

	// Value is what a node adds to a round, in tokens, whose path (the product of chances along it) is
	// accepted with a chance: that chance less what the node's row in the target's pass costs, or 0
	// where the node is not worth its row.
	Value(chance float32) float32

	// Deeper reports whether drafting another level pays, which takes a pass of the drafter's
	// network: expected is the sum of the values of the tree so far, more what the level would
	// add to it. A drafter asks before each level, the first included, and before it does
	// any work for that level. A drafter without a network does not ask.
	Deeper(expected, more float32) bool
}

// Rows are the rows of one sequence that the target has just committed.
type Rows struct {
	State  State
	Tokens []int32 // in text order, until Commit returns

	// Tree is the tree that was verified and Nodes the node of each of Tokens in it, the root
	// first; Next is the token that the target chose after the last of them. For rows of the prompt
	// Tree is their chain, and Next is -1. For rows that came with a cache filled earlier Tree and
	// Pass are nil as well; see Drafter.Resume.
	Tree  *tree.Tree
	Nodes []int32
	Next  int32

	Pass     Pass // the pass that computed the rows
	Sequence int  // the number of the sequence in that pass

	// Skip says that the drafter will not be asked for a while, and that to read the text all along
	// would cost more than it is worth: what was read of it may be forgotten, and these rows are
	// not to be read. The guide refuses every level until rows have come without Skip; the text
	// that is read begins with them.
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

// Logits are the target's after row i of r, over its vocabulary: those that Next, or the token of the
// next row, was chosen by. Nil for rows of the prompt, and where the row was not computed now.
func (r *Rows) Logits(i int) []float32 {
	if r.Pass == nil || r.Next < 0 {
		return nil
	}
	return r.Pass.Logits(r.Sequence, int(r.Nodes[i]))
}
