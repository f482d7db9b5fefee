// Package shortlist chooses the tokens that a drafter's output head computes: part of the
// vocabulary, which is safe since verification covers all of it. The output head is most of a small
// drafter's work.
//
//	freq     the most frequent tokens (FR-Spec), as many at every step of a draft
//	freq-pa  fewer of them the deeper the step (DynaSpec, appendix A.1)
//	context  the most frequent ones, and the tokens of the text so far with what the verifier nearly chose there
//	dynaspec clusters of tokens that a router picks by what the drafter's row reads, fewer the deeper the step (DynaSpec §4)
//	dynaspec-fixed  as many of them at every step
//
// Above temperature 0 context and dynaspec also list what noise may choose next.
//
// Each has the head in its own order (output.OrderedHead), so that a list is a few runs of panels
// for the kernel to walk.
//
// # Scores over lists
//
// A probability over a list is too high by the mass that the list leaves out, which may be little
// or nearly all. To make scores over different lists, or over none, comparable, each row estimates
// the mass outside from a panel or two of numbers computed along with its logits: see tail.
package shortlist

import (
	"github.com/grovellm/grove/internal/kernels/par"
	"github.com/grovellm/grove/internal/nn/output"
	"github.com/grovellm/grove/sample"
)

// Method makes the lists for drafters of one head. One goroutine uses it at a time.
type Method interface {
	// Begin makes the state of a new sequence, whose tokens are chosen with p.
	Begin(p *sample.Params) State
	// Choose writes the list of every query to lists. Each lasts until its state is asked for a list
	// of step 0 again, or for one after its next Commit or Alternatives.
	Choose(queries []Query, lists []*List)
	// Fork is the method for another goroutine. What does not change is shared.
	Fork() Method
}

// Phased is a Method that chooses in phases of the drafter's pass, between its layers and its head.
type Phased interface {
	Method
	// Start is Choose, but what is in the lists is known only when the phases are done. One is under
	// way at a time.
	Start(queries []Query, lists []*List) []par.Phase
	// ReadsOutput reports whether Query.Hidden is the row's output, which the layers compute; else it
	// is the row's feature, which is known before.
	ReadsOutput() bool
}

// State is what is known of one sequence.
type State interface {
	// Commit takes in tokens of the text, the prompt's too.
	Commit(tokens []int32)
	// Alternatives takes in the logits that the target gave at n places in it.
	Alternatives(n int, logits Rows)
	// Close gives the memory back; the state is not used again.
	Close()
}

// Rows are logits by number: an nn.Mat is.
type Rows interface{ Row(i int) []float32 }

// Query is a row whose logits are to be computed. Those of a state come one after the other.
type Query struct {
	State State
	// of the draft: 0 gives the first drafted token. A state's step 0 comes before its others, and begins a draft
	Step   int
	Token  int32     // the row's
	Hidden []float32 // for a router: see Phased.ReadsOutput
}

// List is a shortlist with an estimate of what it leaves out.
type List struct {
	output.Shortlist
	tail *tail
	cut  float64 // of the tail, see tail.logMass
}

// end completes the list. It has the likeliest of the tokens that t sums up, as many as listed says.
func (l *List) end(t *tail, listed int) {
	l.tail, l.cut = t, cutAbove(float64(listed)/float64(max(t.tokens, 1)))
	l.AddExtra(t.head)
}

// LogOutside estimates, from what the drafter computed for a row with the list, the logarithm of the sum of
// exp(logit / temperature) of all tokens left out; temperature 0 is taken for 1, as in ranking. The row may be longer
// than the list is wide, for longer lists beside it.
func (l *List) LogOutside(row []float32, temperature float32) float64 {
	return l.tail.logMass(row[l.Len():l.Width()], temperature, l.cut)
}

// stateless is a state for methods that keep nothing of a sequence.
type stateless struct{}

func (stateless) Commit([]int32)         {}
func (stateless) Alternatives(int, Rows) {}
func (stateless) Close()                 {}
