package shortlist

import (
	"cmp"
	"fmt"

	"github.com/grovellm/grove/internal/kernels/par"
	"github.com/grovellm/grove/internal/nn"
	"github.com/grovellm/grove/tokenizer"
)

// Options choose a method, as given in the text of a drafter.
type Options struct {
	Method string // freq, freq-pa, context, dynaspec or dynaspec-fixed; empty: the whole vocabulary
	Size   int    `draft:"size" help:"tokens of the shortlist; 0: a quarter of the vocabulary, with +context a sixteenth, with +dynaspec the router's default"`
	Extra  int    `draft:"extra" help:"tokens added from the text; 0: 1024, with +dynaspec 512; -1: none, with +dynaspec"`
	Own    bool   `draft:"own" help:"with +dynaspec: each row of a draft step has its own list, as in the paper; default: rows share one"`
	Ranks  string `draft:"ranks" help:"file of token ranks (see grove ranks); empty: by token id, about the order of frequency in byte-pair vocabularies"`
	Router string `draft:"router" help:"GGUF file of the router; empty: the one the model was opened with"`
}

// Routed reports whether the method needs a router.
func (o *Options) Routed() bool { return o.Method == "dynaspec" || o.Method == "dynaspec-fixed" }

// Drafter is what a method needs to know about a drafter.
type Drafter struct {
	Pool      *par.Pool
	Head      *nn.Linear
	Norm      *nn.Norm             // before the head; may be nil
	Tokens    []int32              // of each row of the head; nil: row i is token i's
	Vocab     int                  // of the target, or the number of the head's first tokens that may be drafted
	Tokenizer *tokenizer.Tokenizer // may be nil

	// For dynaspec, if the drafter's rows read a feature as well as their token:
	Embed   nn.Table
	Routing *Routing
}

// Open makes the method that o names.
func Open(o Options, d Drafter) (Method, error) {
	head, err := NewHead(d.Head, d.Norm, d.Tokens, d.Vocab)
	if err != nil {
		return nil, err
	}
	if o.Routed() {
		return o.openRouted(&d, head)
	}
	r, err := o.ranks(&d, head)
	if err != nil {
		return nil, err
	}
	most := len(r.Order)
	size := o.Size
	if size == 0 {
		size = most / 4
		if o.Method == "context" {
			size = most / 16
		}
		size = max(size, 1)
	}
	if size < 1 || size > most {
		return nil, fmt.Errorf("size=%d: want 1 to %d tokens", o.Size, most)
	}
	switch o.Method {
	case "freq", "freq-pa":
		return NewFrequent(d.Pool, head, r, size, o.Method == "freq-pa")
	case "context":
		extra := cmp.Or(o.Extra, min(1024, most))
		if extra < 1 || extra > most {
			return nil, fmt.Errorf("extra=%d: want 1 to %d tokens", o.Extra, most)
		}
		return NewContext(d.Pool, head, r, size, extra)
	}
	return nil, fmt.Errorf("shortlist %q: want freq, freq-pa, context, dynaspec or dynaspec-fixed", o.Method)
}

// ranks returns the ranks of the tokens that may be drafted.
func (o *Options) ranks(d *Drafter, head *Head) (*Ranks, error) {
	var r *Ranks
	if o.Ranks == "" {
		r = Rank(make([]int64, head.Vocab()), d.Tokenizer, "ids")
	} else {
		var err error
		if r, err = OpenRanks(o.Ranks); err != nil {
			return nil, err
		}
		if r, err = r.For(head.Vocab(), d.Tokenizer); err != nil {
			return nil, fmt.Errorf("%s: %w", o.Ranks, err)
		}
	}
	return r.keep(func(token int32) bool { return int(token) < d.Vocab && head.Row(token) >= 0 }), nil
}

// routedExtra is the default number of a sequence's tokens that dynaspec lists.
const routedExtra = 512

// openRouted opens dynaspec.
func (o *Options) openRouted(d *Drafter, head *Head) (Method, error) {
	r := d.Routing
	switch {
	case d.Embed == nil:
		return nil, fmt.Errorf("+%s: the drafter lacks the states that a router reads: want freq, freq-pa or context", o.Method)
	case r == nil:
		return nil, fmt.Errorf("+%s: there is no router: name one with router=FILE, or open the model with one",
			o.Method)
	}
	routed := RoutedOptions{Own: o.Own, Clusters: r.Listed, Extra: min(routedExtra, head.W.Out())}
	if o.Method == "dynaspec" { // the first steps may have more, as later steps have less
		routed.PositionAware, routed.Clusters = true, min(2*r.Listed, len(r.Clusters))
	}
	switch {
	case o.Extra < -1 || o.Extra > head.W.Out():
		return nil, fmt.Errorf("extra=%d: want up to %d tokens, or -1 for none", o.Extra, head.W.Out())
	case o.Extra != 0:
		routed.Extra = max(o.Extra, 0)
	}
	if o.Size != 0 {
		clustered := 0
		for _, c := range r.Clusters {
			clustered += len(c)
		}
		if o.Size < 1 || o.Size > clustered+len(r.Always) {
			return nil, fmt.Errorf("size=%d: want 1 to the router's %d tokens", o.Size, clustered+len(r.Always))
		}
		routed.Clusters = max(1, (o.Size-len(r.Always))*len(r.Clusters)/clustered)
	}
	return NewRouted(d.Pool, head, d.Embed, r, routed)
}
