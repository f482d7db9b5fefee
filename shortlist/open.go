package shortlist

import (
	"fmt"

	"github.com/grovellm/grove/internal/par"
	"github.com/grovellm/grove/nn"
	"github.com/grovellm/grove/tokenizer"
)

// Options choose a method, as drafters' texts say them.
type Options struct {
	Method string `draft:"shortlist" help:"tokens that the draft's head computes: freq, freq-pa or context; empty: all of them"`
	Size   int    `draft:"size" help:"the shortlist's most frequent tokens; 0: a quarter of the vocabulary, with context a sixteenth"`
	Extra  int    `draft:"extra" help:"context: how many other tokens of the text, and the target's alternatives in it, are listed at most; 0: 1024"`
	Ranks  string `draft:"ranks" help:"file of token ranks; empty: tokens by id, which a byte-pair vocabulary learned about by frequency"`
}

// Drafter is what a method must know of a drafter.
type Drafter struct {
	Pool      *par.Pool
	Head      *nn.Linear
	Norm      *nn.Norm             // before the head
	Vocab     int                  // tokens that may be drafted, the first of the head's
	Tokenizer *tokenizer.Tokenizer // may be nil
}

// Open makes the method that o names.
func Open(o Options, d Drafter) (Method, error) {
	all := d.Head.W.Out()
	var r *Ranks
	if o.Ranks == "" {
		r = Rank(make([]int64, all), d.Tokenizer, "ids")
	} else {
		var err error
		if r, err = OpenRanks(o.Ranks); err != nil {
			return nil, err
		}
		if r, err = r.For(all, d.Tokenizer); err != nil {
			return nil, fmt.Errorf("%s: %w", o.Ranks, err)
		}
	}
	r = r.within(d.Vocab)
	size := o.Size
	if size == 0 {
		if size = d.Vocab / 4; o.Method == "context" {
			size = d.Vocab / 16
		}
		size = max(size, 1)
	}
	if size < 1 || size > d.Vocab {
		return nil, fmt.Errorf("size=%d: want 1 to %d tokens", o.Size, d.Vocab)
	}
	switch o.Method {
	case "freq", "freq-pa":
		return NewFrequent(d.Pool, d.Head, d.Norm, r, size, o.Method == "freq-pa")
	case "context":
		extra := o.Extra
		if extra == 0 {
			extra = min(1024, d.Vocab)
		}
		if extra < 1 || extra > d.Vocab {
			return nil, fmt.Errorf("extra=%d: want 1 to %d tokens", o.Extra, d.Vocab)
		}
		return NewContext(d.Pool, d.Head, d.Norm, r, size, extra)
	}
	return nil, fmt.Errorf("shortlist=%s: want freq, freq-pa or context", o.Method)
}
