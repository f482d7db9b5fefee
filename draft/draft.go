// Package draft defines the interface of a drafter, which proposes the candidate tokens that the target verifies.
//
// A program registers a Family by name, and names it in Request.Drafter of package grove; the
// speculation loop knows only this interface. Whatever a drafter proposes, the output tokens are
// those of plain decoding: a drafter can be slow, but not wrong. docs/write-a-drafter.md walks
// through one.
package draft

import (
	"context"

	"github.com/grovellm/grove/sample"
	"github.com/grovellm/grove/tree"
)

// Drafter proposes trees for many sequences at once. One goroutine uses it at a time.
//
// The life of a sequence: Begin; then Commit with the rows of the prompt, a chunk at a time; then
// rounds of Propose and Commit; then State.Close. After the rows of the prompt, each Commit has the
// root of the last round and the nodes accepted below it. So the rows of all Commits are the text
// in order, without gaps, and the root of the next tree is the token that follows them.
//
// Propose may be called again without a Commit in between (a pass was cancelled), and a Commit may
// come without a Propose (the sequence was decoded plainly for a while).
//
// Every capability is a method, and Base implements the optional ones for drafters without them. A drafter embeds
// Base; a wrapper embeds the Drafter that it wraps, and so loses no capability. A wrapper whose states contain those
// of the wrapped drafter passes these on in every method, Resume included.
type Drafter interface {
	// Taps lists the layers whose residual stream Commit wants of every committed row: 0 is the
	// embedding, i the output of block i. It does not change.
	Taps() []int

	// Begin makes the state of a new sequence. Requests wait until it returns, so it must not generate with the
	// model.
	Begin(o Options) (State, error)

	// Propose grows each request's tree. It returns a proposal for each request, in their order;
	// the slice lasts until the next call.
	Propose(ctx context.Context, requests []Request) ([]Proposal, error)

	// Commit takes the target's results for the last trees. It cannot be cancelled, since the
	// target has already moved on.
	Commit(rows []Rows) error

	// Resume prepares s, before its first Commit, for a text whose first n rows the target has in a
	// cache. from is the state of another sequence of the drafter, or nil; the first common tokens
	// of both texts are the same. s takes over what from has computed for them, and shares its
	// memory; from is unchanged. Resume returns the first row that the target must compute again
	// because s needs its taps; n if there is none. Earlier rows come without a Pass.
	Resume(s State, n int, from State, common int) (first int)

	// Pages lists the memory in which the drafter's sequences keep what they computed for their
	// texts. A program that bounds memory counts it. The list does not change, and other goroutines
	// may call Pages at any time.
	Pages() []Pages

	// Learned lists the numbers that the drafter learns while it drafts, such as weights of +text and calibrations.
	// They are the drafter's own memory. A program may save them while no generation runs, and set them in a new
	// drafter of the same name, options and files. Nil: there are none.
	Learned() [][]float32
}

// Pages is memory in which a drafter keeps what it computed for texts, such as keys and values. Any goroutine may
// call its methods while the drafter works.
type Pages interface {
	RowBytes() int // per token, at most
	InUse() int64  // bytes, for all texts
}

// Base implements the methods of a drafter without the optional capabilities.
type Base struct{}

// Taps is empty: the drafter reads no layer of the target.
func (Base) Taps() []int { return nil }

// Resume needs no row again: the drafter reads only tokens, and has computed nothing from them to
// share.
func (Base) Resume(s State, n int, from State, common int) (first int) { return n }

// Pages is empty: the drafter keeps only tokens.
func (Base) Pages() []Pages { return nil }

// Learned is nil: the drafter learns nothing while it drafts.
func (Base) Learned() [][]float32 { return nil }

// Proposal says how a request's tree was made.
type Proposal struct {
	// Levels is how many levels of the tree took a pass of a network; 0: the tree comes from the
	// text alone, or is empty. The loop uses it to learn what a level costs.
	Levels int

	// Drawn is the distribution, over the target's vocabulary, that a node's children were drawn from,
	// without replacement and in the order of the tree; nil for a node without children. It lasts until
	// the next Propose or Commit. The field is set where Options.Sampled asked for a drawn tree and the
	// drafter can draw; nil: the nodes were chosen.
	Drawn func(node int) []float32
}

// State is what a drafter keeps for one sequence.
type State interface {
	// Close frees the state's memory; the state is not used again.
	Close()
}

