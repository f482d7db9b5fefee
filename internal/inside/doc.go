// Package inside gives the server, the commands and the measurements access to parts of a grove.Model
// that programs do not see. Package grove sets its functions; the m of each is a *grove.Model, or
// embeds one.
//
// Input: a model. Output: its target, its engine's figures or an adapter. Read grove.go of the root first, which
// has the model and sets the functions.
package inside

import (
	"github.com/grovellm/grove/internal/adapt"
	"github.com/grovellm/grove/internal/drafters/registry"
	"github.com/grovellm/grove/internal/engine"
	"github.com/grovellm/grove/internal/speculate"
	"github.com/grovellm/grove/tensor"
	"github.com/grovellm/grove/tree"
)

// Target is the model as grove's own drafters know it. It and what it opens last until the model is
// closed.
var Target func(m any) registry.Target

// EngineStats say what the model's generations do and did.
var EngineStats func(m any) engine.Stats

// Adapter is the adapter of the head that a drafter runs, which has the modifier +adapt.
var Adapter func(m any, drafter string) (*adapt.Adapter, error)

// OpenOptions are how measurements and commands open a model.
type OpenOptions struct {
	Name string // of the model, for the log; empty: not known

	// Auto is what the drafter "auto" stands for, in the same syntax; empty: the best of what the
	// model was opened with, by registry.Resolve.
	Auto string

	// Pad, where it is not 0, pads the model to about so many parameters: its text stays the same, its
	// passes cost what those of a model of that size cost. PadType is the type of the weights added,
	// BF16 where it is 0.
	Pad     int64
	PadType tensor.Type

	// PadExperts, where it is not 0, makes each MLP of the model into so many experts. They are
	// copies of it, and a row uses PadUsed of them. The text stays the same but for rounding.
	PadExperts, PadUsed int

	// LearnShare is the share of decoding time that heads may lose to learning; 0: adapt.DefaultTuning's.
	LearnShare float64
}

// SetOpenOptions adds to options, which are a *grove.Options.
var SetOpenOptions func(options any, more OpenOptions)

// Round is one round of speculation.
type Round struct {
	Tree *tree.Tree // what was verified, the last committed token at its root; used again for the next round
	Path []int32    // its nodes that were accepted, the root first
	Next int32      // the token after the path: the bonus token, or the last of the text

	Budget int              // nodes that the tree might have, root included
	Stats  *speculate.Stats // of the generation so far, this round included
}

// RequestOptions are what measurements, commands and the server ask of a request beside.
type RequestOptions struct {
	// Accept is the rule by which drafted tokens are accepted. Under "coupled", the default, target
	// and drafter share their noise, and the text is that of plain decoding. "rejection" is the rule
	// of the papers, for comparison: drafters draw their candidates at random, and the text is another
	// sample of the same distribution, which a seed repeats with Uncontrolled alone; at temperature 0
	// the two are one.
	Accept string

	// FreshPrompt computes the whole prompt and shares nothing of it.
	FreshPrompt bool

	// Call is what it belongs to as one of several choices; nil: it is alone.
	Call *engine.Call

	// Key is what the request's tenant is a part of: keys share the machine evenly, and the tenants of a
	// key its part; empty: the tenant is its own key.
	Key string

	// Ends are tokens that end the text, in addition to the model's own. Neither these nor stop strings
	// end it before it has MinTokens tokens.
	Ends      []int32
	MinTokens int

	// Paced computes a chunk only when the caller asks for it, so that several generations can be
	// compared in turn. Otherwise the engine goes on while the caller is busy.
	Paced bool

	// OnRound is called after every round of speculation, before its text is yielded; nil: nothing is.
	OnRound func(Round)
}

// Check says what is wrong with a request, which is a *grove.Request, for a prompt of a model.
var Check func(model any, prompt []int32, request any) error

// Hides returns which tokens the text of a request, which is a *grove.Request, leaves out.
var Hides func(model, request any) func(token int32) bool

// RequestOptionsOf are those of a request, which is a *grove.Request, to be set.
var RequestOptionsOf func(request any) *RequestOptions

// Stats are all figures of a result, which is a *grove.Result.
var Stats func(result any) *speculate.Stats