// Options describe a new sequence.
type Options struct {
	// Sampling is how the target's tokens are chosen. Above temperature 0, a drafter that ranks its
	// candidates with the noise that the target's choice will have, sample.Noise(Seed, position,
	// token), gets more of them accepted; see Ranking.
	Sampling sample.Params

	// Predicted is text that the caller expects the output to repeat in large parts; often empty.
	Predicted []int32

	// Memory has texts of past requests, which the output may repeat too; nil: there are none.
	Memory Memory

	// Sampled asks for trees whose children are drawn from the drafter's own distribution, without
	// replacement and with noise of its own (Seed), in the order drawn; see Proposal.Drawn.
	// Drafters that cannot draw propose as Ranking says.
	Sampled bool
	Seed    uint64
}

// Ranking is how a drafter that does not draw ranks its candidates. If drawn trees are asked for,
// the noise of the target's choice cannot be known, and the most probable candidates are the best:
// those of temperature 0.
func (o *Options) Ranking() sample.Params {
	p := o.Sampling
	if o.Sampled {
		p.Temperature = 0
	}
	return p
}

// Memory finds earlier occurrences of the end of a text in past texts. It appends up to most matches of
// the last tokens of text to dst, each least tokens long or longer: the longest first, and the newest
// first among equally long ones. It needs only the last 32 tokens of text. Many goroutines may call it
// at the same time.
type Memory func(dst []Match, text []int32, least, most int) []Match

// Match is a place where the end of a text occurred before.
type Match struct {
	Length int     // matching tokens, at most 32
	Next   []int32 // the tokens that followed there; read-only
}

// Request asks for one tree.
type Request struct {
	State  State
	Tree   *tree.Tree // holds the root, the last committed token; Propose appends to it
	Budget int        // maximum nodes of the finished tree, root included
	Depth  int        // maximum depth of its nodes: deeper ones could not be emitted
	Guide  Guide      // knows which nodes pay off; nil: every node does

	// Cache is what the target's layers keep of the text before the root; only some of grove's own drafters read it.
	// Its rows stay as they are until Propose returns. Nil: there is nothing to read.
	Cache any
}

// Guide knows how often similar nodes were accepted, and what a pass costs. A drafter may ask it
// while the tree grows; either way, the loop prunes the finished tree to the nodes that pay off.
type Guide interface {
	// Chance is the probability that the target accepts a node at a depth, given that it accepted
	// the parent, where the drafter's own estimate is exp(logProb).
	Chance(depth int, logProb float32) float32

	// Value is the number of tokens that a node is expected to add to a round, given the chance that
	// its path is accepted (the product of chances along it): that chance minus the cost of the node's
	// row in the target's pass, or 0 if the node is not worth its row.
	Value(chance float32) float32

	// Deeper reports whether it pays off to draft another level, which takes a pass of the
	// drafter's network: expected is the sum of the values of the tree so far, more is the value
	// that the level would add. A drafter asks before each level, the first included, and before it
	// does any work for that level. A drafter without a network does not ask.
	Deeper(expected, more float32) bool
}

// Rows are the rows of one sequence that the target has just committed.
type Rows struct {
	State  State
	Tokens []int32 // in text order, until Commit returns

	// Tree is the tree that was verified and Nodes the node of each of Tokens in it, the root
	// first; Next is the token that the target chose after the last of them. For rows of the prompt
	// Tree is their chain, and Next is -1. For rows from a cache that was filled earlier, Tree and
	// Pass are nil too; see Drafter.Resume.
	Tree  *tree.Tree
	Nodes []int32
	Next  int32

	Pass     Pass // the pass that computed the rows
	Sequence int  // the number of the sequence in that pass

	// Skip says that the drafter will not be asked for a while, and that reading the text in the
	// meantime would cost more than it is worth: it may forget the text that it has read, and must
	// not read these rows. The guide refuses every level until rows come without Skip; the drafter
	// reads the text from there on.
	Skip bool
}

// Pass reads the results of a target pass. They last until Commit returns.
type Pass interface {
	// Tap is the residual stream of a node, after the t-th of the layers that Taps lists.
	Tap(t, sequence, node int) []float32

	// Logits are those of the i-th node whose logits were requested: in a round, node i itself.
	Logits(sequence, i int) []float32
}

// Tap is the t-th tap of row i of r; nil if this pass did not compute the row.
func (r *Rows) Tap(t, i int) []float32 {
	if r.Pass == nil {
		return nil
	}
	return r.Pass.Tap(t, r.Sequence, int(r.Nodes[i]))
}

// Logits are the target's logits after row i of r, over its vocabulary: Next, or the token of the next row, was
// chosen from them. Nil for rows of the prompt, and for rows that this pass did not compute.
func (r *Rows) Logits(i int) []float32 {
	if r.Pass == nil || r.Next < 0 {
		return nil
	}
	return r.Pass.Logits(r.Sequence, int(r.Nodes[i]))
}
